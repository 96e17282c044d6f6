"""Generators as resolvers (design 6): when they open, what they see at the end, and in which order they close."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import anyio
import pytest

from bespeak.resolve.errors import ResolverFailed
from bespeak.resolve.markers import Elicit, Resolve
from tests.resolve.running.round_harness import YES, Consent, asked, pause, run_to_end, start, values
from tests.waiting import pass_time


async def async_connection() -> AsyncIterator[str]:
    yield "connection"


def sync_connection() -> Iterator[str]:
    yield "connection"


class Connections:
    async def __call__(self) -> AsyncIterator[str]:
        yield "connection"

    def method(self) -> Iterator[str]:
        yield "connection"


@pytest.mark.parametrize("connection", [async_connection, sync_connection, Connections(), Connections().method])
async def test_the_value_a_generator_yields_is_injected(connection: Callable[..., Any]) -> None:
    async def above(connection: Annotated[str, Resolve(connection)]) -> str:
        return f"{connection} used"

    def body(a: Annotated[str, Resolve(connection)], b: Annotated[str, Resolve(above)]) -> None: ...

    assert await values(body) == {"a": "connection", "b": "connection used"}


async def test_generators_clean_up_in_reverse_order_sync_and_async_alike() -> None:
    events: list[str] = []

    async def pool() -> AsyncIterator[str]:
        events.append("open pool")
        yield "pool"
        events.append("close pool")

    def connection(pool: Annotated[str, Resolve(pool)]) -> Iterator[str]:
        events.append("open connection")
        yield "connection"
        events.append("close connection")

    async def transaction(connection: Annotated[str, Resolve(connection)]) -> AsyncIterator[str]:
        events.append("open transaction")
        yield "transaction"
        events.append("close transaction")

    def body(a: Annotated[str, Resolve(transaction)], b: Annotated[str, Resolve(pool)]) -> None: ...

    round_ = start(body)
    await round_.ask()
    assert events == []
    await round_.finish()
    assert events == ["open pool", "open connection", "open transaction"]
    await round_.close(body_ran=True)
    assert events[3:] == ["close transaction", "close connection", "close pool"]


async def test_async_generators_open_and_close_in_the_calls_own_task_even_in_company() -> None:
    tasks: list[Any] = []

    def make(name: str) -> Callable[[], AsyncIterator[str]]:
        async def resource() -> AsyncIterator[str]:
            tasks.append(asyncio.current_task())
            yield name
            tasks.append(asyncio.current_task())

        return resource

    async def other() -> str:
        await pause()
        return "other"

    first, second = make("first"), make("second")

    def body(
        a: Annotated[str, Resolve(first)], b: Annotated[str, Resolve(other)], c: Annotated[str, Resolve(second)]
    ) -> None: ...

    await run_to_end(body)
    assert tasks == [asyncio.current_task()] * 4


async def test_every_generator_sees_the_bodys_exception_and_cannot_swallow_it() -> None:
    seen: list[BaseException] = []
    error = ValueError("in the body")

    async def outer() -> AsyncIterator[str]:
        try:
            yield "outer"
        except ValueError as passing:
            seen.append(passing)
            raise

    def inner() -> Iterator[str]:
        try:
            yield "inner"
        except ValueError as swallowed:
            seen.append(swallowed)

    async def innermost() -> AsyncIterator[str]:
        try:
            yield "innermost"
        except ValueError as answered:
            seen.append(answered)
            yield "once more"

    def body(
        a: Annotated[str, Resolve(outer)], b: Annotated[str, Resolve(inner)], c: Annotated[str, Resolve(innermost)]
    ) -> None: ...

    await run_to_end(body, error)  # what is raised is another exception than the body's, or nothing
    assert seen == [error] * 3


# When they open


async def test_a_generator_no_question_depends_on_opens_only_in_the_round_with_the_body() -> None:
    opened: list[str] = []

    async def connection() -> AsyncIterator[str]:
        opened.append("connection")
        yield "connection"

    async def confirm() -> Consent | Elicit[Consent]:
        return Elicit("Really?", Consent)

    def body(a: Annotated[str, Resolve(connection)], b: Annotated[Consent, Resolve(confirm)]) -> None: ...

    first = start(body)
    await first.ask()
    await first.close(body_ran=False)
    assert opened == []
    second = start(body, first, confirm=YES)
    await second.ask()
    assert opened == []
    await second.finish()
    assert opened == ["connection"]
    await second.close(body_ran=True)


@pytest.mark.parametrize("sort", ["async", "sync"])
@pytest.mark.parametrize("needed_by", ["a question", "a guard"])
async def test_a_generator_that_a_question_or_guard_depends_on_opens_in_every_round_and_closes_early(
    sort: str, needed_by: str
) -> None:
    events: list[str] = []

    async def async_session() -> AsyncIterator[str]:
        events.append("open")
        try:
            yield "session"
            events.append("commit")
        except GeneratorExit:
            events.append("closed early")
            raise
        finally:
            events.append("close")

    def sync_session() -> Iterator[str]:
        events.append("open")
        try:
            yield "session"
            events.append("commit")
        except GeneratorExit:
            events.append("closed early")
            raise
        finally:
            events.append("close")

    session = async_session if sort == "async" else sync_session

    async def asking(session: Annotated[str, Resolve(session)]) -> Consent | Elicit[Consent]:
        return Elicit("Really?", Consent)

    async def plain() -> Consent | Elicit[Consent]:
        return Elicit("Really?", Consent)

    async def guard(session: Annotated[str, Resolve(session)]) -> None: ...

    confirm = asking if needed_by == "a question" else plain

    def questioned(a: Annotated[Consent, Resolve(confirm, key="confirm")]) -> None: ...
    def guarded(
        a: Annotated[Consent, Resolve(confirm, key="confirm")], b: Annotated[None, Resolve(guard, guard=True)]
    ) -> None: ...

    body = questioned if needed_by == "a question" else guarded
    first = start(body)
    assert await asked(first) == ["confirm"]
    await first.close(body_ran=False)
    assert events == ["open", "closed early", "close"]
    second = start(body, first, confirm=YES)
    await second.ask()
    await second.finish()
    await second.close(body_ran=True)
    assert events[3:] == ["open", "commit", "close"]


async def test_a_generator_that_opens_does_not_hold_up_the_others() -> None:
    reached = asyncio.Event()

    async def slow() -> AsyncIterator[str]:
        await reached.wait()
        yield "slow"

    async def quick() -> str:
        return "quick"

    async def above_quick(quick: Annotated[str, Resolve(quick)]) -> str:
        reached.set()
        return quick

    def body(a: Annotated[str, Resolve(slow)], b: Annotated[str, Resolve(above_quick)]) -> None: ...

    with anyio.fail_after(20):
        assert await values(body) == {"a": "slow", "b": "quick"}


async def test_a_timeout_counts_the_opening_and_not_the_time_a_generator_stays_open() -> None:
    closed: list[str] = []

    async def connection() -> AsyncIterator[str]:
        yield "connection"
        closed.append("connection")

    def body(a: Annotated[str, Resolve(connection, timeout=5)]) -> None: ...

    round_ = start(body)
    await round_.ask()
    await round_.finish()
    await pass_time(10)
    await round_.close(body_ran=True)
    assert closed == ["connection"]


# Generators that do not keep to the rules


def never_sync() -> Iterator[str]:
    yield from ()


async def never_async() -> AsyncIterator[str]:
    for nothing in list[str]():
        yield nothing


@pytest.mark.parametrize("never", [never_sync, never_async])
async def test_a_generator_that_never_yields_is_an_error_that_names_it(never: Callable[..., Any]) -> None:
    def body(a: Annotated[str, Resolve(never)]) -> None: ...

    expected = rf"^resolver '{never.__name__}' is a generator that never yielded \(body -> a -> {never.__name__}\)$"
    with pytest.raises(ResolverFailed, match=expected):
        await run_to_end(body)


CLOSED: list[str] = []


def twice_sync() -> Iterator[str]:
    try:
        yield "once"
        yield "twice"
    finally:
        CLOSED.append("twice_sync")


async def twice_async() -> AsyncIterator[str]:
    try:
        yield "once"
        yield "twice"
    finally:
        CLOSED.append("twice_async")


@pytest.mark.parametrize("twice", [twice_sync, twice_async])
async def test_a_generator_that_yields_twice_is_closed_and_is_an_error_that_names_it(twice: Callable[..., Any]) -> None:
    def body(a: Annotated[str, Resolve(twice)]) -> None: ...

    CLOSED.clear()
    expected = rf"^resolver '{twice.__name__}' is a generator that yielded twice \(body -> a -> {twice.__name__}\)$"
    with pytest.raises(ResolverFailed, match=expected):
        await run_to_end(body)
    assert [twice.__name__] == CLOSED


async def test_a_generator_that_yields_a_question_is_an_error_that_names_it() -> None:
    async def connection() -> AsyncIterator[Consent]:
        yield Elicit("Really?", Consent)  # pyright: ignore[reportReturnType] - wrong on purpose

    def body(a: Annotated[Consent, Resolve(connection)]) -> None: ...

    with pytest.raises(ResolverFailed, match="'connection' returned a question, but a generator cannot ask"):
        await run_to_end(body)
