"""A sync function that still runs when its program's server is done. As a whole program: tests/test_stopping.py."""

import atexit
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

import anyio
import pytest

from bespeak.aio.threads import in_thread, running_functions
from bespeak.server import leftover_threads

pytestmark = pytest.mark.timing

ENDED_WITHOUT = "'hang' is still running in a thread; the program ends without it"


class Ending:
    """An end of the program that happens only in this test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.did: list[str] = []
        self.own = threading.Thread(target=self._own)
        self.own_may_end = threading.Event()
        over = threading.Thread(target=lambda: None)
        over.start()
        over.join()
        monkeypatch.setattr(threading, "main_thread", lambda: over)
        # the program's own is the only one that is not part of the machinery of tests
        monkeypatch.setattr(threading, "enumerate", lambda: [self.own] if self.own.is_alive() else [])
        monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: self.did.append("exit handlers"))
        monkeypatch.setattr(os, "_exit", self._exit)
        monkeypatch.setattr(leftover_threads, "STUCK_SECONDS", 0.05)

    def _exit(self, status: int) -> None:
        self.did.append(f"exit {status}")

    def _own(self) -> None:
        self.own_may_end.wait(10)
        self.did.append("own thread")


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Ending:
    return Ending(monkeypatch)


@contextmanager
def hanging() -> Generator[threading.Event]:
    """While the block is open, a sync function runs that nobody waits for; the event lets it end."""
    begun, go = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        go.wait(10)

    async def abandon() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(in_thread, hang, "hang")
            await anyio.to_thread.run_sync(begun.wait)
            group.cancel_scope.cancel()

    anyio.run(abandon)
    thread, name = next(iter(running_functions().items()))
    assert name == "hang"
    try:
        yield go
    finally:
        go.set()
        thread.join(10)
    assert not running_functions()


def end() -> threading.Thread | None:
    """What is left to wait for, if anything."""
    before = set(_all())
    leftover_threads.leave_threads_behind()
    (added,) = [thread for thread in _all() if thread not in before] or [None]
    return added


def _all() -> list[threading.Thread]:
    return list(vars(threading)["_active"].values())


def test_where_no_function_runs_there_is_nothing_to_do(ending: Ending) -> None:
    assert end() is None
    assert ending.did == []


@pytest.mark.long
def test_a_function_that_hangs_is_left_behind_after_the_program_s_own_threads_and_exit_handlers(
    ending: Ending, caplog: pytest.LogCaptureFixture
) -> None:
    with hanging():
        ending.own.start()
        last = end()
        assert last is not None
        last.join(0.3)  # that it waits for the other thread shows only in what it has not done by now
        assert last.is_alive()
        assert ending.did == []
        ending.own_may_end.set()
        last.join(10)
    assert ending.did == ["own thread", "exit handlers", "exit 1"]
    assert ENDED_WITHOUT in caplog.messages


def test_a_function_that_ends_in_time_leaves_the_end_to_python(
    ending: Ending, caplog: pytest.LogCaptureFixture
) -> None:
    with hanging() as go:
        ending.own.start()
        last = end()
        assert last is not None
        go.set()
        ending.own_may_end.set()
        last.join(10)
    assert ending.did == ["own thread"]
    assert ENDED_WITHOUT not in caplog.messages
