"""Tasks of resolvers: starting them, ending them, and telling whose cancellation it is."""

import asyncio
import sys
from collections.abc import Collection, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def spawn(work: Coroutine[Any, Any, T], name: str, context: Context) -> asyncio.Task[T]:
    """A task; where Python can, one that starts at once and costs nothing if it never waits."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=asyncio.get_running_loop(), name=name, context=context, eager_start=True)
    return asyncio.create_task(work, name=name, context=context)


def is_cancelled() -> bool:
    """Whether the current task is being cancelled from outside. Awaiting something cancelled raises the same exception."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def cancel_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel what still runs and see it end."""
    if tasks:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
