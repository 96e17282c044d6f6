"""Tasks of calls that outlive their requests: cut off on demand, and reported when nobody can wait for them any more."""

import asyncio
import logging
from typing import Any

import pytest

from bespeak.server.calls.call_tasks import CallTasks, Outliving, cut_off_here, were_cut_off_here

CUT_OFF = "'pay' was approved and is cut off by a test; whether it took effect is unknown"


class Call(Outliving):
    def __init__(self, name: str, *, approved: bool) -> None:
        self.name = name
        self.closed = self.approved = approved


async def forever() -> dict[str, Any]:
    await asyncio.sleep(60)
    return {}


def begun(tasks: CallTasks, call: Call) -> asyncio.Task[dict[str, Any]]:
    task = asyncio.create_task(forever(), name=f"bespeak call {call.name}")
    tasks.add(task, call)
    return task


@pytest.fixture
def errors(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.ERROR, "bespeak")
    return caplog


async def test_cutting_off_ends_all_calls_and_names_the_approved_ones(errors: pytest.LogCaptureFixture) -> None:
    first, second = CallTasks(), CallTasks()
    pay, nap = Call("pay", approved=True), Call("nap", approved=False)
    ended = [begun(first, pay), begun(second, nap)]
    await asyncio.sleep(0)
    await cut_off_here("a test")
    assert [task.cancelled() for task in ended] == [True, True]
    assert errors.messages == [CUT_OFF]
    assert (pay.given_up, nap.given_up) == (True, True)
    assert were_cut_off_here() == ["pay"]


async def test_a_call_is_cut_off_once(errors: pytest.LogCaptureFixture) -> None:
    tasks = CallTasks()
    task = begun(tasks, Call("pay", approved=True))
    await asyncio.gather(cut_off_here("a test"), cut_off_here("a test"))
    assert task.cancelled()
    assert errors.messages == [CUT_OFF]
    assert tasks.were_cut_off() == ["pay"]


async def test_where_nothing_runs_nothing_is_cut_off(errors: pytest.LogCaptureFixture) -> None:
    tasks = CallTasks()
    await tasks.cut_off("a test")
    assert (tasks.were_cut_off(), errors.messages) == ([], [])


async def test_cutting_off_the_calls_of_one_loop_leaves_those_of_another_alone(
    errors: pytest.LogCaptureFixture,
) -> None:
    tasks = CallTasks()

    async def elsewhere() -> list[str]:
        begun(tasks, Call("pay", approved=True))
        await cut_off_here("a test")
        return tasks.were_cut_off()

    task = begun(tasks, Call("stay", approved=True))
    assert await asyncio.to_thread(asyncio.run, elsewhere()) == ["pay"]
    assert tasks.were_cut_off() == []
    assert not task.done()
    task.cancel()


async def test_what_still_runs_when_the_program_ends_is_reported(errors: pytest.LogCaptureFixture) -> None:
    tasks = CallTasks()
    ending = [begun(tasks, Call("pay", approved=True)), begun(tasks, Call("nap", approved=False))]
    tasks.report_at_exit()
    assert errors.messages == [
        "'pay' was approved and still running when the program ended; whether it took effect is unknown"
    ]
    for task in ending:
        task.cancel()
