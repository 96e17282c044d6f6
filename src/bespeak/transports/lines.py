"""Newline-delimited messages: cutting lines out of a stream, and carrying them through blocking files by threads."""

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator, Iterator

from bespeak.transports.outbox import Outbox

READ_BYTES = 64 * 1024
AHEAD = 16
"""How many pieces a reading thread may be ahead of those who use them."""


class LineTooLong(Exception):
    """A line is longer than its reader takes. What belongs to it is skipped; the next line is as good as any."""


class LineCutter:
    """Finds the lines in a stream that arrives in pieces."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._held = 0
        self._skipping = False

    def feed(self, piece: bytes) -> Iterator[bytes | LineTooLong]:
        """The lines that this piece completes, without their ends. One that is too long is reported once, when it is."""
        *lines, rest = piece.split(b"\n")
        for line in lines:
            if not self._skipping and self._held + len(line) <= self._limit:
                yield b"".join([*self._pieces, line]).removesuffix(b"\r")
            elif not self._skipping:
                yield LineTooLong()
            self._pieces, self._held, self._skipping = [], 0, False
        if self._skipping or not rest:
            return
        self._pieces.append(rest)
        self._held += len(rest)
        if self._held > self._limit:
            self._pieces, self._held, self._skipping = [], 0, True
            yield LineTooLong()


class ThreadedReader:
    """Reads a file descriptor that may block, in a thread that nobody waits for."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._ahead = threading.Semaphore(AHEAD)
        self._stopped = False
        threading.Thread(target=self._read, name="bespeak reader", daemon=True).start()

    def _read(self) -> None:
        piece = b"-"
        while piece and not self._stopped:
            self._ahead.acquire()
            try:
                piece = os.read(self._fd, READ_BYTES)
            except OSError:
                piece = b""
            try:
                self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)
            except RuntimeError:  # the loop is closed: nobody reads any more
                return

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self._pieces.get():
            self._ahead.release()
            yield piece

    def stop(self) -> None:
        """End the iteration, though the file may go on."""
        self._stopped = True
        self._pieces.put_nowait(b"")


class ThreadedWriter:
    """Writes what an outbox holds to a file descriptor that may block, in a thread that nobody waits for."""

    def __init__(self, fd: int) -> None:
        self.outbox = Outbox()
        self.broken = False
        """Set when nobody can read any more."""
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._written = asyncio.Event()
        self._ended = False
        self._pump = asyncio.create_task(self._hand_over(), name="bespeak writer")
        threading.Thread(target=self._write, name="bespeak writer", daemon=True).start()

    async def _hand_over(self) -> None:
        while True:
            await self.outbox.something()
            chunk = self.outbox.take()
            if chunk and not self.broken:
                self._written.clear()
                self._chunks.put(chunk)
                await self._written.wait()
            self.outbox.sent()
            if self._ended and not chunk:
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
        """Send what is left, within bounds."""
        self._ended = True
        self.outbox.stir()
        await asyncio.wait({self._pump}, timeout=seconds)
        self._pump.cancel()
