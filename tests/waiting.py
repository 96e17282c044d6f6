"""Waiting for what another task, thread or process brings about, and letting time pass without waiting for it."""

import asyncio
from collections.abc import Callable
from typing import Any


async def eventually(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Return when the condition holds. Raises `TimeoutError` if it does not come to."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for knows nothing of the test
            await asyncio.sleep(0.01)


async def turns(count: int = 10) -> None:
    """Let the other tasks of the loop run, without waiting for time."""
    for _ in range(count):
        await asyncio.sleep(0)


async def pass_time(seconds: float, steps: int = 1) -> None:
    """Put the clock of the running loop forward, in one or several steps. Whatever is due after a step happens."""
    loop: Any = asyncio.get_running_loop()
    for _ in range(steps):
        _put_forward(loop, seconds / steps)
        await turns(20)


def _put_forward(loop: Any, seconds: float) -> None:
    before: Callable[[], float] = loop.time
    loop.time = lambda: before() + seconds
