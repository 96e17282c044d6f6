"""Tests that check each round: what it should ask, and the answers that belong to it."""

from collections.abc import Sequence
from typing import Any

import pytest

from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.fixtures import MissingAnswer
from bespeak.conversation.responses import Question
from bespeak.testing.expect.round_expectations import RoundsScript
from bespeak.testing.suite.suite_file import RoundSpec
from tests.testing.canned import Json, form


def asked(key: str, message: str = "Which one?", **fields: Json) -> Question:
    question = form(message, **fields)
    return Question(key, question["method"], question["params"])


def content(value: Any, name: str = "value") -> Json:
    return {"action": "accept", "content": {name: value}}


async def answered(script: RoundsScript, *rounds: Sequence[Question], state: bool | None = True) -> list[Json]:
    """What a script answers to each round; without states, they are pushed."""
    return [await script.answers(questions, state=state) for questions in rounds]


def told(script: RoundsScript) -> list[str]:
    return [failure.message for failure in script.leftovers()]


def rounds(*blocks: Json) -> RoundsScript:
    return RoundsScript([RoundSpec.model_validate(block) for block in blocks])


async def test_each_round_has_answers_of_its_own() -> None:
    script = rounds({"answer": {"confirm": False}}, {"answer": {"confirm": True}})
    question = asked("confirm", confirm={"type": "boolean"})
    assert await answered(script, [question], [question]) == [
        {"confirm": content(False, "confirm")},
        {"confirm": content(True, "confirm")},
    ]
    assert told(script) == []


async def test_a_round_too_many_is_told_with_what_it_asks() -> None:
    script = rounds({"answer": {"city": "Rome"}})
    with pytest.raises(CannotAnswer, match=r"^round 2 was not expected; it asks 'units', 'day'$"):
        await answered(script, [asked("city")], [asked("units"), asked("day")])


async def test_a_round_that_never_came_is_told_once() -> None:
    script = rounds({"answer": {"city": "Rome"}}, {"answer": {"units": "C"}}, {"answer": {"day": "today"}})
    await answered(script, [asked("city")])
    assert told(script) == ["round 2 was never reached: the server asked no more questions"]


async def test_an_answer_of_a_round_that_it_did_not_ask_for_is_told_by_its_round() -> None:
    script = rounds({"answer": {"city": "Rome", "units": "C"}}, {"answer": [{"when": {"key": "x"}, "answer": 1}]})
    await answered(script, [asked("city")], [])
    assert told(script) == [
        "the answer 'units' (rounds[0].answer) was not used: the server never asked for it",
        "the answer rounds[1].answer[0] was not used: no question fits it",
    ]


async def test_a_round_is_answered_from_no_other() -> None:
    script = rounds({"answer": {"city": "Rome"}}, {"answer": {"units": "C"}})
    with pytest.raises(MissingAnswer, match="there is no answer to 'units'"):
        await answered(script, [asked("city"), asked("units")])


async def test_a_round_that_asks_nothing_takes_a_block_of_its_own() -> None:
    script = rounds({"expect": {"asks": [], "state": "present"}}, {"answer": {"city": "Rome"}})
    assert await answered(script, [], [asked("city")]) == [{}, {"city": content("Rome")}]
    assert told(script) == []


ARRAY = {"contains": {"type": "array"}}


@pytest.mark.parametrize(
    ("expect", "message", "path", "expected", "actual"),
    [
        ({"asks": ["b", "city"]}, "round 1 asked city instead of b, city", "asks", ["b", "city"], ["city"]),
        ({"asks": []}, "round 1 asked city instead of nothing", "asks", [], ["city"]),
        ({"messages": {"city": "A?"}}, 'expected "A?", got "Which one?"', "messages.city", "A?", "Which one?"),
        ({"schemas": {"city": ARRAY}}, 'expected "array", got "object"', "schemas.city.type", "array", "object"),
        ({"methods": {"city": {"contains": "roots"}}}, 'does not contain "roots"', "methods.city", ..., ...),
        ({"state": "absent"}, "requestState is present, but should be absent", "state", "absent", "present"),
    ],
)
async def test_a_round_that_is_not_as_expected_fails_with_its_place(
    expect: Json, message: str, path: str, expected: Any, actual: Any
) -> None:
    script = rounds({"expect": expect, "answer": {"city": "Rome"}})
    await answered(script, [asked("city")])
    (failure,) = script.leftovers()
    assert (message in failure.message, failure.path) == (True, f"rounds[0].{path}")
    assert expected is ... or (failure.expected, failure.actual) == (expected, actual)


async def test_expecting_a_question_that_was_not_asked_is_told() -> None:
    script = rounds({"expect": {"messages": {"odd key": {"present": True}}}, "answer": {"city": "Rome"}})
    await answered(script, [asked("city")])
    (failure,) = script.leftovers()
    assert failure.message.startswith("round 1, messages of 'odd key': ")
    assert failure.path == 'rounds[0].messages["odd key"]'


# Rounds over pushed questions


async def test_pushed_questions_belong_to_one_round_as_long_as_it_has_their_answers() -> None:
    script = rounds(
        {"expect": {"asks": ["city", "units"]}, "answer": {"city": "Rome", "units": "C"}},
        {"expect": {"asks": ["day"], "state": "present"}, "answer": {"day": "today"}},
    )
    await answered(script, [asked("city")], [asked("units")], [asked("day")], state=None)
    assert told(script) == []


async def test_a_pushed_question_that_comes_again_is_of_the_next_round() -> None:
    script = rounds({"answer": {"city": "Rme"}}, {"answer": {"city": "Rome"}})
    assert await answered(script, [asked("city")], [asked("city")], state=None) == [
        {"city": content("Rme")},
        {"city": content("Rome")},
    ]
    assert told(script) == []


async def test_a_pushed_question_that_a_round_does_not_name_is_of_the_next_one_that_does() -> None:
    script = rounds(
        {"expect": {"asks": ["city"]}, "answer": [{"otherwise": "Rome"}]},
        {"expect": {"asks": ["units"]}, "answer": [{"otherwise": "C"}]},
    )
    assert await answered(script, [asked("city")], [asked("units")], state=None) == [
        {"city": content("Rome")},
        {"units": content("C")},
    ]
    assert told(script) == []
