"""Being told to stop: whatever the signal and whatever is under way, what was begun is ended."""

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
"""How long something may keep the event loop from hearing that it is to stop, before it is broken off where it is."""
LEAVE_SECONDS = 5.0
"""How long the tool waits, after it was told to stop, for threads such as those of a server in its own process."""
T = TypeVar("T")


@contextlib.contextmanager
def stoppable() -> Generator[None]:
    """Let SIGTERM and SIGHUP raise `KeyboardInterrupt`, as Ctrl-C does, while the block runs."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with contextlib.ExitStack() as stack:
        for told in _signals():
            with contextlib.suppress(ValueError):  # only the main thread is told
                stack.callback(signal.signal, told, signal.signal(told, stop))
        yield


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end. Raises `KeyboardInterrupt` if told to stop, once all servers that were started are ended."""
    told = threading.Event()
    try:
        return asyncio.run(_until_told(work, told))
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and not told.is_set():
            raise
        threading.Thread(target=_leave, daemon=True).start()
        raise KeyboardInterrupt from None


def _leave() -> None:
    """End the process once its main thread has ended, should a thread of somebody else's keep it."""
    threading.main_thread().join()
    time.sleep(LEAVE_SECONDS)
    os._exit(ExitCode.INTERRUPTED)


async def _until_told(work: Coroutine[Any, Any, T], told: threading.Event) -> T:
    """Run to the end, or raise `CancelledError` when told to stop."""
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
        # Code that never awaits keeps the loop from hearing it: then it is told again, and broken off.
        again = threading.Timer(PATIENCE_SECONDS, lambda: heard.is_set() or signal.pthread_kill(main, number))
        again.daemon = True
        again.start()

    with contextlib.ExitStack() as stack:
        for one in _signals():
            with contextlib.suppress(ValueError):  # only the main thread is told
                stack.callback(signal.signal, one, signal.signal(one, stop))
        return await task


def _signals() -> list[signal.Signals]:
    return [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if name in signal.Signals.__members__]
