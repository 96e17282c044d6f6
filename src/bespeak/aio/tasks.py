"""Starting tasks, cancelling them, and telling who cancelled one."""

import asyncio
import sys
from collections.abc import Collection, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def spawn(work: Coroutine[Any, Any, T], name: str, context: Context) -> asyncio.Task[T]:
    """Start a task. From Python 3.12 on it starts eagerly, which is cheap if the work never waits."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=asyncio.get_running_loop(), name=name, context=context, eager_start=True)
    return asyncio.create_task(work, name=name, context=context)


def is_cancelled() -> bool:
    """Return whether the current task itself is being cancelled, and not only something that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def cancel_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended."""
    if tasks:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
