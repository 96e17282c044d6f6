"""Sync functions of authors, run in worker threads so that they never hold up the event loop."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from bespeak.resolve.tasks import is_cancelled

logger = logging.getLogger("bespeak.resolve")

THREADS = 40
"""Sync functions of one sort running at once in one event loop."""


class Pool:
    """A limit on one sort of function, so that slow bodies cannot keep resolvers from running."""

    def __init__(self, name: str) -> None:
        self._limiter = RunVar[CapacityLimiter](f"bespeak.threads.{name}")

    def limiter(self) -> CapacityLimiter:
        limiter = self._limiter.get(None)
        if limiter is None:
            limiter = CapacityLimiter(THREADS)
            self._limiter.set(limiter)
        return limiter


RESOLVERS, BODIES = Pool("resolvers"), Pool("bodies")


async def in_thread(fn: Callable[[], Any], name: str, pool: Pool = RESOLVERS) -> Any:
    """Run a sync function in a worker thread. On cancellation the thread is left to itself, and that is logged."""
    started = False

    def run() -> Any:
        nonlocal started
        started = True
        return fn()

    try:
        return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=pool.limiter())
    except asyncio.CancelledError:
        if started and is_cancelled():
            logger.warning("%r was cancelled; its thread runs on, and what it returns is dropped", name)
        raise
