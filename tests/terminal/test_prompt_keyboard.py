"""The prompt at a terminal: testing.md section 4. Who is there to be asked, and what a real terminal shows and sends."""

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
from collections.abc import Generator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest

from bespeak.conversation.responses import Question
from bespeak.terminal.prompt import NoMoreInput, Prompt, at_terminal
from tests.terminal.people import ELICIT, HOSTILE, ROOTS, SAMPLE, SIDE, TEXT, WHOLE, form

pytestmark = pytest.mark.timing
CHOICE = "a = accept, d = decline, c = cancel: "
SECONDS = 20
"""How long anything here may take before the test gives up."""


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


def test_a_closed_input_is_not_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
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
        await Prompt().ask(form({}))
    said = capsys.readouterr()
    assert (said.out, said.err.startswith("\nThe server asks:\n")) == ("", True)


# A real one

PROGRAM = """
import asyncio, fcntl, json, signal, sys, termios
from bespeak.terminal.prompt import NoMoreInput, Prompt, at_terminal
from bespeak.conversation.responses import Question

fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that its keys send signals
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would ignore it
prompt = Prompt(confirms=False)

async def ask(question, seconds):
    try:
        async with asyncio.timeout(seconds):
            answer = await prompt.ask(question)
    except NoMoreInput as ended:
        return {"ended": str(ended)}
    except TimeoutError:
        return {"timeout": seconds}
    return {"answer": [answer.action, answer.content], "terminal": at_terminal()}

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


@pytest.mark.long
def test_a_form_is_filled_in_at_a_terminal_and_only_the_answer_is_on_standard_output() -> None:
    with at_a_terminal(form({"row": WHOLE, "side": SIDE}, message="Which seat? Zu\u00fcrich")) as terminal:
        terminal.wait_for(CHOICE)
        assert "  message | Which seat? Zu\u00fcrich\r\n" in terminal.seen
        terminal.type("a\n")
        terminal.wait_for("> ")
        terminal.type("99\n")
        terminal.wait_for("It must be at most 40.\r\n> ")
        terminal.type("12\n")
        terminal.wait_for("        2 | aisle\r\n> ")
        terminal.type("2\n")
        assert terminal.result() == [{"answer": ["accept", {"row": 12, "side": "aisle"}], "terminal": True}]
        assert terminal.program.returncode == 0


@pytest.mark.long
def test_lines_typed_ahead_are_kept_in_their_order() -> None:
    named = Question("city", None, {"kind": "string", "description": "Which city?"})
    with at_a_terminal(form({"row": WHOLE, "side": SIDE}), named) as terminal:
        terminal.type("a\n12\n1\nK\u00f6ln\n")
        answers = [one["answer"] for one in terminal.result()]
    assert answers == [["accept", {"row": 12, "side": "window"}], ["accept", {"city": "K\u00f6ln"}]]


@pytest.mark.long
def test_an_arrow_key_does_not_get_into_the_answer() -> None:
    with at_a_terminal(form({"x": TEXT})) as terminal:
        terminal.wait_for(CHOICE)
        terminal.type("a\n")
        terminal.wait_for("> ")
        terminal.type("Pariss\x1b[D\n")
        terminal.wait_for("It must not contain control characters (arrow keys produce some).\r\n> ")
        terminal.type("Paris\n")
        assert terminal.result()[0]["answer"] == ["accept", {"x": "Paris"}]


@pytest.mark.long
def test_a_terminal_that_another_program_made_non_blocking_is_waited_for() -> None:
    with at_a_terminal(form({}), blocking=False) as terminal:
        terminal.wait_for(CHOICE)
        terminal.type("d\n")
        assert terminal.result()[0]["answer"] == ["decline", None]


@pytest.mark.parametrize("typed", ["\x04", "accept\x04\x04"], ids=["alone", "after words"])
@pytest.mark.long
def test_the_end_of_the_input_answers_nothing_and_is_the_end_for_all(typed: str) -> None:
    with at_a_terminal(form({}), form({}, message="And?")) as terminal:
        terminal.wait_for(CHOICE)
        terminal.type(typed)
        ended = {"ended": "'seat' was not answered: the input has ended"}
        assert terminal.result() == [ended, ended]


@pytest.mark.long
def test_an_interrupt_ends_the_program_and_leaves_the_terminal_as_it_was() -> None:
    with at_a_terminal(form({"x": TEXT})) as terminal:
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


@pytest.mark.long
def test_a_cancelled_question_takes_no_line_from_the_next() -> None:
    with at_a_terminal(form({}), form({}, message="And?"), seconds=0.05) as terminal:
        terminal.wait_for("And?")
        terminal.wait_for(CHOICE)
        terminal.type("d\n")
        assert terminal.result() == [{"timeout": 0.05}, {"answer": ["decline", None], "terminal": True}]


PROMPTS = {ELICIT: "c = cancel: ", SAMPLE: "d = decline: ", ROOTS: "d = decline: ", None: "\r\n> "}
TYPED = {ELICIT: "d\n", SAMPLE: "a\n", ROOTS: "a\n", None: "x\n"}
FURTHER = {SAMPLE: "on one line: ", ROOTS: "to finish: "}


@pytest.mark.long
def test_a_terminal_gets_no_control_characters() -> None:
    with at_a_terminal(*HOSTILE.values(), columns=50) as terminal:
        for question in HOSTILE.values():
            terminal.wait_for(PROMPTS[question.method])
            terminal.type("a\n" if question.is_form else TYPED[question.method])
            if question.is_form:
                terminal.wait_for("\r\n> ")
                terminal.type("\n")
            elif question.method in FURTHER:
                terminal.wait_for(FURTHER[question.method])
                terminal.type("x\n" if question.method == SAMPLE else "\n")
        assert [list(one) for one in terminal.result()] == [["answer", "terminal"]] * len(HOSTILE)
    lines = terminal.seen.split("\r\n")
    assert all(char.isprintable() for line in lines for char in line)
    assert not [line for line in lines if "EVIL" in line and not re.match(r"[ a-z0-9]{9} \| ", line)]
    rows = [line for line in lines if " | " in line and "https://" not in line]
    assert max(len(row) + row.count("\u8c8c") for row in rows) < 50
