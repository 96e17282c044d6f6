"""A server on standard input and output: one message a line, requests served side by side.

Whatever an author's code prints must not get between the messages: while a server is on stdio, standard output is
standard error for everybody else, and standard input is empty.
"""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bespeak.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, MCPError
from bespeak.protocol.legacy import takes_batches
from bespeak.protocol.messages import (
    NOT_FOR_A_BATCH,
    Batch,
    LegacyRequest,
    MalformedMessage,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    is_id,
    no_batch,
    not_for_a_batch,
    read_message,
    write_error,
)
from bespeak.transports.interfaces import CANCELLED_INSIDE, MESSAGE_LIMIT, Answering
from bespeak.transports.stdio.lines import LineCutter, LineTooLong, ThreadedReader, ThreadedWriter

logger = logging.getLogger("bespeak.stdio")

GRACE_SECONDS = 1.0
"""How long calls under way may still run when the client has closed its side."""
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
        self._tasks: dict[RequestId, asyncio.Task[None]] = {}
        self._cancelled: set[RequestId] = set()
        self._ending = False
        """Requests the client cancelled: nothing more is said about them, however they end."""

    def stop(self) -> None:
        """End as if the client had closed its side."""
        self._reader.stop()

    @property
    def idle(self) -> bool:
        """Whether nobody reads or writes its files any more."""
        for thread in (self._reader.thread, self._writer.thread):
            thread.join(JOIN_SECONDS)  # one that was told to end needs a moment
        return not (self._reader.thread.is_alive() or self._writer.thread.is_alive())

    async def run(self) -> None:
        """Serve until the client closes its side, then end what is under way."""
        try:
            async with self._server.running():
                try:
                    await self._read()
                    self._peer.close("the client has gone")
                    if self._tasks:
                        await asyncio.wait(self._tasks.values(), timeout=GRACE_SECONDS)
                finally:
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
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks.values(), timeout=GRACE_SECONDS)
            for task in late:
                logger.error("%s does not let itself be cancelled and is left behind", task.get_name())

    def _line(self, line: bytes | LineTooLong) -> None:
        if isinstance(line, LineTooLong):
            reason = f"the message is larger than {self._limit} bytes, the most this server takes"
            return self._send(write_error(None, MCPError(INVALID_REQUEST, reason)))
        if not line.strip():
            return None
        try:
            message = read_message(line)
            if isinstance(message, Batch):
                return self._batch(message)
        except MalformedMessage as malformed:
            return self._send(write_error(malformed.id, malformed.error))
        return self._message(message, self._send)

    def _message(self, message: Message, respond: Callable[[bytes | None], None]) -> None:
        if isinstance(message, (Notification, Response)):
            return self._heard(message)
        answer = self._peer.at_once(message) if isinstance(message, LegacyRequest) else None
        if answer is not None:
            return respond(answer.message)
        if message.id in self._tasks:
            reason = "a request with this id is still under way"
            return respond(write_error(message.id, MCPError(INVALID_REQUEST, reason)))
        task = asyncio.create_task(self._answer(message, respond), name=f"bespeak request {message.method}")
        self._tasks[message.id] = task
        task.add_done_callback(lambda task: self._forget(message.id, task, respond))
        return None

    def _batch(self, batch: Batch) -> None:
        """Serve several messages of an older client; their responses leave together."""
        if not takes_batches(self._peer.version):
            return self._send(write_error(None, no_batch().error))
        responses: list[bytes | None] = []
        expected = sum(not isinstance(message, (Notification, Response)) for message in batch.messages)

        def respond(response: bytes | None) -> None:
            responses.append(response)
            said = [one for one in responses if one is not None]
            if len(responses) == expected and said:
                self._send(b"[" + b",".join(said) + b"]")

        for message in batch.messages:
            if isinstance(message, MalformedMessage):
                respond(write_error(message.id, message.error))
            elif isinstance(message, (LegacyRequest, Request)) and not_for_a_batch(message):
                respond(write_error(message.id, MCPError(INVALID_REQUEST, NOT_FOR_A_BATCH)))
            else:
                self._message(message, respond)
        return None

    def _forget(self, id_: RequestId, task: asyncio.Task[None], respond: Callable[[bytes | None], None]) -> None:
        del self._tasks[id_]
        cancelled = id_ in self._cancelled
        self._cancelled.discard(id_)
        if task.cancelled():
            # A request that somebody waits for is answered, even if an author's code has cancelled its task.
            wanted = not (cancelled or self._ending)
            respond(write_error(id_, MCPError(INTERNAL_ERROR, CANCELLED_INSIDE)) if wanted else None)

    def _heard(self, message: Notification | Response) -> None:
        self._peer.heard(message)
        if isinstance(message, Notification) and message.method == "notifications/cancelled":
            id_ = message.params.get("requestId")
            if is_id(id_) and id_ in self._tasks:
                self._cancelled.add(id_)
                self._tasks[id_].cancel("the client cancelled the request")

    async def _answer(self, request: Request | LegacyRequest, respond: Callable[[bytes | None], None]) -> None:
        channel = _Pipe(self._writer, lambda: request.id in self._cancelled)
        if isinstance(request, Request):
            answer = await self._server.answer(request, channel.notify)
        else:
            answer = await self._peer.answer(request, channel)
        respond(None if request.id in self._cancelled else answer.message)

    def _send(self, message: bytes | None) -> None:
        if message is not None:
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


@dataclass(slots=True)
class PrivateFiles:
    """The real standard input and output."""

    stdin: int
    stdout: int
    in_use: bool = False
    """Whether a thread still hangs on one of them: then their numbers must not come to mean another file."""


@contextmanager
def private_stdio() -> Generator[PrivateFiles]:
    """File descriptors of the real standard input and output, which nobody else has while the block is open."""
    try:
        files = PrivateFiles(os.dup(0), os.dup(1))
    except OSError:
        raise ConnectionError(
            "there is no standard input or output to serve on; start the server from a client"
        ) from None
    nothing = os.open(os.devnull, os.O_RDONLY)
    buffered = False
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        _flush()  # what was printed before and is still held back goes to standard error as well
        buffered = _line_buffering(True)
        yield files
    finally:
        _flush()
        _line_buffering(buffered)
        os.dup2(files.stdin, 0)
        os.dup2(files.stdout, 1)
        os.close(nothing)
        if not files.in_use:
            os.close(files.stdin)
            os.close(files.stdout)


def _line_buffering(wanted: bool) -> bool:
    """Have what is printed appear line by line, or not; how it was before."""
    before: bool = getattr(sys.stdout, "line_buffering", False)
    reconfigure: Callable[..., None] | None = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=wanted)
    return before


def _flush() -> None:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        sys.stdout.flush()
