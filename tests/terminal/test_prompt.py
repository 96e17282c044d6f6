"""The prompt's rules: testing.md section 4. What is typed becomes an answer that fits, or none."""

import asyncio
import webbrowser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.conversation.answers import answer_from, render
from bespeak.conversation.responses import Question
from bespeak.terminal.prompt import NoMoreInput, Prompt
from bespeak.terminal.prompt_types import Action, Asker, Reply
from tests.terminal.people import ELICIT, HOSTILE, ROOTS, SAMPLE, TEXT, WHOLE, Person, answer, field, form, page, screen

# Accept, decline or cancel


@pytest.mark.parametrize("word", ["d", " DECLINE ", "d\r\n"])
async def test_a_decline_is_one_letter_or_the_word(word: str) -> None:
    assert await answer(form({"a": TEXT}), word) == Reply(Action.DECLINE)


@pytest.mark.parametrize("word", ["c", "Cancel"])
async def test_a_cancel_is_one_letter_or_the_word(word: str) -> None:
    assert await answer(form({"a": TEXT}), word) == Reply(Action.CANCEL)


@pytest.mark.parametrize("word", ["a", "Accept"])
async def test_a_form_without_fields_is_accepted_as_it_is(word: str) -> None:
    assert await answer(form({}), word) == Reply(Action.ACCEPT, {})


async def test_an_empty_line_repeats_the_choice_and_costs_no_try() -> None:
    assert await answer(form({}), "", " ", "", "\t", "x", "y", "d") == Reply(Action.DECLINE)


async def test_three_invalid_choices_end_the_prompt() -> None:
    person = Person("yes", "ok", "accep", "a")
    with pytest.raises(NoMoreInput, match="'seat' was not answered: none of accept, decline, cancel in three tries"):
        await person.answer(form({}))
    assert "It must be a, d or c.\n" in person.seen


@pytest.mark.parametrize("lines", [[], [""], ["a"], ["a", "1"], ["x"]])
async def test_the_end_of_the_input_is_never_an_answer(lines: list[str]) -> None:
    with pytest.raises(NoMoreInput, match="'seat' was not answered: the input has ended"):
        await answer(form({"row": WHOLE, "side": TEXT}), *lines)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, asyncio.CancelledError])
async def test_an_interruption_passes_through_and_does_not_decline(interruption: type[BaseException]) -> None:
    seen: list[str] = []

    async def read() -> str:
        raise interruption

    with pytest.raises(interruption):
        await Prompt(read=read, write=seen.append).ask(form({}))
    assert seen[-1] == "\n"


async def test_questions_take_turns() -> None:
    typed: asyncio.Queue[str] = asyncio.Queue()
    seen: list[str] = []
    prompt = Prompt(read=typed.get, write=seen.append, confirms=False)
    async with asyncio.TaskGroup() as both:
        first = both.create_task(prompt.ask(field("string")))
        second = both.create_task(prompt.ask(form({})))
        await asyncio.sleep(0)
        assert "seat" not in "".join(seen)
        typed.put_nowait("Paris")
        typed.put_nowait("d")
    assert (first.result(), second.result()) == (Reply(Action.ACCEPT, {"city": "Paris"}), Reply(Action.DECLINE))


@pytest.mark.parametrize(("lines", "confirmed"), [(["y"], True), ([" YES\n"], True), (["n"], False), ([], False)])
async def test_only_a_yes_confirms(lines: list[str], confirmed: bool) -> None:
    person = Person(*lines)
    prompt = Prompt(read=person.read, write=person.write)
    assert await prompt.confirm(lambda screen: screen.say("This runs a program."), "Go on?") is confirmed
    assert person.seen.startswith("This runs a program.\nGo on? y = yes, n = no (default): ")


# The other questions


@pytest.mark.parametrize(("word", "answered"), [("a", Reply(Action.URL, "done")), ("d", Reply(Action.DECLINE))])
async def test_a_url_is_shown_and_never_opened(word: str, answered: Reply, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(url: str) -> None:
        pytest.fail(f"{url} was opened")

    monkeypatch.setattr(webbrowser, "open", opened)
    person = Person(word)
    assert await person.answer(page("https://mcp.example:8443/connect?t=a%20b#c")) == answered
    assert "      url | https://mcp.example:8443/connect?t=a%20b#c\n     host | mcp.example\n" in person.seen
    assert "Bespeak does not open it for you.\na = accept (I have opened it), d = decline, c = cancel: " in person.seen
    assert "Warning" not in person.seen


async def test_a_model_is_spoken_for_on_one_line() -> None:
    blocks = [{"type": "text", "text": "And this?"}, {"type": "image", "data": "x"}]
    messages = [
        {"role": "user", "content": {"type": "text", "text": "Hi\n\x1b[2Jthere"}},
        {"role": "x", "content": blocks},
    ]
    question = Question("s", SAMPLE, {"messages": messages, "maxTokens": 9, "systemPrompt": "Be brief"})
    person = Person("", "a", " ", "", "", "Paris, of course")
    assert await person.answer(question) == Reply(Action.SAMPLE, "Paris, of course")
    assert (
        "   system | Be brief\n     user | Hi\n          | there\n  message | And this?\n          | (image)\n"
        in person.seen
    )


@pytest.mark.parametrize("word", ["d", "decline", "cancel"])
async def test_a_word_that_declines_can_be_the_reply_of_a_model(word: str) -> None:
    question = Question("s", SAMPLE, {"messages": [], "maxTokens": 9})
    assert await answer(question, "a", word) == Reply(Action.SAMPLE, word)


@pytest.mark.parametrize("word", ["d", "decline"])
@pytest.mark.parametrize("method", [SAMPLE, ROOTS])
async def test_a_person_may_decline_sampling_and_roots(method: str, word: str) -> None:
    person = Person(word)
    assert await person.answer(Question("s", method, {"messages": [], "maxTokens": 9})) == Reply(Action.DECLINE)
    assert person.seen.endswith("a = accept, d = decline: ")


async def test_roots_are_paths_and_uris_until_an_empty_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["/srv/a b", "file:///srv/\u00fc x", "FILE:///srv", "sub/../odd", "http://x.example/", "file:", "/z", ""]
    found = await answer(Question("r", ROOTS, {}), "a", *lines)
    here = (tmp_path / "odd").as_uri()
    roots = ["file:///srv/a%20b", "file:///srv/%C3%BC%20x", "FILE:///srv", here, "file:///z"]
    assert found == Reply(Action.ROOTS, roots)


async def test_no_roots_are_an_answer() -> None:
    assert await answer(Question("r", ROOTS, {}), "a", "") == Reply(Action.ROOTS, [])


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("https://x.example/", "It must be a path, or a URI such as file:///srv/project."),
        ("file:/srv", "It must be a path, or a URI such as file:///srv/project."),
        ("~nobody-of-that-name/x", "It must be a path that can be found."),
    ],
)
async def test_an_invalid_root_is_rejected_with_a_reason(typed: str, sentence: str) -> None:
    person = Person("a", typed, typed, typed)
    with pytest.raises(NoMoreInput, match="'r' was not answered: no valid root in three tries"):
        await person.answer(Question("r", ROOTS, {}))
    assert person.seen.count(sentence) == 3


@pytest.mark.parametrize(
    ("question", "typed", "answered"),
    [
        (field("string"), "Paris", Reply(Action.ACCEPT, {"city": "Paris"})),
        (field("integer"), "5", Reply(Action.ACCEPT, {"city": 5})),
        (field("boolean"), "n", Reply(Action.ACCEPT, {"city": False})),
        (field("anything"), "5", Reply(Action.ACCEPT, {"city": "5"})),
        (field("string", required=False), "", Reply(Action.OMIT)),
        (field("integer", required=False), " ", Reply(Action.OMIT)),
    ],
)
async def test_the_compatibility_dialect_takes_one_value(question: Question, typed: str, answered: Reply) -> None:
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
def test_any_input_gives_an_answer_that_fits_or_no_answer(question: Question, lines: list[str]) -> None:
    person = Person("a", *lines)
    try:
        answered = asyncio.run(person.answer(question))
    except NoMoreInput:
        return
    finally:
        assert all(char == "\n" or char.isprintable() for char in person.seen)
    if answered.action is Action.OMIT:
        assert not question.required
    else:
        render(question, answer_from(question, answered))


# One yes or no


SURE = form({"sure": {"type": "boolean", "title": "Sure?", "description": "There is no way back", "default": True}})


@pytest.mark.parametrize(
    ("typed", "reply"),
    [
        *((word, Reply(Action.ACCEPT, {"sure": True})) for word in ("y", " YES ", "true")),
        *((word, Reply(Action.ACCEPT, {"sure": False})) for word in ("n", "No", "false")),
        ("d", Reply(Action.DECLINE)),
        ("cancel", Reply(Action.CANCEL)),
    ],
)
async def test_a_form_of_one_yes_or_no_is_answered_in_one_step(typed: str, reply: Reply) -> None:
    person = Person(typed)
    person.confirms = True
    assert await person.answer(SURE) == reply
    assert person.seen == (
        "\nThe server asks:\n  message | Which one?\n      key | seat\n     name | sure\n    title | Sure?\n"
        "    about | There is no way back\ny = yes, n = no, d = decline, c = cancel: "
    )


async def test_an_empty_line_does_not_decide_and_another_word_is_rejected() -> None:
    person = Person("", "a", "1", "y")
    assert await person.answer(SURE) == Reply(Action.ACCEPT, {"sure": True})
    assert person.seen.count("It must be y, n, d or c.\n") == 2


# Who asks


async def test_a_person_sees_who_asks_in_which_tool_why_and_how_far_it_is() -> None:
    person = Person("d")
    person.asker = Asker("weather.py", "forecast", "To book the\nseat", "2 of 5: Looking")
    await person.answer(form({"x": TEXT}))
    assert person.seen.startswith(
        "\nThe server asks:\n   server | weather.py\n     tool | forecast\n    about | To book the\n          | seat\n"
        " progress | 2 of 5: Looking\n  message | Which one?\n"
    )


@pytest.mark.parametrize("method", [SAMPLE, ROOTS])
async def test_the_other_questions_name_who_asks_too(method: str) -> None:
    person = Person("d")
    person.asker = Asker("EVIL\x1b[2J\nEVIL", "tool")
    await person.answer(Question("s", method, {"messages": [], "maxTokens": 9}))
    assert "   server | EVIL\u23ceEVIL\n     tool | tool\n" in person.seen


# Once more before it is sent


CONFIRM = "Send it? y = yes, n = no, answer again: "


@pytest.mark.parametrize(
    ("question", "typed", "shown", "reply"),
    [
        (form({"city": TEXT, "n": WHOLE}), ["a", "Rome", "3"], "   answer | city = Rome\n   answer | n = 3\n",
         Reply(Action.ACCEPT, {"city": "Rome", "n": 3})),
        (field("string"), ["Paris"], "   answer | city = Paris\n", Reply(Action.ACCEPT, {"city": "Paris"})),
        (Question("s", SAMPLE, {"messages": [], "maxTokens": 9}), ["a", "Hi"], "   answer | Hi\n",
         Reply(Action.SAMPLE, "Hi")),
        (Question("r", ROOTS, {}), ["a", "/a", "/b", ""], "   answer | file:///a\n   answer | file:///b\n",
         Reply(Action.ROOTS, ["file:///a", "file:///b"])),
        (Question("r", ROOTS, {}), ["a", ""], "   answer | (no roots)\n", Reply(Action.ROOTS, [])),
    ],
)  # fmt: skip
async def test_what_was_typed_is_shown_once_more_and_can_be_typed_again(
    question: Question, typed: list[str], shown: str, reply: Reply
) -> None:
    person = Person(*typed, "n", *typed, "y")
    person.confirms = True
    assert await person.answer(question) == reply
    assert person.seen.count(f"\nYour answer:\n{shown}{CONFIRM}") == 2


@pytest.mark.parametrize(
    ("question", "typed"),
    [(form({"x": TEXT}), ["d"]), (form({"x": TEXT}), ["c"]), (form({}), ["a"]), (page("https://a.example"), ["a"])],
)
async def test_what_was_answered_with_one_word_is_not_shown_again(question: Question, typed: list[str]) -> None:
    person = Person(*typed)
    person.confirms = True
    await person.answer(question)
    assert CONFIRM not in person.seen


async def test_only_a_yes_or_a_no_decides_whether_it_is_sent() -> None:
    person = Person("Paris", "", "maybe", "sure")
    person.confirms = True
    with pytest.raises(NoMoreInput, match="'city' was not answered: no yes or no in three tries"):
        await person.answer(field("string"))
    assert person.seen.count("It must be yes or no.\n") == 3


@pytest.mark.parametrize("name", ["form", "choices", "several"])
async def test_an_answer_that_the_server_suggested_cannot_imitate_the_prompt(name: str) -> None:
    person = Person("a", "", "y")
    person.confirms = True
    await person.answer(HOSTILE[name])
    shown = person.seen.partition("Your answer:\n")[2].removesuffix(CONFIRM).splitlines()
    assert shown
    assert all(line[9:12] == " | " and line.isprintable() for line in shown)
