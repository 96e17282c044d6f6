"""One raw request to a server, in either era: the whole response."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from bespeak import MCPServer
from tests.server.legacy.older_client import EVERYTHING, FIRST, JUNE, MARCH, NOVEMBER, Older
from tests.serving import serve

Sent = dict[str, Any]
Respond = Callable[[MCPServer[Any], str, Sent], Awaitable[Sent]]


async def modern(mcp: MCPServer[Any], method: str, params: Sent | None = None) -> Sent:
    """The response to a client of 2026-07-28 that can be asked everything."""
    meta = {PROTOCOL_VERSION_META_KEY: "2026-07-28", CLIENT_CAPABILITIES_META_KEY: EVERYTHING}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **(params or {})}}
    response = await serve(mcp, json.dumps(message).encode())
    assert response is not None
    return json.loads(response)


async def legacy(mcp: MCPServer[Any], method: str, params: Sent | None = None, version: str = NOVEMBER) -> Sent:
    """The response to a client of an older revision."""
    async with Older(mcp, version=version) as client:
        return await client.request(method, params)


both_eras = pytest.mark.parametrize("respond", [modern, legacy])

__all__ = ["FIRST", "JUNE", "MARCH", "NOVEMBER", "Respond", "Sent", "both_eras", "legacy", "modern"]
