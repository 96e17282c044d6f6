"""Driving rounds: what a retry carries, how many rounds and questions, and pauses between rounds without questions."""

import asyncio
from typing import Any

import pytest
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    ElicitResult,
)

from bespeak import Client, InputRequiredRoundsExceededError, MCPError
from bespeak.client import ClientRequestContext, InputRequiredQuestionsExceededError, driver
from tests.answering import accept, text
from tests.client.sample_questions import FORM, say_yes
from tests.client.scripted_transport import (
    COMPLETE,
    Fake,
    asking,
)

YES = {"action": "accept", "content": {"sure": True}}


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses the driver makes, which take no time here."""
    pauses: list[float] = []
    really = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await really(0)

    monkeypatch.setattr(driver.asyncio, "sleep", sleep)
    return pauses


async def driven(fake: Fake, **options: Any) -> str:
    async with Client(fake, elicitation_callback=say_yes, **options) as client:
        return text(await client.call_tool("tool", {"a": [1]}))


# What a retry carries


async def test_a_retry_repeats_the_request_with_answers_state_fresh_id_and_metadata() -> None:
    fake = Fake(asking({"q": FORM}, "s1"), COMPLETE)
    assert await driven(fake) == "done"
    first, retry = fake.requests
    assert retry["id"] != first["id"]
    assert {**retry["params"], "_meta": None} == {
        "name": "tool",
        "arguments": {"a": [1]},
        "inputResponses": {"q": YES},
        "requestState": "s1",
        "_meta": None,
    }
    assert retry["params"]["_meta"] == first["params"]["_meta"]
    for key in (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY):
        assert key in retry["params"]["_meta"]


@pytest.mark.parametrize("state", ["", '{"a":  1}', "null", " padded ", "\x00", "ü€\U0001f600", "a" * 9999])
async def test_a_state_is_echoed_as_it_is(state: str) -> None:
    fake = Fake(asking({"q": FORM}, state), COMPLETE)
    await driven(fake)
    assert fake.params[1]["requestState"] == state


async def test_an_earlier_round_s_state_and_answers_are_never_carried_over() -> None:
    fake = Fake(asking({"a": FORM}, "s1"), asking({"b": FORM}), asking(None, "s3"), COMPLETE)
    await driven(fake)
    assert [params.get("requestState") for params in fake.params] == [None, "s1", None, "s3"]
    assert [params.get("inputResponses") for params in fake.params] == [None, {"a": YES}, {"b": YES}, None]


async def test_a_call_started_with_answers_and_state_does_not_repeat_them() -> None:
    fake = Fake(asking({"b": FORM}), COMPLETE)
    async with Client(fake, elicitation_callback=say_yes) as client:
        await client.call_tool("tool", input_responses={"a": YES}, request_state="s0")
    assert (fake.params[0]["inputResponses"], fake.params[0]["requestState"]) == ({"a": YES}, "s0")
    assert fake.params[1]["inputResponses"] == {"b": YES}
    assert "requestState" not in fake.params[1]


async def test_every_round_has_a_fresh_progress_token() -> None:
    async def ignore(*_: Any) -> None: ...

    fake = Fake(asking({"a": FORM}), COMPLETE)
    async with Client(fake, elicitation_callback=say_yes) as client:
        await client.call_tool("tool", progress_callback=ignore)
    first, second = [params["_meta"]["progressToken"] for params in fake.params]
    assert first != second


async def test_the_server_s_error_in_a_later_round_ends_the_call() -> None:
    def refuse(request: dict[str, Any], notify: Any) -> bytes:
        body = f'{{"jsonrpc": "2.0", "id": {request["id"]}, "error": {{"code": -32602, "message": "expired"}}}}'
        return body.encode()

    fake = Fake(asking({"q": FORM}, "s1"), refuse)
    with pytest.raises(MCPError, match="expired"):
        await driven(fake)
    assert len(fake.requests) == 2


# How many rounds


async def test_ten_answered_rounds_pass() -> None:
    fake = Fake(*[asking({f"q{number}": FORM}) for number in range(10)], COMPLETE)
    assert await driven(fake) == "done"
    assert len(fake.requests) == 11


async def test_the_eleventh_question_fails_and_lists_what_was_asked_each_round() -> None:
    rounds = [asking({f"q{number}": FORM}, f"secret{number}") for number in range(11)]
    fake = Fake(*rounds, COMPLETE)
    with pytest.raises(InputRequiredRoundsExceededError) as caught:
        await driven(fake)
    told = str(caught.value)
    assert len(fake.requests) == 11
    assert caught.value.max_rounds == 10
    assert "still asking after 10 answered rounds (input_required_max_rounds)" in told
    for number in range(11):
        assert f"round {number + 1}: q{number} (Sure?)" in told
    assert "secret" not in told


async def test_nobody_is_asked_when_the_limit_on_rounds_is_reached() -> None:
    asked: list[str] = []

    async def count(context: ClientRequestContext, params: Any) -> ElicitResult:
        asked.append(context.key)
        return ElicitResult(action="accept", content={"sure": True})

    async with Client(Fake(asking({"q": FORM})), elicitation_callback=count, input_required_max_rounds=3) as client:
        with pytest.raises(InputRequiredRoundsExceededError):
            await client.call_tool("tool")
    assert len(asked) == 3


async def test_a_limit_of_zero_rounds_refuses_the_first_question_and_lets_plain_calls_pass() -> None:
    fake = Fake(asking({"q": FORM}))
    with pytest.raises(InputRequiredRoundsExceededError, match="after 0 answered rounds"):
        await driven(fake, input_required_max_rounds=0)
    assert len(fake.requests) == 1
    assert await driven(Fake(COMPLETE), input_required_max_rounds=0) == "done"


async def test_the_list_of_a_huge_round_is_cut_and_says_how_much_is_left_out() -> None:
    questions = {f"q{number}": FORM for number in range(50)}
    with pytest.raises(InputRequiredRoundsExceededError, match=r"q19 .*; and 30 more"):
        await driven(Fake(asking(questions)), input_required_max_rounds=0)


async def test_a_question_without_a_message_is_listed_by_its_method() -> None:
    with pytest.raises(InputRequiredRoundsExceededError, match=r"q \(roots/list\)"):
        await driven(Fake(asking({"q": {"method": "roots/list"}})), input_required_max_rounds=0)


async def test_a_question_of_several_lines_is_listed_on_one() -> None:
    question = {**FORM, "params": {**FORM["params"], "message": "Sure?\n  round 2: \x1b[2J\u202e"}}
    with pytest.raises(InputRequiredRoundsExceededError) as caught:
        await driven(Fake(asking({"q\n": question})), input_required_max_rounds=0)
    assert str(caught.value).splitlines()[1:] == ["  round 1: q\\n (Sure?\\n  round 2: \\x1b[2J\\u202e)"]


# How many questions in one round


class Counting:
    """A callback that says yes, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, context: ClientRequestContext, params: Any) -> ElicitResult:
        self.asked += 1
        return accept(sure=True)


async def called(questions: int, **options: Any) -> tuple[Fake, Counting]:
    fake, counting = Fake(asking({f"q{number}": FORM for number in range(questions)}), COMPLETE), Counting()
    async with Client(fake, elicitation_callback=counting, **options) as client:
        await client.call_tool("tool")
    return fake, counting


async def test_sixty_four_questions_of_one_round_are_answered() -> None:
    fake, counting = await called(64)
    assert (counting.asked, len(fake.params[1]["inputResponses"])) == (64, 64)


async def test_sixty_five_questions_of_one_round_end_the_call_and_none_is_asked() -> None:
    fake, counting = Fake(asking({f"q{number}": FORM for number in range(65)})), Counting()
    async with Client(fake, elicitation_callback=counting) as client:
        with pytest.raises(InputRequiredQuestionsExceededError) as caught:
            await client.call_tool("tool")
    assert str(caught.value) == (
        "the server asked 65 questions in one round, but this client answers at most 64 (input_required_max_questions)"
    )
    assert (caught.value.asked, caught.value.max_questions) == (65, 64)
    assert (counting.asked, len(fake.requests)) == (0, 1)


async def test_the_limit_on_questions_can_be_set() -> None:
    assert (await called(100, input_required_max_questions=100))[1].asked == 100
    with pytest.raises(InputRequiredQuestionsExceededError, match=r"asked 2 questions .* answers at most 1 \("):
        await called(2, input_required_max_questions=1)


async def test_a_limit_of_zero_questions_lets_rounds_without_questions_pass() -> None:
    assert await driven(Fake(asking(None, "s"), COMPLETE), input_required_max_questions=0) == "done"


async def test_many_questions_are_answered_eight_at_a_time() -> None:
    running, most = 0, 0

    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return accept(sure=context.key.endswith("7"))

    keys = [f"q{number}" for number in range(500)]
    fake = Fake(asking(dict.fromkeys(keys, FORM)), COMPLETE)
    async with Client(fake, elicitation_callback=answer, input_required_max_questions=500) as client:
        assert text(await client.call_tool("tool")) == "done"
    answers = fake.params[1]["inputResponses"]
    assert most == 8
    assert list(answers) == keys
    assert all(answers[key]["content"] == {"sure": key.endswith("7")} for key in keys)


# Rounds without questions


async def test_rounds_without_questions_back_off(slept: list[float]) -> None:
    fake = Fake(*[asking(None, f"s{number}") for number in range(5)], COMPLETE)
    assert await driven(fake) == "done"
    assert slept == [0.05, 0.1, 0.2, 0.25, 0.25]
    assert [params.get("requestState") for params in fake.params] == [None, "s0", "s1", "s2", "s3", "s4"]
    assert all("inputResponses" not in params for params in fake.params)


async def test_a_question_in_between_resets_the_back_off(slept: list[float]) -> None:
    fake = Fake(asking(None, "a"), asking(None, "b"), asking({"q": FORM}), asking(None, "c"), COMPLETE)
    await driven(fake)
    assert slept == [0.05, 0.1, 0.05]


async def test_rounds_without_questions_count_toward_the_limit(slept: list[float]) -> None:
    fake = Fake(asking(None, "s"))
    with pytest.raises(InputRequiredRoundsExceededError, match="round 11: no questions, only a requestState"):
        await driven(fake)
    assert len(fake.requests) == 11


async def test_an_empty_map_of_questions_is_a_round_without_questions(slept: list[float]) -> None:
    fake = Fake(asking({}, "s"), COMPLETE)
    await driven(fake)
    assert len(slept) == 1
    assert "inputResponses" not in fake.params[1]
