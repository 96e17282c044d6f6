"""Where the answers of a conversation come from: one fixture, one for each round, or a person; and the YAML to paste.

testing.md section 2 (strict both ways, `rounds:`) and section 4 (`--save-answers` writes a block that is a test).
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.conversation.answer_examples import paste, written
from bespeak.conversation.answer_sources import FixtureScript, PromptScript, RoundsScript, Script
from bespeak.conversation.answers import Answer, CannotAnswer, Way, parse_answer, render
from bespeak.conversation.fixtures import InputResponseFixture, MissingAnswer
from bespeak.conversation.responses import Question
from bespeak.testing.report.results import Failure
from bespeak.testing.suite.suite_file import RoundSpec
from bespeak.testing.suite.variables import fill, literal
from bespeak.testing.suite.yaml_positions import read_yaml
from tests.testing.canned import Json, form

TEXT: Json = {"type": "string"}


def asked(key: str, message: str = "Which one?", **fields: Json) -> Question:
    question = form(message, **fields)
    return Question(key, question["method"], question["params"])


def content(value: Any, name: str = "value") -> Json:
    return {"action": "accept", "content": {name: value}}


async def answered(script: Script, *rounds: Sequence[Question], state: bool | None = True) -> list[Json]:
    """What a script answers to each round; without states, they are pushed."""
    return [await script.answers(questions, state=state) for questions in rounds]


def told(script: Script) -> list[str]:
    return [failure.message for failure in script.leftovers()]


def fixture(answers: Any) -> FixtureScript:
    return FixtureScript(InputResponseFixture(answers))


def rounds(*blocks: Json) -> RoundsScript:
    return RoundsScript([RoundSpec.model_validate(block) for block in blocks])


# One fixture for all rounds


async def test_one_fixture_answers_all_rounds() -> None:
    script = fixture({"city": "Rome", "units": "C"})
    assert await answered(script, [asked("city")], [asked("units")]) == [
        {"city": content("Rome")},
        {"units": content("C")},
    ]
    assert told(script) == []


async def test_answers_nobody_asked_for_are_told() -> None:
    script = fixture({"city": "Rome", "units": "C", "day": "today"})
    await answered(script, [asked("city")])
    assert told(script) == [
        "no question asked for the answer inputResponses: units",
        "no question asked for the answer inputResponses: day",
    ]


async def test_a_rule_nobody_asked_for_is_told_by_its_place() -> None:
    script = fixture([{"when": {"message": {"contains": "city"}}, "answer": "Rome"}, {"otherwise": "decline"}])
    await answered(script, [asked("x", "Which units?")])
    assert told(script) == ["no question asked for the answer inputResponses[0]"]


async def test_what_is_otherwise_answered_need_not_be_asked_for() -> None:
    script = fixture([{"otherwise": "decline"}])
    assert await answered(script, []) == [{}]
    assert told(script) == []


async def test_all_questions_of_a_round_without_an_answer_are_told_at_once() -> None:
    with pytest.raises(MissingAnswer) as raised:
        await answered(fixture({}), [asked("city", "Where?"), asked("units", "Which units?")])
    assert str(raised.value) == "there is no answer to 'city' (Where?), 'units' (Which units?)"


# One fixture for each round


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


async def test_a_round_too_many_that_asks_nothing_is_told_so() -> None:
    with pytest.raises(CannotAnswer, match=r"^round 1 was not expected; it asks nothing$"):
        await answered(rounds(), [])


async def test_a_round_that_never_came_is_told_once() -> None:
    script = rounds({"answer": {"city": "Rome"}}, {"answer": {"units": "C"}}, {"answer": {"day": "today"}})
    await answered(script, [asked("city")])
    assert told(script) == ["round 2 was never reached: the server asked no more"]


async def test_an_answer_of_a_round_that_it_did_not_ask_for_is_told_by_its_round() -> None:
    script = rounds({"answer": {"city": "Rome", "units": "C"}}, {"answer": [{"when": {"key": "x"}, "answer": 1}]})
    await answered(script, [asked("city")], [])
    assert told(script) == [
        "no question asked for the answer rounds[0].answer: units",
        "no question asked for the answer rounds[1].answer[0]",
    ]


async def test_a_round_is_answered_from_no_other() -> None:
    script = rounds({"answer": {"city": "Rome"}}, {"answer": {"units": "C"}})
    with pytest.raises(MissingAnswer, match="there is no answer to 'units'"):
        await answered(script, [asked("city"), asked("units")])


async def test_a_round_that_asks_nothing_takes_a_block_of_its_own() -> None:
    script = rounds({"expect": {"asks": [], "state": "present"}}, {"answer": {"city": "Rome"}})
    assert await answered(script, [], [asked("city")]) == [{}, {"city": content("Rome")}]
    assert told(script) == []


@pytest.mark.parametrize(
    ("expect", "failure"),
    [
        (
            {"asks": ["units", "city"]},
            Failure(
                "round 1 asked city instead of units, city",
                path="rounds[0].asks",
                expected=["units", "city"],
                actual=["city"],
            ),
        ),
        (
            {"asks": []},
            Failure("round 1 asked city instead of nothing", path="rounds[0].asks", expected=[], actual=["city"]),
        ),
        (
            {"messages": {"city": "Where?"}},
            Failure(
                'round 1, messages of \'city\': expected "Where?", got "Which one?"',
                path="rounds[0].messages.city",
                expected="Where?",
                actual="Which one?",
            ),
        ),
        (
            {"schemas": {"city": {"contains": {"type": "array"}}}},
            Failure(
                'round 1, schemas of \'city\': expected "array", got "object"',
                path="rounds[0].schemas.city.type",
                expected="array",
                actual="object",
            ),
        ),
        (
            {"methods": {"city": "roots/list"}},
            Failure(
                'round 1, methods of \'city\': expected "roots/list", got "elicitation/create"',
                path="rounds[0].methods.city",
                expected="roots/list",
                actual="elicitation/create",
            ),
        ),
        (
            {"state": "absent"},
            Failure(
                "round 1: requestState is present, and should be absent",
                path="rounds[0].state",
                expected="absent",
                actual="present",
            ),
        ),
    ],
)
async def test_what_a_round_asks_otherwise_than_expected_is_told_with_its_place(expect: Json, failure: Failure) -> None:
    script = rounds({"expect": expect, "answer": {"city": "Rome"}})
    await answered(script, [asked("city")])
    assert script.leftovers() == [failure]


async def test_the_order_of_a_rounds_questions_does_not_matter() -> None:
    script = rounds({"expect": {"asks": ["units", "city"]}, "answer": {"city": "Rome", "units": "C"}})
    await answered(script, [asked("city"), asked("units")])
    assert told(script) == []


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


async def test_a_pushed_question_too_many_is_told() -> None:
    script = rounds({"answer": {"city": "Rome"}})
    with pytest.raises(CannotAnswer, match="round 2 was not expected; it asks 'day'"):
        await answered(script, [asked("city")], [asked("day")], state=None)


# A person


class Person:
    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question.key)
        return self._answers.pop(0)


async def test_a_person_is_asked_each_question_in_its_order_unless_an_answer_was_given_beforehand() -> None:
    person = Person(Answer(Way.VALUE, "Rome"), Answer(Way.DECLINE))
    script = PromptScript(person, InputResponseFixture({"units": "C"}))
    assert await answered(script, [asked("city"), asked("units"), asked("day")]) == [
        {"city": content("Rome"), "units": content("C"), "day": {"action": "decline"}}
    ]
    assert person.asked == ["city", "day"]
    assert script.given == {"city": "Rome", "units": "C", "day": "decline"}
    assert told(script) == []


@pytest.mark.parametrize("text", ["decline", "cancel", "omit", "true", "null", "~", "1", "- a", "a: b", "", "é\x1b"])
async def test_what_a_person_said_is_written_as_what_a_suite_would_say(text: str) -> None:
    script = PromptScript(Person(Answer(Way.VALUE, text)))
    sent = await answered(script, [asked("city")])
    saved = read_yaml(written(script.given)).value
    assert await answered(fixture(saved["inputResponses"]), [asked("city")]) == sent


async def test_what_a_person_said_is_no_name_for_anything_else() -> None:
    script = PromptScript(Person(Answer(Way.VALUE, "${env:HOME} and $${x}")))
    sent = await answered(script, [asked("city")])
    saved = fill(read_yaml(written(script.given)).value, lambda name: f"what {name} stands for")
    assert await answered(fixture(saved["inputResponses"]), [asked("city")]) == sent


# The YAML to paste


BROKEN: list[Json] = [
    {"enum": {"a": 1}},
    {"enum": "abc"},
    {"enum": []},
    {"oneOf": ["a"]},
    {"oneOf": 5},
    {"oneOf": [{}]},
    {"type": ["string"]},
    {"type": {}},
    {"type": "integer", "minimum": "x"},
    {"default": {"a": 1}},
    {"default": None},
]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=60)
@given(st.dictionaries(st.text(min_size=1, max_size=10), _JSON, min_size=1, max_size=3))
def test_whatever_is_written_reads_as_what_it_was(answers: Json) -> None:
    assert fill(read_yaml(written(answers)).value, literal) == {"inputResponses": answers}


@pytest.mark.parametrize("word", ["True", "NULL", "Null", "no", "yes", "on", "_1", "nan", "inf"])
def test_words_that_other_readers_take_for_something_else_stay_words(word: str) -> None:
    assert read_yaml(written({word: word})).value == {"inputResponses": {word: word}}


CHOICES: Json = {"type": "string", "enum": ["low", "high"]}
TITLED: Json = {"type": "string", "oneOf": [{"const": "c", "title": "Celsius"}]}
FIELDS: list[tuple[dict[str, Json], Any]] = [
    ({"ok": {"type": "boolean"}}, True),
    ({"n": {"type": "integer", "minimum": 3}}, 3),
    ({"n": {"type": "number"}}, 0),
    ({"s": TEXT}, "..."),
    ({"s": CHOICES}, "low"),
    ({"s": TITLED}, "c"),
    ({"s": {"type": "string", "default": "x y"}}, "x y"),
    ({"s": {"type": "string", "enum": ["decline", "accept"]}}, {"accept": {"s": "decline"}}),
    ({"a": TEXT, "b": CHOICES}, {"accept": {"a": "...", "b": "low"}}),
]


@pytest.mark.parametrize(("fields", "answer"), FIELDS)
def test_the_yaml_to_paste_answers_the_question(fields: dict[str, Json], answer: Any) -> None:
    params: Json = {"message": "?", "requestedSchema": {"properties": fields, "required": list(fields)}}
    question = Question("a key", "elicitation/create", params)
    pasted = read_yaml(paste([question])).value
    assert pasted == {"inputResponses": {"a key": answer}}
    assert render(question, parse_answer(answer))["action"] == "accept"


@pytest.mark.parametrize(
    ("question", "yaml"),
    [
        (Question("q", "sampling/createMessage", {}), 'inputResponses:\n  q: {"sample": "..."}'),
        (Question("q", "roots/list", {}), 'inputResponses:\n  q: {"roots": ["file:///..."]}'),
        (Question("q", "elicitation/create", {"mode": "url"}), 'inputResponses:\n  q: {"url": "done"}'),
        (Question("q", None, {"kind": "boolean"}), "inputResponses:\n  q: true"),
        (Question("q", None, {"kind": "string"}), 'inputResponses:\n  q: "..."'),
        (asked("q", "?", b=TEXT, c=TEXT), 'inputResponses:\n  q: {"accept": {}}'),
    ],
    ids=["sampling", "roots", "page", "a field", "a text", "nothing required"],
)
def test_each_sort_of_question_has_its_own_form_to_paste(question: Question, yaml: str) -> None:
    assert paste([question]) == yaml


@pytest.mark.parametrize("broken", BROKEN)
def test_a_form_that_is_none_does_not_break_what_is_to_paste(broken: Json) -> None:
    pasted = read_yaml(paste([asked("q", "?", a=broken), Question("r", "elicitation/create", {})])).value
    InputResponseFixture(pasted["inputResponses"])  # it can at least be read as answers


def test_no_more_is_pasted_than_somebody_would_read() -> None:
    assert paste([asked(f"k{number}") for number in range(10_000)]).count("\n") == 20
