"""Requests to an ASGI app without a socket."""

import asyncio
from typing import Any

HEADERS = [
    (b"host", b"127.0.0.1:8000"),
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", b"application/json"),
]


async def post(
    app: Any,
    tool: str | None,
    body: bytes,
    more: list[tuple[bytes, bytes]] | None = None,
    *,
    heads: list[tuple[bytes, bytes]] | None = None,
) -> bytes:
    """Return the body of the response to one request: a call of a tool at 2026-07-28, or any message if that is `None`.

    The headers of the response are added to `heads`.
    """
    sent: list[Any] = []
    bodies = iter([body])

    async def receive() -> dict[str, Any]:
        given = next(bodies, None)
        if given is None:  # the client stays connected and sends nothing more
            await asyncio.get_running_loop().create_future()
        return {"type": "http.request", "body": given, "more_body": False}

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    headers = [*HEADERS, *(more or []), (b"content-length", b"%d" % len(body))]
    if tool is not None:
        headers += [
            (b"mcp-protocol-version", b"2026-07-28"),
            (b"mcp-method", b"tools/call"),
            (b"mcp-name", tool.encode()),
        ]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "client": ("127.0.0.1", 5000), "headers": headers}
    await app(scope, receive, send)
    if heads is not None:
        heads += sent[0]["headers"]
    return sent[-1]["body"]
