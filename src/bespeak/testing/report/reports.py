"""Reports of a run: one stream of events, and a writer for each form in which people and machines read it.

What a server said is untrusted here: nothing in it that a terminal would obey, or that JSON or XML cannot carry, is
written. JSON and JUnit are plain ASCII, so that any pipe carries them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby, islice
from math import isfinite
from pathlib import Path
from typing import Any, Protocol, TextIO, cast
from xml.etree import ElementTree as ET

from bespeak.conversation.call_rounds import Round
from bespeak.conversation.matchers import ABSENT
from bespeak.terminal.safe_text import REPLACED, marked
from bespeak.testing.report.excerpts import Told
from bespeak.testing.report.files import beside, write_whole
from bespeak.testing.report.results import Failure, Kind, Result

VERSION = 1
"""The version of the JSON report."""
LONGEST = 300
"""How many characters of one value a report shows."""
MOST_QUESTIONS = 20
"""How many questions of one round a report shows."""
DEEPEST = 100
"""How many levels of one value a report shows."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_RED, _GREEN, _BOLD = "31", "32", "1"


@dataclass(frozen=True, slots=True)
class Summary:
    """What came of a whole run, or of as much of it as there was."""

    results: Sequence[Result]
    deselected: int = 0
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def passed(self) -> int:
        return sum(result.passed for result in self.results)

    @property
    def failed(self) -> int:
        return len(self.results) - self.passed

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return 130
        if not self.results:
            return 7
        failures = [failure for result in self.results for failure in result.failures]
        return {Kind.FAILED: 1, Kind.UNREACHABLE: 3, Kind.CASSETTE: 4}[_gravest(failures).kind] if failures else 0


class Writer(Protocol):
    """One form of report. It is told what happens, as it happens."""

    def started(self, total: int) -> None: ...

    def finished(self, result: Result) -> None:
        """One test, case and era is over."""
        ...

    def ended(self, summary: Summary) -> None:
        """The run is over, or was interrupted."""
        ...


def open_writers(specs: Sequence[str], out: TextIO, colour: bool) -> list[Writer]:
    """The writers that were asked for, each as `FORM` or `FORM=FILE`; the pretty one if none was. Raises `ValueError`."""
    specs = specs or ["pretty"]
    asked = [_read_spec(spec) for spec in specs]
    files = [file for _, file in asked]
    for file in files:
        if files.count(file) > 1:
            where = "the output" if file is None else str(file)
            raise ValueError(f"two reports would go to {where}; give each a file of its own, as in junit=report.xml")
    for spec, file in zip(specs, files, strict=True):
        if file is not None:
            _claim(spec, file)
    return [_open(form, file or out, colour and file is None) for form, file in asked]


def _read_spec(spec: str) -> tuple[str, Path | None]:
    form, named, file = spec.partition("=")
    if form not in ("pretty", "json", "junit") or bool(named) != bool(file):
        raise ValueError(
            f"there is no report {spec!r}; there is pretty, json and junit, and each with a file: json=FILE"
        )
    try:
        # The file itself, should its name be a link: that is what is replaced, and what two names may share.
        return form, Path(file).resolve() if file else None
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"{spec!r} cannot be written: {error}") from None


def _open(form: str, place: Path | TextIO, colour: bool) -> Writer:
    if form == "pretty":
        return Pretty(place, colour)
    return Json(place) if form == "json" else Junit(place)


# What people read


class Pretty:
    """A line for each test as it ends; at the end, each failure in full, and the counts."""

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
        for result in _in_order(summary.results):
            if not result.passed:
                heading, *lines = describe(result).split("\n")
                self._say("", self._painted(heading, _BOLD), *lines)
        self._say("", self._painted(self._counts(summary), _RED if summary.exit_code else _GREEN))
        if self._file is not None:
            write_whole(self._file, cast("StringIO", self._out).getvalue())

    def _counts(self, summary: Summary) -> str:
        numbers = ((summary.failed, "failed"), (summary.passed, "passed"), (summary.deselected, "deselected"))
        counted = ", ".join(f"{number} {word}" for number, word in numbers if number)
        if summary.interrupted:
            begun = f"interrupted after {len(summary.results)} of {self._total}"
            counted = f"{begun}: {counted}" if counted else begun
        elif not summary.results:
            counted = f"no test was selected, {counted}" if counted else "no test was selected"
        return f"{counted} in {summary.seconds:.2f} s"

    def _painted(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colour else text

    def _say(self, *lines: str) -> None:
        text = "".join(f"{line}\n" for line in lines)
        # An output that cannot show a character gets its number.
        encoding = getattr(self._out, "encoding", None) or "utf-8"
        self._out.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._out.flush()


def describe(result: Result) -> str:
    """A failed test in full: what was wrong, what was said in each round, and how to run it again."""
    lines = [f"{_place(result)}: {marked(result.title)}"]
    for failure in result.failures:
        lines += _indented("  ", str(failure))
        if failure.path is not None:
            lines.append(f"    at {marked(failure.path) or 'the top'}")
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
        yield f"  round {number} asked nothing{', and handed out a state' if one.state else ''}"
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
    """Each line at least that far in, so that no text of a server's passes for a line of the report."""
    return [f"{indent}{marked(line)}" if line else "" for line in text.splitlines()]


def _short(value: Any) -> str:
    if value is ABSENT:
        return "(nothing)"
    text = marked(json.dumps(_plain(value), ensure_ascii=False))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


# What machines read


class _Document:
    """A report that is written whole, once the run is over."""

    def __init__(self, place: Path | TextIO) -> None:
        self._place = place

    def started(self, total: int) -> None:
        pass

    def finished(self, result: Result) -> None:
        pass

    def ended(self, summary: Summary) -> None:
        text = self._text(summary)
        if isinstance(self._place, Path):
            write_whole(self._place, text)
        else:
            self._place.write(text)
            self._place.flush()

    def _text(self, summary: Summary) -> str:
        raise NotImplementedError


class Json(_Document):
    """Everything that two runs have in common: no times, and one order, whichever test ended first."""

    def _text(self, summary: Summary) -> str:
        counts = {
            "passed": summary.passed,
            "failed": summary.failed,
            "deselected": summary.deselected,
            "interrupted": summary.interrupted,
        }
        results = [_plain(result.as_json()) for result in _in_order(summary.results)]
        told = {"version": VERSION, "summary": counts, "results": results}
        return json.dumps(told, indent=2, sort_keys=True, allow_nan=False) + "\n"


def as_text(told: Any) -> str:
    """A value as JSON in plain ASCII, whatever a server put into it."""
    return json.dumps(_plain(told), allow_nan=False)


class Junit(_Document):
    """JUnit's XML, one suite for each suite file."""

    def _text(self, summary: Summary) -> str:
        root = ET.Element("testsuites", {"name": "bespeak", **_junit_counts(summary.results, summary.seconds)})
        for suite, group in groupby(_in_order(summary.results), key=lambda result: result.suite):
            results = list(group)
            counts = _junit_counts(results, sum(result.seconds for result in results))
            element = ET.SubElement(root, "testsuite", {"name": marked(suite), **counts})
            for result in results:
                _add_case(element, result)
        ET.indent(root)
        return ET.tostring(root, encoding="us-ascii").decode("ascii") + "\n"


def _junit_counts(results: Sequence[Result], seconds: float) -> dict[str, str]:
    elements = [_junit_element(result) for result in results if not result.passed]
    return {
        "tests": str(len(results)),
        "failures": str(elements.count("failure")),
        "errors": str(elements.count("error")),
        "skipped": "0",
        "time": f"{seconds:.3f}",
    }


def _junit_element(result: Result) -> str:
    return "error" if _gravest(result.failures).kind is Kind.UNREACHABLE else "failure"


def _add_case(suite: ET.Element, result: Result) -> None:
    told = {
        # Readers take the dots for packages.
        "classname": marked(result.suite).removesuffix(".bespeak.yaml").strip("./").replace("/", "."),
        "name": marked(result.title),
        "file": marked(result.suite),
        "line": str(result.line),
        "time": f"{result.seconds:.3f}",
    }
    case = ET.SubElement(suite, "testcase", told)
    if not result.passed:
        failure = _gravest(result.failures)
        message = " ".join(marked(line).strip() for line in str(failure).splitlines())
        element = ET.SubElement(case, _junit_element(result), {"message": message, "type": failure.kind.value})
        element.text = describe(result)  # readers take one failure for each test, so this has them all


def _plain(value: Any, depth: int = 0) -> Any:
    """The value with nothing in it that JSON cannot carry; what is absent is left out."""
    if isinstance(value, str):
        return _SURROGATE.sub(REPLACED, value)
    if value is None or isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, Mapping | list | tuple) and depth == DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value).items()
        return {_plain(str(key)): _plain(member, depth + 1) for key, member in members if member is not ABSENT}
    if isinstance(value, list | tuple):
        return [_plain(member, depth + 1) for member in cast("Sequence[Any]", value)]
    return _plain(str(value))


# What all have


def _gravest(failures: Sequence[Failure]) -> Failure:
    """The failure that decides: the first one of the gravest kind."""
    kinds = list(Kind)
    return min(failures, key=lambda failure: kinds.index(failure.kind))


def _in_order(results: Iterable[Result]) -> list[Result]:
    """The results in the order of their suites, each as it may be told after the others."""
    told = Told()
    ordered = sorted(results, key=lambda one: (one.suite, one.line, one.name, _last(one.case), _last(one.era)))
    return [told.of(result) for result in ordered]


def _last(text: str | None) -> tuple[bool, str]:
    """Sorts `None` before any text."""
    return text is not None, text or ""


# Files


def _claim(spec: str, file: Path) -> None:
    """Makes sure, before anything runs, that the report can be written when all has."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():
            raise ValueError(f"{spec!r} cannot be written: there is something else than a file at that place")
        with beside(file) as other:
            other.touch()
    except OSError as error:
        raise ValueError(f"{spec!r} cannot be written: {error.strerror or error}") from None
