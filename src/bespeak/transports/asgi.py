"""ASGI, as far as it is used here: its types, reading a body, and a plain response."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

NO_CONTENT = 204
JSON = (b"content-type", b"application/json")


async def respond(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    """Send a whole response."""
    lengths = [] if status == NO_CONTENT else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *lengths]})
    await send({"type": "http.response.body", "body": body})


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """A request's body; `None` if the client went away. Raises `BodyTooLarge`."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body", False) and len(body) <= limit:
        return body
    pieces: list[bytes] = []
    length = 0
    while message["type"] == "http.request":
        body = message.get("body", b"")
        pieces.append(body)
        length += len(body)
        if length > limit:
            raise BodyTooLarge
        if not message.get("more_body", False):
            return b"".join(pieces)
        message = await receive()
    return None


class BodyTooLarge(Exception):
    """A body is longer than its reader takes."""
