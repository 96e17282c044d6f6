"""uvicorn as the server of a process: how it takes signals, how it ends, and how its workers do."""

import asyncio
import contextlib
import ctypes
import logging
import signal
import socket
import sys
import threading
from collections.abc import Generator, Sequence
from types import FrameType
from typing import ClassVar

import uvicorn
from uvicorn.server import HANDLED_SIGNALS
from uvicorn.supervisors import multiprocess

from bespeak.server.calls.call_tasks import cut_off_here, were_cut_off_here
from bespeak.server.running import end_program

FORCED_SECONDS = 1.0
"""How long everything else may take to end when a second interrupt has cut approved calls off."""
INTERRUPT = "a second interrupt"
MMAP_THRESHOLD = -3
"""What glibc calls M_MMAP_THRESHOLD."""
LARGE_BLOCK = 256 * 1024

_log = logging.getLogger("uvicorn.error")


def give_large_blocks_back() -> None:
    """Have memory of large bodies go back to the system as soon as it is free, where the C library lets itself be told.

    Left to itself, glibc puts large blocks among small ones once it has seen some, and can then not give them back.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BLOCK)


def _no_cancellation(record: logging.LogRecord) -> bool:
    """Whether a record is no traceback of a request that was cancelled at the end, which is no fault of the app."""
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


class HttpServer(uvicorn.Server):
    """Ends in order at the first signal, approved calls included, and soon at a second interrupt.

    A second SIGTERM is no hurry: a supervisor and a terminal may send one each.
    """

    cut_off: Sequence[str] = ()
    """The approved calls that were not waited for to their end."""
    ended_by: int | None = None
    """The signal that it has ended because of, if nobody but the system would have handled it."""
    last = False
    """Whether its process ends with it. Then a SIGTERM that comes later changes nothing: a supervisor sends one to each of
    its workers, those included that a terminal has interrupted already, and their exit handlers are to run."""
    _forced = False
    _hurry: asyncio.Event | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._captured_signals.append(sig)
        if not (self.should_exit and sig == signal.SIGINT):
            self.should_exit = True
            return
        if not self.started:  # an app that does not start is not worth waiting for
            raise KeyboardInterrupt
        self._forced = True
        if self._loop is not None and self._hurry is not None:
            self._loop.call_soon_threadsafe(self._hurry.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        give_large_blocks_back()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop, self._hurry = asyncio.get_running_loop(), asyncio.Event()
        if self._forced:
            self._hurry.set()
        ending = asyncio.create_task(super().shutdown(sockets), name="bespeak http, ending")
        hurrying = asyncio.create_task(self._hurry.wait())
        _log.addFilter(_no_cancellation)
        try:
            await asyncio.wait({ending, hurrying}, return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                await self._end_soon(ending)
            if ending.done() and not ending.cancelled():
                ending.result()
        finally:
            hurrying.cancel()
            ending.cancel()
            self.cut_off = were_cut_off_here()
            _log.removeFilter(_no_cancellation)

    async def _end_soon(self, ending: asyncio.Task[None]) -> None:
        await cut_off_here(INTERRUPT)
        for task in list(self.server_state.tasks):
            task.cancel(INTERRUPT)
        # With nothing left to wait for, what ends in order does so quickly: connections, and the app's own lifespan.
        _, late = await asyncio.wait({ending}, timeout=FORCED_SECONDS)
        if late:
            self.force_exit = True
            ending.cancel()
            await asyncio.wait({ending}, timeout=FORCED_SECONDS)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take signals while the block is open, and hand them to whoever had them before.

        Unlike uvicorn, without killing the process: its exit handlers, and whatever it wants to do next, are to run.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_IGN if self.last and handler is signal.SIG_DFL else handler)
        for number in reversed(self._captured_signals):
            if before[signal.Signals(number)] is signal.SIG_DFL:
                self.ended_by = number
            else:
                signal.raise_signal(number)


class Worker(multiprocess.Process):
    """One of several processes that share a port."""

    statuses: ClassVar[set[int | None]] = set()
    """What workers of this process have ended with; one that is replaced is no longer known to its supervisor."""

    def join(self) -> None:
        super().join()
        self.statuses.add(self.exitcode)

    @property
    def server(self) -> HttpServer:
        if not isinstance(self._server, HttpServer):
            self._server = HttpServer(self.config)
            self._server.last = True
        return self._server

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, in the process itself. Raises `SystemExit` if an approved call was cut off."""
        with contextlib.suppress(KeyboardInterrupt):
            super().target(sockets)
        if sys.stdin is not None:
            sys.stdin.close()  # uvicorn has opened it for this process, and would leave it open
        end_program(self.server.cut_off)


def run_workers(config: uvicorn.Config, listening: socket.socket) -> set[int | None]:
    """Run workers until told to stop; what they ended with."""
    # uvicorn makes its workers in several places, and lets nobody say of which class.
    multiprocess.Process = Worker
    multiprocess.Multiprocess(config, sockets=[listening]).run()
    return Worker.statuses
