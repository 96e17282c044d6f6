"""Requests in which one thing is altered: the state, what it is sent with, or the form of the answers."""

import base64
import json
from typing import Any

import pytest

from bespeak.testing.altered_requests import OVERSIZED, UNASKED, NotReached, altered, altered_answers, altered_state
from bespeak.testing.suite.attack_keys import Tamper

Json = dict[str, Any]
CALL: Json = {"name": "pay", "arguments": {"cents": 5}, "requestState": "two", "inputResponses": {"ok": 1}}


def tamper(round_: int = 2, **more: Any) -> Tamper:
    return Tamper.model_validate({"round": round_, **more})


# States


@pytest.mark.parametrize(
    ("more", "changes"),
    [
        ({"requestState": "other-tool", "tool": "refund"}, {"name": "refund"}),
        (
            {"requestState": "other-tool", "tool": "refund", "arguments": {"id": 1}},
            {"name": "refund", "arguments": {"id": 1}},
        ),
        ({"requestState": "older-round"}, {"requestState": "one"}),
        ({"requestState": "other-caller", "headers": {"x": "y"}}, {}),
        ({"requestState": "expired", "after": 1}, {}),
    ],
)
def test_a_state_is_sent_where_it_does_not_belong(more: Json, changes: Json) -> None:
    assert altered_state(CALL, tamper(**more), {1: "one", 2: "two"}) == {**CALL, **changes}


def test_the_round_of_an_older_state_can_be_named() -> None:
    attack = tamper(3, **{"requestState": "older-round", "from": 1})
    assert altered_state(CALL, attack, {1: "one", 2: "two"})["requestState"] == "one"


@pytest.mark.parametrize(
    ("more", "states", "message"),
    [
        (
            {"requestState": "older-round"},
            {2: "two"},
            "round 1 returned no requestState, so there is none to send again",
        ),
        ({"requestState": "older-round"}, {1: "two", 2: "two"}, "the altered request equals the original one"),
        ({"requestState": "other-tool", "tool": "pay"}, {2: "two"}, "the altered request equals the original one"),
    ],
)
def test_where_there_is_no_other_state_or_tool_the_attack_is_not_made(
    more: Json, states: dict[int, str], message: str
) -> None:
    with pytest.raises(NotReached, match=message):
        altered_state(CALL, tamper(**more), states)


STATES = [{"step": 1, "approved": False}, {"to": "Ada"}, [1], {"inner": {"n": 1.5}}, {"a": None, "b": "x"}]


@pytest.mark.parametrize("value", STATES)
@pytest.mark.parametrize("coding", ["json", "base64"])
def test_a_state_that_anybody_could_write_is_altered_so_that_it_can_still_be_read(value: Any, coding: str) -> None:
    plain = json.dumps(value)
    state = plain if coding == "json" else base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")
    other = altered(state, "flip")
    read = json.loads(other if coding == "json" else base64.urlsafe_b64decode(other + "=" * (-len(other) % 4)))
    assert read != value
    assert type(read) is type(value)


@pytest.mark.parametrize("state", ["v1.k.sealed", "null", "{}", "[]", '""', "[null]", "x"])
def test_any_other_state_has_one_character_altered(state: str) -> None:
    other = altered(state, "flip")
    assert len(other) == len(state)
    assert sum(one != two for one, two in zip(state, other, strict=True)) == 1


# Answers

YES: Json = {"action": "accept", "content": {"ok": True, "why": "x"}}
NO: Json = {"action": "decline"}
ROOTS: Json = {"roots": []}


def malformed(how: str, answers: Any) -> Any:
    sent = altered_answers({**CALL, "inputResponses": answers}, tamper(inputResponses=how))
    assert {**sent, "inputResponses": 0} == {**CALL, "inputResponses": 0}
    return sent["inputResponses"]


@pytest.mark.parametrize(
    ("how", "sent"),
    [
        ("text", json.dumps({"a": YES, "b": ROOTS})),
        ("list", [YES, ROOTS]),
        ("nothing", None),
        ("unknown-key", {"a": YES, "b": ROOTS, UNASKED: {"action": "accept", "content": {}}}),
        ("no-action", {"a": {"content": YES["content"]}, "b": ROOTS}),
        ("unknown-action", {"a": {**YES, "action": "approve"}, "b": ROOTS}),
        ("no-content", {"a": {"action": "accept"}, "b": ROOTS}),
        ("wrong-type", {"a": {"action": "accept", "content": {"ok": {}, "why": {}}}, "b": ROOTS}),
        (
            "oversized",
            {"a": {"action": "accept", "content": dict.fromkeys(("ok", "why"), "x" * OVERSIZED)}, "b": ROOTS},
        ),
    ],
)
def test_each_way_to_malform_answers_changes_nothing_else(how: str, sent: Any) -> None:
    before = {"a": dict(YES), "b": dict(ROOTS)}
    assert malformed(how, before) == sent
    assert before == {"a": YES, "b": ROOTS}


@pytest.mark.parametrize(
    ("how", "answers", "message"),
    [
        ("no-action", {"b": ROOTS}, "no-action needs an answer to a form or a page, and the round has none"),
        ("unknown-action", {"b": ROOTS}, "unknown-action needs an answer to a form or a page"),
        ("no-content", {"a": NO}, "no-content needs an answer that accepts a form with fields"),
        ("wrong-type", {"a": NO, "b": "x"}, "wrong-type needs an answer that accepts a form with fields"),
        ("oversized", {"b": ROOTS}, "oversized needs an answer that accepts a form with fields"),
    ],
)
def test_an_answer_that_cannot_be_malformed_is_not_attacked(how: str, answers: Json, message: str) -> None:
    with pytest.raises(NotReached, match=message):
        malformed(how, answers)


@pytest.mark.parametrize("answers", [None, {}, [{"id": "a", "value": 1}]])
def test_a_round_that_is_not_answered_with_a_map_is_not_attacked(answers: Any) -> None:
    with pytest.raises(NotReached, match="round 2 is not answered with a map of answers"):
        malformed("text", answers)
