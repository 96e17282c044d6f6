"""Compare the outcome of a call with what its test expects."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic import BaseModel

from bespeak.conversation.matchers import ABSENT, Difference, Snapshots, parse_matcher
from bespeak.conversation.result_text import text_of
from bespeak.testing.report.results import Failure
from bespeak.testing.suite.suite_file import Expect

Hide = Callable[[Any], Any]
"""Removes secrets from a value."""
_ENVELOPE = ("resultType", "_meta")
"""Keys of a result that are not part of its content."""
_FAILED = {"isError", "error"}
"""Expectations with which a call may fail."""


def judge(
    expect: Expect,
    envelope: Any,
    *,
    rounds: int,
    asked: list[str],
    notifications: list[dict[str, Any]],
    snapshots: Snapshots | None,
    hide: Hide = lambda value: value,
) -> list[Failure]:
    """Return all differences, each with its path. `hide` is applied to the values that are shown."""
    given = expect.model_fields_set
    message = cast("dict[str, Any]", envelope) if isinstance(envelope, dict) else {}
    error: Any = message.get("error")
    result = _bare(message.get("result"))
    found: list[Failure] = []
    if expect.error is not None:
        found += _judge_error(expect.error, error, result, snapshots, hide)
    elif error is not None:
        found.append(
            Failure(f"the call ended with an error: {_told(error)}", path="error", expected=ABSENT, actual=error)
        )
        return found
    elif result.get("isError") is True and not given & _FAILED:
        found.append(Failure(f"the tool failed: {text_of(result)}", path="isError", expected=False, actual=True))
    looks: dict[str, Any] = {
        "rounds": rounds,
        "asked": asked,
        "text": text_of(result) if error is None else ABSENT,
        "notifications": notifications,
        "result": result if error is None else ABSENT,
    }
    for name in (name for name in type(expect).model_fields if name in given and name != "error"):
        actual = looks[name] if name in looks else result.get(name, ABSENT)
        if name == "isError":
            actual = bool(result.get("isError", False))
        found += _differs(getattr(expect, name), actual, name, snapshots, hide)
    return found


def _judge_error(
    expect: BaseModel, error: Any, result: Mapping[str, Any], snapshots: Snapshots | None, hide: Hide
) -> list[Failure]:
    if not isinstance(error, dict):
        told = f"the call did not end with an error, but with: {text_of(result)}"
        return [Failure(told, path="error", expected=_written(expect), actual=ABSENT)]
    members = cast("dict[str, Any]", error)
    return [
        failure
        for name in type(expect).model_fields
        if name in expect.model_fields_set
        for failure in _differs(getattr(expect, name), members.get(name, ABSENT), f"error.{name}", snapshots, hide)
    ]


def _written(expect: BaseModel) -> dict[str, Any]:
    return {name: getattr(expect, name) for name in type(expect).model_fields if name in expect.model_fields_set}


def _differs(written: Any, actual: Any, path: str, snapshots: Snapshots | None, hide: Hide) -> list[Failure]:
    difference = parse_matcher(written).judge(actual, path, snapshots)
    if difference is None:
        return []
    difference = as_told(difference, written, actual, path, hide)
    message = f"{difference.path}: {difference.message}"
    return [Failure(message, path=difference.path, expected=difference.expected, actual=difference.actual)]


def as_told(difference: Difference, written: Any, actual: Any, path: str, hide: Hide) -> Difference:
    """Return a difference without secrets. It is computed again on the hidden values, so that no half of a secret is quoted."""
    seen, expected = hide(actual), hide(written)
    if actual is ABSENT or (seen == actual and expected == written):
        return difference
    if difference.stopped:  # a search on another text may come to an end, or take as long again
        return Difference(*map(hide, (difference.path, difference.message, difference.expected, difference.actual)))
    try:
        told = parse_matcher(expected).judge(seen, path)
    except ValueError:
        told = None
    return told or Difference(difference.path, "is not as expected", hide(difference.expected), hide(difference.actual))


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
    message = cast("dict[str, Any]", envelope) if isinstance(envelope, dict) else {}
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        return f"; the call ended with an error: {_told(error)}"
    return f"; the call ended with: {text_of(cast('dict[str, Any]', result))}" if isinstance(result, dict) else ""
