"""Being told to stop: whatever the signal, what was begun is ended."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end. Raises `KeyboardInterrupt` if told to stop, once all servers that were started are ended."""
    return asyncio.run(_until_told(work))


async def _until_told(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    told = False

    def stop() -> None:
        nonlocal told
        told = True
        task.cancel()

    for name in ("SIGTERM", "SIGHUP"):
        with contextlib.suppress(NotImplementedError, AttributeError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(getattr(signal, name), stop)
    try:
        return await task
    except asyncio.CancelledError:
        if told:
            raise KeyboardInterrupt from None
        raise
