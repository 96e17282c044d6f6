"""How an HTTP server stops: the signals that end it, in order and with approved calls, or soon once it is told to hurry."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from bespeak.transports.interfaces import Shutdown

GRACE_SECONDS = 10
"""How long requests under way may still run when the server is told to stop; claimed calls are waited for longer."""
FORCED_SECONDS = 1.0
"""How long everything else may take to end when a second interrupt has cut approved calls off."""
INTERRUPT = "a second interrupt"


class GracefulShutdown:
    """The end of one server."""

    def __init__(self, shutdown: Shutdown) -> None:
        self._shutdown = shutdown
        self.hurried = False
        """Whether approved calls are not waited for."""
        self.cut_off: Sequence[str] = ()
        """The approved calls that were not waited for to their end."""
        self.ended_by: int | None = None
        """The signal that ended it, if without this server the signal would have ended the process."""
        self.is_last = False
        """Whether its process ends with it. Then a SIGTERM that comes later changes nothing: a supervisor sends one to each of
        its workers, those included that a terminal has interrupted already, and their exit handlers are to run."""
        self._hurry: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def handled_signals(
        self,
        numbers: Sequence[signal.Signals | int],
        handle: Callable[[int, FrameType | None], None],
        received: Sequence[int],
    ) -> Generator[None]:
        """Handle signals while the block is open, and pass those received on to the handlers that were there before."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_IGN if self.is_last and handler is signal.SIG_DFL else handler)
        for number in reversed(received):
            if before[number] is signal.SIG_DFL:
                self.ended_by = number
            else:
                signal.raise_signal(number)

    def hurry(self) -> None:
        """Wait for nothing that can be cut off. May be called from a signal handler, and before the end has begun."""
        self.hurried = True
        if self._loop is not None and self._hurry is not None:
            self._loop.call_soon_threadsafe(self._hurry.set)

    async def run(
        self,
        shutdown: Coroutine[Any, Any, None],
        cancel_requests: Callable[[str], None],
        force: Callable[[], None],
    ) -> None:
        """Run what ends the server in order.

        `cancel_requests` cancels the requests under way, for a reason; `force` is called when even then the end takes too long.
        """
        self._loop, self._hurry = asyncio.get_running_loop(), asyncio.Event()
        if self.hurried:
            self._hurry.set()
        ending = asyncio.create_task(shutdown, name="bespeak http, ending")
        hurrying = asyncio.create_task(self._hurry.wait())
        try:
            await asyncio.wait({ending, hurrying}, return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                await self._shutdown.cut_off(INTERRUPT)
                cancel_requests(INTERRUPT)
                await _end_soon(ending, force)
            if ending.done() and not ending.cancelled():
                ending.result()
        finally:
            hurrying.cancel()
            ending.cancel()
            self.cut_off = self._shutdown.were_cut_off()


async def _end_soon(ending: asyncio.Task[None], force: Callable[[], None]) -> None:
    """With nothing left to wait for, what ends in order does so quickly: connections, and the app's own lifespan."""
    _, late = await asyncio.wait({ending}, timeout=FORCED_SECONDS)
    if late:
        force()
        ending.cancel()
        await asyncio.wait({ending}, timeout=FORCED_SECONDS)
