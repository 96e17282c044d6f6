"""One phase: what runs at the same time, in which task or thread, and what is awaited in place (design 5)."""

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Annotated, Any

import anyio
import anyio.to_thread
import pytest

from bespeak.resolve.markers import Resolve
from tests.resolve.running.round_harness import pause, values


@pytest.mark.parametrize("kinds", [("async", "async"), ("sync", "sync"), ("async", "sync")], ids="-".join)
async def test_independent_resolvers_run_at_the_same_time(kinds: tuple[str, str]) -> None:
    meeting = threading.Barrier(2)

    def resolver(kind: str) -> Callable[..., Any]:
        async def meets() -> int:
            return await asyncio.to_thread(meeting.wait, 20) >= 0

        def meets_in_a_thread() -> int:
            return meeting.wait(20) >= 0

        return meets if kind == "async" else meets_in_a_thread

    first, second = map(resolver, kinds)

    def body(a: Annotated[int, Resolve(first)], b: Annotated[int, Resolve(second)]) -> None: ...

    assert await values(body) == {"a": True, "b": True}


async def test_a_resolver_starts_as_soon_as_what_it_depends_on_is_there() -> None:
    reached = asyncio.Event()

    async def waiting() -> int:
        await reached.wait()
        return 1

    async def quick() -> int:
        return 2

    async def above_quick(quick: Annotated[int, Resolve(quick)]) -> int:
        reached.set()
        return quick + 1

    def body(a: Annotated[int, Resolve(waiting)], b: Annotated[int, Resolve(above_quick)]) -> None: ...

    with anyio.fail_after(20):
        assert await values(body) == {"a": 1, "b": 3}


async def test_a_resolver_runs_once_a_round_however_many_consumers_it_has() -> None:
    runs: list[str] = []

    async def shared() -> int:
        runs.append("shared")
        await asyncio.sleep(0)
        return 1

    async def left(shared: Annotated[int, Resolve(shared)]) -> int:
        return shared + 1

    async def right(shared: Annotated[int, Resolve(shared)], left: Annotated[int, Resolve(left)]) -> int:
        return shared + left

    def body(
        a: Annotated[int, Resolve(left)], b: Annotated[int, Resolve(right)], c: Annotated[int, Resolve(shared)]
    ) -> None: ...

    assert await values(body) == {"a": 2, "b": 3, "c": 1}
    assert runs == ["shared"]


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name
        self.visits = 0

    async def visit(self) -> str:
        self.visits += 1
        return self.name


async def test_a_method_is_one_resolver_for_each_object_it_is_bound_to() -> None:
    here, there = Shop("here"), Shop("there")

    def body(
        a: Annotated[str, Resolve(here.visit)],
        b: Annotated[str, Resolve(here.visit)],
        c: Annotated[str, Resolve(there.visit)],
    ) -> None: ...

    assert await values(body) == {"a": "here", "b": "here", "c": "there"}
    assert (here.visits, there.visits) == (1, 1)


async def test_a_lone_ready_resolver_is_awaited_in_place() -> None:
    tasks: list[Any] = []

    async def first() -> int:
        tasks.append(asyncio.current_task())
        return 1

    async def second(first: Annotated[int, Resolve(first)]) -> int:
        tasks.append(asyncio.current_task())
        return first

    def body(a: Annotated[int, Resolve(second)]) -> None: ...

    await values(body)
    assert tasks == [asyncio.current_task()] * 2


async def test_several_ready_resolvers_that_may_wait_each_get_a_task() -> None:
    tasks: set[Any] = set()

    async def first() -> int:
        await asyncio.sleep(0)
        tasks.add(asyncio.current_task())
        return 1

    async def second() -> int:
        tasks.add(asyncio.current_task())
        return 2

    def body(a: Annotated[int, Resolve(first)], b: Annotated[int, Resolve(second)]) -> None: ...

    await values(body)
    assert len(tasks) == 2
    assert asyncio.current_task() not in tasks


async def within_fail_after() -> str:
    with anyio.fail_after(0.01):
        await anyio.sleep(5)
    return "never"


async def within_timeout() -> str:
    async with asyncio.timeout(0.01):
        await asyncio.sleep(5)
    return "never"


async def within_a_task_group() -> str:
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 5)
        await pause()
        group.cancel_scope.cancel()
    raise TimeoutError


@pytest.mark.timing
@pytest.mark.parametrize("scoped", [within_fail_after, within_timeout, within_a_task_group])
@pytest.mark.parametrize("company", [0, 2])
async def test_scopes_and_timeouts_inside_a_resolver_work_alone_and_in_company(
    scoped: Callable[[], Awaitable[str]], company: int
) -> None:
    async def patient() -> str:
        try:
            return await scoped()
        except TimeoutError:
            return "in time"

    async def other() -> str:
        await pause(2)
        return "done"

    others = [functools.partial(other) for _ in range(2)]

    def alone(a: Annotated[str, Resolve(patient)]) -> None: ...
    def among(
        a: Annotated[str, Resolve(patient)],
        b: Annotated[str, Resolve(others[0])],
        c: Annotated[str, Resolve(others[1])],
    ) -> None: ...

    resolved = await values(among if company else alone)
    assert resolved == {"a": "in time", "b": "done", "c": "done"} if company else {"a": "in time"}


async def test_sync_resolvers_have_a_limiter_of_their_own() -> None:
    def blocking() -> int:
        return 1

    def body(a: Annotated[int, Resolve(blocking)]) -> None: ...

    default = anyio.to_thread.current_default_thread_limiter()
    async with AsyncExitStack() as stack:
        for borrower in range(int(default.available_tokens)):
            default.acquire_on_behalf_of_nowait(borrower)
            stack.callback(default.release_on_behalf_of, borrower)
        with anyio.fail_after(20):
            assert await values(body) == {"a": 1}


async def test_a_sync_resolver_runs_in_a_worker_thread_and_an_async_one_does_not() -> None:
    def blocking() -> int:
        return threading.get_ident()

    async def waiting() -> int:
        return threading.get_ident()

    def body(a: Annotated[int, Resolve(blocking)], b: Annotated[int, Resolve(waiting)]) -> None: ...

    resolved = await values(body)
    assert resolved["a"] != threading.get_ident()
    assert resolved["b"] == threading.get_ident()
