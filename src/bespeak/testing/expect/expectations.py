"""Compare the outcome of a call with what its test expects."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from pydantic import BaseModel

from bespeak.conversation.json_values import as_object, kind_of
from bespeak.conversation.match_operators import NOT_EXPECTED
from bespeak.conversation.matchers import ABSENT, Difference, parse_matcher
from bespeak.conversation.result_text import text_of
from bespeak.testing.expect.expected_value import Kept, expected_value
from bespeak.testing.redaction.redactor import REDACTED, Redactor
from bespeak.testing.redaction.result_redactor import without_declared
from bespeak.testing.report.results import Failure
from bespeak.testing.report.value_diff import value_diff
from bespeak.testing.suite.suite_file import Expect, Failing
from bespeak.testing.value_paths import value_at

Hide = Callable[[Any], Any]
"""Removes secrets from a value."""
_ENVELOPE = ("resultType", "_meta")
"""Keys of a result that are not part of its content."""
_FAILED = {"isError", "error"}
"""Expectations with which a call may fail."""
_OUTCOMES = {"text", "content", "structuredContent", "messages", "contents", "result"}
"""Expectations about the result of a call."""


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Telling:
    """How differences are told. Values are compared as they are, and told without what is redacted."""

    hide: Hide = _as_it_is
    """Removes secrets, and what patterns find."""
    declared: Redactor = field(default_factory=Redactor)
    """The values that are redacted by path."""
    replayed: bool = False
    """Whether the values come from a cassette. What is redacted there cannot be compared."""

    def difference(
        self, written: Any, actual: Any, path: str, snapshots: "_Shown | None", shown: tuple[Any, Any] | None = None
    ) -> "tuple[Difference, tuple[str, ...]] | None":
        """Return the first difference and a diff of the values. `shown` are both values as redacted by path."""
        found = parse_matcher(written).judge(actual, path, snapshots)
        if found is None:
            return None
        given, came = shown or (written, actual)
        told = as_told(found, written, actual, path, self.hide, (given, came), snapshots)
        if self.replayed and _mentions(actual) and (told.message == UNTOLD or _mentions(told.actual)):
            return None
        return told, () if told.stopped else self._diff(given, came, snapshots)

    def _diff(self, written: Any, actual: Any, snapshots: "_Shown | None") -> tuple[str, ...]:
        expected, seen = self.hide(written), self.hide(actual)
        kept: Kept = (lambda _: ABSENT) if snapshots is None else snapshots.kept
        try:
            matcher = parse_matcher(expected)
        except ValueError:
            return ()
        return value_diff(expected_value(matcher, seen, kept), seen)


UNTOLD = "is not as expected"
"""Said of a difference that lies in what is redacted."""


def _mentions(value: Any) -> bool:
    """Whether something in a value is redacted."""
    if isinstance(value, dict):
        return any(map(_mentions, cast("dict[str, Any]", value).values()))
    if isinstance(value, list):
        return any(map(_mentions, cast("list[Any]", value)))
    return isinstance(value, str) and REDACTED in value


class Stored(Protocol):
    """The snapshots of a test."""

    def check(self, name: str, actual: Any) -> Difference | None:
        """Return how a value differs from the snapshot with that name."""
        ...

    def kept(self, name: str) -> Any:
        """Return the snapshot with that name; `ABSENT` if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class _Shown:
    """Snapshots of values as they are shown: what is redacted by path is not stored."""

    stored: Stored
    shown: Mapping[str, Any]

    def check(self, name: str, actual: Any, path: str) -> Difference | None:
        try:
            value = value_at(dict(self.shown), path)
        except LookupError:  # all of it is redacted, or something around it
            value = REDACTED
        return self.stored.check(name, value)

    def kept(self, name: str) -> Any:
        return self.stored.kept(name)


def judge(
    expect: Expect,
    envelope: Any,
    *,
    rounds: int,
    asked: list[str],
    notifications: list[dict[str, Any]],
    snapshots: Stored | None,
    telling: Telling | None = None,
) -> list[Failure]:
    """Return all differences, each with its path."""
    given = expect.model_fields_set
    telling = telling or Telling()
    looks = outcome(envelope, rounds, asked, notifications)
    shown = outcome(
        without_declared(envelope, telling.declared), rounds, asked, _heard(notifications, telling.declared)
    )
    error, result = looks["error"], looks["result"]
    success = expect.error is None and (expect.isError is False or not given & _FAILED)
    failed = success and result is not ABSENT and result.get("isError") is True
    kept = None if snapshots is None else _Shown(snapshots, shown)
    found: list[Failure] = []
    if expect.error is not None:
        found += _judge_error(expect.error, error, shown, kept, telling)
    elif error is not ABSENT:
        message = f"the call ended with an error: {_told(shown['error'])}"
        return [Failure(message, path="error", expected=ABSENT, actual=shown["error"])]
    elif failed:
        found.append(Failure(f"the tool failed: {_said(shown['result'])}", path="isError", expected=False, actual=True))
    elif expect.isError is True and not looks["isError"]:
        message = f"the tool was expected to fail, but returned: {_said(shown['result'])}"
        found.append(Failure(message, path="isError", expected=True, actual=False))
    told = {"error", "isError"} if found and found[0].path == "isError" else {"error"}
    for name in (name for name in type(expect).model_fields if name in given - told):
        written = getattr(expect, name)
        expected = (
            telling.declared.apply(written) if name == "result" else telling.declared.apply({name: written})[name]
        )
        values = expected, shown.get(name, ABSENT)
        found += _differs(written, looks.get(name, ABSENT), name, kept, telling, values)
    return found


def outcome(envelope: Any, rounds: int, asked: list[str], notifications: list[dict[str, Any]]) -> dict[str, Any]:
    """Return everything that a test can expect, by the names of expectations."""
    message = as_object(envelope)
    error: Any = message.get("error")
    result = _bare(message.get("result"))
    ended = {"text": text_of(result), "result": result} if error is None else {"text": ABSENT, "result": ABSENT}
    return {
        **result,
        "rounds": rounds,
        "asked": asked,
        "notifications": notifications,
        "isError": bool(result.get("isError", False)),
        "error": ABSENT if error is None else error,
        **ended,
    }


def _heard(notifications: list[dict[str, Any]], declared: Redactor) -> list[dict[str, Any]]:
    return [{**one, **declared.apply({"params": one.get("params")})} for one in notifications]


def names_a_success(expect: Expect) -> bool:
    """Return whether a test says how a call succeeds: an error, or a result that is one, would not meet it."""
    if expect.error is not None or expect.isError is not None:
        return expect.isError is False
    return bool(expect.model_fields_set & _OUTCOMES)


def allowing_an_error(expect: Expect) -> Expect:
    """Return an expectation that any error meets, unless it says how the call ends."""
    if expect.model_fields_set & (_OUTCOMES | _FAILED):
        return expect
    return expect.model_copy(update={"error": Failing()})


def _judge_error(
    expect: BaseModel, error: Any, shown: Mapping[str, Any], snapshots: _Shown | None, telling: Telling
) -> list[Failure]:
    if error is not ABSENT and not isinstance(error, dict):
        odd = f"the error is {kind_of(error)}, not an object"
        return [Failure(odd, path="error", expected=_written(expect), actual=shown["error"])]
    if error is ABSENT:
        told = f"the call did not end with an error, but with: {_said(shown['result'])}"
        hint = "this server says with isError that a call failed; expect isError: true" if shown["isError"] else None
        return [Failure(told, path="error", expected=_written(expect), actual=ABSENT, hint=hint)]
    members, seen = cast("dict[str, Any]", error), cast("dict[str, Any]", shown["error"])
    return [
        failure
        for name, written in _written(expect).items()
        for failure in _differs(
            written,
            members.get(name, ABSENT),
            f"error.{name}",
            snapshots,
            telling,
            (telling.declared.apply({name: written})[name], seen.get(name, ABSENT)),
        )
    ]


def _said(result: Mapping[str, Any]) -> str:
    """The text of a result, or its JSON if it has none; in full, so that secrets in it are found."""
    text = text_of(result)
    return text if text.strip() else json.dumps(_bare(result), ensure_ascii=False, default=repr)


def _written(expect: BaseModel) -> dict[str, Any]:
    return {name: getattr(expect, name) for name in type(expect).model_fields if name in expect.model_fields_set}


def _differs(
    written: Any, actual: Any, path: str, snapshots: _Shown | None, telling: Telling, shown: tuple[Any, Any]
) -> list[Failure]:
    found = telling.difference(written, actual, path, snapshots, shown)
    if found is None:
        return []
    difference, diff = found
    message = f"{difference.path}: {difference.message}"
    values = {"expected": difference.expected, "actual": difference.actual}
    return [Failure(message, path=difference.path, **values, hint=_hint(difference), diff=diff)]


def _hint(difference: Difference) -> str | None:
    """Return how to write what was probably meant."""
    if difference.expected in ("present", "absent") and difference.actual != difference.expected:
        what = "any value" if difference.expected == "present" else "that there is no value"
        return f"to expect {what}, write {{{difference.expected}: true}}"
    if difference.message == NOT_EXPECTED:
        return "to compare only some of the members, write {contains: {...}}"
    return None


def as_told(
    difference: Difference,
    written: Any,
    actual: Any,
    path: str,
    hide: Hide,
    shown: tuple[Any, Any] | None = None,
    snapshots: _Shown | None = None,
) -> Difference:
    """Return a difference without secrets. It is computed again on the hidden values, so that no half of a secret is quoted."""
    given, came = shown or (written, actual)
    seen, expected = hide(came), hide(given)
    if actual is ABSENT or (seen == actual and expected == written):
        return difference
    by_path = given != written or came != actual
    both = (REDACTED, REDACTED) if by_path else (hide(difference.expected), hide(difference.actual))
    if difference.stopped:  # a search on another text may come to an end, or take as long again
        return Difference(hide(difference.path), hide(difference.message), *both)
    try:
        told = parse_matcher(expected).judge(seen, path, snapshots)
    except ValueError:
        told = None
    return told or Difference(difference.path, UNTOLD, *both)


def _bare(result: Any) -> dict[str, Any]:
    """A result without `resultType` and `_meta`."""
    if not isinstance(result, dict):
        return {}
    return {name: value for name, value in cast("dict[str, Any]", result).items() if name not in _ENVELOPE}


def _told(error: Any) -> str:
    if not isinstance(error, dict):
        return repr(error)
    members = cast("dict[str, Any]", error)
    said, code = members.get("message"), members.get("code")
    told = said if isinstance(said, str) and said else "no message"
    return f"{told} ({code})" if isinstance(code, int) else told


def ended(envelope: Any) -> str:
    """Return how a call ended, to append to a failure message."""
    message = as_object(envelope)
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        return f"; the call ended with an error: {_told(error)}"
    return f"; the call ended with: {_said(as_object(result))}" if isinstance(result, dict) else ""


def failed(envelope: Any) -> str | None:
    """Return the error text of a call that failed; `None` if it did not."""
    message = as_object(envelope)
    error, result = message.get("error"), message.get("result")
    if error is not None:
        return f"the call ended with an error: {_told(error)}"
    if isinstance(result, dict) and cast("dict[str, Any]", result).get("isError") is True:
        return f"the tool failed: {_said(as_object(result))}"
    return None
