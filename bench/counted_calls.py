"""Calls without a socket, to be counted by `bench.counted`: `python counted_calls.py bespeak|bare WORK CALLS`.

The work is the name of a tool, or `older` for the plain one in a session of 2025-11-25. Every reply is checked.
"""

# pyright: basic

import asyncio
import json
import sys
from typing import Any

from asgi import post
from load import INITIALIZE, answered, message
from tools import register

LIBRARY, WORK, CALLS = sys.argv[1], sys.argv[2], int(sys.argv[3])


async def serve(app: Any) -> None:
    for number in range(CALLS):
        body: bytes | None = message(WORK, number)
        while body is not None:
            body = answered(WORK, number, json.loads(await post(app, WORK, body)))


async def serve_older(app: Any) -> None:
    heads: list[tuple[bytes, bytes]] = []
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
    await post(app, None, json.dumps(hello).encode(), heads=heads)
    session = [one for one in heads if one[0] == b"mcp-session-id"]
    known = [*session, (b"mcp-protocol-version", b"2025-11-25")]
    for number in range(CALLS):
        params = {"name": "plain", "arguments": {"a": number, "b": 2}}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()
        response = json.loads(await post(app, None, body, known))
        assert response["result"]["content"][0]["text"] == str(number + 2), response


def app() -> Any:
    if LIBRARY == "bare":
        from bare import bare

        return bare
    from bespeak import Context, Elicit, MCPServer, Resolve

    mcp = MCPServer("Bench", log_level="ERROR")
    register(mcp, Elicit, Resolve, Context)
    return mcp.streamable_http_app()


asyncio.run((serve_older if WORK == "older" else serve)(app()))
