"""The prompt's rules: testing.md section 4. What is typed becomes an answer that fits; what a server says stays text."""

import asyncio
import webbrowser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.testing import prompting
from bespeak.testing.answers import Answer, CannotAnswer, Way, parse_answer, render
from bespeak.testing.prompting import NoMoreInput, Prompt
from bespeak.testing.verdicts import Question

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 40}
SIDE: dict[str, Any] = {"type": "string", "enum": ["window", "aisle"]}
DAYS: dict[str, Any] = {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["Mon", "Tue", "Wed"]}}
TITLED: dict[str, Any] = {
    "type": "string",
    "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}],
}
LEGACY: dict[str, Any] = {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}


class Person:
    """Types these lines, and then nothing more; keeps what was on the screen."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.seen = ""

    async def read(self) -> str:
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)

    def write(self, text: str) -> None:
        self.seen += text

    async def answer(self, question: Question) -> Answer:
        return await Prompt(read=self.read, write=self.write).ask(question)


async def answer(question: Question, *lines: str) -> Answer:
    person = Person(*lines)
    answered = await person.answer(question)
    assert not person.lines, "not all of it was read"
    return answered


async def screen(question: Question, *lines: str) -> str:
    """What a person sees who does not come to an answer."""
    person = Person(*lines)
    with pytest.raises(NoMoreInput):
        await person.answer(question)
    return person.seen


def form(properties: Any, required: Any = (), message: str = "Which one?") -> Question:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Question("seat", ELICIT, {"message": message, "requestedSchema": schema})


def page(url: str) -> Question:
    return Question("login", ELICIT, {"mode": "url", "message": "Log in", "url": url})


def field(kind: str, *, required: bool = True) -> Question:
    return Question("city", None, {"kind": kind, "description": "Which city?"}, required)


# Accept, decline or cancel


@pytest.mark.parametrize("word", ["d", "D", "decline", " DECLINE ", "decline\n", "d\r\n"])
async def test_a_decline_is_one_letter_or_the_word(word: str) -> None:
    assert await answer(form({"a": TEXT}), word) == Answer(Way.DECLINE)


@pytest.mark.parametrize("word", ["c", "Cancel"])
async def test_a_cancel_is_one_letter_or_the_word(word: str) -> None:
    assert await answer(form({"a": TEXT}), word) == Answer(Way.CANCEL)


@pytest.mark.parametrize("word", ["a", "Accept"])
async def test_a_form_without_fields_is_accepted_as_it_is(word: str) -> None:
    assert await answer(form({}), word) == Answer(Way.ACCEPT, {})


async def test_an_empty_line_repeats_the_choice_and_costs_no_try() -> None:
    assert await answer(form({}), "", " ", "", "\t", "x", "y", "d") == Answer(Way.DECLINE)


async def test_three_words_that_are_no_choice_end_it() -> None:
    person = Person("yes", "ok", "accep", "a")
    with pytest.raises(NoMoreInput, match="'seat' was not answered: none of accept, decline, cancel in three tries"):
        await person.answer(form({}))
    assert "It must be one of accept, decline, cancel." in person.seen


@pytest.mark.parametrize("lines", [[], [""], ["a"], ["a", "1"], ["x"]])
async def test_the_end_of_the_input_is_never_an_answer(lines: list[str]) -> None:
    with pytest.raises(NoMoreInput, match="'seat' was not answered: the input has ended"):
        await answer(form({"row": WHOLE, "side": TEXT}), *lines)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, asyncio.CancelledError])
async def test_an_interruption_passes_through_and_is_no_decline(interruption: type[BaseException]) -> None:
    seen: list[str] = []

    async def read() -> str:
        raise interruption

    with pytest.raises(interruption):
        await Prompt(read=read, write=seen.append).ask(form({}))
    assert seen[-1] == "\n"


async def test_questions_take_turns() -> None:
    typed: asyncio.Queue[str] = asyncio.Queue()
    seen: list[str] = []
    prompt = Prompt(read=typed.get, write=seen.append)
    async with asyncio.TaskGroup() as both:
        first = both.create_task(prompt.ask(field("string")))
        second = both.create_task(prompt.ask(form({})))
        await asyncio.sleep(0)
        assert "seat" not in "".join(seen)
        typed.put_nowait("Paris")
        typed.put_nowait("d")
    assert (first.result(), second.result()) == (Answer(Way.VALUE, "Paris"), Answer(Way.DECLINE))


# Fields


@pytest.mark.parametrize(
    ("shown", "typed", "value"),
    [
        (TEXT, "Paris", "Paris"),
        (TEXT, "  two  spaces ", "  two  spaces "),
        (TEXT, "12", "12"),
        (TEXT, "true", "true"),
        (WHOLE, " 12 ", 12),
        ({"type": "integer"}, "-3", -3),
        ({"type": "number"}, "3.5", 3.5),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "number"}, "7", 7),
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
    content = render(question, answered)["content"]
    assert content == {"x": value}
    assert type(content["x"]) is type(value)


@pytest.mark.parametrize(
    ("shown", "typed", "sentence"),
    [
        *((WHOLE, typed, "It must be a whole number.") for typed in ("x", "1.5", "1_0", "٣", "1e1", "9" * 5000)),
        (WHOLE, "0", "It must be at least 1."),
        (WHOLE, "41", "It must be at most 40."),
        *(({"type": "number"}, typed, "It must be a number.") for typed in ("nan", "inf", "1e999", "1,5", "0x1")),
        ({"type": "number"}, "9" * 400, "It must be a number of ordinary size."),
        ({"type": "boolean"}, "1", "It must be yes or no."),
        ({"type": "string", "minLength": 3}, "ab", "It must have at least 3 characters."),
        ({"type": "string", "maxLength": 3}, "abcd", "It must have at most 3 characters."),
        *((SIDE, typed, "It must be one of the choices on offer.") for typed in ("0", "3", "-1", "Aisle", "1,2")),
        (DAYS, "Mon,Sun", "It must be one of the choices on offer."),
        (DAYS, "1,2,3", "It must hold at most 2 choices."),
        (TEXT, "", "It is required."),
        (TEXT, "   ", "It is required."),
        *((TEXT, typed, "It must hold no control characters") for typed in ("a\x1b[D", "\x00", "\udce9")),
    ],
)
async def test_a_line_that_does_not_fit_is_told_what_is_wrong(shown: Any, typed: str, sentence: str) -> None:
    assert sentence in await screen(form({"x": shown}, ["x"]), "a", typed)


async def test_each_field_has_three_tries() -> None:
    two = form({"row": WHOLE, "side": SIDE}, ["row", "side"])
    assert await answer(two, "a", "x", "0", "7", "x", "y", "1") == Answer(Way.ACCEPT, {"row": 7, "side": "window"})
    with pytest.raises(
        NoMoreInput, match="'seat' was not answered: no valid value for its field 'side' in three tries"
    ):
        await answer(two, "a", "7", "x", "y", "z", "1")


@pytest.mark.parametrize(
    ("shown", "required", "content"),
    [
        ({**SIDE, "default": "aisle"}, True, {"x": "aisle"}),
        ({**SIDE, "default": "aisle"}, False, {"x": "aisle"}),
        ({"type": "boolean", "default": False}, True, {"x": False}),
        ({"type": "integer", "default": 0}, False, {"x": 0}),
        ({**TEXT, "default": ""}, False, {"x": ""}),
        ({"default": {"of": "no type"}}, False, {"x": {"of": "no type"}}),
        ({**SIDE, "default": "roof"}, False, {}),
        ({**TEXT, "default": None}, False, {}),
        (TEXT, False, {}),
        (DAYS, False, {}),
        (DAYS, True, {"x": []}),
    ],
)
async def test_an_empty_line_takes_the_default_or_leaves_the_field_out(
    shown: Any, required: bool, content: Any
) -> None:
    question = form({"x": shown}, ["x"] if required else [])
    assert render(question, await answer(question, "a", ""))["content"] == content


async def test_a_default_that_does_not_fit_is_no_default() -> None:
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
        ({"type": "boolean"}, "yes or no; empty"),
        (SIDE, "one of these, by number or value; empty"),
        (DAYS, "some of these, by number or value, with commas between them; at most 2 of them; empty"),
        ({**TEXT, "enum": ["2", "1"]}, "one of these, by value; empty"),
    ],
)
async def test_what_is_wanted_is_said_in_our_words(shown: Any, words: str) -> None:
    assert f"Field 1 of 1: {words}" in await screen(form({"x": shown}), "a")


async def test_titles_do_not_hide_what_is_sent() -> None:
    assert "        1 | #f00 (Red)\n" in await screen(form({"x": TITLED}), "a")


async def test_a_form_of_one_field_is_answered_with_the_value_alone() -> None:
    assert await answer(form({"x": TEXT}), "a", "Paris") == Answer(Way.VALUE, "Paris")
    assert await answer(form({"x": TEXT, "y": TEXT}), "a", "Paris", "") == Answer(Way.ACCEPT, {"x": "Paris"})


@pytest.mark.parametrize("word", ["decline", "cancel", "omit"])
@pytest.mark.parametrize("question", [form({"x": TEXT}, ["x"]), field("string")], ids=["form", "field"])
async def test_a_text_that_reads_like_a_refusal_is_saved_so_that_it_is_none(question: Question, word: str) -> None:
    answered = await answer(question, *(["a"] if question.method else []), word)
    assert render(question, parse_answer(answered.as_written())) == render(question, answered)
    assert not answered.declines


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (form({"x": {**TEXT, "minLength": "\x1b"}}), "one of its fields has no valid schema"),
        (form({"x": {**TEXT, "oneOf": ["a"]}}), "one of its fields has no valid schema"),
        (form({}, ["x"]), "it requires a field that it does not have"),
        (form({}, [["x"]]), "it does not say which fields are required"),
    ],
)
async def test_a_form_that_nothing_fits_can_only_be_refused(question: Question, why: str) -> None:
    lines = ["a", *(["v"] if question.properties else [])]
    seen = await screen(question, *lines, "a")
    assert f"This form cannot be filled in: {why}.\nd = decline, c = cancel: It must be one of decline, cancel." in seen
    assert await answer(question, *lines, "d") == Answer(Way.DECLINE)


async def test_what_cannot_be_sent_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def stricter(question: Question, answer: Answer) -> None:
        raise CannotAnswer

    monkeypatch.setattr(prompting, "render", stricter)
    seen = await screen(form({"x": TEXT}), "a", "Paris")
    assert "This form cannot be filled in: what fits each field does not fit the whole.\nd = decline" in seen


# The other questions


@pytest.mark.parametrize(("word", "answered"), [("a", Answer(Way.URL, "done")), ("d", Answer(Way.DECLINE))])
async def test_a_url_is_shown_and_never_opened(word: str, answered: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(url: str) -> None:
        pytest.fail(f"{url} was opened")

    monkeypatch.setattr(webbrowser, "open", opened)
    person = Person(word)
    assert await person.answer(page("https://mcp.example:8443/connect?t=a%20b#c")) == answered
    assert "      url | https://mcp.example:8443/connect?t=a%20b#c\n     host | mcp.example\n" in person.seen
    assert "Nothing is opened for you.\na = accept (I have opened it), d = decline, c = cancel: " in person.seen
    assert "Mind" not in person.seen


async def test_a_model_is_spoken_for_on_one_line() -> None:
    blocks = [{"type": "text", "text": "And this?"}, {"type": "image", "data": "x"}]
    messages = [
        {"role": "user", "content": {"type": "text", "text": "Hi\n\x1b[2Jthere"}},
        {"role": "x", "content": blocks},
    ]
    question = Question("s", SAMPLE, {"messages": messages, "maxTokens": 9, "systemPrompt": "Be brief"})
    person = Person("", " ", "", "", "Paris, of course")
    assert await person.answer(question) == Answer(Way.SAMPLE, "Paris, of course")
    assert (
        "   system | Be brief\n     user | Hi\n          | there\n  message | And this?\n          | (image)\n"
        in person.seen
    )


@pytest.mark.parametrize("word", ["d", "decline", "cancel"])
async def test_a_model_has_no_decline(word: str) -> None:
    assert await answer(Question("s", SAMPLE, {"messages": [], "maxTokens": 9}), word) == Answer(Way.SAMPLE, word)


async def test_roots_are_paths_and_uris_until_an_empty_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["/srv/a b", "file:///srv/\u00fc x", "FILE:///srv", "sub/../odd", "http://x.example/", "file:", "/z", ""]
    found = await answer(Question("r", ROOTS, {}), *lines)
    here = (tmp_path / "odd").as_uri()
    roots = ["file:///srv/a%20b", "file:///srv/%C3%BC%20x", "FILE:///srv", here, "file:///z"]
    assert found == Answer(Way.ROOTS, roots)


async def test_no_roots_are_an_answer() -> None:
    assert await answer(Question("r", ROOTS, {}), "") == Answer(Way.ROOTS, [])


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("https://x.example/", "It must be a path, or a URI such as file:///srv/project."),
        ("file:/srv", "It must be a path, or a URI such as file:///srv/project."),
        ("~nobody-of-that-name/x", "It must be a path that can be found."),
    ],
)
async def test_what_is_no_root_is_said(typed: str, sentence: str) -> None:
    person = Person(typed, typed, typed)
    with pytest.raises(NoMoreInput, match="'r' was not answered: no valid root in three tries"):
        await person.answer(Question("r", ROOTS, {}))
    assert person.seen.count(sentence) == 3


@pytest.mark.parametrize(
    ("question", "typed", "answered"),
    [
        (field("string"), "Paris", Answer(Way.VALUE, "Paris")),
        (field("integer"), "5", Answer(Way.VALUE, 5)),
        (field("boolean"), "n", Answer(Way.VALUE, False)),
        (field("anything"), "5", Answer(Way.VALUE, "5")),
        (field("string", required=False), "", Answer(Way.OMIT)),
        (field("integer", required=False), " ", Answer(Way.OMIT)),
    ],
)
async def test_the_compatibility_dialect_takes_one_value(question: Question, typed: str, answered: Answer) -> None:
    assert await answer(question, typed) == answered


async def test_a_required_value_of_the_compatibility_dialect_cannot_be_left_out() -> None:
    with pytest.raises(NoMoreInput, match="'city' was not answered: no valid value in three tries"):
        await answer(field("string"), "", "", "")
    assert await screen(field("string"), "", "", "") == (
        "\nThe server asks:\n  message | Which city?\n      key | city\nOne value: text; required\n"
        + "> It is required.\n" * 3
    )


# Whatever is asked, and whatever is typed

ODD = st.sampled_from(["\x1b[2J", "\x9b", "\n", "\u202e", "\ud800"])
ANY_TEXT = st.text(st.characters(exclude_categories=[])) | ODD
SCALARS = st.sampled_from([None, True, -1, 0, 2, 0.5, 1e308, float("inf"), "", "a", "1", "\x1b[2J"])
OPTIONS = st.lists(SCALARS | st.fixed_dictionaries({"const": SCALARS}, optional={"title": SCALARS}), max_size=3)
CHOICES = {"enum": OPTIONS | SCALARS, "oneOf": OPTIONS, "anyOf": OPTIONS, "enumNames": OPTIONS}
BOUNDS = {"minimum": SCALARS, "maxLength": SCALARS, "minItems": SCALARS, "format": SCALARS}
TYPES = ["string", "integer", "number", "boolean", "array", "object", None, ["string"]]
FIELDS = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES)},
    optional=CHOICES
    | BOUNDS
    | {"items": st.fixed_dictionaries({}, optional=CHOICES) | SCALARS, "title": SCALARS}
    | {"default": SCALARS | st.lists(SCALARS, max_size=2)},
)
NAMES = st.sampled_from(["x", "y", "\x1b"])
SCHEMAS = st.fixed_dictionaries(
    {"properties": st.dictionaries(NAMES, FIELDS | SCALARS, max_size=2)},
    optional={"required": st.lists(NAMES | SCALARS, max_size=2) | SCALARS},
)
CONTENT = SCALARS | st.lists(SCALARS | st.fixed_dictionaries({"type": SCALARS, "text": SCALARS}), max_size=2)
MESSAGES = st.lists(SCALARS | st.fixed_dictionaries({"role": SCALARS, "content": CONTENT}), max_size=2)
FORMS = st.fixed_dictionaries({"message": ANY_TEXT, "requestedSchema": SCHEMAS})
URLS = ANY_TEXT | ANY_TEXT.map("https://".__add__)
PAGES = st.fixed_dictionaries({"mode": st.just("url"), "message": ANY_TEXT, "url": URLS})
QUESTIONS = st.one_of(
    *[st.builds(Question, ANY_TEXT, st.just(ELICIT), FORMS)] * 5,  # most of what can go wrong
    st.builds(Question, ANY_TEXT, st.just(ELICIT), PAGES),
    st.builds(Question, ANY_TEXT, st.just(SAMPLE), st.fixed_dictionaries({"messages": MESSAGES})),
    st.builds(Question, ANY_TEXT, st.just(ROOTS), st.just({})),
    st.builds(Question, ANY_TEXT, st.none(), st.fixed_dictionaries({"kind": st.sampled_from(TYPES)}), st.booleans()),
)
LINES = ["a", "", "1", "a,1", "0.5", "yes", "decline", "file:///x", "\x1b[A", "~"]


@given(QUESTIONS, st.lists(st.sampled_from(LINES) | ANY_TEXT))
def test_whatever_is_typed_ends_in_an_answer_that_fits_or_in_no_answer(question: Question, lines: list[str]) -> None:
    person = Person("a", *lines)
    try:
        answered = asyncio.run(person.answer(question))
    except NoMoreInput:
        return
    finally:
        assert all(char == "\n" or char.isprintable() for char in person.seen)
    if answered.way is Way.OMIT:
        assert not question.required
    else:
        render(question, answered)
