"""The screen of the prompt: testing.md section 4. What a server says stays text, behind the bar, and is cut."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.conversation.responses import Question
from bespeak.terminal.prompt_types import Action, Reply
from bespeak.terminal.safe_text import clean
from tests.terminal.people import HOSTILE, SAMPLE, Person, form, page, screen


@pytest.mark.parametrize("question", HOSTILE.values(), ids=HOSTILE)
async def test_nothing_a_server_says_leaves_the_bar(question: Question) -> None:
    seen = await screen(question, *(["a"] if question.is_form else []))
    assert all(char == "\n" or char.isprintable() for char in seen)
    ours = [line for line in seen.splitlines() if not re.match(r"[ a-z0-9]{9} \| ", line)]
    assert "EVIL" in seen
    assert "EVIL" not in "".join(ours)


@given(st.text("a \u8c8c\u00e9", min_size=60))
def test_no_row_is_wider_than_the_terminal(text: str) -> None:
    rows = asyncio.run(screen(form({}, message=text))).partition("      key")[0].splitlines()[2:]
    assert all(sum(2 if char == "\u8c8c" else 1 for char in row) < 80 for row in rows)
    assert "".join(row[12:] for row in rows) == text


BIG = {"x": "x" * 2**20, "lines": "x\n" * 2**19, "breaks": "\n" * 2**20, "wide": "\u8c8c" * 2**20}
SEQUENCES = {"open": "\x1b]" * 2**19, "one": "\x9d" * 2**20, "colours": "\x1b[0" * (2**20 // 3) + "m"}


@pytest.mark.parametrize("text", [*BIG.values(), *SEQUENCES.values()], ids=[*BIG, *SEQUENCES])
async def test_a_mebibyte_of_text_is_shown_cut(text: str) -> None:
    shown = {"type": "string", "description": text, "title": text, "default": text}
    seen = await screen(form({"x": shown}, message=text), "a")
    assert seen.count("(cut: there are 1,048,576 characters)") == 2
    assert len(seen.splitlines()) < 110
    assert len(clean(text)) <= 4000


async def test_a_long_conversation_is_shown_from_its_end() -> None:
    messages = [{"role": "user", "content": {"type": "text", "text": f"line {number}"}} for number in range(5000)]
    seen = await screen(Question("s", SAMPLE, {"messages": messages}))
    assert "(4,990 earlier messages)\n     user | line 4990\n" in seen


async def test_a_url_of_a_mebibyte_is_shown_cut() -> None:
    seen = await screen(page(f"https://x.example/{'y' * 2**20}"))
    assert "(cut: there are 1,048,594 characters)\n     host | x.example\n" in seen
    assert len(seen) < 10_000


async def test_ten_thousand_choices_are_shown_cut_and_all_can_be_chosen() -> None:
    person = Person("21", "a", "21", "v9999")
    many = form({"x": {"type": "string", "enum": [f"v{number}" for number in range(10_000)]}})
    assert await person.answer(many) == Reply(Action.ACCEPT, {"x": "v9999"})
    assert "       20 | v19\n" in person.seen
    offer = "Type the value, or a = accept, d = decline, c = cancel: "
    rejected = "It must be one of the offered choices.\n"
    assert f"(and 9,980 more; choose them by value)\n{offer}{rejected}{offer}> {rejected}> " in person.seen
    assert len(person.seen.splitlines()) < 40
