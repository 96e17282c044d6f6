"""Driving rounds: what counts as asking, what a retry carries, how often, and when to stop."""

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
from bespeak.client import ClientRequestContext, InvalidServerResponse, driver
from tests.answering import text
from tests.client.test_session import COMPLETE, FORM, Fake, asking

YES = {"action": "accept", "content": {"sure": True}}


async def say_yes(context: ClientRequestContext, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"sure": True})


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses the driver made, none of which take any time."""
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


@pytest.mark.parametrize(
    "state", ["", "x", '{"a":  1}', "null", "5", '"quoted"', " padded ", "\x00", "ü€\U0001f600", "a" * 9999]
)
async def test_a_state_is_echoed_as_it_is(state: str) -> None:
    fake = Fake(asking({"q": FORM}, state), COMPLETE)
    await driven(fake)
    assert fake.params[1]["requestState"] == state


async def test_an_absent_state_is_not_echoed() -> None:
    fake = Fake(asking({"q": FORM}), COMPLETE)
    await driven(fake)
    assert "requestState" not in fake.params[1]


async def test_an_older_round_s_state_is_never_carried_over() -> None:
    fake = Fake(asking({"q": FORM}, "s1"), asking({"r": FORM}), COMPLETE)
    await driven(fake)
    assert [params.get("requestState") for params in fake.params] == [None, "s1", None]


async def test_only_the_newest_answers_are_sent() -> None:
    fake = Fake(asking({"a": FORM}, "s1"), asking({"b": FORM}, "s2"), asking(None, "s3"), COMPLETE)
    await driven(fake)
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


async def test_parallel_calls_share_neither_questions_nor_states() -> None:
    def reply(request: dict[str, Any], notify: Any) -> dict[str, Any]:
        params = request["params"]
        if "requestState" not in params:
            return asking({params["name"]: FORM}, f"state of {params['name']}")
        assert params["requestState"] == f"state of {params['name']}"
        assert list(params["inputResponses"]) == [params["name"]]
        return COMPLETE

    async with Client(Fake(reply), elicitation_callback=say_yes) as client:
        results = await asyncio.gather(*(client.call_tool(f"tool{number}") for number in range(5)))
    assert [text(result) for result in results] == ["done"] * 5


# What counts as asking


async def test_a_result_without_a_type_is_complete_even_with_questions_inside() -> None:
    result = {"content": COMPLETE["content"], "inputRequests": {"q": FORM}, "requestState": "s"}
    fake = Fake(result)
    assert await driven(fake) == "done"
    assert len(fake.requests) == 1


async def test_a_complete_result_is_complete_whatever_else_is_there() -> None:
    fake = Fake({**COMPLETE, "inputRequests": {"q": FORM}, "requestState": "s"})
    assert await driven(fake) == "done"
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({**COMPLETE, "resultType": "task"}, "unknown resultType 'task'"),
        ({**COMPLETE, "resultType": None}, "unknown resultType None"),
        ({**COMPLETE, "resultType": 5}, "unknown resultType 5"),
        (asking(), "has neither inputRequests nor requestState"),
        ({**asking(), "content": []}, "has neither inputRequests nor requestState"),
        ({**asking(), "inputRequests": [FORM]}, "inputRequests is no object"),
        ({**asking(), "inputRequests": None}, "inputRequests is no object"),
        ({**asking({"q": FORM}), "requestState": 5}, "requestState is no string"),
        ({**asking({"q": FORM}), "requestState": None}, "requestState is no string"),
        ({**asking({"q": FORM}), "requestState": {"a": 1}}, "requestState is no string"),
        (asking({"q": "Sure?"}), "the question 'q' is no object"),
        (asking({"q": None}), "the question 'q' is no object"),
        (asking({"q": {}}), "the question 'q' has the method None, which asks nothing"),
        (asking({"q": {"params": FORM["params"]}}), "has the method None"),
        (asking({"q": {**FORM, "method": "tools/call"}}), "has the method 'tools/call'"),
        (asking({"q": {**FORM, "method": ["elicitation/create"]}}), "which asks nothing"),
        (asking({"q": {**FORM, "params": []}}), "the params of the question 'q' are no object"),
        (asking({"q": {**FORM, "params": None}}), "the params of the question 'q' are no object"),
        (asking({"a": FORM, "q": {"method": "elicitation/create"}}), "the params of the question 'q'"),
        (asking({"q": {**FORM, "params": {"message": "Sure?"}}}), "are no valid ElicitRequestFormParams"),
        (asking({"q": {**FORM, "params": {**FORM["params"], "mode": "odd"}}}), "are no valid ElicitRequestFormParams"),
    ],
)
async def test_a_malformed_round_is_an_error_and_nothing_is_sent_again(result: dict[str, Any], told: str) -> None:
    fake = Fake(result)
    with pytest.raises(InvalidServerResponse, match=told):
        await driven(fake)
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": ["sure"]}, True),
        ({"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": 5}, True),
        ({"type": "object", "properties": {"sure": {"type": "string", "enum": 5}}}, "a"),
        ({"type": "object", "properties": {"sure": {"type": "string", "oneOf": [5]}}}, "a"),
        ({"type": "object", "properties": {"sure": {"type": "string", "minLength": None}}}, "a"),
        ({"type": "object", "properties": {"sure": {"type": "integer", "minimum": "few"}}}, 1),
        ({"type": "object", "properties": {"sure": {"type": "array", "items": [5]}}}, ["a"]),
    ],
)
async def test_a_form_that_is_no_form_is_the_server_s_fault(schema: dict[str, Any], value: Any) -> None:
    async def answer(context: ClientRequestContext, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"sure": value})

    question = {**FORM, "params": {**FORM["params"], "requestedSchema": schema}}
    async with Client(Fake(asking({"q": question}), COMPLETE), elicitation_callback=answer) as client:
        with pytest.raises(InvalidServerResponse, match="'q'"):
            await client.call_tool("tool")


async def test_a_form_under_another_name_is_the_server_s_fault() -> None:
    params = {"message": "Sure?", "requested_schema": FORM["params"]["requestedSchema"]}
    with pytest.raises(InvalidServerResponse, match="'q'"):
        await driven(Fake(asking({"q": {**FORM, "params": params}}), COMPLETE))


async def test_the_server_s_error_in_a_later_round_ends_the_call() -> None:
    def refuse(request: dict[str, Any], notify: Any) -> bytes:
        body = f'{{"jsonrpc": "2.0", "id": {request["id"]}, "error": {{"code": -32602, "message": "expired"}}}}'
        return body.encode()

    fake = Fake(asking({"q": FORM}, "s1"), refuse)
    with pytest.raises(MCPError, match="expired"):
        await driven(fake)
    assert len(fake.requests) == 2


# How often


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
    assert "still asks after 10 answered rounds (input_required_max_rounds)" in told
    for number in range(11):
        assert f"round {number + 1}: q{number} (Sure?)" in told
    assert "secret" not in told


async def test_no_question_is_put_to_anybody_when_the_cap_is_reached() -> None:
    asked: list[str] = []

    async def count(context: ClientRequestContext, params: Any) -> ElicitResult:
        asked.append(context.key)
        return ElicitResult(action="accept", content={"sure": True})

    async with Client(Fake(asking({"q": FORM})), elicitation_callback=count, input_required_max_rounds=3) as client:
        with pytest.raises(InputRequiredRoundsExceededError):
            await client.call_tool("tool")
    assert len(asked) == 3


async def test_a_cap_of_none_at_all_refuses_the_first_question_and_lets_plain_calls_pass() -> None:
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


async def test_rounds_without_questions_count_against_the_cap(slept: list[float]) -> None:
    fake = Fake(asking(None, "s"))
    with pytest.raises(InputRequiredRoundsExceededError, match="round 11: nothing, it only handed out a state"):
        await driven(fake)
    assert len(fake.requests) == 11


async def test_an_empty_map_of_questions_is_like_none(slept: list[float]) -> None:
    fake = Fake(asking({}, "s"), COMPLETE)
    await driven(fake)
    assert len(slept) == 1
    assert "inputResponses" not in fake.params[1]
