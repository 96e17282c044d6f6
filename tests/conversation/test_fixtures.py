"""Answers that are written down beforehand (testing.md sections 1 and 2): by key, by id, by rules of which the first fits.

Strict both ways: a question without an answer is an error, and an answer nobody asked for is known as unused.
"""

import time
from typing import Any

import pytest

from bespeak.conversation.answers import Answer, Way
from bespeak.conversation.fixtures import unused
from bespeak.testing import CannotAnswer, InputRequest, InputResponse, InputResponseFixture, MissingAnswer, Question
from bespeak.testing import collect_responses as collect
from tests.conversation.envelopes import FOLDERS, MODEL, PAGE, TEXT, form, question

CITY, URL, WORDS, WHERE = (
    question(form()),
    question(PAGE, "login"),
    question(MODEL, "words"),
    question(FOLDERS, "where"),
)
LISTED = Question("city", None, {"kind": "string", "description": "What city?"})


def answer(fixture: Any, asked: Question = CITY) -> Any:
    """What a fixture has for a question, as a suite writes it; `...` if it has nothing."""
    found = InputResponseFixture(fixture).answer_for(asked)
    return ... if found is None else found.as_written()


def refused(fixture: Any) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is what the tests look at
        InputResponseFixture(fixture)
    return str(caught.value)


# By key


@pytest.mark.parametrize("asked", [CITY, LISTED])
@pytest.mark.parametrize(
    "fixture", [{"city": "Oslo"}, [{"id": "city", "value": "Oslo"}], [{"value": "Oslo", "id": "city"}]]
)
def test_one_fixture_serves_both_dialects(fixture: Any, asked: Question) -> None:
    assert answer(fixture, asked) == "Oslo"


@pytest.mark.parametrize("fixture", [None, {}, [], {"City": "Oslo"}, {"cit": "Oslo"}, {"": "Oslo"}])
def test_a_key_that_is_not_there_has_no_answer(fixture: Any) -> None:
    assert answer(fixture) is ...


@pytest.mark.parametrize(
    "key", ["", "\x1b[2J", "two\nlines", "[0]", "contains", "\ud800", "k" * 5_000, "when", "otherwise"]
)
def test_any_text_is_a_key(key: str) -> None:
    assert answer({"other": "no", key: "Oslo"}, question(form(), key)) == "Oslo"


def test_of_two_answers_for_one_id_the_first_is_taken_and_the_other_unused() -> None:
    fixture = InputResponseFixture([{"id": "city", "value": "Oslo"}, {"id": "city", "value": "Rome"}])
    rule = fixture.rule_for(CITY)
    assert rule is not None
    assert rule.answer == Answer(Way.VALUE, "Oslo")
    assert [one.answer.value for one in unused(fixture.rules, [rule])] == ["Rome"]


@pytest.mark.timing
def test_ten_thousand_keys_are_answered_at_once() -> None:
    more = [{"when": {"message": {"matches": "z$"}}, "answer": "no"}, {"otherwise": "decline"}]
    fixture = InputResponseFixture(
        [*({"id": f"key {number}", "value": str(number)} for number in range(10_000)), *more]
    )
    asked = [question(form(), f"key {number}") for number in range(0, 10_000, 100)]  # a part of them shows it
    started = time.process_time()
    found = [fixture.answer_for(one) for one in asked]
    assert time.process_time() - started < 5
    assert [one.value for one in found if one is not None] == [str(number) for number in range(0, 10_000, 100)]


# Rules


@pytest.mark.parametrize(
    ("when", "asked", "fits"),
    [
        ({"message": {"matches": "(?i)CITY"}}, LISTED, True),
        ({"message": "Which city?"}, CITY, True),
        ({"message": {"contains": "units"}}, CITY, False),
        ({"method": "elicitation/create"}, LISTED, False),
        ({"method": {"matches": "^sampling/"}}, WORDS, True),
        ({"mode": "url"}, URL, True),
        ({"mode": "form"}, URL, False),
        ({"mode": "form"}, WORDS, False),
        ({"key": {"oneOf": ["units", "city"]}}, LISTED, True),
        ({"key": "city", "message": {"contains": "units"}}, CITY, False),
        ({"key": "city", "message": {"contains": "city"}}, CITY, True),
    ],
)
def test_a_rule_is_for_the_questions_of_which_all_it_says_holds(when: Any, asked: Question, fits: bool) -> None:
    assert (answer([{"when": when, "answer": "Oslo"}], asked) == "Oslo") is fits


def test_the_first_rule_that_fits_is_taken() -> None:
    rules = [
        {"when": {"message": {"contains": "units"}}, "answer": "no"},
        {"when": {"message": {"contains": "city"}}, "answer": "Oslo"},
        {"id": "city", "value": "no"},
        {"otherwise": "decline"},
    ]
    assert answer(rules) == "Oslo"


def test_a_rule_before_an_id_wins_over_it_and_one_behind_does_not() -> None:
    assert answer([{"otherwise": "decline"}, {"id": "city", "value": "Oslo"}]) == "decline"
    assert answer([{"id": "city", "value": "Oslo"}, {"otherwise": "decline"}]) == "Oslo"
    by_message = {"when": {"message": {"matches": "."}}, "answer": "Rome"}
    assert answer([by_message, {"id": "city", "value": "Oslo"}]) == "Rome"
    assert answer([{"id": "city", "value": "Oslo"}, by_message]) == "Oslo"


def test_rules_that_were_not_used_are_listed_except_otherwise() -> None:
    fixture = InputResponseFixture(
        [
            {"id": "city", "value": "Oslo"},
            {"when": {"mode": "url"}, "answer": {"url": "done"}},
            {"otherwise": "decline"},
        ]
    )
    assert [rule.where for rule in unused(fixture.rules, [])] == ["city", "[1]"]
    assert unused(fixture.rules, fixture.rules) == []


RULE = "a rule is {when: ..., answer: ...}, {otherwise: ...} or {id: ..., value: ...}"
LOOKS = "when must have one or more of key, message, method, mode"


REFUSED: list[tuple[Any, str]] = [
    ("city", "answers are a map of key to answer, or a list"),
    ({"city": None}, "city: an answer is a value"),
    ([{"id": "a", "value": "x"}, "decline"], f"[1]: {RULE}"),
    ([None], f"[0]: {RULE}"),
    ([{"otherwise": "decline", "answer": "x"}], f"[0]: {RULE}"),
    ([{"id": 5, "value": "x"}], "[0]: an id must be a string"),
    ([{"id": "city", "value": None}], "[0]: city: an answer is a value"),
    ([{"otherwise": None}], "[0]: an answer is a value"),
    ([{"when": {}, "answer": "x"}], f"[0]: {LOOKS}"),
    ([{"when": {"keys": "city"}, "answer": "x"}], f"[0]: {LOOKS}"),
    ([{"when": {"key": {"matches": "("}}, "answer": "x"}], "[0]: matches needs a regular expression"),
    ([{"when": {"key": {"contains": "a", "b": 1}}, "answer": "x"}], "[0]: "),
]


@pytest.mark.parametrize(("fixture", "said"), REFUSED)
def test_an_invalid_fixture_is_rejected_with_the_place(fixture: Any, said: str) -> None:
    assert refused(fixture).startswith(said)


def test_a_rule_that_could_never_fit_because_it_has_nothing_to_compare_with_is_refused() -> None:
    assert "snapshot" in refused([{"when": {"message": {"snapshot": "city"}}, "answer": "x"}])


# Collected


def test_the_answers_of_a_round_are_collected_in_the_dialect_of_the_questions() -> None:
    fixture = InputResponseFixture({"city": "Oslo", "units": "C", "unasked": "x"})
    assert collect({"city": form()}, fixture) == {"city": {"action": "accept", "content": {"city": "Oslo"}}}
    assert collect([InputRequest(id="units")], fixture) == [InputResponse(id="units", value="C")]


def test_an_omitted_answer_leaves_the_key_out_though_it_is_required() -> None:
    fixture = InputResponseFixture({"city": "omit"})
    assert collect({"city": form()}, fixture) == {}
    assert collect([InputRequest(id="city")], fixture) == []


@pytest.mark.parametrize("word", ["decline", "cancel"])
def test_declining_an_optional_field_leaves_it_out(word: str) -> None:
    assert collect([InputRequest(id="city", required=False)], InputResponseFixture({"city": word})) == []


@pytest.mark.parametrize("word", ["decline", "cancel"])
def test_declining_a_required_field_is_an_error(word: str) -> None:
    with pytest.raises(CannotAnswer, match="cannot be declined"):
        collect([InputRequest(id="city")], InputResponseFixture({"city": word}))


def test_two_fields_of_one_id_are_answered_once() -> None:
    requests = [InputRequest(id="city"), InputRequest(id="city")]
    assert collect(requests, InputResponseFixture({"city": "Oslo"})) == [InputResponse(id="city", value="Oslo")]


def missing(requests: Any) -> MissingAnswer:
    with pytest.raises(MissingAnswer) as caught:
        collect(requests, InputResponseFixture({"units": "C"}))
    return caught.value


def test_all_questions_without_an_answer_are_named_with_what_they_say() -> None:
    error = missing({"city": form(), "units": form("Which units?", units=TEXT), "words": MODEL, "where": FOLDERS})
    assert str(error) == "there is no answer to 'city' (Which city?), 'words' (A city?), 'where' (roots/list)"
    assert [one.key for one in error.questions] == ["city", "words", "where"]


def test_twenty_of_ten_thousand_missing_answers_are_named() -> None:
    said = str(missing({f"key {number}": form("m" * 10_000) for number in range(10_000)}))
    assert said.endswith("and 9980 more")
    assert "'key 19'" in said
    assert "'key 20'" not in said
    assert len(said) < 10_000


@pytest.mark.parametrize("text", ["\x1b[2J", "two\nlines", "\u202e"])
def test_a_missing_answer_is_reported_without_control_characters(text: str) -> None:
    assert str(missing({text: form(text)})).isprintable()
