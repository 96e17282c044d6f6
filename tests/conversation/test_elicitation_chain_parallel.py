"""Nothing leaks into a parallel call, and no token into what is shown (testing.md section 1, protocol section 6.4, C6)."""

import json
from typing import Any, cast

import pytest

from bespeak.conversation.fixtures import responses_to
from bespeak.testing import CannotAnswer, Conversation, InputResponseFixture, MissingAnswer
from tests.conversation.envelopes import FOLDERS, MODEL, TEXT, TOKEN, asking, field, form, listing

PARAMS: dict[str, Any] = {"name": "weather", "arguments": {"loc": "SFO"}, "_meta": {"client": {"name": "x"}}}
OSLO: dict[str, Any] = {"action": "accept", "content": {"city": "Oslo"}}
DECLINED = {"action": "decline"}


ANSWERS: list[tuple[Any, Any]] = [
    (asking({"city": form()}), {"accept": {"city": "Oslo"}}),
    (asking({"city": form()}), {"raw": {"a": [1]}}),
    (asking({"city": form(city={"type": "array", "items": TEXT})}), ["Oslo"]),
    (asking({"city": MODEL}), {"sample": {"content": [{"type": "text", "text": "Oslo"}]}}),
    (asking({"city": FOLDERS}), {"roots": [{"uri": "file:///a"}]}),
    (listing(field()), {"raw": ["Oslo"]}),
]


@pytest.mark.parametrize(("envelope", "written"), ANSWERS)
def test_what_a_driver_does_to_what_it_sends_reaches_no_parallel_call(envelope: Any, written: Any) -> None:
    params, fixture = json.loads(json.dumps(PARAMS)), InputResponseFixture({"city": written})
    one, other = Conversation("tools/call", params), Conversation("tools/call", params)
    expected: list[str] = []
    for conversation in (one, other):
        before = json.dumps(conversation.to_send)
        read = conversation.receive(envelope)
        _spoil(conversation.to_send)
        conversation.answer(responses_to(read.questions, fixture.answer_for))
        expected += [before + json.dumps([conversation.to_send, conversation.rounds[0].as_json()])]
        _spoil(conversation.to_send)
        assert json.dumps(conversation.rounds[0].as_json()) in expected[-1]
    assert expected[0] == expected[1]


def _spoil(value: Any) -> None:
    """Empty everything in it that can be emptied."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        _spoil([*members.values()])
        members.clear()
    elif isinstance(value, list):
        while entries := cast("list[Any]", value):
            _spoil(entries.pop())


def test_two_calls_in_turns_keep_their_own_state_and_answers() -> None:
    one, other = Conversation("tools/call", PARAMS), Conversation("tools/call", PARAMS)
    one.receive(asking({"city": form()}, requestState="one"))
    other.receive(asking({"city": form()}, requestState="other"))
    one.answer({"city": OSLO})
    other.answer({"city": DECLINED})
    assert (one.to_send["requestState"], one.to_send["inputResponses"]) == ("one", {"city": OSLO})
    assert (other.to_send["requestState"], other.to_send["inputResponses"]) == ("other", {"city": DECLINED})
    one.receive(asking({"city": form()}))
    assert one.findings == []


def test_the_token_is_not_in_the_representation_of_a_conversation() -> None:
    conversation = Conversation("tools/call", PARAMS)
    conversation.receive(asking({"city": form()}, requestState=TOKEN))
    assert TOKEN not in repr(conversation)
    conversation.answer({"city": OSLO})
    assert TOKEN not in repr(conversation)


def test_missing_and_unfitting_answers_leave_the_round_open() -> None:
    conversation = Conversation("tools/call", PARAMS)
    read = conversation.receive(asking({"city": form()}))
    with pytest.raises(MissingAnswer):
        responses_to(read.questions, InputResponseFixture().answer_for)
    with pytest.raises(CannotAnswer):
        responses_to(read.questions, InputResponseFixture({"city": 5}).answer_for)
    assert conversation.pending is read
