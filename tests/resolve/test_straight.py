"""Awaiting without machinery: `straight` sets up only when there is something to wait for, `within` limits the wait."""

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

import pytest

from bespeak.aio.in_place import await_in_place, within

T = TypeVar("T")


class Calls:
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def current() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    assert task is not None
    return task


async def at_once(value: str = "done") -> str:
    return value


async def after(turns: int, value: str = "done") -> str:
    for _ in range(turns):
        await asyncio.sleep(0)
    return value


async def forever() -> str:
    await asyncio.Event().wait()
    return "never"


async def limited(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    return await within(seconds, work)


# straight


async def test_work_that_does_not_wait_suspends_nobody() -> None:
    suspended = Calls()
    assert await await_in_place(at_once(), suspended) == "done"
    assert suspended.count == 0


async def test_work_that_waits_says_so_once() -> None:
    suspended = Calls()
    assert await await_in_place(after(5), suspended) == "done"
    assert suspended.count == 1


async def test_work_says_that_it_waits_before_it_does() -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append("started")
        await asyncio.sleep(0)
        seen.append("resumed")

    await await_in_place(work(), lambda: seen.append("suspended"))
    assert seen == ["started", "suspended", "resumed"]


async def test_work_runs_in_the_task_and_the_context_of_who_awaits_it() -> None:
    mark: ContextVar[str] = ContextVar("mark")

    async def work() -> "asyncio.Task[Any]":
        await asyncio.sleep(0)
        mark.set("set by the work")
        return current()

    assert await await_in_place(work(), Calls()) is current()
    assert mark.get() == "set by the work"


@pytest.mark.parametrize("turns", [0, 3])
async def test_what_work_raises_is_raised(turns: int) -> None:
    async def work() -> None:
        await after(turns)
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        await await_in_place(work(), Calls())


async def test_what_work_waits_for_may_fail() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work() -> str:
        try:
            return await future
        except LookupError as error:
            return f"caught {error.args[0]}"

    asyncio.get_running_loop().call_soon(future.set_exception, LookupError("it"))
    assert await await_in_place(work(), Calls()) == "caught it"


async def test_a_cancellation_reaches_the_work() -> None:
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("up")

    async def outer() -> None:
        await await_in_place(work(), Calls())

    task = asyncio.create_task(outer())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["up"]


async def test_work_may_take_a_cancellation_and_still_give_its_value() -> None:
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "all the same"

    async def outer() -> str:
        return await await_in_place(work(), Calls())

    task = asyncio.create_task(outer())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "all the same"


async def test_scopes_and_timeouts_inside_the_work_keep_working() -> None:
    async def work() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "its own timeout"
        return "none"

    assert await await_in_place(work(), Calls()) == "its own timeout"


def test_work_that_is_abandoned_is_closed() -> None:
    closed: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            closed.append("yes")

    async def outer() -> None:
        await await_in_place(work(), Calls())

    abandoned: Coroutine[Any, Any, None] = outer()
    abandoned.send(None)
    abandoned.close()
    assert closed == ["yes"]


# within


async def test_work_in_time_gives_its_value_and_leaves_no_timer() -> None:
    async def slow() -> str:
        await asyncio.sleep(0.01)
        return "in time"

    assert await within(0.08, slow()) == "in time"
    await asyncio.sleep(0.09)
    assert current().cancelling() == 0


async def test_work_that_does_not_wait_needs_no_time_at_all() -> None:
    assert await within(0, at_once()) == "done"


async def test_work_that_takes_too_long_times_out_and_the_task_goes_on() -> None:
    with pytest.raises(TimeoutError):
        await within(0.01, forever())
    assert current().cancelling() == 0
    assert await after(2) == "done"


async def test_what_work_raises_in_time_is_raised() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        await within(5, work())


async def test_a_cancellation_from_outside_is_no_timeout() -> None:
    task = asyncio.create_task(limited(5, forever()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_from_outside_beats_a_timeout_at_the_same_time() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.wait({asyncio.create_task(asyncio.sleep(0.03))})

    task = asyncio.create_task(limited(0.01, stubborn()))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_work_that_is_cancelled_by_itself_is_no_timeout() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await within(5, work())


async def test_an_outer_timeout_that_is_shorter_is_the_one_that_counts() -> None:
    outer = asyncio.timeout(0.01)
    with pytest.raises(TimeoutError):
        async with outer:
            await within(5, forever())
    assert outer.expired()


async def test_work_that_ends_otherwise_when_its_time_is_up_leaves_no_cancellation_behind() -> None:
    """As with `asyncio.timeout`: who looks at the task later must not think that somebody is cancelling it."""

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "a value after all"
        return "never"

    with_value = asyncio.create_task(limited(0.01, work()))
    assert await with_value == "a value after all"
    assert with_value.cancelling() == 0


async def test_work_that_fails_when_its_time_is_up_leaves_no_cancellation_behind() -> None:
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("broken off") from None

    failing = asyncio.create_task(limited(0.01, work()))
    with pytest.raises(ConnectionError, match="broken off"):
        await failing
    assert failing.cancelling() == 0
