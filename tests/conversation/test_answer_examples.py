"""What a failure prints to paste, and what `--save-answers` writes (testing.md sections 2 and 4): a suite reads it back."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.conversation.answer_examples import paste, written
from bespeak.conversation.answers import parse_answer, render
from bespeak.testing import InputResponseFixture, Question
from bespeak.testing.suite.variables import fill
from bespeak.testing.suite.yaml_positions import read_yaml
from tests.conversation.envelopes import FOLDERS, MODEL, PAGE, TEXT, form, question

CITY, URL, WORDS, WHERE = (
    question(form()),
    question(PAGE, "login"),
    question(MODEL, "words"),
    question(FOLDERS, "where"),
)


def read(text: str) -> Any:
    """What a suite makes of it, in which `$${` stands for `${`."""
    return fill(read_yaml(text).value, "${{{}}}".format)


def pasted(*asked: Question) -> dict[str, Any]:
    return read(paste(asked))["inputResponses"]


def test_what_is_printed_to_paste_answers_every_way_of_asking() -> None:
    several = question(form(required=("b",), a=TEXT, b={"type": "boolean"}), "several")
    assert pasted(CITY, several, URL, WORDS, WHERE) == {
        "city": "...",
        "several": {"accept": {"b": True}},
        "login": {"url": "done"},
        "words": {"sample": "..."},
        "where": {"roots": ["file:///..."]},
    }


FIELDS: dict[str, Any] = {
    "a choice": {"type": "string", "enum": ["C", "F"]},
    "a titled choice": {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}]},
    "a choice that reads as a boolean": {"type": "string", "enum": ["True", "no"]},
    "a choice called decline": {"type": "string", "enum": ["decline", "approve"]},
    "a default called cancel": {"type": "string", "default": "cancel"},
    "a default": {"type": "integer", "default": 7},
    "a lowest number": {"type": "integer", "minimum": 3},
    "a negative highest number": {"type": "integer", "maximum": -5},
    "a boolean": {"type": "boolean"},
    **{name: {"type": "string", "format": name} for name in ("email", "uri", "date", "date-time")},
    "some choices": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["a", "b"]}},
    "some titled choices": {"type": "array", "minItems": 2, "items": {"anyOf": [{"const": "a"}, {"const": "b"}]}},
}


@pytest.mark.parametrize("shown", FIELDS)
@pytest.mark.parametrize("alone", [True, False])
def test_what_is_pasted_accepts_and_fits(shown: str, alone: bool) -> None:
    fields = {"f": FIELDS[shown]} if alone else {"f": FIELDS[shown], "other": TEXT}
    asked = question(form("Which?", ("f",), **fields))
    sent = render(asked, parse_answer(pasted(asked)["city"]))
    assert sent["action"] == "accept"


@pytest.mark.parametrize(
    "shown",
    [
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        {"type": "string", "default": {"a": 1}},
        {"type": "string", "oneOf": 5},
        {"type": "string", "oneOf": [{"title": "no const"}]},
        {"type": "string", "enum": {"a": 1}},
        {"type": "integer", "minimum": "x"},
        {"type": ["string", "null"]},
        {"type": "array", "minItems": 1, "items": 5},
        {"type": "array", "minItems": -1, "items": {"enum": ["a", "b"]}},
        {"type": "string", "enum": ["a"], "oneOf": [{"const": "b"}]},
        {},
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_whatever_a_form_holds_what_is_pasted_is_a_fixture(shown: Any, alone: bool) -> None:
    fields = {"f": shown} if alone else {"f": shown, "other": TEXT}
    asked = question(form("Which?", ("f",), **fields))
    before = json.dumps(asked.as_json())
    assert InputResponseFixture(pasted(asked)).answer_for(asked) is not None
    assert json.dumps(asked.as_json()) == before


def test_a_field_of_the_compatibility_dialect_is_pasted_as_its_kind() -> None:
    kinds = {kind: Question(kind, None, {"kind": kind, "description": ""}) for kind in ("string", "integer", "boolean")}
    assert pasted(*kinds.values()) == {"string": "...", "integer": 0, "boolean": True}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=60)
@given(st.dictionaries(st.text(min_size=1, max_size=10), JSON, min_size=1, max_size=3))
@pytest.mark.long
def test_any_answers_are_read_back_as_they_were(answers: dict[str, Any]) -> None:
    assert read(written(answers)) == {"inputResponses": answers}


@pytest.mark.long
def test_no_more_is_pasted_than_a_person_would_read() -> None:
    assert paste([question(form(), f"k{number}") for number in range(10_000)]).count("\n") == 20
