"""The result of one test: the rounds of its conversation, and what was wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bespeak.conversation.call_rounds import Round
from bespeak.conversation.differences import ABSENT
from bespeak.conversation.protocol_rules import RULES


class Kind(StrEnum):
    """The kinds of failures. The kind decides the exit code."""

    FAILED = "failed"
    """The server did not behave as expected, or broke a rule."""
    UNREACHABLE = "unreachable"
    """The server could not be reached."""
    CASSETTE = "cassette"
    """A cassette is missing, or no longer fits."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One reason why a test failed."""

    message: str
    kind: Kind = Kind.FAILED
    path: str | None = None
    """Where the first difference is, such as `structuredContent.cents`."""
    expected: Any = None
    """The expected value there, if there is a path; `ABSENT` if nothing was expected."""
    actual: Any = None
    rule: str | None = None
    """The rule of the protocol that the server broke, by its short name."""
    hint: str | None = None
    """What to do about it: several lines, such as the YAML to paste."""

    def __str__(self) -> str:
        return f"{self.message} ({self.rule}: {RULES[self.rule]})" if self.rule else self.message

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"kind": self.kind.value, "message": self.message}
        if self.path is not None:
            both = {"expected": self.expected, "actual": self.actual}
            told |= {"path": self.path, **{name: value for name, value in both.items() if value is not ABSENT}}
        if self.rule is not None:
            told["rule"] = self.rule
        if self.hint is not None:
            told["hint"] = self.hint
        return told

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Failure":
        there = "path" in told
        expected, actual = (told.get(name, ABSENT if there else None) for name in ("expected", "actual"))
        more = {name: told.get(name) for name in ("path", "rule", "hint")}
        return cls(told["message"], Kind(told["kind"]), expected=expected, actual=actual, **more)


@dataclass(frozen=True, slots=True)
class Result:
    """One test, case and era, run."""

    suite: str
    """The suite's path relative to where the run was started, with forward slashes."""
    line: int
    name: str
    case: str | None
    era: str | None
    """The revision of the test; `None` if it is negotiated with the server."""
    server: str
    failures: Sequence[Failure] = ()
    rounds: Sequence[Round] = ()
    again: str = ""
    """The command that runs it again."""
    seconds: float = field(default=0.0, compare=False)

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def title(self) -> str:
        """The test's name with its case and era."""
        more = [part for part in (self.case, self.era) if part is not None]
        return f"{self.name} [{', '.join(more)}]" if more else self.name

    @classmethod
    def from_json(cls, told: Mapping[str, Any], seconds: float = 0.0) -> "Result":
        """Return a result from the JSON of another process."""
        known = {name: told[name] for name in ("suite", "line", "name", "case", "era", "server", "again")}
        failures = [Failure.from_json(one) for one in told["failures"]]
        return cls(**known, failures=failures, rounds=[Round(**one) for one in told["rounds"]], seconds=seconds)

    def as_json(self) -> dict[str, Any]:
        """Return the result without times, so that two runs with the same outcome are equal."""
        return {
            "suite": self.suite,
            "line": self.line,
            "name": self.name,
            "case": self.case,
            "era": self.era,
            "server": self.server,
            "outcome": "passed" if self.passed else "failed",
            "failures": [failure.as_json() for failure in self.failures],
            "rounds": [one.as_json() for one in self.rounds],
            "again": self.again,
        }
