"""The report that people read, and the description of one failed test that other reports share."""

import json
from collections.abc import Iterator
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast

from bespeak.conversation.atomic_files import write_whole
from bespeak.conversation.call_rounds import Round
from bespeak.conversation.matchers import ABSENT
from bespeak.terminal.safe_text import marked
from bespeak.testing.report.plain_json import plain
from bespeak.testing.report.results import Result
from bespeak.testing.report.summary import Summary, in_order

LONGEST = 300
"""How many characters of one value a report shows."""
MOST_QUESTIONS = 20
"""How many questions of one round a report shows."""

_RED, _GREEN, _BOLD = "31", "32", "1"


class PrettyReport:
    """One line for each test when it ends; at the end all failures in full, and the counts."""

    def __init__(self, out: Path | TextIO, colour: bool = False) -> None:
        self._file = out if isinstance(out, Path) else None
        self._out = StringIO() if isinstance(out, Path) else out
        self._colour = colour
        self._total = 0

    def started(self, total: int) -> None:
        self._total = total

    def finished(self, result: Result) -> None:
        word = self._painted("ok    ", _GREEN) if result.passed else self._painted("FAILED", _RED)
        self._say(f"{word}  {marked(result.title)}  {_place(result)}")

    def ended(self, summary: Summary) -> None:
        for result in in_order(summary.results):
            if not result.passed:
                heading, *lines = describe(result).split("\n")
                self._say("", self._painted(heading, _BOLD), *lines)
        self._say("", self._painted(self._counts(summary), _GREEN if summary.succeeded else _RED))
        if self._file is not None:
            write_whole(self._file, cast("StringIO", self._out).getvalue())

    def _counts(self, summary: Summary) -> str:
        numbers = ((summary.failed, "failed"), (summary.passed, "passed"), (summary.deselected, "deselected"))
        counted = ", ".join(f"{number} {word}" for number, word in numbers if number)
        if summary.interrupted:
            begun = f"interrupted after {len(summary.results)} of {self._total}"
            counted = f"{begun}: {counted}" if counted else begun
        elif not summary.results:
            counted = f"no tests were selected, {counted}" if counted else "no tests were selected"
        return f"{counted} in {summary.seconds:.2f} s"

    def _painted(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colour else text

    def _say(self, *lines: str) -> None:
        text = "".join(f"{line}\n" for line in lines)
        # Characters that the output cannot encode are escaped.
        encoding = getattr(self._out, "encoding", None) or "utf-8"
        self._out.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._out.flush()


def describe(result: Result) -> str:
    """Return a failed test in full: its failures, its rounds, and how to run it again."""
    lines = [f"{_place(result)}: {marked(result.title)}"]
    for failure in result.failures:
        lines += _indented("  ", str(failure))
        if failure.path is not None:
            lines.append(f"    at {marked(failure.path) or 'the top level'}")
            lines.append(f"    expected {_short(failure.expected)}")
            lines.append(f"    actual   {_short(failure.actual)}")
        lines += _indented("    ", failure.hint or "")
    for number, one in enumerate(result.rounds, 1):
        lines += _told(number, one)
    if result.again:
        lines.append(f"  run it again: {marked(result.again)}")
    return "\n".join(lines)


def _told(number: int, one: Round) -> Iterator[str]:
    if not one.asked:
        yield f"  round {number} asked nothing{', and returned a state' if one.state else ''}"
    else:
        yield f"  round {number} asked"
    for key, message in islice(one.asked.items(), MOST_QUESTIONS):
        yield f"    {marked(key)}: {_short(message)}"
        yield f"      answered {_short(one.answered[key])}" if key in one.answered else "      not answered"
    if more := max(len(one.asked) - MOST_QUESTIONS, 0) + one.left_out:
        yield f"    and {more} more"
    for key, answer in one.answered.items():
        if key not in one.asked:
            yield f"    {marked(key)}, which was not asked"
            yield f"      answered {_short(answer)}"


def _place(result: Result) -> str:
    return f"{marked(result.suite)}:{result.line}"


def _indented(indent: str, text: str) -> list[str]:
    """Indent every line, so that a server's text cannot be mistaken for a line of the report."""
    return [f"{indent}{marked(line)}" if line else "" for line in text.splitlines()]


def _short(value: Any) -> str:
    if value is ABSENT:
        return "(nothing)"
    text = marked(json.dumps(plain(value), ensure_ascii=False))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
