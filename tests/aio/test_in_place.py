"""Awaiting in the current task: `await_in_place` tells when work first waits, `within` limits its time, and
`catch_self_cancellation` tells work that cancels its own task from work that somebody else cancels.
"""

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

import pytest

from bespeak.aio.in_place import (
    CancelledItself,
    at_once,
    await_in_place,
    catch_self_cancellation,
    in_context,
    this_task,
    within,
)

T = TypeVar("T")


def current() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    assert task is not None
    return task


async def immediately(value: str = "done") -> str:
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


# await_in_place


@pytest.mark.parametrize("turns", [0, 5])
async def test_work_that_waits_says_so_once_and_other_work_does_not(turns: int) -> None:
    waits: list[None] = []
    assert await await_in_place(after(turns), lambda: waits.append(None)) == "done"
    assert len(waits) == (1 if turns else 0)


async def test_work_says_that_it_waits_before_it_does() -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append("started")
        await asyncio.sleep(0)
        seen.append("resumed")

    await await_in_place(work(), lambda: seen.append("suspended"))
    assert seen == ["started", "suspended", "resumed"]


def nothing() -> None:
    """What is called when work first waits."""


async def test_work_runs_in_the_current_task_and_context() -> None:
    mark: ContextVar[str] = ContextVar("mark")

    async def work() -> "asyncio.Task[Any]":
        await asyncio.sleep(0)
        mark.set("set by the work")
        return current()

    assert await await_in_place(work(), nothing) is current()
    assert mark.get() == "set by the work"


@pytest.mark.parametrize("turns", [0, 3])
async def test_what_work_raises_is_raised(turns: int) -> None:
    async def work() -> None:
        await after(turns)
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        await await_in_place(work(), nothing)


async def test_a_cancellation_reaches_the_work_which_may_still_return_a_value() -> None:
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "all the same"

    async def outer() -> str:
        return await await_in_place(work(), nothing)

    task = asyncio.create_task(outer())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "all the same"


@pytest.mark.parametrize("catches", [True, False])
async def test_work_that_is_abandoned_is_closed(catches: bool) -> None:
    closed: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            closed.append("yes")

    async def outer() -> None:
        await (catch_self_cancellation(work(), this_task()) if catches else await_in_place(work(), nothing))

    abandoned: Coroutine[Any, Any, None] = outer()
    abandoned.send(None)
    abandoned.close()
    assert closed == ["yes"]


# within


async def test_work_in_time_returns_its_value_and_leaves_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[asyncio.TimerHandle] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def remember(*args: Any) -> asyncio.TimerHandle:
        timers.append(call_later(*args))
        return timers[-1]

    monkeypatch.setattr(loop, "call_later", remember)
    assert await within(60, after(2)) == "done"
    assert [timer.cancelled() for timer in timers] == [True]
    assert await within(60, immediately()) == "done"
    assert len(timers) == 1, "work that never waits needs no timer"


async def test_work_that_takes_too_long_times_out_and_the_task_continues() -> None:
    with pytest.raises(TimeoutError):
        await within(0.01, forever())
    assert current().cancelling() == 0
    assert await after(2) == "done"


async def test_a_cancellation_from_outside_is_not_a_timeout() -> None:
    task = asyncio.create_task(limited(5, forever()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_from_outside_beats_a_timeout_at_the_same_time() -> None:
    timed_out, cancelled = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            timed_out.set()
            await asyncio.wait({asyncio.create_task(cancelled.wait())})

    task = asyncio.create_task(limited(0.01, stubborn()))
    await timed_out.wait()
    task.cancel()
    cancelled.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_work_that_is_cancelled_by_itself_is_not_a_timeout() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await within(5, work())


@pytest.mark.timing
async def test_an_outer_timeout_that_is_shorter_is_the_one_that_counts() -> None:
    outer = asyncio.timeout(0.01)
    with pytest.raises(TimeoutError):
        async with outer:
            await within(5, forever())
    assert outer.expired()


async def test_work_that_returns_when_its_time_is_up_leaves_no_cancellation_behind() -> None:
    """As with `asyncio.timeout`, nobody must think later that the task is being cancelled."""

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


async def test_a_limit_does_not_count_cancellations_from_before_it_began() -> None:
    current().cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await within(0.01, forever())
    assert current().uncancel() == 0


# catch_self_cancellation


async def cancels(then: str) -> str:
    current().cancel()
    if then == "waits":
        await asyncio.sleep(0)
    if then == "raises":
        raise LookupError("lost")
    return "done"


async def test_work_that_cancels_its_own_task_and_waits_is_told_apart() -> None:
    with pytest.raises(CancelledItself):
        await catch_self_cancellation(cancels("waits"), this_task())
    assert current().cancelling() == 0
    assert await after(2) == "done"


async def test_a_value_and_an_error_stand_though_the_work_cancelled_its_own_task() -> None:
    assert await catch_self_cancellation(cancels("returns"), this_task()) == "done"
    with pytest.raises(LookupError, match="lost"):
        await catch_self_cancellation(cancels("raises"), this_task())
    assert current().cancelling() == 0
    assert await after(2) == "done"


async def test_a_cancellation_from_outside_goes_through() -> None:
    async def outer() -> str:
        return await catch_self_cancellation(forever(), this_task())

    task = asyncio.create_task(outer())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_of_what_the_work_waits_for_reaches_it() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_exception, LookupError("it"))

    async def work() -> str:
        with pytest.raises(LookupError, match="it"):
            await future
        return "caught"

    assert await catch_self_cancellation(work(), this_task()) == "caught"


# Work that never waits


async def test_work_that_never_waits_is_awaited_for_less() -> None:
    assert await at_once(cancels("returns"), this_task()) == "done"
    assert current().cancelling() == 0
    with pytest.raises(LookupError, match="lost"):
        await at_once(cancels("raises"), this_task())
    assert current().cancelling() == 0
    await asyncio.sleep(0)


async def test_work_that_cancels_its_own_task_and_says_so_is_told_apart() -> None:
    async def cancels_itself() -> None:
        current().cancel()
        raise asyncio.CancelledError

    async def only_says_so() -> None:
        raise asyncio.CancelledError

    with pytest.raises(CancelledItself):
        await at_once(cancels_itself(), this_task())
    with pytest.raises(asyncio.CancelledError):
        await at_once(only_says_so(), this_task())
    assert current().cancelling() == 0
    await asyncio.sleep(0)


VARIABLE = contextvars.ContextVar("VARIABLE", default="unset")


async def sets(then: asyncio.Future[str] | None = None) -> str:
    VARIABLE.set("set")
    try:
        return await then if then is not None else VARIABLE.get()
    except LookupError:
        return "caught"
    finally:
        assert VARIABLE.get() == "set"


async def test_work_in_a_context_of_its_own_changes_nothing_outside() -> None:
    assert await in_context(sets(), contextvars.copy_context()) == "set"
    assert VARIABLE.get() == "unset"


@pytest.mark.parametrize("error", [None, LookupError("it")])
async def test_work_in_a_context_of_its_own_may_wait(error: Exception | None) -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settle = functools.partial(future.set_exception, error) if error else functools.partial(future.set_result, "done")
    asyncio.get_running_loop().call_soon(settle)
    assert await in_context(sets(future), contextvars.copy_context()) == ("caught" if error else "done")
    assert VARIABLE.get() == "unset"


async def test_work_in_a_context_of_its_own_is_closed_when_it_is_abandoned() -> None:
    work = sets(asyncio.get_running_loop().create_future())

    async def in_another_context() -> str:
        return await in_context(work, contextvars.Context())

    outer = in_another_context()
    assert outer.send(None) is not None
    outer.close()
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
