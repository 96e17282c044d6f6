"""Asking a person at the terminal, on standard error: standard output stays the result.

The server's text is untrusted. It stands to the right of a bar, stripped, cut and wrapped; what stands to the left of the
bar, and every line without one, is ours. So nothing a server says can pass for a part of the prompt. A web address alone is
not wrapped, so that it can be copied: it is shown as ASCII without spaces.
"""

import asyncio
import json
import os
import re
import select
import sys
import threading
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote, unquote

from bespeak.resolve.flat import check_value
from bespeak.resolve.questions import ROOTS, SAMPLE
from bespeak.testing.answers import Answer, CannotAnswer, Way, parse_answer, render
from bespeak.testing.verdicts import Question

TRIES = 3
LONG, SHORT = 4_000, 200
"""How many characters are shown of a text that is to be read, and of a name."""
URL_CHARACTERS = 8_000
ROWS = 40
CHOICES = 20
MESSAGES = 10
MARGIN = 9
READ_BYTES = 64 * 1024

Read = Callable[[], Awaitable[str]]
"""The next line that was typed, with or without its end. Raises `EOFError` when there will be none."""
Write = Callable[[str], None]
T = TypeVar("T")


class NoMoreInput(Exception):
    """A person did not answer: three tries were of no use, or the input has ended. Says which question it was."""


class _Unfillable(Exception):
    """No content can fit this form. Says why."""


def at_terminal() -> bool:
    """Whether there is a person to ask: one who can type, and who sees what is asked."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


class Prompt:
    """Asks one person one question at a time."""

    def __init__(self, *, read: Read | None = None, write: Write | None = None) -> None:
        self._read = read or _Keyboard().line
        self._screen = _Screen(write or _to_stderr)
        self._turn = asyncio.Lock()

    async def ask(self, question: Question) -> Answer:
        """What the person answers; it fits the question. Raises `NoMoreInput`."""
        async with self._turn:
            try:
                return await self._answer(question)
            except EOFError:
                self._screen.say("")
                raise NoMoreInput(f"{_named(question.key)} was not answered: the input has ended") from None
            except (KeyboardInterrupt, asyncio.CancelledError):
                self._screen.say("")  # what is said next starts on a line of its own
                raise

    async def _answer(self, question: Question) -> Answer:
        if question.method == SAMPLE:
            return await self._sampled(question)
        if question.method == ROOTS:
            return await self._rooted(question)
        self._screen.introduce("The server asks:", question)
        if question.method is None:
            return await self._one_value(question)
        return await self._elicited(question)

    async def _elicited(self, question: Question) -> Answer:
        ways = [Way.ACCEPT, Way.DECLINE, Way.CANCEL]
        if question.is_url:
            self._screen.show_address(_read_address(str(question.params.get("url"))))
        while True:
            way = await self._way(question, ways)
            if way is not Way.ACCEPT:
                return Answer(way)
            if question.is_url:
                return Answer(Way.URL, "done")
            try:
                return await self._filled(question)
            except _Unfillable as why:
                self._screen.say(f"This form cannot be filled in: {why}.")
                ways.remove(Way.ACCEPT)

    async def _way(self, question: Question, ways: Sequence[Way]) -> Way:
        opened = " (I have opened it)" if question.is_url else ""
        offer = ", ".join(f"{way[0]} = {way}{opened if way is Way.ACCEPT else ''}" for way in ways)
        typed = {word: way for way in ways for word in (way.value, way.value[0])}

        def read(line: str) -> Way | None:
            word = line.strip().lower()
            if word and word not in typed:
                raise ValueError(f"must be one of {', '.join(way.value for way in ways)}")
            return typed.get(word)

        return await self._tried(question, f"{offer}: ", read, f"none of {', '.join(ways)}")

    async def _filled(self, question: Question) -> Answer:
        fields = _fields(question)
        content: dict[str, Any] = {}
        for number, field in enumerate(fields, 1):
            self._screen.show_field(field, f"Field {number} of {len(fields)}")
            content |= await self._field(question, field)
        answer = _shortest(content, alone=len(fields) == 1)
        try:
            render(question, answer)
        except CannotAnswer:
            raise _Unfillable("what fits each field does not fit the whole") from None
        return answer

    async def _one_value(self, question: Question) -> Answer:
        """The compatibility dialect has no form, and nothing can be declined in it."""
        field = _read_field(question.key, question.schema, required=question.required)
        self._screen.say(field.wanted("One value"))
        content = await self._field(question, field)
        return _shortest(content, alone=True) if content else Answer(Way.OMIT)

    async def _field(self, question: Question, field: "_Field") -> dict[str, Any]:
        where = f" for its field {_named(field.name)}" if question.method else ""
        return await self._tried(question, "> ", field.read, f"no valid value{where}")

    async def _sampled(self, question: Question) -> Answer:
        self._screen.introduce("The server asks a model, and you speak for it:", question)
        self._screen.show_messages(question.params)
        words = await self._tried(question, "The model's words, on one line: ", _words, "no words of the model")
        return Answer(Way.SAMPLE, words)

    async def _rooted(self, question: Question) -> Answer:
        self._screen.introduce("The server asks for the folders it may know of (roots):", question)
        roots: list[str] = []
        while found := await self._tried(question, "A path or file:// URI; empty ends: ", _roots, "no valid root"):
            roots += found
        return Answer(Way.ROOTS, roots)

    async def _tried(self, question: Question, prompt: str, read: Callable[[str], T | None], failing: str) -> T:
        """What was read of the first line that can be; one of which `None` was read is asked for again, and costs no try."""
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
        raise NoMoreInput(f"{_named(question.key)} was not answered: {failing} in three tries")


def _shortest(content: dict[str, Any], *, alone: bool) -> Answer:
    """The answer that reads shortest where it is saved, and is read back as what it was."""
    if not alone or not content:
        return Answer(Way.ACCEPT, content)
    (value,) = content.values()
    try:
        answer = parse_answer(value)
    except ValueError:
        return Answer(Way.ACCEPT, content)
    return answer if answer.way is Way.VALUE else Answer(Way.ACCEPT, content)


# What is typed


class _Keyboard:
    """Lines of standard input, read when they are wanted, in a thread that nobody waits for."""

    def __init__(self) -> None:
        self._held = b""
        self._ended = False
        self._reading: Future[bytes] | None = None
        """A read under way. One whose question was given up is there for the next."""

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
    """What there is; empty at the end. Not through `sys.stdin`, which a thread must not hold when the program ends."""
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
        raise ValueError("must hold no control characters (arrow keys write some)")
    return line


def _words(line: str) -> str | None:
    return line if line.strip() else None


def _roots(line: str) -> list[str]:
    """The root of a line; none of an empty one."""
    line = line.strip()
    if not line:
        return []
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", line)  # of one letter, it is a drive
    if scheme is None:
        try:
            return [Path(os.path.normpath(Path(line).expanduser().absolute())).as_uri()]
        except (OSError, RuntimeError):
            raise ValueError("must be a path that can be found") from None
    if not re.match(r"file://[^/\\]*/", line, re.IGNORECASE):
        raise ValueError("must be a path, or a URI such as file:///srv/project")
    return [_ascii(line)]


def _whole(typed: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,400}", typed):
        raise ValueError("must be a whole number")
    return int(typed)


def _number(typed: str) -> int | float:
    if not re.fullmatch(r"[+-]?([0-9]{1,400}(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,9})?", typed, re.IGNORECASE):
        raise ValueError("must be a number")
    return int(typed) if re.fullmatch(r"[+-]?[0-9]+", typed) else float(typed)


def _yes_no(typed: str) -> bool:
    known = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
    if typed.lower() not in known:
        raise ValueError("must be yes or no")
    return known[typed.lower()]


# Fields


class _Kind(Enum):
    """What is typed into a field."""

    TEXT = "text"
    WHOLE = "a whole number"
    NUMBER = "a number"
    YES_NO = "yes or no"
    SEVERAL = "texts, with commas between them"


_KINDS = {"integer": _Kind.WHOLE, "number": _Kind.NUMBER, "boolean": _Kind.YES_NO, "array": _Kind.SEVERAL}
_READERS: Mapping[_Kind, Callable[[str], Any]] = {_Kind.WHOLE: _whole, _Kind.NUMBER: _number, _Kind.YES_NO: _yes_no}
_FORMATS = {"email": "an e-mail address", "uri": "a URI", "date": "a date", "date-time": "a date and time"}


@dataclass(frozen=True, slots=True)
class _Choice:
    value: Any
    title: str = ""

    @property
    def text(self) -> str:
        """How it is typed."""
        return _written(self.value)

    def __str__(self) -> str:
        return f"{clean(self.text, SHORT)} ({clean(self.title, SHORT)})" if self.title else clean(self.text, SHORT)


class _Choices:
    """What a field offers; nothing, if anything may be typed."""

    def __init__(self, shown: Mapping[str, Any]) -> None:
        self.all = tuple(_offered(shown))
        self._typed = {choice.text: choice for choice in reversed(self.all)}
        self._numbers = {str(number): choice for number, choice in enumerate(self.all[:CHOICES], 1)}
        # A number that is the value of another choice could mean either.
        self.numbered = all(
            self._typed.get(number, choice).text == choice.text for number, choice in self._numbers.items()
        )

    def __contains__(self, typed: str) -> bool:
        return typed in self._typed

    def find(self, typed: str) -> Any:
        """The value that is meant by its number or by itself. Raises `ValueError`."""
        found = self._typed.get(typed) or self._typed.get(typed.strip())
        if found is None and self.numbered:
            found = self._numbers.get(typed.strip())
        if found is None:
            raise ValueError("must be one of the choices on offer")
        return found.value


@dataclass(frozen=True, slots=True)
class _Field:
    """One value that is asked for."""

    name: str
    shown: Mapping[str, Any]
    """Its schema."""
    required: bool
    kind: _Kind
    choices: _Choices

    @property
    def default(self) -> Any:
        """What an empty line stands for; `None` if there is none, or none that fits."""
        value = self.shown.get("default")
        return None if value is None or self._problem(value) else value

    def read(self, line: str) -> dict[str, Any]:
        """What a line says, as content; nothing if the field is left out. Raises `ValueError`."""
        if line.strip():
            value = self._several(line) if self.kind is _Kind.SEVERAL else self._one(line)
            if problem := self._problem(value):
                raise ValueError(problem)
            return {self.name: value}
        if self.default is not None:
            return {self.name: self.default}
        if not self.required:
            return {}
        if self._may_be_none:
            return {self.name: []}
        raise ValueError("is required")

    def wanted(self, start: str) -> str:
        """What is to be typed, in words of ours."""
        several = self.kind is _Kind.SEVERAL
        wanted = self.kind.value
        if self.choices.all:
            how = "by number or value" if self.choices.numbered else "by value"
            wanted = f"{'some' if several else 'one'} of these, {how}{', with commas between them' if several else ''}"
        return "; ".join([f"{start}: {wanted}", *self._bounds(), self._empty()])

    def _empty(self) -> str:
        needed = "required" if self.required else "optional"
        if self.default is not None:
            return f"{needed}, empty takes the default"
        if not self.required:
            return "empty to leave out"
        return "required, empty for none" if self._may_be_none else "required"

    @property
    def _may_be_none(self) -> bool:
        return self.kind is _Kind.SEVERAL and not self._problem([])

    def _problem(self, value: Any) -> str | None:
        try:
            return check_value(self.shown, value)
        except (TypeError, AttributeError, KeyError, ValueError):
            raise _Unfillable("one of its fields has no valid schema") from None

    def _one(self, typed: str) -> Any:
        if self.choices.all:
            return self.choices.find(typed)
        reader = _READERS.get(self.kind)
        return reader(typed.strip()) if reader else typed

    def _several(self, typed: str) -> list[Any]:
        parts = [typed] if typed in self.choices else [part.strip() for part in typed.split(",")]
        found: dict[str, Any] = {}  # each is chosen once
        for part in filter(None, parts):
            value = self._one(part)
            found.setdefault(_written(value), value)
        return list(found.values())

    def _bounds(self) -> Iterator[str]:
        if self.choices.all and self.kind is not _Kind.SEVERAL:
            return
        low, high, what = {
            _Kind.TEXT: ("minLength", "maxLength", " characters"),
            _Kind.SEVERAL: ("minItems", "maxItems", " of them"),
        }.get(self.kind, ("minimum", "maximum", ""))
        for words, bound in (("at least", self.shown.get(low)), ("at most", self.shown.get(high))):
            if isinstance(bound, int | float) and not isinstance(bound, bool) and abs(bound) < 1e18:
                yield f"{words} {bound}{what}"
        form: Any = self.shown.get("format")
        if isinstance(form, str) and form in _FORMATS:
            yield _FORMATS[form]


def _fields(question: Question) -> list[_Field]:
    """The fields of a form. Raises `_Unfillable` if it cannot be filled in, whatever is typed."""
    properties = question.properties
    required: Any = question.schema.get("required") or []
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast("list[Any]", required)):
        raise _Unfillable("it does not say which fields are required")
    names = set(cast("list[str]", required))
    if names - properties.keys():
        raise _Unfillable("it requires a field that it does not have")
    return [_read_field(name, shown, required=name in names) for name, shown in properties.items()]


def _read_field(name: str, shown: Mapping[str, Any], *, required: bool) -> _Field:
    type_: Any = shown.get("type")
    kind = _KINDS.get(type_, _Kind.TEXT) if isinstance(type_, str) else _Kind.TEXT
    offering: Any = shown.get("items") if kind is _Kind.SEVERAL else shown
    offers = isinstance(offering, Mapping) and kind is not _Kind.YES_NO
    return _Field(name, shown, required, kind, _Choices(cast("Mapping[str, Any]", offering) if offers else {}))


def _offered(shown: Mapping[str, Any]) -> Iterator[_Choice]:
    titled: Any = shown.get("oneOf") or shown.get("anyOf")
    if isinstance(titled, list):
        for option in cast("list[Any]", titled):
            if isinstance(option, dict) and "const" in option:
                known = cast("dict[str, Any]", option)
                yield _Choice(known["const"], _text(known.get("title")))
        return
    values: Any = shown.get("enum")
    names: Any = shown.get("enumNames")
    titles = cast("list[Any]", names) if isinstance(names, list) else []
    for number, value in enumerate(cast("list[Any]", values) if isinstance(values, list) else []):
        yield _Choice(value, _text(titles[number]) if number < len(titles) else "")


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# What is shown


@dataclass(frozen=True, slots=True)
class _Screen:
    write: Write

    def say(self, sentence: str) -> None:
        self.write(f"{sentence}\n")

    def show(self, label: str, text: str) -> None:
        """Text of the server's, behind the bar."""
        width = _columns() - MARGIN - 4
        lines = text[:LONG].splitlines() or [""]
        rows = [row for line in lines for row in _rows(clean(line), width)]
        for number, row in enumerate(rows[:ROWS]):
            self.say(f"{'' if number else label:>{MARGIN}} | {row}")
        if len(text) > LONG or len(rows) > ROWS:
            self.say(f"{'':>{MARGIN}}   (cut: there are {len(text):,} characters)")

    def mention(self, label: str, name: str) -> None:
        """A name or a value of the server's, on one line."""
        self.show(label, clean(name, SHORT))

    def introduce(self, sentence: str, question: Question) -> None:
        self.say(f"\n{sentence}")
        if question.message:
            self.show("message", question.message)
        self.mention("key", question.key)

    def show_field(self, field: _Field, start: str) -> None:
        self.say(f"\n{field.wanted(start)}")
        self.mention("name", field.name)
        if title := _text(field.shown.get("title")):
            self.mention("title", title)
        if description := _text(field.shown.get("description")):
            self.show("about", description)
        for number, choice in enumerate(field.choices.all[:CHOICES], 1):
            self.show(str(number) if field.choices.numbered else "value", str(choice))
        if (more := len(field.choices.all) - CHOICES) > 0:
            self.say(f"{'':>{MARGIN}}   (and {more:,} more, to be chosen by value)")
        if field.default is not None:
            self.mention("default", _written(field.default))

    def show_address(self, address: "_Address") -> None:
        self.say(f"{'url':>{MARGIN}} | {address.text[:URL_CHARACTERS]}")
        if len(address.text) > URL_CHARACTERS:
            self.say(f"{'':>{MARGIN}}   (cut: there are {len(address.text):,} characters)")
        if address.host:
            self.show("host", address.host)
        for warning in address.warnings:
            self.say(f"Mind: {warning}.")
        self.say("Nothing is opened for you.")

    def show_messages(self, params: Mapping[str, Any]) -> None:
        if system := _text(params.get("systemPrompt")):
            self.show("system", system)
        found: Any = params.get("messages")
        messages = cast("list[Any]", found) if isinstance(found, list) else []
        if len(messages) > MESSAGES:
            self.say(f"{'':>{MARGIN}}   ({len(messages) - MESSAGES:,} earlier messages)")
        for message in messages[-MESSAGES:]:
            said = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
            role: Any = said.get("role")
            self.show(role if role in ("user", "assistant") else "message", _content(said.get("content")))


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _columns() -> int:
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (AttributeError, OSError, ValueError):
        columns = 0
    return columns or 80


def _rows(line: str, width: int) -> Iterator[str]:
    """A line in pieces that fit: a terminal would start its own pieces without the bar."""
    start, space, used = 0, 0, 0
    for at, char in enumerate(line):
        columns = _wide(char)
        while used + columns > width and at > start:
            end = space if space > start else at
            yield line[start:end]
            start, used = end, sum(map(_wide, line[end:at]))
        used += columns
        if char == " ":
            space = at + 1
    yield line[start:]


def _wide(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _named(name: str) -> str:
    return f"'{clean(name, SHORT)}'"


def _content(content: Any) -> str:
    """The text of a message for a model; of what is no text, its type."""
    if isinstance(content, str):
        return content
    blocks = cast("list[Any]", content) if isinstance(content, list) else [content]
    known = [cast("dict[str, Any]", block) if isinstance(block, dict) else {} for block in blocks]
    return "\n".join(_text(block.get("text")) or f"({_text(block.get('type')) or 'nothing'})" for block in known)


# The server's text

_SEQUENCES = re.compile(
    r"(?:\x1b[PX^_\]]|[\x90\x98\x9d-\x9f])[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\|\x9c)"  # titles, clipboards, strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, the cursor, the screen
    r"|\x1b[ -/]*[0-~]?"
)
_BREAKS = "\n\v\f\r\x85\u2028\u2029"
# Characters that no terminal shows, though Unicode does not say that they are for formatting.
_UNSEEN = frozenset(
    chr(code)
    for first, last in (
        *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164)),
        *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
    )
    for code in range(first, last + 1)
)


def clean(text: str, limit: int = LONG) -> str:
    """A server's text on one line: nothing in it that a terminal would obey or that cannot be seen, and not too long."""
    start = text[: 8 * limit]  # of what follows little could be seen, and it may be very long
    seen = "".join(map(_seen, _SEQUENCES.sub("", start.replace("\r\n", "\n"))))
    return seen if len(seen) <= limit and start == text else f"{seen[: limit - 1]}…"


def _seen(char: str) -> str:
    if char.isprintable():
        return "" if char in _UNSEEN else char
    if char in _BREAKS:
        return "⏎"
    category = unicodedata.category(char)
    if category == "Zs" or char == "\t":
        return " "
    return "" if category in ("Cc", "Cf") else "\ufffd"


# Web addresses


@dataclass(frozen=True, slots=True)
class _Address:
    """A URL as a browser would read it."""

    text: str
    host: str = ""
    warnings: tuple[str, ...] = ()


_WEB = re.compile(r"(https?):[/\\]*([^/\\?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_PRINTABLE = "".join(chr(code) for code in range(0x21, 0x7F))


def _read_address(url: str) -> _Address:
    whole = re.sub(r"[\t\r\n]", "", url.strip("".join(map(chr, range(0x21)))))
    web = _WEB.fullmatch(whole)
    if web is None:
        return _Address(_ascii(whole), warnings=("this is no http or https address",))
    scheme, authority, rest = web.groups()
    user, at, place = authority.rpartition("@")
    ending = re.search(r":[0-9]*\Z", place)
    name, port = (place[: ending.start()], ending.group()) if ending else (place, "")
    host = _ascii_host(name)
    valid = re.fullmatch(r"[a-z0-9._-]{1,253}|\[[0-9a-f:.]+\]", host)
    warnings = [
        *(["what stands before the @ is not the host"] if at else []),
        *(["the host is an international name, and may look like another"] if "xn--" in host else []),
        *(["the host is no valid name"] if not valid else []),
    ]
    text = f"{scheme.lower()}://{_ascii(user)}{at}{host if valid else _ascii(name)}{port}{_ascii(rest)}"
    # Whose host it is stands at its end.
    return _Address(text, host if len(host) <= 2 * SHORT else f"…{host[-SHORT:]}", tuple(warnings))


def _ascii(text: str) -> str:
    return quote(text, safe=_PRINTABLE, errors="replace")


def _ascii_host(name: str) -> str:
    """The host that is looked up: what looks like another letter shows as what it is."""
    uncut = clean(unquote(name), len(name))
    plain = unicodedata.normalize("NFKC", uncut).lower().replace("\u3002", ".")
    if len(plain) > 253:  # longer than any name may be, and slow to write down
        return _ascii(plain)
    labels = unicodedata.normalize("NFKC", plain).split(".")
    return ".".join(label if label.isascii() else f"xn--{label.encode('punycode').decode('ascii')}" for label in labels)
