"""Calls without a socket, to be counted by `bench.counted`: `python counted_calls.py bespeak|bare TOOL CALLS`.

Every reply is checked.
"""

# pyright: basic

import asyncio
import json
import sys
from typing import Any

from asgi import post
from load import answered, message
from tools import register

LIBRARY, TOOL, CALLS = sys.argv[1], sys.argv[2], int(sys.argv[3])


async def serve(app: Any) -> None:
    for number in range(CALLS):
        body: bytes | None = message(TOOL, number)
        while body is not None:
            body = answered(TOOL, number, json.loads(await post(app, TOOL, body)))


def app() -> Any:
    if LIBRARY == "bare":
        from bare import bare

        return bare
    from bespeak import Context, Elicit, MCPServer, Resolve

    mcp = MCPServer("Bench", log_level="ERROR")
    register(mcp, Elicit, Resolve, Context)
    return mcp.streamable_http_app()


asyncio.run(serve(app()))
