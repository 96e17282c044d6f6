"""Sync functions in worker threads: their results and errors, cancellation, and the limit on a pool."""

import asyncio
import sys
import threading
from collections.abc import Generator

import pytest

from bespeak.aio import threads
from bespeak.aio.tasks import cancel_all
from bespeak.aio.threads import Pool, in_thread, running_functions
from tests.waiting import eventually


class Hanging:
    """A function that returns when it is released."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.release = threading.Event()

    def __call__(self) -> str:
        self.started.set()
        assert self.release.wait(30)
        return "released"


@pytest.fixture
def hanging() -> Generator[Hanging]:
    one = Hanging()
    yield one
    one.release.set()


async def test_a_function_runs_in_another_thread_and_is_listed_while_it_does(hanging: Hanging) -> None:
    task = asyncio.create_task(in_thread(hanging, "hanging"))
    await eventually(hanging.started.is_set)
    assert "hanging" in running_functions().values()
    assert threading.current_thread() not in running_functions()
    hanging.release.set()
    assert await task == "released"
    assert "hanging" not in running_functions().values()


@pytest.mark.parametrize("error", [LookupError("lost"), asyncio.CancelledError()])
async def test_what_a_function_raises_is_raised(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        await in_thread(fail, "fail")


async def test_an_exception_that_would_end_the_event_loop_becomes_an_error() -> None:
    with pytest.raises(RuntimeError, match="'leave' raised SystemExit"):
        await in_thread(sys.exit, "leave")


async def test_a_thread_whose_call_is_cancelled_keeps_its_place_until_it_ends(
    hanging: Hanging, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "THREADS", 1)
    pool = Pool("test")
    task = asyncio.create_task(in_thread(hanging, "hanging", pool))
    await eventually(hanging.started.is_set)
    await cancel_all([task])
    assert caplog.messages == ["'hanging' was cancelled. Its thread continues to run, and its result is discarded."]
    assert pool.limiter().available_tokens == 0
    later = asyncio.create_task(in_thread(lambda: "later", "later", pool))
    hanging.release.set()
    assert await asyncio.wait_for(later, 5) == "later"


async def test_a_function_whose_call_is_cancelled_before_it_starts_never_runs(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "THREADS", 1)
    pool, ran = Pool("test"), list[None]()
    first = asyncio.create_task(in_thread(hanging, "hanging", pool))
    await eventually(hanging.started.is_set)
    waiting = asyncio.create_task(in_thread(lambda: ran.append(None), "never", pool))
    await asyncio.sleep(0)
    await cancel_all([waiting])
    hanging.release.set()
    await first
    assert ran == []
    assert await in_thread(lambda: "free", "free", pool) == "free"
