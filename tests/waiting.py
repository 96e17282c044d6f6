"""Waiting for what another task, thread or process brings about."""

import asyncio
from collections.abc import Callable


async def eventually(condition: Callable[[], object], seconds: float = 5.0) -> None:
    """Return when the condition holds. Raises `TimeoutError` if it does not come to."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for knows nothing of the test
            await asyncio.sleep(0.01)


async def turns(count: int = 10) -> None:
    """Let the other tasks of the loop run, without waiting for time."""
    for _ in range(count):
        await asyncio.sleep(0)
