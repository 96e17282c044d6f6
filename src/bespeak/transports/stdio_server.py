"""A server on standard input and output: one message a line, requests served side by side.

Whatever an author's code prints must not get between the messages: while a server is on stdio, standard output is
standard error for everybody else, and standard input is empty.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from bespeak.protocol.envelopes import Malformed, Notification, Request, RequestId, read_message, write_error
from bespeak.protocol.errors import INVALID_REQUEST, MCPError
from bespeak.transports.lines import LineCutter, LineTooLong, ThreadedReader, ThreadedWriter
from bespeak.transports.transport import MESSAGE_LIMIT, Serving

GRACE_SECONDS = 1.0
"""How long calls under way may still run when the client has closed its side."""
FLUSH_SECONDS = 2.0


class StdioServer:
    """Serves one client over two file descriptors."""

    def __init__(self, server: Serving, stdin: int, stdout: int, limit: int = MESSAGE_LIMIT) -> None:
        self._server = server
        self._reader = ThreadedReader(stdin)
        self._writer = ThreadedWriter(stdout)
        self._cutter = LineCutter(limit)
        self._limit = limit
        self._tasks: dict[RequestId, asyncio.Task[None]] = {}

    def stop(self) -> None:
        """End as if the client had closed its side."""
        self._reader.stop()

    async def run(self) -> None:
        """Serve until the client closes its side, then end what is under way."""
        try:
            async with self._server.running():
                async for piece in self._reader:
                    for line in self._cutter.feed(piece):
                        self._line(line)
                    await self._writer.outbox.has_room()  # a client that does not read is not read either
                await self._finish()
        finally:
            await self._writer.close(FLUSH_SECONDS)

    async def _finish(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=GRACE_SECONDS)
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    def _line(self, line: bytes | LineTooLong) -> None:
        if isinstance(line, LineTooLong):
            reason = f"the message is larger than {self._limit} bytes, the most this server takes"
            return self._send(write_error(None, MCPError(INVALID_REQUEST, reason)))
        if not line.strip():
            return None
        try:
            message = read_message(line)
        except Malformed as malformed:
            return self._send(write_error(malformed.id, malformed.error))
        if isinstance(message, Notification):
            return self._notified(message)
        if message.id in self._tasks:
            reason = "a request with this id is still under way"
            return self._send(write_error(message.id, MCPError(INVALID_REQUEST, reason)))
        task = asyncio.create_task(self._answer(message), name=f"bespeak request {message.method}")
        self._tasks[message.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(message.id))
        return None

    def _notified(self, notification: Notification) -> None:
        if notification.method == "notifications/cancelled":
            task = self._tasks.get(_hashable(notification.params.get("requestId")))
            if task is not None:
                task.cancel("the client cancelled the request")

    async def _answer(self, request: Request) -> None:
        answer = await self._server.answer(request, self._notify)
        self._send(answer.message)

    def _notify(self, notification: bytes) -> Any:
        return self._writer.outbox.offer(notification + b"\n")

    def _send(self, message: bytes) -> None:
        self._writer.outbox.add(message + b"\n")


def _hashable(value: Any) -> Any:
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None


@contextmanager
def private_stdio() -> Generator[tuple[int, int]]:
    """File descriptors of the real standard input and output, which nobody else has while the block is open."""
    stdin, stdout = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        _flush()  # what was printed before and is still held back goes to standard error as well
        reconfigure: Callable[..., None] | None = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True)
        yield stdin, stdout
    finally:
        _flush()
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.close(nothing)
        os.close(stdout)
        # A thread may still be reading `stdin`; its number must not come to mean another file.


def _flush() -> None:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        sys.stdout.flush()
