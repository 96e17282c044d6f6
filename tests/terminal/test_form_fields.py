"""The fields of a form: testing.md section 4. Each says what it wants, and takes only a value that fits."""

from typing import Any

import pytest

from bespeak.conversation.responses import Question
from bespeak.terminal.prompt import NoMoreInput
from bespeak.terminal.prompt_types import Action, Reply
from tests.terminal.people import SIDE, TEXT, WHOLE, answer, form, screen

DAYS: dict[str, Any] = {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["Mon", "Tue", "Wed"]}}
TITLED: dict[str, Any] = {
    "type": "string",
    "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}],
}
LEGACY: dict[str, Any] = {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}


@pytest.mark.parametrize(
    ("shown", "typed", "value"),
    [
        (TEXT, "Paris", "Paris"),
        (TEXT, "  two  spaces ", "  two  spaces "),
        (WHOLE, " 12 ", 12),
        ({"type": "number"}, "3.5", 3.5),
        ({"type": "number"}, "1e3", 1000.0),
        *(({"type": "boolean"}, word, True) for word in ("yes", "Y", "TRUE", " y ")),
        *(({"type": "boolean"}, word, False) for word in ("no", "N", "False")),
        *((SIDE, typed, "aisle") for typed in ("2", "aisle", " aisle ")),
        *((TITLED, typed, "#0f0") for typed in ("2", "#0f0")),
        *((LEGACY, typed, "g") for typed in ("2", "g")),
        *((DAYS, typed, ["Mon", "Wed"]) for typed in ("1,3", "Mon, Wed", " Mon ,3,", "1,3,1")),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "Alpha"}]}}, "1", ["a"]),
        ({"type": "array", "items": {"enum": ["left, right", "up"]}}, "left, right", ["left, right"]),
        ({"type": "array", "items": {"type": "string"}}, "x, y", ["x", "y"]),
        ({"type": "string", "enum": ["3", "1", "2"]}, "1", "1"),
        ({"type": "integer", "enum": [10, 20]}, "2", 20),
        ({"type": ["string", "null"]}, "5", "5"),
    ],
)
async def test_a_line_is_read_by_the_type_of_its_field(shown: Any, typed: str, value: Any) -> None:
    question = form({"x": shown}, ["x"])
    answered = await answer(question, "a", typed)
    assert answered == Reply(Action.ACCEPT, {"x": value})
    assert type(answered.content["x"]) is type(value)


@pytest.mark.parametrize(
    ("shown", "typed", "sentence"),
    [
        *((WHOLE, typed, "It must be a whole number.") for typed in ("x", "1.5", "1_0", "٣", "1e1", "9" * 5000)),
        (WHOLE, "0", "It must be at least 1."),
        (WHOLE, "41", "It must be at most 40."),
        *(({"type": "number"}, typed, "It must be a number.") for typed in ("nan", "inf", "1e999", "1,5", "0x1")),
        ({"type": "number"}, "9" * 400, "It must be within the supported range."),
        ({"type": "string", "minLength": 3}, "ab", "It must have at least 3 characters."),
        ({"type": "string", "maxLength": 3}, "abcd", "It must have at most 3 characters."),
        *((SIDE, typed, "It must be one of the offered choices.") for typed in ("0", "3", "-1", "Aisle", "1,2")),
        (DAYS, "Mon,Sun", "It must be one of the offered choices."),
        (DAYS, "1,2,3", "It must contain at most 2 choices."),
        (TEXT, "", "It is required."),
        (TEXT, "   ", "It is required."),
        *((TEXT, typed, "It must not contain control characters") for typed in ("a\x1b[D", "\x00", "\udce9")),
    ],
)
async def test_a_line_that_does_not_fit_is_rejected_with_a_reason(shown: Any, typed: str, sentence: str) -> None:
    assert sentence in await screen(form({"x": shown}, ["x"]), "a", typed)


async def test_each_field_has_three_tries() -> None:
    two = form({"row": WHOLE, "side": SIDE}, ["row", "side"])
    assert await answer(two, "a", "x", "0", "7", "x", "y", "1") == Reply(Action.ACCEPT, {"row": 7, "side": "window"})
    with pytest.raises(
        NoMoreInput, match="'seat' was not answered: no valid value for its field 'side' in three tries"
    ):
        await answer(two, "a", "7", "x", "y", "z", "1")


@pytest.mark.parametrize(
    ("shown", "required", "content"),
    [
        ({**SIDE, "default": "aisle"}, True, {"x": "aisle"}),
        ({"type": "integer", "default": 0}, False, {"x": 0}),
        ({**TEXT, "default": ""}, False, {"x": ""}),
        ({"default": {"of": "no type"}}, False, {"x": {"of": "no type"}}),
        ({**SIDE, "default": "roof"}, False, {}),
        (TEXT, False, {}),
        (DAYS, True, {"x": []}),
    ],
)
async def test_an_empty_line_takes_the_default_or_leaves_the_field_out(
    shown: Any, required: bool, content: Any
) -> None:
    question = form({"x": shown}, ["x"] if required else [])
    assert await answer(question, "a", "") == Reply(Action.ACCEPT, content)


async def test_a_default_that_does_not_fit_is_ignored() -> None:
    seen = await screen(form({"x": {**SIDE, "default": "roof"}}, ["x"]), "a", "")
    assert "It is required." in seen
    assert "roof" not in seen


async def test_a_field_is_shown_with_all_that_is_known_of_it() -> None:
    row = {**WHOLE, "title": "Row", "description": "From the front", "default": 12}
    seen = await screen(form({"row": row}, ["row"]), "a")
    assert "Field 1 of 1: a whole number; at least 1; at most 40; required, empty takes the default\n" in seen
    for line in ("     name | row", "    title | Row", "    about | From the front", "  default | 12"):
        assert f"{line}\n" in seen


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (TEXT, "text; empty to leave out"),
        ({**TEXT, "minLength": 2, "maxLength": 9}, "text; at least 2 characters; at most 9 characters; empty"),
        ({**TEXT, "format": "email"}, "text; an e-mail address; empty"),
        ({**TEXT, "format": "\x1b[2J"}, "text; empty"),
        ({"type": "number", "minimum": "\x1b[2J"}, "a number; empty"),
        ({"type": "number", "maximum": 10**400}, "a number; empty"),
        (SIDE, "one of these, by number or value; empty"),
        (DAYS, "some of these, by number or value, separated by commas; at most 2 of them; empty"),
        ({**TEXT, "enum": ["2", "1"]}, "one of these, by value; empty"),
    ],
)
async def test_the_instruction_above_a_field_is_in_our_words(shown: Any, words: str) -> None:
    assert f"Field 1 of 1: {words}" in await screen(form({"x": shown}), "a")


async def test_a_yes_or_no_beside_other_fields_is_a_field() -> None:
    question = form({"x": {"type": "boolean", "default": False}, "y": TEXT}, ["x"])
    seen = await screen(question, "a", "1")
    assert "Field 1 of 2: yes or no; required, empty takes the default" in seen
    assert "It must be yes or no." in seen
    assert await answer(question, "a", "", "") == Reply(Action.ACCEPT, {"x": False})
    assert await answer(question, "a", " TRUE ", "") == Reply(Action.ACCEPT, {"x": True})


@pytest.mark.parametrize("shown", [TITLED, LEGACY])
@pytest.mark.parametrize("typed", ["Green", " Green "])
async def test_a_choice_can_be_made_by_its_title(shown: Any, typed: str) -> None:
    seen = await screen(form({"x": shown}, ["x"]), "a")
    assert "one of these, by number, title or value; required" in seen
    answered = await answer(form({"x": shown}, ["x"]), "a", typed)
    assert answered.content["x"] in ("#0f0", "g")


async def test_several_choices_can_be_made_by_their_titles() -> None:
    options = [{"const": "m", "title": "Monday, early"}, {"const": "t", "title": "Tuesday"}]
    question = form({"x": {"type": "array", "items": {"anyOf": options}}}, ["x"])
    assert await answer(question, "a", "Tuesday, m") == Reply(Action.ACCEPT, {"x": ["t", "m"]})
    assert await answer(question, "a", "Monday, early") == Reply(Action.ACCEPT, {"x": ["m"]})


@pytest.mark.parametrize(
    ("options", "typed", "value"),
    [
        ([("cheap", "dear"), ("dear", "cheap")], "cheap", "cheap"),  # a title that is the value of another one
        ([("a", "2"), ("b", "two")], "2", "a"),
        ([("a", "Red\x1b[2J"), ("b", "Blue")], "Red", "a"),  # as it is shown
    ],
)
async def test_what_is_a_value_is_not_a_title_and_what_is_a_title_is_not_a_number(
    options: list[tuple[str, str]], typed: str, value: str
) -> None:
    shown = {"type": "string", "oneOf": [{"const": const, "title": title} for const, title in options]}
    assert await answer(form({"x": shown}, ["x"]), "a", typed) == Reply(Action.ACCEPT, {"x": value})


async def test_a_title_that_two_choices_have_chooses_none_of_them() -> None:
    shown = {"type": "string", "enum": ["a", "b"], "enumNames": ["Red", "Red"]}
    assert "It must be one of the offered choices." in await screen(form({"x": shown}, ["x"]), "a", "Red")


async def test_titles_do_not_hide_what_is_sent() -> None:
    assert "        1 | #f00 (Red)\n" in await screen(form({"x": TITLED}), "a")


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (form({"x": {**TEXT, "minLength": "\x1b"}}), "the schema of a field is not valid"),
        (form({"x": {**TEXT, "oneOf": ["a"]}}), "the schema of a field is not valid"),
        (form({}, ["x"]), "it requires a field that it does not have"),
        (form({}, [["x"]]), "its list of required fields is not valid"),
    ],
)
async def test_a_form_that_nothing_fits_can_only_be_refused(question: Question, why: str) -> None:
    lines = ["a", *(["v"] if question.properties else [])]
    seen = await screen(question, *lines, "a")
    assert f"This form cannot be filled in: {why}.\nd = decline, c = cancel: It must be d or c." in seen
    assert await answer(question, *lines, "d") == Reply(Action.DECLINE)


async def test_a_text_that_does_not_have_the_format_of_its_field_is_asked_for_again() -> None:
    mail = form({"x": {**TEXT, "format": "email"}})
    assert "must be an e-mail address" in await screen(mail, "a", "me")
