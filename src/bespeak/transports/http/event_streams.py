"""A response that is an event stream: sent event by event, kept alive while there is nothing to send, and ended
cleanly.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from bespeak.aio.outbox import Outbox
from bespeak.protocol.server_sent_events import KEEP_ALIVE
from bespeak.transports.http.asgi import Send

SILENCE_SECONDS = 15.0
"""After this time without an event, a keep-alive is sent. A response that is not a stream yet becomes one."""
LAST_WORDS_SECONDS = 1.0
_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """A response that is sent event by event, by a task of its own."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._outbox = Outbox()
        self._ended = False
        self._writer = asyncio.create_task(self._write(), name="bespeak event stream")

    def put(self, event: bytes) -> Coroutine[Any, Any, None] | None:
        """Send an event that may be dropped. If there is no room, return an awaitable that waits for room."""
        return self._outbox.offer(event)

    def room(self) -> Coroutine[Any, Any, bool] | None:
        """Return `None` if there is room for more, else an awaitable that waits for room and returns whether there is
        any.
        """
        return self._outbox.room()

    def add(self, event: bytes) -> None:
        """Send an event that must not be dropped."""
        self._outbox.add(event)

    async def finish(self, event: bytes) -> None:
        """Send the last event, and return when everything is sent."""
        self.end(event)
        await self.sent()

    def end(self, event: bytes = b"") -> None:
        """Send the last event, if there is one, and end the stream."""
        self._ended = True
        self._outbox.add(event)

    async def sent(self) -> None:
        """Return when everything is sent, or the reader has gone."""
        await asyncio.shield(self._writer)

    async def sent_unless(self, other: asyncio.Future[None]) -> None:
        """Return when everything is sent, the reader has gone, or `other` is done."""
        await asyncio.wait({self._writer, other}, return_when=asyncio.FIRST_COMPLETED)

    async def last_words(self) -> None:
        """Wait a moment for what has been sent to reach the client."""
        await asyncio.wait({self._writer}, timeout=LAST_WORDS_SECONDS)

    def close(self) -> None:
        """Stop sending, whatever is left."""
        self._outbox.abandon()
        self._writer.cancel()

    async def _write(self) -> None:
        try:
            await self._write_all()
        except OSError:  # some ASGI servers say so that the client has gone
            self._outbox.abandon()

    async def _write_all(self) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
        more = True
        while more:
            chunk = self._outbox.take()
            more = not self._ended
            await self._send(
                {"type": "http.response.body", "body": chunk or (KEEP_ALIVE if more else b""), "more_body": more}
            )
            self._outbox.sent()
            if more:
                await self._outbox.something(SILENCE_SECONDS)
