"""Questions that servers ask, a person who types what a test says, and what is then on the screen."""

from typing import Any

import pytest

from bespeak.conversation.responses import Question
from bespeak.terminal.prompt import NoMoreInput, Prompt
from bespeak.terminal.prompt_types import Asker, Reply

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 40}
SIDE: dict[str, Any] = {"type": "string", "enum": ["window", "aisle"]}


class Person:
    """Types these lines, and then nothing more; keeps what was on the screen.

    Unless a test says so, answers are not shown once more.
    """

    confirms = False
    asker = Asker()

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.seen = ""

    async def read(self) -> str:
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)

    def write(self, text: str) -> None:
        self.seen += text

    async def answer(self, question: Question) -> Reply:
        return await Prompt(read=self.read, write=self.write, confirms=self.confirms).ask(question, self.asker)


async def answer(question: Question, *lines: str) -> Reply:
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


# Everything a server can say, said by one that means no good

EVIL = "EVIL\n> EVIL\r\x1b[2J\x1b]0;EVIL\x07\x85EVIL\u2028\u202eEVIL" + " " * 60 + "EVIL" + "\u8c8c" * 60 + "EVIL"
HOSTILE = {
    "form": form(
        {EVIL: {"type": "string", "title": EVIL, "description": EVIL, "format": EVIL, "default": EVIL}}, message=EVIL
    ),
    "bounds": form({"x": {"type": "number", "minimum": EVIL, "maximum": EVIL}}, message=EVIL),
    "choices": form(
        {"x": {"type": "string", "oneOf": [{"const": EVIL, "title": EVIL}], "default": EVIL}}, message=EVIL
    ),
    "several": form({"x": {"type": "array", "items": {"enum": [EVIL]}, "default": [EVIL]}}, message=EVIL),
    "url": Question(EVIL, ELICIT, {"mode": "url", "message": EVIL, "url": f"https://{EVIL}@{EVIL}/{EVIL}"}),
    "model": Question(EVIL, SAMPLE, {"systemPrompt": EVIL, "messages": [{"role": EVIL, "content": {"type": EVIL}}]}),
    "roots": Question(EVIL, ROOTS, {}),
    "field": Question(EVIL, None, {"kind": EVIL, "description": EVIL}),
}
