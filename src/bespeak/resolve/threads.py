"""Sync functions of authors, run in worker threads so that they never hold up the event loop."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

logger = logging.getLogger("bespeak.resolve")

THREADS = 40
"""Sync functions running at once in one event loop."""

_limiter = RunVar[CapacityLimiter]("bespeak.threads")


async def in_thread(fn: Callable[[], Any], name: str) -> Any:
    """Run a sync function in a worker thread. On cancellation the thread is left to itself, and that is logged."""
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(THREADS)
        _limiter.set(limiter)
    try:
        return await anyio.to_thread.run_sync(fn, abandon_on_cancel=True, limiter=limiter)
    except asyncio.CancelledError:
        logger.warning("%r was cancelled; its thread runs on, and what it returns is dropped", name)
        raise
