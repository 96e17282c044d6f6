"""SIGINT, SIGTERM and SIGHUP end a command in order, whatever it is doing."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Coroutine, Generator
from types import FrameType
from typing import Any, TypeVar

from bespeak.cli.exit_codes import ExitCode

PATIENCE_SECONDS = 1.0
"""How long code may block the event loop after a signal, before it is interrupted."""
LEAVE_SECONDS = 5.0
"""How long to wait for other threads after a signal, such as those of a server in this process."""
T = TypeVar("T")


@contextlib.contextmanager
def stoppable(*, interrupts: bool = False) -> Generator[None]:
    """Let SIGTERM and SIGHUP raise `KeyboardInterrupt`, as Ctrl-C does, while the block runs.

    With `interrupts`, SIGINT does so even if it is ignored: a shell script starts commands with & in that way.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with contextlib.ExitStack() as stack:
        for told in [*_signals(), *([signal.SIGINT] if interrupts else [])]:
            with contextlib.suppress(ValueError):  # signals can be handled in the main thread only
                stack.callback(signal.signal, told, signal.signal(told, stop))
        yield


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine. Raises `KeyboardInterrupt` after a signal, once all started servers have ended."""
    told = threading.Event()
    try:
        return asyncio.run(_until_told(work, told))
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and not told.is_set():
            raise
        threading.Thread(target=_leave, daemon=True).start()
        raise KeyboardInterrupt from None


def _leave() -> None:
    """End the process some time after its main thread, in case another thread keeps it alive."""
    threading.main_thread().join()
    time.sleep(LEAVE_SECONDS)
    os._exit(ExitCode.INTERRUPTED)


async def _until_told(work: Coroutine[Any, Any, T], told: threading.Event) -> T:
    """Run to the end, or raise `CancelledError` after a signal."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    main = threading.get_ident()
    heard = threading.Event()

    def end() -> None:
        heard.set()
        task.cancel()

    def stop(number: int, frame: FrameType | None) -> None:
        if told.is_set():
            raise KeyboardInterrupt
        told.set()
        loop.call_soon_threadsafe(end)
        # Code that never awaits blocks the event loop: then the signal is sent again and interrupts it.
        again = threading.Timer(PATIENCE_SECONDS, lambda: heard.is_set() or signal.pthread_kill(main, number))
        again.daemon = True
        again.start()

    with contextlib.ExitStack() as stack:
        for one in _signals():
            with contextlib.suppress(ValueError):  # signals can be handled in the main thread only
                stack.callback(signal.signal, one, signal.signal(one, stop))
        return await task


def _signals() -> list[signal.Signals]:
    return [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if name in signal.Signals.__members__]
