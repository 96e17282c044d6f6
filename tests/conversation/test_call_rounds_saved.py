"""A conversation that is saved as JSON during a call, and continued."""

import copy
import json
from typing import Any

import pytest

from bespeak.testing import Conversation, RoundsExceeded
from tests.conversation.envelopes import MODEL, PAGE, TOKEN, asking, field, form, listing

PARAMS: dict[str, Any] = {"name": "weather", "arguments": {"loc": "SFO"}}
OSLO: dict[str, Any] = {"action": "accept", "content": {"city": "Oslo"}}


def taken_up(conversation: Conversation) -> Conversation:
    return Conversation.from_json(json.loads(json.dumps(conversation.as_json())))


OPEN: dict[str, Any] = {
    "the MCP shape": asking(
        {"city": form(), "login": PAGE, "words": MODEL}, requestState=TOKEN, description="Need it."
    ),
    "an empty state": asking({"city": form()}, requestState=""),
    "no state": asking({"city": form()}),
    "only a state": asking(requestState=TOKEN),
    "the compatibility dialect": listing(field(), field("units", required=False)),
    "odd keys": asking({"": form(), "\x1b\ud800": form()}, requestState="\ud800"),
}


@pytest.mark.parametrize("round_", OPEN)
def test_an_open_round_is_restored_as_it_was(round_: str) -> None:
    conversation = Conversation("tools/call", PARAMS, 3, {"elicitation": {}})
    conversation.receive(OPEN[round_])
    again = taken_up(conversation)
    assert again.pending is not None
    assert conversation.pending is not None
    assert again.pending.questions == conversation.pending.questions
    assert (again.pending.state, again.pending.dialect) == (conversation.pending.state, conversation.pending.dialect)
    assert again.pending.description == conversation.pending.description
    assert (again.findings, again.capabilities, again.max_rounds) == (conversation.findings, {"elicitation": {}}, 3)


@pytest.mark.parametrize("round_", OPEN)
def test_a_restored_call_sends_the_same_as_the_saved_one(round_: str) -> None:
    conversation = Conversation("prompts/get", PARAMS)
    conversation.receive(OPEN[round_])
    again = taken_up(conversation)
    for one in (conversation, again):
        assert one.pending is not None
        one.answer({question.key: OSLO for question in one.pending.questions})
    assert again.to_send == conversation.to_send
    assert taken_up(again).to_send == conversation.to_send
    assert again.rounds == conversation.rounds == taken_up(again).rounds


def test_a_restored_call_knows_its_rounds_and_what_was_declined() -> None:
    conversation = Conversation("tools/call", PARAMS, 2)
    conversation.receive(asking({"city": form()}))
    conversation.answer({"city": {"action": "decline"}})
    again = taken_up(conversation)
    again.receive(asking({"city": form()}))
    again.answer({"city": OSLO})
    assert [one.rule for one in again.findings] == ["declined"]
    with pytest.raises(RoundsExceeded, match=r"(?s)round 1: .*round 2: .*round 3: "):
        taken_up(again).receive(asking({"city": form()}))


def test_a_restored_call_knows_its_dialects_and_its_token() -> None:
    conversation = Conversation("tools/call", PARAMS)
    conversation.receive(listing(field(), state="one"))
    conversation.answer({"city": "Oslo"})
    conversation.receive(asking({"city": form()}, requestState="two"))
    again = taken_up(conversation)
    assert again.dialects == conversation.dialects
    assert "two" in again.states


def test_a_restored_call_backs_off_like_the_saved_one() -> None:
    conversation = Conversation("tools/call", PARAMS)
    for _ in range(2):
        conversation.receive(asking(requestState="s"))
        conversation.answer({})
    assert taken_up(conversation).pause == conversation.pause == 0.1


def test_a_saved_call_does_not_change_when_the_call_continues() -> None:
    conversation = Conversation("tools/call", copy.deepcopy(PARAMS))
    conversation.receive(asking({"city": form()}, requestState=TOKEN))
    saved = conversation.as_json()
    before = json.dumps(saved)
    conversation.answer({"city": {"action": "decline"}})
    conversation.params["arguments"]["loc"] = "OSL"
    assert json.dumps(saved) == before


def test_two_calls_restored_from_one_share_nothing() -> None:
    conversation = Conversation("tools/call", PARAMS)
    conversation.receive(asking({"city": form()}))
    saved = json.loads(json.dumps(conversation.as_json()))
    one, other = Conversation.from_json(saved), Conversation.from_json(saved)
    one.params["arguments"]["loc"] = one.to_send["arguments"]["loc"] = "OSL"
    one.answer({"city": {"action": "decline"}})
    assert other.to_send == other.params == PARAMS
    other.receive(asking({"city": form()}))
    assert other.findings == []


def without(name: str) -> dict[str, Any]:
    saved = Conversation("tools/call", PARAMS).as_json()
    del saved[name]
    return saved


def with_(**members: Any) -> dict[str, Any]:
    return {**Conversation("tools/call", PARAMS).as_json(), **members}


OPEN_ROUND: dict[str, Any] = {"dialect": "spec", "questions": [], "requestState": None, "description": None}


WRONG: dict[str, list[Any]] = {
    "method": ["tools/list"],
    "params": [[]],
    "maxRounds": [1.5, -1],
    "capabilities": [[]],
    "rounds": [None, [{"asked": {}, "answered": {}}]],
    "findings": [[{}], [{"rule": "unheard", "text": "x"}]],
    "declined": [5],
    "toSend": [[]],
    "pending": [{}, {**OPEN_ROUND, "dialect": "other"}],
}
WRONG_QUESTIONS: list[Any] = [[["city"]], [["city", {}]], [[5, form()]]]
WRONG_STATES: list[Any] = [5]


@pytest.mark.parametrize(
    "saved",
    [
        *(None, "saved", {}, [1]),
        *map(without, WRONG),
        *(with_(**{name: wrong}) for name, several in WRONG.items() for wrong in several),
        *(with_(pending={**OPEN_ROUND, "questions": wrong}) for wrong in WRONG_QUESTIONS),
        *(with_(pending={**OPEN_ROUND, "questions": [["city", form()]], "requestState": one}) for one in WRONG_STATES),
    ],
)
def test_an_invalid_saved_conversation_is_rejected_in_plain_words(saved: Any) -> None:
    with pytest.raises(ValueError, match="this is not a saved conversation") as caught:
        Conversation.from_json(saved)
    assert not any(
        word in str(caught.value) for word in ("Error", "NoneType", "subscriptable", "'int'", "pydantic", "_Saved")
    )
