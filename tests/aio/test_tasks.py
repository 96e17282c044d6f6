"""Starting tasks, cancelling them, and telling who cancelled one."""

import asyncio
from contextvars import ContextVar, copy_context

import pytest

from bespeak.aio.tasks import cancel_all, is_cancelled, spawn, spawn_with_end


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


async def test_who_waits_for_the_end_of_work_is_woken_before_the_callbacks_of_its_task() -> None:
    order: list[str] = []

    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    async def wait(ended: asyncio.Future[None]) -> None:
        await ended
        order.append("woken")

    task, ended = spawn_with_end(work(), "work", copy_context())
    waiting = asyncio.create_task(wait(ended))
    await asyncio.sleep(0)
    task.add_done_callback(lambda _: order.append("called back"))
    await waiting
    assert (order[0], task.result()) == ("woken", "done")


@pytest.mark.parametrize("turns", [0, 1])
async def test_the_end_of_work_is_known_even_if_it_is_cancelled_before_it_begins(turns: int) -> None:
    task, ended = spawn_with_end(forever(), "work", copy_context())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await ended
    assert task.cancelled()


async def test_the_end_of_work_that_fails_is_known() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    task, ended = spawn_with_end(work(), "work", copy_context())
    await ended
    with pytest.raises(ValueError, match="no"):
        task.result()


async def test_giving_up_on_the_end_of_work_leaves_the_work_alone() -> None:
    gate = asyncio.Event()
    task, ended = spawn_with_end(gate.wait(), "work", copy_context())
    ended.cancel()
    gate.set()
    assert await task
