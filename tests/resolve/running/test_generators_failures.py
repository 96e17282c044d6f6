"""Generators that fail, and generators among failures (design 5, 6): what is closed, what is reported, and how long it may take."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated

import anyio
import pytest

from bespeak.resolve.errors import ResolverFailed, ToolError
from bespeak.resolve.markers import Elicit, Resolve
from bespeak.resolve.running import generators
from tests.resolve.running.round_harness import Consent, asked, pause, run_to_end, start


async def test_a_generator_that_fails_to_open_names_itself_and_is_not_closed() -> None:
    async def connection() -> AsyncIterator[str]:
        raise ConnectionError("refused")
        yield "connection"

    def body(a: Annotated[str, Resolve(connection)]) -> None: ...

    round_ = start(body)
    await round_.ask()
    with pytest.raises(ResolverFailed, match=r"^resolver 'connection' failed \(body -> a -> connection\)$"):
        await round_.finish()
    await round_.close(body_ran=False)


async def test_when_another_resolver_fails_exactly_what_was_opened_is_closed_and_early() -> None:
    events: list[str] = []

    def make(name: str, fails: bool = False) -> Callable[[], AsyncIterator[str]]:
        async def resource() -> AsyncIterator[str]:
            if fails:
                raise ValueError
            events.append(f"open {name}")
            try:
                yield name
                events.append(f"commit {name}")
            finally:
                events.append(f"close {name}")

        return resource

    one, two, three, four = make("one"), make("two"), make("three", fails=True), make("four")

    def body(
        a: Annotated[str, Resolve(one)],
        b: Annotated[str, Resolve(two)],
        c: Annotated[str, Resolve(three)],
        d: Annotated[str, Resolve(four)],
    ) -> None: ...

    round_ = start(body)
    await round_.ask()
    with pytest.raises(ResolverFailed) as end:
        await round_.finish()
    await round_.close(end.value, body_ran=False)
    assert events == ["open one", "open two", "close two", "close one"]


async def test_a_failure_does_not_wait_for_a_generator_that_is_still_opening() -> None:
    async def slow() -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield "never"

    async def failing() -> str:
        raise ValueError

    def body(a: Annotated[str, Resolve(slow)], b: Annotated[str, Resolve(failing)]) -> None: ...

    with anyio.fail_after(20), pytest.raises(ResolverFailed, match="'failing'"):
        await run_to_end(body)


async def test_a_generators_failure_is_reported_after_those_known_earlier_in_graph_order() -> None:
    async def failing() -> str:
        raise ValueError

    async def connection() -> AsyncIterator[str]:
        await pause()
        raise ConnectionError
        yield "connection"

    def body(a: Annotated[str, Resolve(failing)], b: Annotated[str, Resolve(connection)]) -> None: ...

    with pytest.raises(ResolverFailed, match="'failing'"):
        await run_to_end(body)


@pytest.mark.parametrize("sort", ["async", "sync"])
async def test_a_cleanup_that_raises_after_a_successful_body_fails_the_call_and_the_others_see_that(sort: str) -> None:
    seen: list[BaseException] = []

    async def outer() -> AsyncIterator[str]:
        try:
            yield "outer"
        except Exception as error:
            seen.append(error)
            raise

    async def async_inner() -> AsyncIterator[str]:
        yield "inner"
        raise ConnectionError("commit failed")

    def sync_inner() -> Iterator[str]:
        yield "inner"
        raise ConnectionError("commit failed")

    inner = async_inner if sort == "async" else sync_inner

    def body(a: Annotated[str, Resolve(outer)], b: Annotated[str, Resolve(inner)]) -> None: ...

    expected = rf"^resolver '{sort}_inner' failed in its cleanup \(body -> b -> {sort}_inner\)$"
    with pytest.raises(ResolverFailed, match=expected) as end:
        await run_to_end(body)
    assert isinstance(end.value.__cause__, ConnectionError)
    assert seen == [end.value]


async def test_a_tool_error_in_a_cleanup_stays_what_it_is() -> None:
    async def inner() -> AsyncIterator[str]:
        yield "inner"
        raise ToolError("the order could not be saved")

    def body(a: Annotated[str, Resolve(inner)]) -> None: ...

    with pytest.raises(ToolError, match=r"^the order could not be saved$"):
        await run_to_end(body)


async def test_a_cleanup_that_raises_after_a_failed_body_keeps_the_bodys_exception_in_its_context() -> None:
    error = ValueError("in the body")

    async def inner() -> AsyncIterator[str]:
        try:
            yield "inner"
        finally:
            raise ConnectionError("rollback failed")

    def body(a: Annotated[str, Resolve(inner)]) -> None: ...

    with pytest.raises(ResolverFailed, match="'inner' failed in its cleanup") as end:
        await run_to_end(body, error)
    assert end.value.__cause__ is not None
    assert end.value.__cause__.__context__ is error


async def test_a_cleanup_that_raises_when_closed_early_is_logged_and_the_others_close(
    caplog: pytest.LogCaptureFixture,
) -> None:
    closed: list[str] = []

    async def outer() -> AsyncIterator[str]:
        try:
            yield "outer"
        finally:
            closed.append("outer")

    async def inner(outer: Annotated[str, Resolve(outer)]) -> AsyncIterator[str]:
        try:
            yield "inner"
        finally:
            raise ConnectionError("rollback failed")

    async def confirm(inner: Annotated[str, Resolve(inner)]) -> Consent | Elicit[Consent]:
        return Elicit("Really?", Consent)

    def body(a: Annotated[Consent, Resolve(confirm)]) -> None: ...

    round_ = start(body)
    assert await asked(round_) == ["confirm"]
    await round_.close(body_ran=False)
    assert closed == ["outer"]
    assert "the cleanup of resolver 'inner' failed" in caplog.text
    assert "rollback failed" in caplog.text


@pytest.mark.timing
@pytest.mark.parametrize("sort", ["async", "sync"])
async def test_a_cleanup_is_bounded_in_time_and_the_others_still_close(
    sort: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(generators, "CLEANUP_SECONDS", 0.02)
    closed, release = list[str](), threading.Event()

    async def outer() -> AsyncIterator[str]:
        yield "outer"
        closed.append("outer")

    async def async_hanging() -> AsyncIterator[str]:
        yield "hanging"
        await asyncio.Event().wait()

    def sync_hanging() -> Iterator[str]:
        yield "hanging"
        release.wait(30)

    hanging = async_hanging if sort == "async" else sync_hanging

    def body(a: Annotated[str, Resolve(outer)], b: Annotated[str, Resolve(hanging)]) -> None: ...

    unfinished = f"the tool ran, but the cleanup of resolver '{sort}_hanging' did not finish"
    with (
        caplog.at_level(logging.WARNING, "bespeak.resolve"),
        anyio.fail_after(20),
        pytest.raises(ToolError, match=unfinished),
    ):
        await run_to_end(body)
    release.set()
    assert closed == ["outer"]
    assert f"the cleanup of resolver '{sort}_hanging' took over 0.02 s and was stopped" in caplog.text


async def test_a_cleanup_that_ends_in_a_cancellation_of_its_own_is_a_failure_the_others_see() -> None:
    seen: list[str] = []

    async def outer() -> AsyncIterator[str]:
        try:
            yield "outer"
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    async def inner() -> AsyncIterator[str]:
        yield "inner"
        gone = asyncio.get_running_loop().create_future()
        gone.cancel()
        await gone

    def body(a: Annotated[str, Resolve(outer)], b: Annotated[str, Resolve(inner)]) -> None: ...

    task = asyncio.create_task(run_to_end(body))
    await asyncio.wait({task})
    assert not task.cancelled()
    assert "'inner' failed in its cleanup" in str(task.exception())
    assert seen == ["ResolverFailed"]
