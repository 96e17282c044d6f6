"""The report that people read, and the description of one failed test that other reports share."""

import json
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast

from bespeak.conversation.atomic_files import write_whole
from bespeak.conversation.call_rounds import Round
from bespeak.conversation.matchers import ABSENT
from bespeak.terminal.safe_text import marked
from bespeak.testing.report.outside_questions import ToldOnce
from bespeak.testing.report.plain_json import plain
from bespeak.testing.report.results import Kind, Outcome, Result
from bespeak.testing.report.summary import Summary, in_order

LONGEST = 300
"""How many characters of one value a report shows."""
MOST_QUESTIONS = 20
"""How many questions of one round a report shows."""

_CLEAR = "\r\x1b[2K"
"""Goes back to the beginning of a terminal's line, and empties it."""
_RED, _GREEN, _YELLOW, _BOLD = "31", "32", "33", "1"
_WORDS = {
    Outcome.PASSED: ("ok    ", _GREEN),
    Outcome.FAILED: ("FAILED", _RED),
    Outcome.SKIPPED: ("skip  ", _YELLOW),
    Outcome.XFAILED: ("xfail ", _YELLOW),
}


class PrettyReport:
    """One line for each test when it ends; at the end all failures in full, and the counts."""

    def __init__(
        self, out: Path | TextIO, colour: bool = False, counter: bool = False, durations: int | None = None
    ) -> None:
        """`counter` counts the tests in the last line of a terminal. `durations` is how many of the slowest are listed."""
        self._file = out if isinstance(out, Path) else None
        self._out = StringIO() if isinstance(out, Path) else out
        self._colour = colour
        self._counter = counter
        self._durations = durations
        self._total = self._done = 0

    def started(self, total: int) -> None:
        self._total = total
        self._count()

    def finished(self, result: Result) -> None:
        self._done += 1
        word, colour = _WORDS[result.outcome]
        reason = "" if result.reason is None else f"  ({marked(result.reason)})"
        took = "" if self._durations is None else f"  {result.seconds:.2f} s"
        self._say(f"{self._painted(word, colour)}  {marked(result.title)}  {_place(result)}{reason}{took}")
        self._count()

    def ended(self, summary: Summary) -> None:
        once = ToldOnce()
        for together in _with_same_cause(in_order(summary.results)):
            heading, *lines = describe(once.left(together[0])).split("\n")
            self._say("", self._painted(heading, _BOLD), *lines)
            if len(together) > 1:
                self._say(f"  {_count(len(together) - 1, 'more test')} failed for the same reason:")
                self._say(*(f"    {_place(one)}: {marked(one.title)}" for one in together[1:]))
        self._say(*_advice(in_order(summary.results)))
        self._say(*_slowest(summary.results, self._durations))
        for note in summary.all_notes:
            self._say("", *_indented("", f"note: {note}"))
        self._say("", self._painted(self._counts(summary), _GREEN if summary.succeeded else _RED))
        if self._file is not None:
            write_whole(self._file, cast("StringIO", self._out).getvalue())

    def _counts(self, summary: Summary) -> str:
        numbers = (
            (summary.failed, "failed"),
            (summary.passed, "passed"),
            (summary.skipped, "skipped"),
            (summary.xfailed, "xfailed"),
            (summary.deselected, "deselected"),
        )
        counted = ", ".join(f"{number} {word}" for number, word in numbers if number)
        if summary.interrupted:
            begun = f"interrupted after {len(summary.results)} of {self._total}"
            counted = f"{begun}: {counted}" if counted else begun
        elif not summary.results:
            counted = f"no tests were selected, {counted}" if counted else "no tests were selected"
        return f"{counted} in {summary.seconds:.2f} s"

    def _count(self) -> None:
        """Write how many tests are done. The next text replaces it."""
        if self._counter and self._done < self._total:
            self._out.write(f"{_CLEAR}{self._done}/{self._total} ...")
            self._out.flush()

    def _painted(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colour else text

    def _say(self, *lines: str) -> None:
        text = "".join(f"{line}\n" for line in lines)
        text = f"{_CLEAR}{text}" if self._counter and text else text
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
            if not failure.diff:
                lines.append(f"    expected {_short(failure.expected)}")
                lines.append(f"    actual   {_short(failure.actual)}")
        lines += [f"    {marked(line)}" for line in failure.diff]
        lines += _indented("    ", failure.hint or "")
    if result.tells_ended:
        lines += _indented("  ", result.ended or "")
    for number, one in enumerate(result.rounds, 1):
        lines += _told(number, one)
    for sentence in result.outside:
        lines += _indented("  ", sentence)
    if result.printed:
        lines += [*_indented("  ", f"server {result.server!r} printed:"), *_indented("    ", result.printed)]
    if result.again:
        lines.append(f"  run it again: {marked(result.again)}")
    return "\n".join(lines)


def _advice(results: Sequence[Result]) -> Iterator[str]:
    """What servers should do otherwise: each once, with the first test that found it."""
    places: dict[str, list[str]] = {}
    for result in results:
        for finding in result.advice:
            places.setdefault(str(finding), []).append(_place(result))
    if places:
        yield ""
        yield "advice, which fails nothing:"
    for told, where in places.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        yield from _indented("  ", f"{where[0]}{more}: {told}")


def _with_same_cause(results: Sequence[Result]) -> list[list[Result]]:
    """The failed tests. Those whose server cannot be reached for the same reason are told together."""
    groups: dict[Any, list[Result]] = {}
    for number, result in enumerate(results):
        if result.passed:
            continue
        only = result.failures[0] if len(result.failures) == 1 else None
        shared = only is not None and only.kind is Kind.UNREACHABLE
        key = (result.server, only.message) if only is not None and shared else number
        groups.setdefault(key, []).append(result)
    return list(groups.values())


def _slowest(results: Sequence[Result], most: int | None) -> Iterator[str]:
    if most is None or not results:
        return
    ordered = sorted(results, key=lambda result: -result.seconds)
    yield from ("", f"the slowest {_count(min(most or len(ordered), len(ordered)), 'test')}:")
    for result in ordered[: most or None]:
        yield f"  {result.seconds:7.2f} s  {marked(result.title)}  {_place(result)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


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
    return f"{marked(result.file or result.suite)}:{result.line}"


def _indented(indent: str, text: str) -> list[str]:
    """Indent every line, so that a server's text cannot be mistaken for a line of the report."""
    return [f"{indent}{marked(line)}" if line else "" for line in text.splitlines()]


def _short(value: Any) -> str:
    if value is ABSENT:
        return "(nothing)"
    text = marked(json.dumps(plain(value), ensure_ascii=False))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
