"""The ways to answer (testing.md section 2), as they are written and as they travel (protocol sections 7.2, 7.3 and 8).

Answers are checked against the question's schema before they are sent. A list question cannot be declined.
"""

from typing import Any

import pytest

from bespeak.conversation.answers import MODEL as MODEL_NAME
from bespeak.conversation.answers import Answer, Value, Way, answer_from, parse_answer, render
from bespeak.terminal.prompt_types import Action, Reply
from bespeak.testing import CannotAnswer, Question
from tests.conversation.envelopes import FOLDERS, MODEL, PAGE, TEXT, form, question

CITY = question(form())
SEVERAL = question(form(required=("city",), city=TEXT, nights={"type": "integer", "minimum": 1, "maximum": 9}))
EMPTY = Question(
    "city", "elicitation/create", {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
)
URL, WORDS, WHERE = question(PAGE, "login"), question(MODEL, "words"), question(FOLDERS, "where")


def of_kind(kind: str, *, required: bool = True) -> Question:
    return Question("city", None, {"kind": kind, "description": "What city?"}, required)


LISTED = of_kind("string")


def sent(asked: Question, written: Any) -> Any:
    return render(asked, parse_answer(written))


def refused(asked: Question, written: Any) -> str:
    with pytest.raises(CannotAnswer) as caught:
        sent(asked, written)
    return str(caught.value)


def bad(written: Any) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is what the tests look at
        parse_answer(written)
    return str(caught.value)


YES = question(form(required=("ok",), ok={"type": "boolean"}), "ok")


@pytest.mark.parametrize(("word", "meant"), [("yes", "true"), ("No", "false"), ("true", "true"), ("off", "false")])
def test_a_word_for_true_or_false_is_told_what_to_write(word: str, meant: str) -> None:
    hint = f"must be true or false; write {meant}, without quotes"
    assert refused(YES, word) == f"the answer to 'ok' does not fit its form: ok: {hint}"
    assert refused(of_kind("boolean"), word) == f"the answer to 'city' {hint}"
    assert refused(YES, "perhaps").endswith("ok: must be true or false")


# As they are written


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("San Francisco", Answer(Way.VALUE, "San Francisco")),
        ("", Answer(Way.VALUE, "")),
        (False, Answer(Way.VALUE, False)),
        (["Mon", "Tue"], Answer(Way.VALUE, ["Mon", "Tue"])),
        ("accept", Answer(Way.VALUE, "accept")),
        ("Decline", Answer(Way.VALUE, "Decline")),
        ("decline", Answer(Way.DECLINE)),
        ("cancel", Answer(Way.CANCEL)),
        ("omit", Answer(Way.OMIT)),
        ({"accept": {"units": "C"}}, Answer(Way.ACCEPT, {"units": "C"})),
        ({"raw": None}, Answer(Way.RAW, None)),
        ({"raw": {"action": "perhaps"}}, Answer(Way.RAW, {"action": "perhaps"})),
        ({"sample": "Paris"}, Answer(Way.SAMPLE, "Paris")),
        ({"roots": ["file:///a"]}, Answer(Way.ROOTS, ["file:///a"])),
        ({"url": "done"}, Answer(Way.URL, "done")),
    ],
)
def test_an_answer_is_read_and_written_as_a_suite_says_it(written: Any, answer: Answer) -> None:
    assert parse_answer(written) == answer
    assert answer.as_written() == written


@pytest.mark.parametrize("value", ["decline", "omit", {"accept": {"city": "Oslo"}}, {"a": 1}, None, 5])
def test_what_fills_a_whole_answer_is_a_value_whatever_it_looks_like(value: Any) -> None:
    assert parse_answer(Value(value)) == Answer(Way.VALUE, value)


FORMS = "{accept: ...} {raw: ...} {roots: ...} {sample: ...} {url: ...}"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (None, "null is not an answer"),
        ({}, FORMS),
        ({"city": "Oslo"}, FORMS),
        ({"accept": {}, "raw": 1}, FORMS),
        ({1: 2}, FORMS),
        (
            {"accept": "Oslo"},
            "{accept: ...} takes a map of the form's fields; if the form has one field, write only its value",
        ),
        ({"accept": None}, "takes a map of the form's fields"),
        ({"url": "open"}, "a URL question is answered with {url: done}, decline or cancel"),
        ({"sample": 5}, "{sample: ...} takes the model's text"),
        ({"sample": ["Paris"]}, "{sample: ...} takes the model's text"),
        ({"roots": "file:///a"}, "{roots: ...} takes a list of URIs, or of {uri, name}"),
        ({"roots": [None]}, "{roots: ...} takes a list of URIs, or of {uri, name}"),
        ({"roots": {"uri": "file:///a"}}, "{roots: ...} takes a list of URIs, or of {uri, name}"),
    ],
)
def test_an_invalid_answer_is_rejected_with_what_would_be_valid(written: Any, said: str) -> None:
    assert said in bad(written)


# A person's reply


@pytest.mark.parametrize(
    ("asked", "reply", "answer"),
    [
        (CITY, Reply(Action.ACCEPT, {"city": "Oslo"}), Answer(Way.VALUE, "Oslo")),
        (LISTED, Reply(Action.ACCEPT, {"city": "Oslo"}), Answer(Way.VALUE, "Oslo")),
        (CITY, Reply(Action.ACCEPT, {"city": "decline"}), Answer(Way.ACCEPT, {"city": "decline"})),
        (LISTED, Reply(Action.ACCEPT, {"city": "omit"}), Answer(Way.ACCEPT, {"city": "omit"})),
        (CITY, Reply(Action.ACCEPT, {"city": {"a": 1}}), Answer(Way.ACCEPT, {"city": {"a": 1}})),
        (CITY, Reply(Action.ACCEPT, {}), Answer(Way.ACCEPT, {})),
        (SEVERAL, Reply(Action.ACCEPT, {"city": "Oslo"}), Answer(Way.ACCEPT, {"city": "Oslo"})),
        (CITY, Reply(Action.DECLINE), Answer(Way.DECLINE)),
        (URL, Reply(Action.URL, "done"), Answer(Way.URL, "done")),
    ],
)
def test_a_reply_is_saved_as_the_shortest_answer_that_reads_back_the_same(
    asked: Question, reply: Reply, answer: Answer
) -> None:
    assert answer_from(asked, reply) == answer
    assert parse_answer(answer.as_written()) == answer


# A form


@pytest.mark.parametrize(
    ("written", "travels"),
    [
        ("Oslo", {"action": "accept", "content": {"city": "Oslo"}}),
        ({"accept": {"city": "Oslo"}}, {"action": "accept", "content": {"city": "Oslo"}}),
        ("decline", {"action": "decline"}),
        ("cancel", {"action": "cancel"}),
        ({"raw": {"action": "perhaps", "content": 5}}, {"action": "perhaps", "content": 5}),
    ],
)
def test_an_answer_to_a_form_travels_as_a_result_of_its_method(written: Any, travels: Any) -> None:
    assert sent(CITY, written) == travels


@pytest.mark.parametrize(
    ("asked", "written", "said"),
    [
        (SEVERAL, "Oslo", "'city' has the fields city, nights; write {accept: {...}}, or decline"),
        (EMPTY, "Oslo", "'city' has the fields (none); write {accept: {...}}, or decline"),
        (
            SEVERAL,
            {"accept": {"city": "Oslo", "days": 2}},
            "the form of 'city' has no field 'days'; it has city, nights",
        ),
        (EMPTY, {"accept": {"city": "Oslo"}}, "the form of 'city' has no field 'city'; it has none"),
        (SEVERAL, {"accept": {"nights": 2}}, "does not fit its form: city: is required"),
        (SEVERAL, {"accept": {"city": 5, "nights": 10}}, "city: must be a string; nights: must be at most 9"),
        (CITY, 5, "the answer to 'city' does not fit its form: city: must be a string"),
        (CITY, {"sample": "Oslo"}, "asks with a form (elicitation/create), which {sample: ...} does not answer"),
        (CITY, {"roots": []}, "write a value, {accept: {...}}, decline or cancel"),
    ],
)
def test_an_answer_that_does_not_fit_a_form_is_not_sent(asked: Question, written: Any, said: str) -> None:
    assert said in refused(asked, written)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        (TEXT, 5, "must be a string"),
        ({"type": "string", "enum": ["C", "F"]}, "K", "must be one of the offered choices: C, F"),
        (
            {"type": "string", "oneOf": [{"const": "C", "title": "Celsius"}]},
            "K",
            "must be one of the offered choices: C",
        ),
        (
            {"type": "string", "enum": [f"c{number}" for number in range(22)]},
            "K",
            f"must be one of the offered choices: {', '.join(f'c{number}' for number in range(20))} and 2 more",
        ),
        (
            {"type": "array", "items": {"type": "string", "enum": ["C", "F"]}},
            ["K"],
            "must contain only offered choices: C, F",
        ),
        ({"type": "integer"}, True, "must be a whole number"),
    ],
)
def test_a_value_that_does_not_fit_its_field_is_not_sent(field: Any, value: Any, said: str) -> None:
    assert f"the answer to 'city' does not fit its form: city: {said}" in refused(question(form(city=field)), value)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string", "minLength": "two"},
        {"type": "string", "enum": 5},
        {"type": "string", "oneOf": [5]},
        {"type": "integer", "minimum": None},
        {"type": "array", "items": 5},
        {"type": "array", "minItems": []},
    ],
)
def test_a_form_with_an_invalid_schema_can_only_be_answered_raw(field: Any) -> None:
    asked = question(form(city=field))
    value = {"string": "Oslo", "integer": 5, "array": ["a"]}[field["type"]]
    assert "not a flat schema (use {raw: ...} to answer it anyway)" in refused(asked, value)
    assert sent(asked, {"raw": {"action": "accept"}}) == {"action": "accept"}


@pytest.mark.parametrize("required", [5, [[]], {"city": True}, True])
def test_an_invalid_list_of_required_fields_does_not_crash(required: Any) -> None:
    asked = question(form())
    schema: Any = asked.params["requestedSchema"]
    schema["required"] = required
    try:
        assert sent(asked, "Oslo") == {"action": "accept", "content": {"city": "Oslo"}}
    except CannotAnswer as error:
        assert "not a flat schema" in str(error)  # noqa: PT017 - either is right, a crash is not


# A page, a model, folders


def test_a_page_that_was_opened_is_accepted_without_content() -> None:
    assert sent(URL, {"url": "done"}) == {"action": "accept"}


@pytest.mark.parametrize("word", ["decline", "cancel"])
def test_a_page_can_be_declined(word: str) -> None:
    assert sent(URL, word) == {"action": word}


@pytest.mark.parametrize("written", ["yes", {"accept": {}}, {"sample": "Paris"}, {"roots": []}])
def test_a_page_is_answered_in_no_other_way(written: Any) -> None:
    assert refused(URL, written) == "'login' asks for a page to open, which is answered with {url: done}"


def test_the_models_words_travel_as_a_whole_result() -> None:
    assert sent(WORDS, {"sample": "Paris"}) == {
        "role": "assistant",
        "model": MODEL_NAME,
        "stopReason": "endTurn",
        "content": {"type": "text", "text": "Paris"},
    }


BLOCK: dict[str, Any] = {"type": "tool_use", "id": "1", "name": "look", "input": {}}


@pytest.mark.parametrize(
    ("written", "more"),
    [
        (BLOCK, {"content": BLOCK}),
        ({"content": [BLOCK], "stopReason": "toolUse"}, {"content": [BLOCK], "stopReason": "toolUse"}),
        ({"content": BLOCK, "model": "m", "role": "user"}, {"content": BLOCK, "model": "m", "role": "user"}),
    ],
)
def test_a_block_or_a_whole_result_of_a_model_is_completed(written: Any, more: Any) -> None:
    base = {"role": "assistant", "model": MODEL_NAME, "stopReason": "endTurn"}
    assert sent(WORDS, {"sample": written}) == {**base, **more}


@pytest.mark.parametrize("written", [{}, {"model": "m"}, {"content": 5}, {"content": None}, {"content": "Paris"}])
def test_a_models_result_without_content_is_not_sent(written: Any) -> None:
    with pytest.raises((ValueError, CannotAnswer), match="sample"):
        sent(WORDS, {"sample": written})


def test_folders_travel_as_roots() -> None:
    named = {"uri": "file:///b", "name": "B"}
    assert sent(WHERE, {"roots": ["file:///a", named]}) == {"roots": [{"uri": "file:///a"}, named]}


@pytest.mark.parametrize("root", [{}, {"name": "A"}, {"uri": 5}, {"uri": None, "name": "A"}])
def test_a_folder_without_an_address_is_not_sent(root: Any) -> None:
    with pytest.raises((ValueError, CannotAnswer), match="roots"):
        sent(WHERE, {"roots": [root]})


@pytest.mark.parametrize("written", ["Oslo", {"accept": {}}, {"url": "done"}, "decline", "cancel"])
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (WORDS, "'words' asks for sampling/createMessage, which is answered with {sample: \"what the model says\"}"),
        (WHERE, "'where' asks for roots/list, which is answered with {roots: [file:///...]}"),
    ],
)
def test_a_model_and_folders_are_answered_in_one_way_only(asked: Question, said: str, written: Any) -> None:
    declined = "; it cannot be declined" if written in ("decline", "cancel") else ""
    assert refused(asked, written) == said + declined


# The compatibility dialect


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("string", "Oslo", "Oslo"),
        ("string", {"accept": {"city": "Oslo"}}, "Oslo"),
        ("string", {"accept": {"anything": "Oslo"}}, "Oslo"),
        ("integer", 5, 5),
        ("number", 5.5, 5.5),
        ("boolean", False, False),
        ("colour", {"raw": {"a": 1}}, {"a": 1}),
        ("colour", ["anything"], ["anything"]),
    ],
)
def test_a_field_takes_one_value(kind: str, written: Any, value: Any) -> None:
    assert sent(of_kind(kind), written) == value


@pytest.mark.parametrize(
    ("kind", "written", "said"),
    [
        ("integer", "5", "the answer to 'city' must be a whole number"),
        ("string", 5, "the answer to 'city' must be a string"),
        ("string", {"accept": {}}, "'city' is in the compatibility dialect and takes one value, not 0"),
        (
            "string",
            {"accept": {"a": "x", "b": "y"}},
            "'city' is in the compatibility dialect and takes one value, not 2",
        ),
        ("string", {"sample": "Oslo"}, "takes one value, not {sample: ...}"),
        ("string", {"url": "done"}, "takes one value, not {url: ...}"),
        ("string", "decline", "'city' is in the compatibility dialect and cannot be declined; give it a value"),
    ],
)
def test_a_field_takes_nothing_else(kind: str, written: Any, said: str) -> None:
    assert said in refused(of_kind(kind), written)


# Whatever it is


@pytest.mark.parametrize("asked", [CITY, EMPTY, URL, WORDS, WHERE, LISTED])
@pytest.mark.parametrize("value", [None, 5, "x", {"action": 7}, [{}]])
def test_raw_is_sent_unchecked_whatever_is_asked(asked: Question, value: Any) -> None:
    assert sent(asked, {"raw": value}) == value


@pytest.mark.parametrize("written", [5, {"sample": "x"}])
@pytest.mark.parametrize("key", ["\x1b[2J", "two\nlines", "\u202e"])
def test_a_key_with_control_characters_is_shown_without_them(key: str, written: Any) -> None:
    assert refused(question(form(), key), written).isprintable()


def test_a_text_that_does_not_have_the_format_of_its_field_is_not_sent() -> None:
    asked = question(form(city={"type": "string", "format": "email"}))
    assert "the answer to 'city' does not fit its form: city: must be an e-mail address" in refused(asked, "Rome")
    assert sent(asked, "a@example.com")["content"] == {"city": "a@example.com"}
