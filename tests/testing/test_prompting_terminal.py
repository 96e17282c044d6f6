"""The prompt at a terminal: testing.md section 4. What a server says never becomes more than text, through a real one too."""

import asyncio
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import StringIO
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.testing.prompting import NoMoreInput, Prompt, at_terminal, clean
from bespeak.testing.verdicts import Question

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
EVIL = "EVIL\n> EVIL\r\x1b[2J\x1b]0;EVIL\x07\x85EVIL\u2028\u202eEVIL" + " " * 60 + "EVIL" + "\u8c8c" * 60 + "EVIL"
CHOICE = "a = accept, d = decline, c = cancel: "
SECONDS = 20
"""How long anything here may take before the test gives up."""


def form(message: str, **properties: Any) -> Question:
    schema = {"type": "object", "properties": properties}
    return Question("seat", ELICIT, {"message": message, "requestedSchema": schema})


def page(url: str) -> Question:
    return Question("login", ELICIT, {"mode": "url", "message": "Log in", "url": url})


async def screen(question: Question, *lines: str) -> str:
    """What a person sees who types these lines and no more."""
    seen: list[str] = []
    typed = iter(lines)

    async def read() -> str:
        for line in typed:
            return line
        raise EOFError

    with suppress(NoMoreInput):
        await Prompt(read=read, write=seen.append).ask(question)
    return "".join(seen)


# The server's text


HOSTILE = {
    "form": form(
        EVIL, **{EVIL: {"type": "string", "title": EVIL, "description": EVIL, "format": EVIL, "default": EVIL}}
    ),
    "bounds": form(EVIL, x={"type": "number", "minimum": EVIL, "maximum": EVIL}),
    "choices": form(EVIL, x={"type": "string", "oneOf": [{"const": EVIL, "title": EVIL}], "default": EVIL}),
    "several": form(EVIL, x={"type": "array", "items": {"enum": [EVIL]}, "default": [EVIL]}),
    "url": Question(EVIL, ELICIT, {"mode": "url", "message": EVIL, "url": f"https://{EVIL}@{EVIL}/{EVIL}"}),
    "model": Question(EVIL, SAMPLE, {"systemPrompt": EVIL, "messages": [{"role": EVIL, "content": {"type": EVIL}}]}),
    "roots": Question(EVIL, ROOTS, {}),
    "field": Question(EVIL, None, {"kind": EVIL, "description": EVIL}),
}


@pytest.mark.parametrize("question", HOSTILE.values(), ids=HOSTILE)
async def test_nothing_a_server_says_leaves_the_bar(question: Question) -> None:
    seen = await screen(question, *(["a"] if question.is_form else []))
    assert all(char == "\n" or char.isprintable() for char in seen)
    ours = [line for line in seen.splitlines() if not re.match(r"[ a-z0-9]{9} \| ", line)]
    assert "EVIL" in seen
    assert "EVIL" not in "".join(ours)


@given(st.text("a \u8c8c\u00e9", min_size=60))
def test_no_row_is_wider_than_the_terminal(text: str) -> None:
    rows = asyncio.run(screen(form(text))).partition("      key")[0].splitlines()[2:]
    assert all(sum(2 if char == "\u8c8c" else 1 for char in row) < 80 for row in rows)
    assert "".join(row[12:] for row in rows) == text


BIG = {"x": "x" * 2**20, "lines": "x\n" * 2**19, "breaks": "\n" * 2**20, "wide": "\u8c8c" * 2**20}
SEQUENCES = {"open": "\x1b]" * 2**19, "one": "\x9d" * 2**20, "colours": "\x1b[0" * (2**20 // 3) + "m"}


@pytest.mark.parametrize("text", [*BIG.values(), *SEQUENCES.values()], ids=[*BIG, *SEQUENCES])
async def test_a_mebibyte_of_text_is_shown_cut(text: str) -> None:
    seen = await screen(form(text, x={"type": "string", "description": text, "title": text, "default": text}), "a")
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
    many = form("Which?", x={"type": "string", "enum": [f"v{number}" for number in range(10_000)]})
    seen = await screen(many, "a", "21", "v9999")
    assert "       20 | v19\n" in seen
    assert "(and 9,980 more, to be chosen by value)\n> It must be one of the choices on offer.\n> " in seen
    assert len(seen.splitlines()) < 40


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain text, Gr\u00fc\u00dfe \U0001f600", "plain text, Gr\u00fc\u00dfe \U0001f600"),
        ("a\nb\r\nc\td", "a⏎b⏎c d"),
        ("\x1b[31;1mred\x1b[0m \x9b2Jx", "red x"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1bPq\x9cc", "abc"),
        ("\x1bcreset\x1b(B\x1b7", "reset"),
        ("\x1b\x1b[2J[2J\x1b]0;open", "[2J0;open"),
        ("\u202eabc\u202c\u2066d\u2069\u200e", "abcd"),
        ("p\u200ba\u200dy\ufeff\u2060\u00ad\u034f\u3164\ufe0f\U000e0041", "pay"),
        ("a\u00a0b\u3000c", "a b c"),
        ("\ud800\ue000", "\ufffd\ufffd"),
        ("x" * 5000, "x" * 3999 + "…"),
        ("\x00" * 2**20 + "hidden far away", "…"),
    ],
)
def test_text_is_cleaned(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


NASTY = st.sampled_from(["\x1b[", "\x1b]", "\x07", "\x9b", "\x1b\\", "\n", "\r", "\u202e", "\u200b", "2J", "\u2028"])


@given(st.lists(st.text(st.characters(exclude_categories=[])) | NASTY).map("".join))
@example("".join(map(chr, range(0x3000))))
def test_clean_text_has_nothing_that_a_terminal_obeys(text: str) -> None:
    cleaned = clean(text)
    assert not {unicodedata.category(char) for char in cleaned} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not set(map(unicodedata.bidirectional, cleaned)) & {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "PDI"}
    assert len(cleaned) <= 4000
    assert clean(cleaned) == cleaned


# Addresses


@pytest.mark.parametrize(
    ("url", "host", "warning"),
    [
        ("https://bank.example@evil.example/", "evil.example", "what stands before the @ is not the host"),
        ("https://evil.example\\@bank.example/", "evil.example", None),
        ("https:evil.example", "evil.example", None),
        (" h\nttps:///EVIL.example", "evil.example", None),
        ("https://%65vil.example", "evil.example", None),
        ("https://ev\u00adil\u3002example", "evil.example", None),
        ("https://\u0430pple.com/", "xn--pple-43d.com", "the host is an international name, and may look like another"),
        ("https://fa\u00df.example/", "xn--fa-hia.example", "the host is an international name"),
        ("https://xn--pple-43d.com/", "xn--pple-43d.com", "the host is an international name"),
        ("http://[::1]:80/", "[::1]", None),
        ("https://a.example\uff0fb.example/", "a.example/b.example", "the host is no valid name"),
        (f"https://{'bank.example.' * 99}evil.example/", ".evil.example", "the host is no valid name"),
        (
            f"https://{''.join(map(chr, range(0x4E00, 0x8000)))}.evil.example/",
            ".evil.example",
            "the host is no valid name",
        ),
        ("javascript:alert(1)", None, "this is no http or https address"),
        ("", None, "this is no http or https address"),
    ],
)
async def test_the_host_is_shown_as_what_it_is(url: str, host: str | None, warning: str | None) -> None:
    seen = await screen(page(url))
    rows = [line.partition(" | ")[2] for line in seen.partition("     host")[2].splitlines() if " | " in line]
    assert "".join(rows).endswith(host) if host else "host |" not in seen
    assert f"Mind: {warning}" in seen if warning else "Mind" not in seen


async def test_a_url_is_one_unbroken_line_of_ascii() -> None:
    seen = await screen(page(f"https://x.example/ \x1b[2J\u202e\u2028{'y' * 500}"))
    shown = f"https://x.example/%20%1B[2J%E2%80%AE%E2%80%A8{'y' * 500}"
    assert f"      url | {shown}\n" in seen


# Where it is shown


class Screen(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("other", [None, StringIO()], ids=["none", "file"])
@pytest.mark.parametrize("name", ["stdin", "stderr"])
def test_a_terminal_is_both_to_type_and_to_read(
    name: str, other: StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Screen())
    monkeypatch.setattr(sys, "stderr", Screen())
    assert at_terminal()
    monkeypatch.setattr(sys, name, other)
    assert not at_terminal()


def test_a_closed_input_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdin", closed)
    assert not at_terminal()


@pytest.mark.parametrize("stdin", [None, StringIO()], ids=["none", "memory"])
async def test_without_a_standard_input_the_input_has_ended(
    stdin: StringIO | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(NoMoreInput, match="the input has ended"):
        await Prompt().ask(form("Which?"))
    said = capsys.readouterr()
    assert (said.out, said.err.startswith("\nThe server asks:\n")) == ("", True)


# A real one

PROGRAM = """
import asyncio, fcntl, json, sys, termios
from bespeak.testing.prompting import NoMoreInput, Prompt, at_terminal
from bespeak.testing.verdicts import Question

fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that its keys send signals
prompt = Prompt()

async def ask(question, seconds):
    try:
        async with asyncio.timeout(seconds):
            answer = await prompt.ask(question)
    except NoMoreInput as ended:
        return {"ended": str(ended)}
    except TimeoutError:
        return {"timeout": seconds}
    return {"answer": answer.as_written(), "terminal": at_terminal()}

async def main():
    for *question, seconds in json.loads(sys.argv[1]):
        print(json.dumps(await ask(Question(*question), seconds)), flush=True)

asyncio.run(main())
"""


class Terminal:
    """A program at a terminal of its own, seen from the other side."""

    def __init__(self, program: "subprocess.Popen[str]", fd: int) -> None:
        self.program = program
        self.fd = fd
        self.seen = ""
        self._known = 0

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_for(self, text: str) -> None:
        """Until the terminal shows it, after all that was waited for before."""
        until = time.monotonic() + SECONDS
        while (found := self.seen.find(text, self._known)) < 0:
            assert time.monotonic() < until, f"{text!r} did not come after {self.seen!r}"
            if select.select([self.fd], [], [], 0.05)[0]:
                self.seen += os.read(self.fd, 65536).decode()
        self._known = found + len(text)

    def result(self) -> list[Any]:
        """What the program wrote to its standard output, once it has ended."""
        out, _ = self.program.communicate(timeout=SECONDS)
        return [json.loads(line) for line in out.splitlines()]


@contextmanager
def at_a_terminal(
    *questions: Question, seconds: float | None = None, columns: int = 0, blocking: bool = True
) -> Generator[Terminal]:
    """A program that asks these; the first of them for so long only."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.set_blocking(its, blocking)
    asked: list[list[Any]] = [[one.key, one.method, one.params, one.required, None] for one in questions]
    asked[0][-1] = seconds
    command = [sys.executable, "-c", PROGRAM, json.dumps(asked)]
    program = subprocess.Popen(
        command, stdin=its, stderr=its, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield Terminal(program, ours)
    finally:
        program.kill()
        program.communicate()
        os.close(ours)
        os.close(its)


ROW: dict[str, Any] = {"type": "integer", "maximum": 40}
SIDE: dict[str, Any] = {"type": "string", "enum": ["window", "aisle"]}


def test_a_form_is_filled_in_at_a_terminal_and_only_the_answer_is_on_standard_output() -> None:
    with at_a_terminal(form("Which seat? Zu\u00fcrich", row=ROW, side=SIDE)) as terminal:
        terminal.wait_for(CHOICE)
        assert "  message | Which seat? Zu\u00fcrich\r\n" in terminal.seen
        terminal.type("a\n")
        terminal.wait_for("> ")
        terminal.type("99\n")
        terminal.wait_for("It must be at most 40.\r\n> ")
        terminal.type("12\n")
        terminal.wait_for("        2 | aisle\r\n> ")
        terminal.type("2\n")
        assert terminal.result() == [{"answer": {"accept": {"row": 12, "side": "aisle"}}, "terminal": True}]
        assert terminal.program.returncode == 0


def test_lines_typed_ahead_are_kept_in_their_order() -> None:
    named = Question("city", None, {"kind": "string", "description": "Which city?"})
    with at_a_terminal(form("Which?", row=ROW, side=SIDE), named) as terminal:
        terminal.type("a\n12\n1\nK\u00f6ln\n")
        answers = [one["answer"] for one in terminal.result()]
    assert answers == [{"accept": {"row": 12, "side": "window"}}, "K\u00f6ln"]


def test_an_arrow_key_does_not_get_into_the_answer() -> None:
    with at_a_terminal(form("Which?", x={"type": "string"})) as terminal:
        terminal.wait_for(CHOICE)
        terminal.type("a\n")
        terminal.wait_for("> ")
        terminal.type("Pariss\x1b[D\n")
        terminal.wait_for("It must hold no control characters (arrow keys write some).\r\n> ")
        terminal.type("Paris\n")
        assert terminal.result()[0]["answer"] == "Paris"


def test_a_terminal_that_another_program_made_non_blocking_is_waited_for() -> None:
    with at_a_terminal(form("Which?"), blocking=False) as terminal:
        terminal.wait_for(CHOICE)
        terminal.type("d\n")
        assert terminal.result()[0]["answer"] == "decline"


@pytest.mark.parametrize("typed", ["\x04", "accept\x04\x04"], ids=["alone", "after words"])
def test_the_end_of_the_input_answers_nothing_and_is_the_end_for_all(typed: str) -> None:
    with at_a_terminal(form("Which?"), form("And?")) as terminal:
        terminal.wait_for(CHOICE)
        terminal.type(typed)
        ended = {"ended": "'seat' was not answered: the input has ended"}
        assert terminal.result() == [ended, ended]


def test_an_interrupt_ends_the_program_and_leaves_the_terminal_as_it_was() -> None:
    with at_a_terminal(form("Which?", x={"type": "string"})) as terminal:
        before = termios.tcgetattr(terminal.fd)
        terminal.wait_for(CHOICE)
        terminal.type("a\n")
        terminal.wait_for("> ")
        terminal.type("half a li\x03")
        terminal.wait_for("KeyboardInterrupt")
        assert terminal.result() == []
        assert terminal.program.returncode == -signal.SIGINT
        assert "\r\nTraceback" in terminal.seen
        assert "decline" not in terminal.seen.partition("> ")[2]
        assert termios.tcgetattr(terminal.fd) == before


def test_a_question_given_up_takes_no_line_from_the_next() -> None:
    with at_a_terminal(form("Which?"), form("And?"), seconds=0.05) as terminal:
        terminal.wait_for("And?")
        terminal.wait_for(CHOICE)
        terminal.type("d\n")
        assert terminal.result() == [{"timeout": 0.05}, {"answer": "decline", "terminal": True}]


PROMPTS = {ELICIT: "c = cancel: ", SAMPLE: "on one line: ", ROOTS: "empty ends: ", None: "\r\n> "}
TYPED = {ELICIT: "d\n", SAMPLE: "x\n", ROOTS: "\n", None: "x\n"}


def test_a_terminal_gets_nothing_to_obey() -> None:
    with at_a_terminal(*HOSTILE.values(), columns=50) as terminal:
        for question in HOSTILE.values():
            terminal.wait_for(PROMPTS[question.method])
            terminal.type("a\n" if question.is_form else TYPED[question.method])
            if question.is_form:
                terminal.wait_for("\r\n> ")
                terminal.type("\n")
        assert [list(one) for one in terminal.result()] == [["answer", "terminal"]] * len(HOSTILE)
    lines = terminal.seen.split("\r\n")
    assert all(char.isprintable() for line in lines for char in line)
    assert not [line for line in lines if "EVIL" in line and not re.match(r"[ a-z0-9]{9} \| ", line)]
    rows = [line for line in lines if " | " in line and "https://" not in line]
    assert max(len(row) + row.count("\u8c8c") for row in rows) < 50
