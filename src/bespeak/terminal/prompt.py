"""The prompt: asks a person at the terminal on standard error, so that standard output holds only the result."""

import asyncio
import select
import sys
import threading
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar, cast

from bespeak.protocol.methods import ROOTS, SAMPLE
from bespeak.terminal.form_fields import Field, Unfillable, as_typed, is_yes_no, read_field, read_fields, read_yes_no
from bespeak.terminal.prompt_types import Action, Asker, PromptQuestion, Reply
from bespeak.terminal.root_uris import root_uri
from bespeak.terminal.safe_text import SHORT, clean
from bespeak.terminal.screen import Screen, Write, to_stderr
from bespeak.terminal.web_addresses import read_address

TRIES = 3
READ_BYTES = 64 * 1024

Read = Callable[[], Awaitable[str]]
"""Returns the next typed line, with or without its newline. Raises `EOFError` at the end of the input."""
T = TypeVar("T")
NOBODY = Asker()
NO_WORDS: Mapping[str, str] = {}


class NoMoreInput(Exception):
    """A person did not answer: three tries failed, or the input ended. The message names the question."""


def at_terminal() -> bool:
    """Return whether there is a person to ask: standard input and standard error are a terminal."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


class Prompt:
    """Asks one person one question at a time."""

    def __init__(self, *, read: Read | None = None, write: Write | None = None, confirms: bool = True) -> None:
        self._confirms = confirms
        """Whether what was typed is shown once more before it is sent."""
        self._read = read or _Keyboard().line
        self._screen = Screen(write or to_stderr)
        self._turn = asyncio.Lock()

    async def ask(self, question: PromptQuestion, asker: Asker = NOBODY) -> Reply:
        """Ask one question. The reply fits the question. Raises `NoMoreInput`."""
        async with self._turn:
            try:
                while True:
                    reply = await self._answer(question, asker)
                    if await self._is_meant(question, reply):
                        return reply
            except EOFError:
                self._screen.say("")
                raise NoMoreInput(f"{_named(question.name)} was not answered: the input has ended") from None
            except (KeyboardInterrupt, asyncio.CancelledError):
                self._screen.say("")  # what is said next starts on a line of its own
                raise

    async def _is_meant(self, question: PromptQuestion, reply: Reply) -> bool:
        """Show what was typed once more, and ask whether to send it. What was answered with one word is meant."""
        values = _typed(reply)
        if not self._confirms or not values or is_yes_no(question):
            return True
        self._screen.show_answer(values)
        return await self._tried(question, "Send it? y = yes, n = no, answer again: ", read_yes_no, "no yes or no")

    async def confirm(self, show: Callable[[Screen], None], question: str) -> bool:
        """Show something and ask for a yes. Anything else means no, as does the end of the input."""
        async with self._turn:
            show(self._screen)
            self._screen.write(f"{question} y = yes, n = no (default): ")
            try:
                line = await self._read()
            except EOFError:
                self._screen.say("")
                return False
            except (KeyboardInterrupt, asyncio.CancelledError):
                self._screen.say("")
                raise
            return line.strip().lower() in ("y", "yes")

    async def _answer(self, question: PromptQuestion, asker: Asker) -> Reply:
        if question.method == SAMPLE:
            return await self._sampled(question, asker)
        if question.method == ROOTS:
            return await self._rooted(question, asker)
        self._screen.introduce("The server asks:", question, asker)
        if question.method is None:
            return await self._one_value(question)
        return await self._decided(question) if is_yes_no(question) else await self._elicited(question)

    async def _decided(self, question: PromptQuestion) -> Reply:
        """A form of one yes or no is answered in one step."""
        ((name, shown),) = question.properties.items()
        self._screen.show_about(name, shown)
        replies = {
            "yes": Reply(Action.ACCEPT, {name: True}),
            "no": Reply(Action.ACCEPT, {name: False}),
            "decline": Reply(Action.DECLINE),
            "cancel": Reply(Action.CANCEL),
        }
        return await self._chosen(question, replies, also={"true": "yes", "false": "no"})

    async def _elicited(self, question: PromptQuestion) -> Reply:
        actions = [Action.ACCEPT, Action.DECLINE, Action.CANCEL]
        if question.is_url:
            address = read_address(str(question.params.get("url")))
            self._screen.show_address(address)
            if not address.can_be_opened:
                self._screen.say("This question can only be declined or cancelled: its address is not safe to open.")
                actions.remove(Action.ACCEPT)
        while True:
            try:
                if Action.ACCEPT in actions and (field := _only_field(question)) is not None:
                    return await self._at_once(question, field)
                action = await self._action(question, actions)
                if action is not Action.ACCEPT:
                    return Reply(action)
                return Reply(Action.URL, "done") if question.is_url else Reply(action, await self._content(question))
            except Unfillable as why:
                self._screen.say(f"This form cannot be filled in: {why}.")
                actions.remove(Action.ACCEPT)

    async def _at_once(self, question: PromptQuestion, field: Field) -> Reply:
        """A form of one field: the value can be typed without an accept. After one, whatever is typed is the value."""
        self._screen.show_field(field, "Field 1 of 1")

        def read(line: str) -> Reply | None:
            if (action := _ACTIONS.get(line.strip().lower())) is not None:
                return Reply(action)
            if line.strip():
                return Reply(Action.ACCEPT, field.read(line))
            if field.may_be_empty:
                self._screen.say("To send an empty line, type a first.")
            return None

        offer = "Type the value, or a = accept, d = decline, c = cancel: "
        reply = await self._tried(question, offer, read, _no_valid_value(question, field))
        if reply.action is Action.ACCEPT and reply.content is None:
            return Reply(Action.ACCEPT, await self._field(question, field))
        return reply

    async def _chosen(
        self,
        question: PromptQuestion,
        choices: Mapping[str, T],
        notes: Mapping[str, str] = NO_WORDS,
        also: Mapping[str, str] = NO_WORDS,
        otherwise: str | None = None,
    ) -> T:
        """One of the choices, by its word, its first letter or another word for it.

        If `otherwise` is given, it is said when something else is typed, which then does not count as a try.
        """
        offer = ", ".join(f"{word[0]} = {word}{notes.get(word, '')}" for word in choices)
        *letters, last = (word[0] for word in choices)
        typed = {key: choice for word, choice in choices.items() for key in (word, word[0])}
        typed |= {word: choices[meant] for word, meant in also.items()}
        words = ", ".join(choices)

        def read(line: str) -> T | None:
            word = line.strip().lower()
            if word and word not in typed:
                if otherwise is None:
                    raise ValueError(f"must be {', '.join(letters)} or {last}")
                self._screen.say(otherwise)
            return typed.get(word)

        return await self._tried(question, f"{offer}: ", read, f"none of {words}")

    async def _action(self, question: PromptQuestion, actions: Sequence[Action]) -> Action:
        notes = {Action.ACCEPT.value: " (I have opened it)"} if question.is_url else NO_WORDS
        otherwise = None
        if Action.ACCEPT in actions and not question.is_url and question.properties:
            otherwise = f"Type a to answer, then the value{'' if len(question.properties) == 1 else 's'}."
        return await self._chosen(question, {one.value: one for one in actions}, notes, otherwise=otherwise)

    async def _content(self, question: PromptQuestion) -> dict[str, Any]:
        """The values of a form. Raises `Unfillable`."""
        fields = read_fields(question)
        content: dict[str, Any] = {}
        for number, field in enumerate(fields, 1):
            self._screen.show_field(field, f"Field {number} of {len(fields)}")
            content |= await self._field(question, field)
        return content

    async def _one_value(self, question: PromptQuestion) -> Reply:
        """The compatibility dialect has no form, and nothing can be declined in it."""
        field = read_field(question.name, question.schema, required=question.required)
        self._screen.say(field.wanted("One value"))
        content = await self._field(question, field)
        return Reply(Action.ACCEPT, content) if content else Reply(Action.OMIT)

    async def _field(self, question: PromptQuestion, field: Field) -> dict[str, Any]:
        return await self._tried(question, "> ", field.read, _no_valid_value(question, field))

    async def _sampled(self, question: PromptQuestion, asker: Asker) -> Reply:
        self._screen.introduce("The server asks a model. Answer in its place:", question, asker)
        self._screen.show_messages(question.params)
        if await self._chosen(question, _ACCEPT_OR_DECLINE) is Action.DECLINE:
            return Reply(Action.DECLINE)
        words = await self._tried(question, "The model's reply, on one line: ", _words, "no reply")
        return Reply(Action.SAMPLE, words)

    async def _rooted(self, question: PromptQuestion, asker: Asker) -> Reply:
        self._screen.introduce("The server asks which folders it may know about (roots):", question, asker)
        if await self._chosen(question, _ACCEPT_OR_DECLINE) is Action.DECLINE:
            return Reply(Action.DECLINE)
        roots: list[str] = []
        while found := await self._tried(
            question, "A path or a file:// URI, or an empty line to finish: ", _roots, "no valid root"
        ):
            roots += found
        return Reply(Action.ROOTS, roots)

    async def _tried(self, question: PromptQuestion, prompt: str, read: Callable[[str], T | None], failing: str) -> T:
        """Ask until `read` accepts a line, three times at most. A line for which it returns `None` does not count as a try."""
        tries = TRIES
        while tries:
            self._screen.write(prompt)
            line = (await self._read()).rstrip("\r\n")
            try:
                value = read(_legible(line))
            except ValueError as problem:
                self._screen.say(f"It {clean(str(problem), SHORT)}.")
                tries -= 1
            else:
                if value is not None:
                    return value
        raise NoMoreInput(f"{_named(question.name)} was not answered: {failing} in three tries")


_ACCEPT_OR_DECLINE = {one.value: one for one in (Action.ACCEPT, Action.DECLINE)}
_ACTIONS = {word: one for one in (Action.ACCEPT, Action.DECLINE, Action.CANCEL) for word in (one.value, one.value[0])}
"""What can be typed instead of the value of a form's only field."""


def _only_field(question: PromptQuestion) -> Field | None:
    """The only field of a form, unless one of its choices could be mistaken for an accept, a decline or a cancel.

    Raises `Unfillable`.
    """
    if question.is_url or len(question.properties) != 1:
        return None
    (field,) = read_fields(question)
    offered = (text for one in field.choices.all for text in (one.text, clean(one.title, SHORT)))
    return None if any(text.strip().lower() in _ACTIONS for text in offered) else field


def _no_valid_value(question: PromptQuestion, field: Field) -> str:
    return "no valid value" + (f" for its field {_named(field.name)}" if question.method else "")


def _typed(reply: Reply) -> list[tuple[str, str]]:
    """What was typed for a reply: the values by field, the model's words or the roots. Empty for one word."""
    if reply.action is Action.ACCEPT:
        return [(name, as_typed(value)) for name, value in reply.content.items()]
    if reply.action is Action.SAMPLE:
        return [("", reply.content)]
    if reply.action is Action.ROOTS:
        return [("", root) for root in reply.content] or [("", "(no roots)")]
    return []


def _named(name: str) -> str:
    return f"'{clean(name, SHORT)}'"


# What is typed


class _Keyboard:
    """Reads lines from standard input on demand, in a daemon thread."""

    def __init__(self) -> None:
        self._held = b""
        self._ended = False
        self._reading: Future[bytes] | None = None
        """A read that has started. If its question was cancelled, the next question gets what it reads."""

    async def line(self) -> str:
        while b"\n" not in self._held and not self._ended:
            self._reading = self._reading or _in_thread(_read_stdin)
            piece = await asyncio.wrap_future(self._reading)
            self._reading = None
            self._held += piece
            self._ended = not piece
        line, newline, self._held = self._held.partition(b"\n")
        if not newline:  # a line without its end was never sent off
            raise EOFError
        return line.decode(sys.stdin.encoding or "utf-8", "surrogateescape")


def _in_thread(work: Callable[[], bytes]) -> "Future[bytes]":
    done: Future[bytes] = Future()
    done.set_running_or_notify_cancel()  # from here on nobody can cancel it
    threading.Thread(target=lambda: done.set_result(work()), name="bespeak prompt", daemon=True).start()
    return done


def _read_stdin() -> bytes:
    """The next bytes; empty at the end. Not through `sys.stdin`: a thread must not hold its lock when the program ends."""
    try:
        with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stdin:
            while True:
                piece = cast("bytes | None", stdin.read(READ_BYTES))
                if piece is not None:
                    return piece
                select.select([stdin], [], [])  # another program has made it non-blocking
    except (AttributeError, OSError, ValueError):  # there is none, or the terminal is gone
        return b""


def _legible(line: str) -> str:
    if any(unicodedata.category(char) in ("Cc", "Cs") and char != "\t" for char in line):
        raise ValueError("must not contain control characters (arrow keys produce some)")
    return line


def _words(line: str) -> str | None:
    return line if line.strip() else None


def _roots(line: str) -> list[str]:
    """The root on a line; an empty list for an empty line."""
    line = line.strip()
    if not line:
        return []
    return [root_uri(line, Path.cwd())]
