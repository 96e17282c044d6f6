"""Newline-delimited messages: splitting a stream into lines, and reading and writing blocking files in threads."""

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

from bespeak.aio.outbox import Outbox

READ_BYTES = 64 * 1024
HEAD_BYTES = 80
AHEAD = 16
"""How many pieces a reading thread may be ahead of its reader."""


@dataclass(frozen=True, slots=True)
class LineTooLong:
    """A line is longer than the limit. It is skipped; the next line is read as usual."""

    head: bytes
    """How it begins."""


class LineCutter:
    """Finds the lines in a stream that arrives in pieces. Holds at most about twice the length of a line."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()
        """The beginning of a line whose end has not come yet."""
        self._skipping = False

    def feed(self, piece: bytes) -> Iterator[bytes | LineTooLong]:
        """Return the lines that this piece completes, without line ends. A line that is too long is reported once."""
        *lines, rest = piece.split(b"\n")
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif len(self._held) + len(line) > self._limit:
                yield self._too_long(line)
            elif self._held:
                yield self._whole(line)
            else:
                yield line.removesuffix(b"\r")
        if self._skipping:
            return
        if len(self._held) + len(rest) > self._limit:
            self._skipping = True
            yield self._too_long(rest)
        else:
            self._held += rest

    def _whole(self, end: bytes) -> bytes:
        self._held += end
        if self._held.endswith(b"\r"):
            del self._held[-1:]
        line, self._held = bytes(self._held), bytearray()
        return line

    def _too_long(self, rest: bytes) -> LineTooLong:
        head, self._held = bytes(self._held[:HEAD_BYTES]), bytearray()
        return LineTooLong((head + rest[: HEAD_BYTES - len(head)])[:HEAD_BYTES])


class ThreadedReader:
    """Reads a file descriptor that may block, in a daemon thread."""

    def __init__(self, fd: int, ended: Callable[[], None] | None = None) -> None:
        self._fd = fd
        self._ended = ended
        """Called as soon as the end is known, though what came before it may still be unused."""
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._ahead = threading.Semaphore(AHEAD)
        self._stopped = False
        self.thread = threading.Thread(target=self._read, name="bespeak reader", daemon=True)
        self.thread.start()

    def _read(self) -> None:
        piece = b"-"
        while piece and not self._stopped:
            self._ahead.acquire()
            try:
                piece = os.read(self._fd, READ_BYTES)
            except OSError:
                piece = b""
            try:
                self._loop.call_soon_threadsafe(self._put, piece)
            except RuntimeError:  # the loop is closed: nobody reads any more
                return

    def _put(self, piece: bytes) -> None:
        self._pieces.put_nowait(piece)
        if not piece and self._ended is not None:
            self._ended()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self._pieces.get():
            self._ahead.release()
            yield piece

    def stop(self) -> None:
        """End the iteration, even if the file has not ended."""
        self._stopped = True
        self._put(b"")


class ThreadedWriter:
    """Writes the content of an outbox to a file descriptor that may block, in a daemon thread."""

    def __init__(self, fd: int) -> None:
        self.outbox = Outbox()
        self.broken = False
        """Set when the other end has closed the file."""
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._written = asyncio.Event()
        self._ended = False
        self._pump = asyncio.create_task(self._hand_over(), name="bespeak writer")
        self.thread = threading.Thread(target=self._write, name="bespeak writer", daemon=True)
        self.thread.start()

    async def _hand_over(self) -> None:
        while True:
            await self.outbox.something()
            chunk = self.outbox.take()
            if chunk and not self.broken:
                self._written.clear()
                self._chunks.put(chunk)
                await self._written.wait()
            self.outbox.sent()
            if self._ended and self.outbox.empty:
                self._chunks.put(b"")
                return

    def _write(self) -> None:
        while chunk := self._chunks.get():
            try:
                left = memoryview(chunk)
                while left:
                    left = left[os.write(self._fd, left) :]
            except OSError:
                self.broken = True
            try:
                self._loop.call_soon_threadsafe(self._written.set)
            except RuntimeError:  # the loop is closed
                return

    async def close(self, seconds: float) -> None:
        """Send what is left, within a time limit."""
        self._ended = True
        self.outbox.stir()
        await asyncio.wait({self._pump}, timeout=seconds)
        self._pump.cancel()
