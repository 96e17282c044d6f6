"""What is typed before an accept: the value of a form of one field, or something that costs no try."""

import pytest

from bespeak.conversation.responses import Question
from bespeak.terminal.prompt import NoMoreInput
from bespeak.terminal.prompt_types import Action, Reply
from tests.terminal.people import SIDE, TEXT, WHOLE, Person, answer, form, screen

OFFER = "Type the value, or a = accept, d = decline, c = cancel: "


@pytest.mark.parametrize(
    ("question", "typed", "value"),
    [
        (form({"a": TEXT}, ["a"]), "Paris", "Paris"),
        (form({"a": WHOLE}, ["a"]), "5", 5),
        (form({"a": SIDE}, ["a"]), "aisle", "aisle"),
        (form({"a": SIDE}, ["a"]), "2", "aisle"),
    ],
)
async def test_the_value_of_a_form_of_one_field_can_be_typed_at_once(
    question: Question, typed: str, value: object
) -> None:
    person = Person(typed)
    assert await person.answer(question) == Reply(Action.ACCEPT, {"a": value})
    assert person.seen.index("Field 1 of 1: ") < person.seen.index(OFFER)
    assert person.seen.count(OFFER) == 1


@pytest.mark.parametrize("word", ["a", "d", "c", "Accept", "decline", "cancel"])
async def test_after_an_accept_a_word_that_declines_is_a_value(word: str) -> None:
    assert await answer(form({"a": TEXT}), "a", word) == Reply(Action.ACCEPT, {"a": word})


async def test_an_empty_line_is_a_value_only_after_an_accept() -> None:
    person = Person("", " ", "a", "")
    assert await person.answer(form({"a": {**TEXT, "default": "Rome"}})) == Reply(Action.ACCEPT, {"a": "Rome"})
    assert person.seen.count("To send an empty line, type a first.\n") == 2
    assert "type a first" not in await screen(form({"a": TEXT}, ["a"]), "", "")


async def test_a_value_that_is_typed_at_once_has_three_tries() -> None:
    assert await answer(form({"a": WHOLE}, ["a"]), "x", "0", "7") == Reply(Action.ACCEPT, {"a": 7})
    with pytest.raises(NoMoreInput, match="'seat' was not answered: no valid value for its field 'a' in three tries"):
        await answer(form({"a": WHOLE}, ["a"]), "x", "0", "41", "7")


@pytest.mark.parametrize(
    "shown",
    [
        {"type": "string", "enum": ["C", "F"]},
        {"type": "string", "oneOf": [{"const": "x", "title": "Decline"}]},
        {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    ],
)
async def test_choices_that_could_be_an_action_are_shown_after_an_accept(shown: dict[str, object]) -> None:
    person = Person("F", "x", "d")
    assert await person.answer(form({"a": shown})) == Reply(Action.DECLINE)
    assert "Field" not in person.seen
    assert person.seen.count("Type a to answer, then the value.\n") == 2


async def test_a_value_that_is_typed_too_early_costs_no_try() -> None:
    person = Person("Paris", "Paris!", "PARIS", "Paris?", "a", "1", "Paris")
    answered = await person.answer(form({"row": WHOLE, "city": TEXT}, ["row"]))
    assert answered == Reply(Action.ACCEPT, {"row": 1, "city": "Paris"})
    assert person.seen.count("c = cancel: Type a to answer, then the values.\n") == 4
