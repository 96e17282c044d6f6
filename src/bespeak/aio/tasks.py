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


def spawn_with_end(
    work: Coroutine[Any, Any, T], name: str, context: Context
) -> tuple[asyncio.Task[T], asyncio.Future[None]]:
    """Start a task. The future is done when the work is; its waiters wake one turn of the loop before the task's callbacks run.

    Cancelling the future does not cancel the task.
    """
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run() -> T:
        result = await work
        _finish(ended)
        return result

    def finished(_: object) -> None:
        work.close()  # it never began if its task was cancelled at once
        _finish(ended)

    task = spawn(run(), name, context)
    if not task.done():
        task.add_done_callback(finished)
    return task, ended


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


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
