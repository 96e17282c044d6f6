"""Starting tasks, cancelling them, and telling who cancelled one."""

import asyncio
from contextvars import ContextVar, copy_context

import pytest

from bespeak.aio.tasks import cancel_all, is_cancelled, spawn


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_task_has_its_name_and_context() -> None:
    mark: ContextVar[str] = ContextVar("mark")
    context = copy_context()
    context.run(mark.set, "here")

    async def work() -> tuple[str, str]:
        task = asyncio.current_task()
        assert task is not None
        return task.get_name(), mark.get()

    assert await spawn(work(), "a name", context) == ("a name", "here")


async def test_all_tasks_are_cancelled_and_have_ended() -> None:
    tasks = [asyncio.create_task(forever()) for _ in range(2)]
    await cancel_all(tasks)
    await cancel_all([])
    assert [task.cancelled() for task in tasks] == [True, True]


async def test_a_task_that_awaits_something_cancelled_is_not_being_cancelled_itself() -> None:
    other = asyncio.create_task(forever())
    asyncio.get_running_loop().call_soon(other.cancel)
    with pytest.raises(asyncio.CancelledError):
        await other
    assert not is_cancelled()


async def test_a_task_that_is_cancelled_knows_it() -> None:
    seen: list[bool] = []

    async def work() -> None:
        try:
            await forever()
        finally:
            seen.append(is_cancelled())

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await cancel_all([task])
    assert seen == [True]
