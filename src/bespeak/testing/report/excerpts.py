"""How much of what a server said is told in a report: enough to see what was wrong, whatever it sent.

Everything here comes after redaction: what is cut through is what stands for a secret, never the secret.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from bespeak.conversation.matchers import ABSENT
from bespeak.conversation.results import Failure, Kind, Result, Round

LONGEST_TEXT = 4_000
"""How many characters of one text are told."""
LONGEST_NAME = 200
"""How many characters of the name of a member are told, and of a path."""
LARGEST_VALUE = 16 * 1024
"""How many bytes of JSON one value comes to."""
LARGEST_TEST = 64 * 1024
"""How many bytes of JSON the failures and rounds of one test come to, about."""
LARGEST_REPORT = 8 * 1024 * 1024
"""How many bytes of JSON failures and rounds come to before the tests that follow are told in one line each."""
LEFT_OUT = f"the rest is left out: the report has come to {LARGEST_REPORT // 2**20} MiB"
DEEPEST = 100
MORE = "..."
"""The name of a member that says how many were left out."""


def excerpt(value: Any, room: int = LARGEST_VALUE) -> Any:
    """The value, or if it is large the beginning of it, with how much was left out."""
    return _Excerpt(room).of(value)


def shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    """The text, or if it is long the beginning of it, with how much was left out."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text) - limit:,} more characters)"


def without_middle(text: str, limit: int = LONGEST_TEXT) -> str:
    """A long text without its middle: what a server printed last is told at the end of it."""
    if len(text) <= limit:
        return text
    left = f"... ({len(text) - limit:,} characters left out)"
    return f"{text[: limit // 4]}\n{left}\n{text[-(limit - limit // 4) :]}"


class _Excerpt:
    """One value while it is copied."""

    def __init__(self, room: int) -> None:
        self._room = room

    def of(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, (Mapping, list, tuple)):
            if depth == DEEPEST:
                return MORE
            self._room -= 2
            if isinstance(value, Mapping):
                return self._members(cast("Mapping[Any, Any]", value), depth)
            return self._entries(cast("Sequence[Any]", value), depth)
        told = value
        if isinstance(value, int) and value.bit_length() > 4 * LONGEST_NAME:
            told = f"(a number of {value.bit_length():,} bits)"
        self._room -= 24 if value is ABSENT else len(str(told)) + 2
        return told

    def _text(self, text: str) -> str:
        told = shortened(text)
        size = _size(told)
        if size > self._room:
            fits = max(self._room // 12, 0)  # no character takes more
            told, size = shortened(text, fits), 12 * fits + 40
        self._room -= size
        return told

    def _members(self, members: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for number, (name, member) in enumerate(members.items()):
            if self._room <= 0:
                told[MORE] = f"({len(members) - number:,} more members)"
                break
            short = shortened(str(name), LONGEST_NAME)
            self._room -= _size(short)
            told[short] = self.of(member, depth + 1)
        return told

    def _entries(self, entries: Sequence[Any], depth: int) -> list[Any]:
        told: list[Any] = []
        for number, entry in enumerate(entries):
            if self._room <= 0:
                told.append(f"({len(entries) - number:,} more entries)")
                break
            told.append(self.of(entry, depth + 1))
        return told


def _size(told: Any) -> int:
    return len(json.dumps(told, default=str)) + 2


def _weight(part: Failure | Round) -> int:
    return _size(excerpt(part.as_json(), LARGEST_TEST))


def round_excerpt(one: Round) -> Round:
    """A round, or of a large one as much as one value may have of its questions and of its answers."""
    asked, answered = excerpt(one.asked), excerpt(one.answered)
    if MORE not in one.asked:
        asked.pop(MORE, None)  # they are counted beside the others
    return replace(one, asked=asked, answered=answered, left_out=len(one.asked) - len(asked))


def failure_excerpt(failure: Failure) -> Failure:
    """A failure with its long texts and large values shortened."""
    return replace(
        failure,
        message=without_middle(failure.message),
        path=None if failure.path is None else shortened(failure.path, LONGEST_NAME),
        expected=excerpt(failure.expected),
        actual=excerpt(failure.actual),
        hint=None if failure.hint is None else without_middle(failure.hint),
    )


def bounded(result: Result) -> Result:
    """A result, or of a large one as many of its failures and rounds as a test may have."""
    failures, room = _kept(result.failures, LARGEST_TEST)
    rounds, _ = _kept(result.rounds, room)
    if left := result.failures[len(failures) :]:
        failures.append(_gravest(left, f"{len(left):,} more failures are left out of this report"))
    if more := len(result.rounds) - len(rounds):
        rounds.append(Round({MORE: f"({more:,} more rounds)"}, {}, state=False))
    return replace(result, failures=failures, rounds=rounds)


@dataclass(slots=True)
class ReportBudget:
    """How much more a report may hold. Results are charged to it in their order."""

    room: int = LARGEST_REPORT

    def of(self, result: Result) -> Result:
        """A result as it may be told after the others: in full, or where there have been too many in one line."""
        if self.room <= 0:
            result = _in_one_line(result)
        self.room -= sum(map(_weight, (*result.failures, *result.rounds)))
        return result


def _in_one_line(result: Result) -> Result:
    failures = [_gravest(result.failures, "")] if result.failures else []
    failures = [
        Failure(shortened(one.message, LONGEST_NAME), one.kind, rule=one.rule, hint=LEFT_OUT) for one in failures
    ]
    return replace(result, failures=failures, rounds=())


def _gravest(failures: Sequence[Failure], message: str) -> Failure:
    kinds = list(Kind)
    found = min(failures, key=lambda failure: kinds.index(failure.kind))
    return Failure(message, found.kind) if message else found


T = TypeVar("T", Failure, Round)


def _kept(parts: Sequence[T], room: int) -> tuple[list[T], int]:
    """As many as there is room for, and the room that is left."""
    kept: list[T] = []
    for part in parts:
        room -= _weight(part)
        if room < 0 and kept:
            break
        kept.append(part)
    return kept, max(room, 0)
