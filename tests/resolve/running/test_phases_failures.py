"""How a phase ends early: exceptions and timeouts, and which of several failures is reported (design 5)."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import pytest

from bespeak.resolve.errors import ResolverFailed, ToolError
from bespeak.resolve.markers import Resolve
from tests.resolve.running.round_harness import pause, values


async def end_of(work: Any) -> BaseException | None:
    """The exception that some work ends with, seen from outside so that a cancellation of its own does no harm here."""
    task = asyncio.ensure_future(work)
    await asyncio.wait({task}, timeout=20)
    assert task.done(), "it hangs"
    return asyncio.CancelledError() if task.cancelled() else task.exception()


# Exceptions


async def test_an_exception_names_the_resolver_and_its_path_and_keeps_its_cause() -> None:
    async def price() -> int:
        raise KeyError("dune")

    async def total(price: Annotated[int, Resolve(price)]) -> int:
        return price

    def body(a: Annotated[int, Resolve(total)]) -> None: ...

    with pytest.raises(
        ResolverFailed, match=r"^resolver 'price' failed \(body -> a -> total -> price -> price\)$"
    ) as end:
        await values(body)
    assert isinstance(end.value.__cause__, KeyError)


async def test_a_tool_error_stays_what_it_is() -> None:
    async def price() -> int:
        raise ToolError("no price for 'Dune'")

    def body(a: Annotated[int, Resolve(price)]) -> None: ...

    with pytest.raises(ToolError, match=r"^no price for 'Dune'$"):
        await values(body)


async def test_of_two_failures_known_at_once_the_first_in_graph_order_is_reported() -> None:
    go = asyncio.Event()

    async def late() -> int:
        await go.wait()
        raise ValueError

    async def early() -> int:
        await go.wait()
        raise ValueError

    async def starter() -> int:
        await asyncio.sleep(0)
        go.set()
        return 1

    def body(
        a: Annotated[int, Resolve(early)], b: Annotated[int, Resolve(late)], c: Annotated[int, Resolve(starter)]
    ) -> None: ...

    with pytest.raises(ResolverFailed, match="'early'"):
        await values(body)


async def test_a_failure_cancels_what_still_runs_and_sees_it_end() -> None:
    ended: list[str] = []

    async def first() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            await pause()
            ended.append("first")
        return 1

    async def second() -> int:
        await pause()
        raise ValueError

    def body(a: Annotated[int, Resolve(first)], b: Annotated[int, Resolve(second)]) -> None: ...

    with pytest.raises(ResolverFailed, match="'second'"):
        await values(body)
    assert ended == ["first"]


async def test_nothing_starts_after_a_failure() -> None:
    started: list[str] = []

    async def failing() -> int:
        raise ValueError

    async def quick() -> int:
        return 1

    async def above_quick(quick: Annotated[int, Resolve(quick)]) -> int:
        started.append("above_quick")
        return quick

    def body(a: Annotated[int, Resolve(failing)], b: Annotated[int, Resolve(above_quick)]) -> None: ...

    with pytest.raises(ResolverFailed, match="'failing'"):
        await values(body)
    assert started == []


async def test_a_sync_resolver_that_is_cancelled_is_abandoned_and_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    release, started, loop = threading.Event(), asyncio.Event(), asyncio.get_running_loop()

    def blocking() -> int:
        loop.call_soon_threadsafe(started.set)
        release.wait(30)
        return 1

    async def failing() -> int:
        await started.wait()
        raise ValueError

    def body(a: Annotated[int, Resolve(blocking)], b: Annotated[int, Resolve(failing)]) -> None: ...

    with caplog.at_level(logging.WARNING, "bespeak.resolve"), pytest.raises(ResolverFailed, match="'failing'"):
        await asyncio.wait_for(values(body), 20)
    release.set()
    assert "'blocking' was cancelled. Its thread continues to run, and its result is discarded." in caplog.text


async def test_cancelling_a_round_cancels_its_resolvers_and_sees_them_end() -> None:
    running, ended = asyncio.Event(), list[str]()

    async def first() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            await pause()
            ended.append("first")
        return 1

    async def second() -> int:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("second")
        return 2

    def body(a: Annotated[int, Resolve(first)], b: Annotated[int, Resolve(second)]) -> None: ...

    task = asyncio.create_task(values(body))
    await running.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert sorted(ended) == ["first", "second"]


async def awaits_what_was_cancelled() -> int:
    gone = asyncio.get_running_loop().create_future()
    gone.cancel()
    return await gone


async def fine() -> int:
    await pause()
    return 1


@pytest.mark.parametrize("company", [False, True], ids=["alone", "in company"])
async def test_a_resolver_that_raises_a_cancellation_of_its_own_is_a_failure(company: bool) -> None:
    def alone(a: Annotated[int, Resolve(awaits_what_was_cancelled)]) -> None: ...
    def among(a: Annotated[int, Resolve(awaits_what_was_cancelled)], b: Annotated[int, Resolve(fine)]) -> None: ...

    end = await end_of(values(among if company else alone))
    assert isinstance(end, ResolverFailed)
    assert "'awaits_what_was_cancelled' raised CancelledError although nothing cancelled it" in str(end)


async def test_a_sync_resolver_that_runs_out_of_items_is_a_failure() -> None:
    def first_of_none() -> int:
        return next(iter(list[int]()))

    def body(a: Annotated[int, Resolve(first_of_none)]) -> None: ...

    end = await end_of(values(body))
    assert isinstance(end, ResolverFailed)
    assert "'first_of_none'" in str(end)


# Timeouts


async def takes_long() -> int:
    await asyncio.Event().wait()
    return 1


def blocks_long() -> int:
    threading.Event().wait(1)
    return 1


async def opens_long() -> AsyncIterator[int]:
    await asyncio.Event().wait()
    yield 1


def opens_and_blocks_long() -> Iterator[int]:
    threading.Event().wait(1)
    yield 1


@pytest.mark.timing
@pytest.mark.parametrize("slow", [takes_long, blocks_long, opens_long, opens_and_blocks_long])
@pytest.mark.parametrize("company", [False, True])
async def test_a_resolver_over_its_timeout_is_an_error_that_names_it(slow: Callable[..., Any], company: bool) -> None:
    def alone(a: Annotated[int, Resolve(slow, timeout=0.02)]) -> None: ...
    def among(a: Annotated[int, Resolve(slow, timeout=0.02)], b: Annotated[int, Resolve(fine)]) -> None: ...

    name = "among" if company else "alone"
    expected = rf"^resolver '{slow.__name__}' took longer than 0.02 s \({name} -> a -> {slow.__name__}\)$"
    with pytest.raises(ResolverFailed, match=expected):
        await asyncio.wait_for(values(among if company else alone), 20)


async def test_a_timeout_of_the_resolvers_own_is_an_ordinary_failure() -> None:
    async def impatient() -> int:
        raise TimeoutError("the warehouse is slow")

    def body(a: Annotated[int, Resolve(impatient, timeout=5)]) -> None: ...

    with pytest.raises(ResolverFailed, match="'impatient' failed") as end:
        await values(body)
    assert str(end.value.__cause__) == "the warehouse is slow"


async def test_a_resolver_within_its_timeout_is_left_alone() -> None:
    def body(a: Annotated[int, Resolve(fine, timeout=5)]) -> None: ...

    assert await values(body) == {"a": 1}
