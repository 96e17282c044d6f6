"""Worker threads for sync functions, so that they do not block the event loop."""

import asyncio
import logging
import math
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from bespeak.aio.tasks import is_cancelled

logger = logging.getLogger("bespeak.resolve")

THREADS = 40
"""How many sync functions of one pool run at the same time, per event loop."""


class Pool:
    """A limit on functions of one kind. Tool bodies and resolvers have one each, so that slow bodies cannot block resolvers."""

    def __init__(self, name: str) -> None:
        self._limiter = RunVar[CapacityLimiter](f"bespeak.threads.{name}")

    def limiter(self) -> CapacityLimiter:
        limiter = self._limiter.get(None)
        if limiter is None:
            limiter = CapacityLimiter(THREADS)
            self._limiter.set(limiter)
        return limiter


_no_limit = RunVar[CapacityLimiter]("bespeak.threads.unlimited")


def _unlimited() -> CapacityLimiter:
    limiter = _no_limit.get(None)
    if limiter is None:
        limiter = CapacityLimiter(math.inf)
        _no_limit.set(limiter)
    return limiter


RESOLVERS, BODIES = Pool("resolvers"), Pool("bodies")
_running: dict[threading.Thread, str] = {}


def running_functions() -> dict[threading.Thread, str]:
    """Return the names of the functions that are running, abandoned or not, by thread."""
    return _running.copy()


async def in_thread(fn: Callable[[], Any], name: str, pool: Pool = RESOLVERS) -> Any:
    """Run a sync function in a worker thread. If this is cancelled, the thread continues; a warning is logged.

    Such a thread counts toward the limit until it ends, so that clients who disconnect cannot pile up threads.
    """
    limiter, place = pool.limiter(), _Place()
    await limiter.acquire_on_behalf_of(place)
    place.hold(limiter)

    def run() -> Any:
        if not place.start():
            return None
        thread = threading.current_thread()
        _running[thread] = name
        try:
            return fn()
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException as error:  # it would end the event loop, and not only this work
            raise RuntimeError(f"{name!r} raised {type(error).__name__}") from error
        finally:
            del _running[thread]
            place.give_back()

    try:
        return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=_unlimited())
    except BaseException as error:
        runs_on = place.abandon()
        if runs_on and isinstance(error, asyncio.CancelledError) and is_cancelled():
            logger.warning("%r was cancelled. Its thread continues to run, and its result is discarded.", name)
        raise


class _Place:
    """One place under a limit. It is given back once: when the thread ends, or at once if it never started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = "waiting"

    def hold(self, limiter: CapacityLimiter) -> None:
        self._limiter = limiter
        self._loop = asyncio.get_running_loop()

    def start(self) -> bool:
        """Called in the thread. Returns false if the work has been cancelled."""
        with self._lock:
            if self._state == "waiting":
                self._state = "running"
            return self._state == "running"

    def give_back(self) -> None:
        with suppress(RuntimeError):  # the loop is gone, and its limits with it
            self._loop.call_soon_threadsafe(self._limiter.release_on_behalf_of, self)

    def abandon(self) -> bool:
        """Called when the wait is cancelled. Returns whether the thread continues to run."""
        with self._lock:
            running = self._state == "running"
            self._state = self._state if running else "abandoned"
        if not running:
            self._limiter.release_on_behalf_of(self)
        return running
