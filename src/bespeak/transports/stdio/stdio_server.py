"""The server on standard input and output: one message per line, requests served concurrently."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from bespeak.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, MCPError
from bespeak.protocol.legacy import takes_batches
from bespeak.protocol.messages import (
    Batch,
    LegacyRequest,
    MalformedMessage,
    Notification,
    Request,
    Response,
    no_batch,
    read_message,
    write_error,
)
from bespeak.transports.interfaces import CANCELLED_INSIDE, MESSAGE_LIMIT, Answering, WrittenResponse
from bespeak.transports.requests_under_way import RequestsUnderWay, Responses, cancel_and_wait
from bespeak.transports.stdio.lines import LineCutter, LineTooLong, ThreadedReader, ThreadedWriter

logger = logging.getLogger("bespeak.stdio")

GRACE_SECONDS = 1.0
"""How long calls may still run after the client has closed its side."""
FLUSH_SECONDS = 2.0
JOIN_SECONDS = 0.05


class StdioServer:
    """Serves one client over two file descriptors."""

    def __init__(self, server: Answering, stdin: int, stdout: int, limit: int = MESSAGE_LIMIT) -> None:
        self._server = server
        self._peer = server.peer()
        self._writer = ThreadedWriter(stdout)
        self._reader = ThreadedReader(stdin, self._writer.outbox.release)
        self._cutter = LineCutter(limit)
        self._limit = limit
        self._requests = RequestsUnderWay(self._broken_off, self._at_once)
        self._ending = False

    def stop(self) -> None:
        """End as if the client had closed its side."""
        self._reader.stop()

    @property
    def idle(self) -> bool:
        """Whether its threads have stopped reading and writing its files."""
        for thread in (self._reader.thread, self._writer.thread):
            thread.join(JOIN_SECONDS)  # one that was told to end needs a moment
        return not (self._reader.thread.is_alive() or self._writer.thread.is_alive())

    async def run(self) -> None:
        """Serve until the client closes its side, then end the calls that are under way."""
        try:
            async with self._server.running():
                standing = asyncio.create_task(self._peer.stand(self._say), name="bespeak stdio changes")
                try:
                    await self._read()
                    self._peer.close("the client has gone")
                    self._server.end_subscriptions()
                    if self._requests:
                        await asyncio.wait(self._requests.tasks, timeout=GRACE_SECONDS)
                finally:
                    standing.cancel()
                    await self._end()
        finally:
            await self._writer.close(FLUSH_SECONDS)

    async def _read(self) -> None:
        async for piece in self._reader:
            for line in self._cutter.feed(piece):
                self._line(line)
            await self._writer.outbox.has_room()  # a client that does not read is not read either
        for line in self._cutter.feed(b"\n"):  # the last line may lack its end
            self._line(line)

    async def _end(self) -> None:
        self._ending = True
        await cancel_and_wait(self._requests.tasks, "the client has gone", GRACE_SECONDS, logger)

    def _line(self, line: bytes | LineTooLong) -> None:
        if isinstance(line, LineTooLong):
            reason = f"the message is larger than {self._limit} bytes, the most this server accepts"
            return self._send(write_error(None, MCPError(INVALID_REQUEST, reason)))
        if not line.strip():
            return None
        try:
            message = read_message(line)
            if isinstance(message, Batch):
                return self._batch(message)
        except MalformedMessage as malformed:
            return self._send(write_error(malformed.id, malformed.error))
        if isinstance(message, (Notification, Response)):
            return self._heard(message)
        return self._requests.start(message, self._serve, Responses(1, self._send_each), batch=False)

    def _batch(self, batch: Batch) -> None:
        """Serve several messages of an older client; their responses leave together."""
        if not takes_batches(self._peer.version):
            return self._send(write_error(None, no_batch().error))
        expected = sum(not isinstance(message, (Notification, Response)) for message in batch.messages)
        responses = Responses(expected, self._send_together)
        for message in batch.messages:
            if isinstance(message, (Notification, Response)):
                self._heard(message)
            else:
                self._requests.start(message, self._serve, responses, batch=True)
        return None

    def _heard(self, message: Notification | Response) -> None:
        self._peer.heard(message)
        if isinstance(message, Notification):
            self._requests.heard(message)

    def _at_once(self, request: Request | LegacyRequest) -> WrittenResponse | None:
        return self._peer.at_once(request) if isinstance(request, LegacyRequest) else None

    def _serve(self, request: Request | LegacyRequest) -> Coroutine[Any, Any, WrittenResponse]:
        channel = _Pipe(self._writer, lambda: self._requests.is_cancelled(request.id))
        if isinstance(request, Request):
            return self._server.answer(request, channel.notify)
        return self._peer.answer(request, channel)

    def _broken_off(self) -> MCPError | None:
        """A request that somebody waits for is answered, even if an author's code has cancelled its task."""
        return None if self._ending else MCPError(INTERNAL_ERROR, CANCELLED_INSIDE)

    def _send_each(self, responses: list[bytes]) -> None:
        for response in responses:
            self._send(response)

    def _send_together(self, responses: list[bytes]) -> None:
        if responses:
            self._send(b"[" + b",".join(responses) + b"]")

    def _say(self, message: bytes) -> Coroutine[Any, Any, None] | None:
        return self._writer.outbox.offer(message + b"\n")

    def _send(self, message: bytes) -> None:
        self._writer.outbox.add(message + b"\n")


class _Pipe:
    """The way back for one request."""

    has_reader = True

    def __init__(self, writer: ThreadedWriter, cancelled: Callable[[], bool]) -> None:
        self._outbox = writer.outbox
        self._cancelled = cancelled

    def notify(self, message: bytes) -> Coroutine[Any, Any, None] | None:
        return None if self._cancelled() else self._outbox.offer(message + b"\n")

    def push(self, message: bytes) -> None:
        self._outbox.add(message + b"\n")

    def pause(self) -> None:
        """There is nothing to come back to."""

    def when_gone(self, callback: Callable[[], object]) -> None:
        """The session is gone with its connection, and its questions then end."""
