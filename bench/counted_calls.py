"""Calls without a socket, to be counted by `bench.counted`: `python counted_calls.py bespeak|bare TOOL CALLS`.

Every reply is checked.
"""

# pyright: basic

import asyncio
import json
import sys
from typing import Any

from load import answered, message
from tools import register

LIBRARY, TOOL, CALLS = sys.argv[1], sys.argv[2], int(sys.argv[3])

HEADERS = [
    (b"host", b"127.0.0.1:8000"),
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", b"application/json"),
    (b"mcp-protocol-version", b"2026-07-28"),
    (b"mcp-method", b"tools/call"),
    (b"mcp-name", TOOL.encode()),
]


async def respond(app: Any, body: bytes) -> bytes:
    """The body of an ASGI app's response to one request."""
    sent: list[Any] = []
    bodies = iter([body])

    async def receive() -> dict[str, Any]:
        given = next(bodies, None)
        if given is None:  # the client stays connected and sends nothing more
            await asyncio.get_running_loop().create_future()
        return {"type": "http.request", "body": given, "more_body": False}

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    headers = [*HEADERS, (b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "client": ("127.0.0.1", 5000), "headers": headers}
    await app(scope, receive, send)
    return sent[-1]["body"]


async def serve(app: Any) -> None:
    for number in range(CALLS):
        body: bytes | None = message(TOOL, number)
        while body is not None:
            body = answered(TOOL, number, json.loads(await respond(app, body)))


def app() -> Any:
    if LIBRARY == "bare":
        from bare import bare

        return bare
    from bespeak import Context, Elicit, MCPServer, Resolve

    mcp = MCPServer("Bench", log_level="ERROR")
    register(mcp, Elicit, Resolve, Context)
    return mcp.streamable_http_app()


asyncio.run(serve(app()))
