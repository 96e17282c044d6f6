"""ASGI as it is used here: its types, reading a body, sending a response, and ending a stream when the server stops."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from bespeak.transports.http.large_bodies import LargeBody, Message, Send

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

END_OF_STREAM = "bespeak.end_of_stream"
"""The key in a request's scope for the function that ends the stream of the request."""
NO_CONTENT = 204
JSON = (b"content-type", b"application/json")


async def respond(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    """Send a whole response."""
    lengths = [] if status == NO_CONTENT else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *lengths]})
    await send({"type": "http.response.body", "body": body})


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def when_stopping(scope: Scope, end: Callable[[], object]) -> None:
    """Register a function that ends a request's stream when the server stops. Otherwise the server would wait for it."""
    scope[END_OF_STREAM] = end


def end_stream(scope: Scope | None) -> None:
    """End the stream that a request has opened, if it has opened one."""
    end: Callable[[], object] | None = scope.get(END_OF_STREAM) if scope else None
    if end is not None:
        end()


async def read_body(receive: Receive, limit: int, large: LargeBody | None = None) -> bytes | bytearray | None:
    """Return a request's body; `None` if the client has gone. Raises `BodyTooLarge`. A large body waits for room."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body", False) and len(body) <= limit:
        return body
    # Not a list of pieces: they would lie between what stays, and keep memory from being given back.
    whole = bytearray()
    while message["type"] == "http.request":
        whole += message.get("body", b"")
        if len(whole) > limit:
            raise BodyTooLarge
        if not message.get("more_body", False):
            return whole
        if large is not None:
            await large.let_in()
            large = None
        message = await receive()
    return None


class BoundedBody:
    """A `receive` that raises `BodyTooLarge` or `BodyTooSlow`, whoever calls it. After the body it only passes messages on."""

    def __init__(self, receive: Receive, limit: int, seconds: float, large: LargeBody | None) -> None:
        self._receive = receive
        self._large = large
        self._limit = limit
        self._seconds = seconds
        self._deadline: float | None = None
        self._length = 0
        self._ended = False

    async def __call__(self) -> Message:
        if self._ended:
            return await self._receive()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                if self._large is not None and self._length:
                    await self._large.let_in()
                    self._large = None
                message = await self._receive()
        except TimeoutError:
            raise BodyTooSlow from None
        self._length += len(message.get("body", b""))
        if self._length > self._limit:
            raise BodyTooLarge
        self._ended = not message.get("more_body", False)
        return message


def declares_more(headers: Iterable[tuple[bytes, bytes]], limit: int) -> bool:
    """Return whether the Content-Length of a request is above the limit."""
    declared = next((value for name, value in headers if name == b"content-length"), b"")
    return declared.isdigit() and (len(declared) > 18 or int(declared) > limit)


class BodyTooLarge(Exception):
    """A body is longer than its reader accepts."""


class BodyTooSlow(Exception):
    """A body did not arrive in time."""
