"""How many questions a client answers: in one round, and, of an older server, at one time."""

import asyncio
import json
import logging
from typing import Any

import pytest
from mcp_types import ElicitResult

from bespeak import Client
from bespeak.client import ClientRequestContext, InputRequiredQuestionsExceededError
from tests.answering import accept, text
from tests.client.test_pushed import OldServer, Slow, plain, result_of
from tests.client.test_session import COMPLETE, FORM, Fake, asking
from tests.waiting import eventually


class Counting:
    """A callback that says yes, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, context: ClientRequestContext, params: Any) -> ElicitResult:
        self.asked += 1
        return accept(sure=True)


# In one round


async def called(questions: int, **options: Any) -> tuple[Fake, Counting]:
    fake, counting = Fake(asking({f"q{number}": FORM for number in range(questions)}), COMPLETE), Counting()
    async with Client(fake, elicitation_callback=counting, **options) as client:
        await client.call_tool("tool")
    return fake, counting


async def test_sixty_four_questions_of_one_round_are_answered() -> None:
    fake, counting = await called(64)
    assert (counting.asked, len(fake.params[1]["inputResponses"])) == (64, 64)


async def test_one_more_ends_the_call_and_nobody_is_asked() -> None:
    fake, counting = Fake(asking({f"q{number}": FORM for number in range(65)})), Counting()
    async with Client(fake, elicitation_callback=counting) as client:
        with pytest.raises(InputRequiredQuestionsExceededError) as caught:
            await client.call_tool("tool")
    assert str(caught.value) == (
        "the server asked 65 questions in one round, more than this client answers: 64 (input_required_max_questions)"
    )
    assert (caught.value.asked, caught.value.max_questions) == (65, 64)
    assert (counting.asked, len(fake.requests)) == (0, 1)


async def test_the_bound_can_be_set() -> None:
    assert (await called(100, input_required_max_questions=100))[1].asked == 100
    with pytest.raises(
        InputRequiredQuestionsExceededError, match=r"asked 2 questions in one round, more than .*: 1 \("
    ):
        await called(2, input_required_max_questions=1)


def test_the_bound_cannot_be_negative() -> None:
    with pytest.raises(ValueError, match="input_required_max_questions cannot be negative"):
        Client(Fake(COMPLETE), input_required_max_questions=-1)


async def test_a_bound_of_none_at_all_lets_rounds_without_questions_pass() -> None:
    fake = Fake(asking(None, "s"), COMPLETE)
    async with Client(fake, elicitation_callback=Counting(), input_required_max_questions=0) as client:
        assert text(await client.call_tool("tool")) == "done"


# Of an older server, at one time


async def crowd(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
    """A tool that asks five questions at once, and tells what was replied to each."""
    replies = await asyncio.gather(*(server.ask(FORM, f"q{number}") for number in range(5)))
    return result_of(json.dumps({reply["id"]: reply.get("error") for reply in replies}))


TOO_MANY = {"code": -1, "message": "the client answers 3 questions at one time, and so many are open"}


async def test_questions_beyond_the_bound_are_refused_and_the_others_answered() -> None:
    slow = Slow()
    server = OldServer(tool=crowd)
    async with Client(server, elicitation_callback=slow, input_required_max_questions=3) as client:
        calling = asyncio.create_task(client.call_tool("tool"))
        await eventually(lambda: len(server.replies) == 2)
        assert slow.asked == 3
        slow.answer.set()
        replied = json.loads(text(await calling))
    assert replied == {"q0": None, "q1": None, "q2": None, "q3": TOO_MANY, "q4": TOO_MANY}


async def test_a_question_that_is_answered_makes_room_for_the_next() -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        replies = [await server.ask(FORM, number) for number in range(5)]
        return result_of(json.dumps(["result" in reply for reply in replies]))

    async with Client(OldServer(tool=tool), elicitation_callback=Counting(), input_required_max_questions=1) as client:
        assert json.loads(text(await client.call_tool("tool"))) == [True] * 5


async def test_pings_are_answered_while_as_many_questions_are_open_as_may_be() -> None:
    slow = Slow()

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        asked = asyncio.create_task(server.ask(FORM))
        await eventually(lambda: slow.asked)
        pong = await asyncio.wait_for(server.ask({"method": "ping"}, "p"), 5)
        slow.answer.set()
        await asked
        return result_of(json.dumps(pong["result"]))

    async with Client(OldServer(tool=tool), elicitation_callback=slow, input_required_max_questions=1) as client:
        assert json.loads(text(await client.call_tool("tool"))) == {}


async def test_a_flood_of_questions_is_not_even_refused_one_by_one_and_fills_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        for number in range(5000):
            server.send({"id": number, **FORM})
        await eventually(lambda: len(server.replies) > 50)
        return await plain(server, message)

    caplog.set_level(logging.WARNING)
    server = OldServer(tool=tool)
    async with Client(server, elicitation_callback=Slow()) as client:
        assert text(await client.call_tool("tool")) == "done"
    assert len(server.replies) <= 100
    assert [record.getMessage() for record in caplog.records] == [
        "the server asks more than anybody could answer; some of it is not answered"
    ]
