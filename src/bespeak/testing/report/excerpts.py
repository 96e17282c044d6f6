"""Shortens large values and results for reports.

Everything here happens after redaction, so that no part of a secret is left where a text is cut.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from bespeak.conversation.call_rounds import Round
from bespeak.conversation.matchers import ABSENT
from bespeak.conversation.protocol_rules import Finding
from bespeak.testing.report.results import Failure, Result, gravest
from bespeak.testing.report.timeline import Event, Step

LONGEST_TEXT = 4_000
"""The maximum number of characters of one text."""
LONGEST_NAME = 200
"""The maximum number of characters of a key or path."""
LARGEST_VALUE = 16 * 1024
"""The maximum number of JSON bytes of one value."""
LARGEST_EVENT = 4 * 1024
"""The maximum number of JSON bytes of one message of a conversation."""
LARGEST_TEST = 64 * 1024
"""The approximate maximum of JSON bytes for the failures and rounds of one test."""
LARGEST_REPORT = 8 * 1024 * 1024
"""The number of JSON bytes after which each further test gets only one line."""
LEFT_OUT = f"details are left out: the report has reached {LARGEST_REPORT // 2**20} MiB"
MOST_ADVICE = 20
"""How many pieces of advice about one test a report holds."""
DEEPEST = 100
MORE = "..."
"""The key of a value that says how much was left out."""


def excerpt(value: Any, room: int = LARGEST_VALUE) -> Any:
    """Return the value, or the beginning of a large one with how much was left out."""
    return _Excerpt(room).of(value)


def shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    """Return the text, or the beginning of a long one with how much was left out."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text) - limit:,} more characters)"


def without_middle(text: str, limit: int = LONGEST_TEXT) -> str:
    """Return a long text without its middle. The end of a server's output matters most."""
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


def _weight(part: Failure | Round | Event | Finding) -> int:
    return _size(excerpt(part.as_json(), LARGEST_TEST))


def round_excerpt(one: Round) -> Round:
    """Return a round with its questions and answers shortened."""
    asked, answered = excerpt(one.asked), excerpt(one.answered)
    if MORE not in one.asked:
        asked.pop(MORE, None)  # they are counted in left_out
    return replace(one, asked=asked, answered=answered, left_out=len(one.asked) - len(asked))


def failure_excerpt(failure: Failure) -> Failure:
    """Return a failure with its texts and values shortened."""
    return replace(
        failure,
        message=without_middle(failure.message),
        path=None if failure.path is None else shortened(failure.path, LONGEST_NAME),
        expected=excerpt(failure.expected),
        actual=excerpt(failure.actual),
        hint=None if failure.hint is None else without_middle(failure.hint),
    )


def event_excerpt(event: Event) -> Event:
    """Return an event with its body shortened."""
    return replace(event, body=excerpt(event.body, LARGEST_EVENT), method=shortened(event.method, LONGEST_NAME))


def bounded(result: Result) -> Result:
    """Return a result with only as many failures and rounds as fit."""
    failures, room = _kept(result.failures, LARGEST_TEST)
    rounds, room = _kept(result.rounds, room)
    events, _ = _kept(result.conversation, room)
    advice = [replace(one, text=shortened(one.text)) for one in result.advice[:MOST_ADVICE]]
    if left := result.failures[len(failures) :]:
        failures.append(Failure(f"{len(left):,} more failures are left out of this report", gravest(left).kind))
    if more := len(result.rounds) - len(rounds):
        rounds.append(Round({MORE: f"({more:,} more rounds)"}, {}, state=False))
    if more := len(result.conversation) - len(events):
        events.append(Event(Step.NOTIFICATION, {MORE: f"({more:,} more messages)"}))
    return replace(result, failures=failures, rounds=rounds, conversation=events, advice=advice)


@dataclass(slots=True)
class ReportBudget:
    """How much more a report may hold. Results are charged to it in their order."""

    room: int = LARGEST_REPORT

    def of(self, result: Result) -> Result:
        """Return a result in full, or in one line if the report is full."""
        if self.room <= 0:
            result = _in_one_line(result)
        self.room -= len(result.printed) + sum(map(len, result.outside))
        self.room -= sum(map(_weight, (*result.failures, *result.rounds, *result.conversation, *result.advice)))
        return result


def _in_one_line(result: Result) -> Result:
    failures = [gravest(result.failures)] if result.failures else []
    failures = [
        Failure(shortened(one.message, LONGEST_NAME), one.kind, rule=one.rule, hint=LEFT_OUT) for one in failures
    ]
    return replace(result, failures=failures, rounds=(), conversation=(), advice=(), outside=(), printed="")


T = TypeVar("T", Failure, Round, Event)


def _kept(parts: Sequence[T], room: int) -> tuple[list[T], int]:
    """As many parts as fit, and the room that is left."""
    kept: list[T] = []
    for part in parts:
        room -= _weight(part)
        if room < 0 and kept:
            break
        kept.append(part)
    return kept, max(room, 0)
