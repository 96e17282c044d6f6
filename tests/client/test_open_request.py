"""The time limit of a request stops while a question is open, and only then."""

import asyncio
import gc
import time
from typing import Any

import pytest

from bespeak import Client
from bespeak.client import CallbackFailed, ClientRequestContext
from tests.answering import text
from tests.client.older_server import OldServer, Slow, plain
from tests.client.sample_questions import FORM, SAMPLE, say_yes, write
from tests.waiting import eventually, pass_time

pytestmark = pytest.mark.timing


PUSHED = {"jsonrpc": "2.0", "id": "q", **FORM}


async def test_the_time_of_all_open_questions_is_not_the_server_s() -> None:
    slow = Slow()

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        open_ = asyncio.create_task(server.ask(FORM, "long"))
        await server.ask(SAMPLE, "short")
        await open_
        return await plain(server, message)

    async with Client(OldServer(tool=tool), elicitation_callback=slow, sampling_callback=write) as client:
        # Which of two calls a question belongs to is not known, so neither runs out of time.
        calls = [asyncio.create_task(client.call_tool("tool", read_timeout_seconds=5)) for _ in range(2)]
        await eventually(lambda: slow.asked)
        await pass_time(10)
        assert not any(one.done() for one in calls)
        for one in calls:
            one.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        calling = asyncio.create_task(client.call_tool("tool", read_timeout_seconds=5))
        await eventually(lambda: slow.asked == 2)
        await pass_time(10)
        assert not calling.done()
        slow.answer.set()
        assert text(await calling) == "done"


async def test_the_time_of_a_server_that_says_nothing_after_an_answer_runs_out() -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> None:
        await server.ask(FORM)

    server = OldServer(tool=tool)
    async with Client(server, elicitation_callback=say_yes) as client:
        with pytest.raises(TimeoutError, match=r"no answer to tools/call within 0.05 s"):
            await asyncio.wait_for(client.call_tool("tool", read_timeout_seconds=0.05), 5)
        await eventually(lambda: server.told("notifications/cancelled"))
    assert len(server.replies) == 1


@pytest.mark.long
async def test_the_time_before_a_question_counts() -> None:
    """The time before a question is not given back after it."""
    loop = asyncio.get_running_loop()
    answered = 0.0

    async def tool(server: OldServer, message: dict[str, Any]) -> None:
        nonlocal answered
        await pass_time(59.5)
        await server.ask(FORM)
        answered = loop.time()

    async with Client(OldServer(tool=tool), elicitation_callback=say_yes) as client:
        with pytest.raises(TimeoutError):
            await client.call_tool("tool", read_timeout_seconds=60)
        assert 0 <= loop.time() - answered < 30


async def test_a_ping_does_not_stop_the_time() -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> None:
        for number in range(1000):
            await server.ask({"method": "ping"}, number)
            await asyncio.sleep(0.01)

    async with Client(OldServer(tool=tool)) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.call_tool("tool", read_timeout_seconds=0.1), 5)


async def raises(context: ClientRequestContext, *params: Any) -> Any:
    raise ValueError("hush")


@pytest.mark.parametrize("callback", [say_yes, raises])
@pytest.mark.parametrize("comes", ["before the clock is read", "as it strikes"])
@pytest.mark.long
async def test_a_question_that_comes_as_the_time_runs_out_causes_no_other_error(callback: Any, comes: str) -> None:
    loop = asyncio.get_running_loop()
    complaints: list[Any] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))

    async def tool(server: OldServer, message: dict[str, Any]) -> None:
        def busy() -> None:
            time.sleep(0.08)
            if comes == "before the clock is read":
                server.send(PUSHED)

        loop.call_later(0.01, busy)
        if comes == "as it strikes":
            loop.call_later(0.02, server.send, PUSHED)

    async with Client(OldServer(tool=tool), elicitation_callback=callback) as client:
        with pytest.raises((TimeoutError, CallbackFailed)):
            await asyncio.wait_for(client.call_tool("tool", read_timeout_seconds=0.05), 5)
    gc.collect()
    assert complaints == []


async def test_time_runs_again_when_a_question_is_taken_back() -> None:
    slow = Slow()

    async def tool(server: OldServer, message: dict[str, Any]) -> None:
        server.send(PUSHED)
        await eventually(lambda: slow.asked)
        server.note("cancelled", requestId="q")

    async with Client(OldServer(tool=tool), elicitation_callback=slow) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.call_tool("tool", read_timeout_seconds=0.1), 5)
