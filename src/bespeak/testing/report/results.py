"""The result of one test: the rounds of its conversation, and what was wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from bespeak.conversation.call_rounds import Round
from bespeak.conversation.differences import ABSENT
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.testing.report.timeline import Event


class Kind(StrEnum):
    """The kinds of failures. The kind decides the exit code."""

    FAILED = "failed"
    """The server did not behave as expected, or broke a rule."""
    SETUP = "setup"
    """A command that prepares the test, or cleans up after it, failed."""
    UNUSABLE = "unusable"
    """The suite or an option is wrong, so nothing was run."""
    UNREACHABLE = "unreachable"
    """The server could not be reached."""
    CASSETTE = "cassette"
    """A cassette is missing, or no longer fits."""


class Outcome(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """It was not run: the suite says `skip`."""
    XFAILED = "xfailed"
    """It failed as expected: the suite says `xfail`."""


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
    diff: Sequence[str] = ()
    """The lines of a unified diff of the expected and the actual value."""

    def __str__(self) -> str:
        return f"{self.message} ({self.rule}: {RULES[self.rule]})" if self.rule else self.message

    def with_hint(self, hint: str) -> "Failure":
        """Return the failure with more to do about it."""
        return replace(self, hint=hint if self.hint is None else f"{self.hint}\n{hint}")

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"kind": self.kind.value, "message": self.message}
        if self.path is not None:
            both = {"expected": self.expected, "actual": self.actual}
            told |= {"path": self.path, **{name: value for name, value in both.items() if value is not ABSENT}}
        if self.rule is not None:
            told |= {"rule": self.rule, "clause": RULES[self.rule].clause}
        if self.hint is not None:
            told["hint"] = self.hint
        if self.diff:
            told["diff"] = list(self.diff)
        return told

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Failure":
        there = "path" in told
        expected, actual = (told.get(name, ABSENT if there else None) for name in ("expected", "actual"))
        more = {name: told.get(name) for name in ("path", "rule", "hint")}
        diff = told.get("diff", ())
        return cls(told["message"], Kind(told["kind"]), expected=expected, actual=actual, diff=diff, **more)


def gravest(failures: Sequence[Failure]) -> Failure:
    """Return the first failure of the most serious kind. It decides the exit code."""
    kinds = list(Kind)
    return min(failures, key=lambda failure: kinds.index(failure.kind))


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
    advice: Sequence[Finding] = ()
    """What the server should do otherwise. It fails nothing."""
    again: str = ""
    """The command that runs it again."""
    ended: str | None = None
    """The error text of a call that failed, whether the test expected that or not."""
    fails_rightly: bool = False
    """Whether that error is the one that the test expects."""
    conversation: Sequence[Event] = ()
    """Everything that was sent, in order."""
    notes: Sequence[str] = ()
    """What the author of the suite should know, and what does not fail the test."""
    outside: Sequence[str] = ()
    """What the server asked outside of a call, and what it was told: one sentence each."""
    printed: str = ""
    """The end of what the server wrote to stderr, if the test failed, expected or not, and no test before has it."""
    seconds: float = field(default=0.0, compare=False)
    file: str | None = None
    """The included file that contains the test; `None` if the suite itself does."""
    tags: Sequence[str] = ()
    skipped: str | None = None
    """Why the test was not run."""
    xfailed: str | None = None
    """Why the test failed as expected."""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong: it passed, was skipped, or failed as expected."""
        return self.outcome is not Outcome.FAILED

    @property
    def outcome(self) -> Outcome:
        if self.skipped is not None:
            return Outcome.SKIPPED
        if self.xfailed is not None:
            return Outcome.XFAILED
        return Outcome.FAILED if self.failures else Outcome.PASSED

    @property
    def reason(self) -> str | None:
        """Why it was skipped, or failed as expected."""
        return self.skipped if self.skipped is not None else self.xfailed

    def with_failures(self, failures: Sequence[Failure]) -> "Result":
        """Return the result with more failures, which are not expected ones."""
        if not failures:
            return self
        return replace(self, failures=[*self.failures, *failures], skipped=None, xfailed=None)

    @property
    def tells_ended(self) -> bool:
        """Whether the error text of the call says more than the failures: it is unexpected, and in none of them."""
        told = self.fails_rightly or any((self.ended or "") in failure.message for failure in self.failures)
        return self.ended is not None and not told

    @property
    def title(self) -> str:
        """The test's name with its case and era."""
        more = [part for part in (self.case, self.era) if part is not None]
        return f"{self.name} [{', '.join(more)}]" if more else self.name

    @classmethod
    def from_json(cls, told: Mapping[str, Any], seconds: float = 0.0) -> "Result":
        """Return a result from the JSON of another process."""
        known = {name: told[name] for name in ("suite", "line", "name", "case", "era", "server", "again")}
        known |= {name: told.get(name) for name in ("file", "skipped", "xfailed")}
        known |= {"tags": told.get("tags", ()), "outside": told.get("outside", ()), "printed": told.get("printed", "")}
        return cls(
            **known,
            failures=[Failure.from_json(one) for one in told["failures"]],
            rounds=[Round(**one) for one in told["rounds"]],
            advice=[Finding(one["rule"], one["text"]) for one in told["advice"]],
            ended=told["ended"],
            fails_rightly=told.get("fails_rightly", False),
            conversation=[Event.from_json(one) for one in told["conversation"]],
            notes=told["notes"],
            seconds=seconds,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the result without times, so that two runs with the same outcome are equal."""
        more = {"file": self.file, "skipped": self.skipped, "xfailed": self.xfailed, "tags": list(self.tags)}
        more |= {"outside": list(self.outside), "printed": self.printed, "fails_rightly": self.fails_rightly}
        return {
            **{name: value for name, value in more.items() if value},
            "suite": self.suite,
            "line": self.line,
            "name": self.name,
            "case": self.case,
            "era": self.era,
            "server": self.server,
            "outcome": self.outcome.value,
            "failures": [failure.as_json() for failure in self.failures],
            "rounds": [one.as_json() for one in self.rounds],
            "advice": [{**one.as_json(), "clause": RULES[one.rule].clause} for one in self.advice],
            "ended": self.ended,
            "conversation": [event.as_json() for event in self.conversation],
            "notes": list(self.notes),
            "again": self.again,
        }
