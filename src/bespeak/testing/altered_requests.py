"""The requests of hostile tests: one thing in them is altered."""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from bespeak.testing.suite.attack_keys import Tamper

OVERSIZED = 8 * 1024 * 1024
"""How many characters an oversized answer has."""
UNASKED = "bespeak-nobody-asked-for-this"
"""The key of an answer to a question that was not asked."""


class NotReached(Exception):
    """The round of the attack was not reached, or there was nothing to attack."""


# States


def altered_state(params: dict[str, Any], tamper: Tamper, states: Mapping[int, str]) -> dict[str, Any]:
    """Return a request with an altered state, or with the state of another request. Raises `NotReached`.

    `states` are the states of the rounds so far.
    """
    how = tamper.how
    if how in ("other-caller", "expired"):
        return params  # the request stays as it is; the caller or the time is another
    if how == "drop":
        return {name: value for name, value in params.items() if name != "requestState"}
    if how == "other-arguments":
        return _other_than(params, {**params, "arguments": tamper.arguments})
    if how == "other-tool":
        arguments = params.get("arguments") if tamper.arguments is None else tamper.arguments
        return _other_than(params, {**params, "name": tamper.tool, "arguments": arguments})
    if how == "older-round":
        if tamper.older not in states:
            raise NotReached(f"round {tamper.older} returned no requestState, so there is none to send again")
        return _other_than(params, {**params, "requestState": states[tamper.older]})
    return _other_than(params, {**params, "requestState": altered(params["requestState"], how)})


def _other_than(params: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    if other == params:
        raise NotReached("the altered request equals the original one, so the attack was not made")
    return other


def altered(state: str, how: str) -> str:
    """Return an altered request state."""
    if how == "empty":
        return ""
    if how == "truncate":
        return state[: len(state) // 2]
    return _readably_altered(state) or _flipped(state)


def _flipped(text: str) -> str:
    """Change one character in the middle. The last character of Base64 may hold unused bits."""
    middle = len(text) // 2
    return f"{text[:middle]}{'A' if text[middle : middle + 1] != 'A' else 'B'}{text[middle + 1 :]}"


def _readably_altered(state: str) -> str | None:
    """Alter an unprotected JSON state so that it is still valid JSON. Only a server that verifies states refuses it."""
    for decode, encode in _CODINGS:
        try:
            text = decode(state)
            read: Any = json.loads(text)
        except (ValueError, RecursionError):
            continue
        other = _another(read)
        if other is not None:
            return encode(json.dumps(other, separators=(",", ":")))
    return None


def _plain_base64(state: str) -> str:
    padded = state + "=" * (-len(state) % 4)
    return base64.b64decode(padded.replace("-", "+").replace("_", "/"), validate=True).decode()


def _in_base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


_CODINGS: tuple[tuple[Callable[[str], str], Callable[[str], str]], ...] = (
    (lambda state: state, lambda text: text),
    (_plain_base64, _in_base64),
)


def _another(value: Any) -> Any:
    """Return the value with one part changed, or `None` if nothing can be changed."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str) and value:
        return _flipped(value)
    if isinstance(value, dict):
        for name, one in reversed(cast("dict[str, Any]", value).items()):
            if (other := _another(one)) is not None:
                return {**cast("dict[str, Any]", value), name: other}
    if isinstance(value, list):
        for number, one in enumerate(cast("list[Any]", value)):
            if (other := _another(one)) is not None:
                return [*cast("list[Any]", value)[:number], other, *cast("list[Any]", value)[number + 1 :]]
    return None


# Answers


def altered_answers(params: dict[str, Any], tamper: Tamper) -> dict[str, Any]:
    """Return a request whose answers are malformed in one way. Raises `NotReached`."""
    answers: Any = params.get("inputResponses")
    if not isinstance(answers, dict) or not answers:
        raise NotReached(f"round {tamper.round} is not answered with a map of answers, so there is nothing to alter")
    return {**params, "inputResponses": _malformed(cast("dict[str, Any]", answers), tamper.how)}


def _malformed(answers: dict[str, Any], how: str) -> Any:
    if how == "text":
        return json.dumps(answers)
    if how == "list":
        return list(answers.values())
    if how == "nothing":
        return None
    if how == "unknown-key":
        return {**answers, UNASKED: {"action": "accept", "content": {}}}
    alter, needed = _ENTRIES[how]
    found = {key: other for key, one in answers.items() if (other := _altered_entry(one, alter)) is not None}
    if not found:
        raise NotReached(f"{how} needs {needed}, and the round has none")
    return {**answers, **found}


Entry = dict[str, Any]


def _altered_entry(answer: Any, alter: Callable[[Entry], Entry | None]) -> Entry | None:
    return alter(cast("Entry", answer)) if isinstance(answer, dict) else None


def _content(answer: Entry) -> Entry:
    content: Any = answer.get("content")
    return cast("Entry", content) if isinstance(content, dict) and "action" in answer else {}


def _without(answer: Entry, name: str) -> Entry | None:
    return {key: value for key, value in answer.items() if key != name} if name in answer else None


def _with_content(answer: Entry, value: Any) -> Entry | None:
    content = _content(answer)
    return {**answer, "content": dict.fromkeys(content, value)} if content else None


_ACTION = "an answer to a form or a page"
_FORM = "an answer that accepts a form with fields"
_ENTRIES: dict[str, tuple[Callable[[Entry], Entry | None], str]] = {
    "no-action": (lambda one: _without(one, "action"), _ACTION),
    "unknown-action": (lambda one: {**one, "action": "approve"} if "action" in one else None, _ACTION),
    "no-content": (lambda one: _without(one, "content") if _content(one) else None, _FORM),
    "wrong-type": (lambda one: _with_content(one, {}), _FORM),
    "oversized": (lambda one: _with_content(one, "x" * OVERSIZED), _FORM),
}
"""How one answer is altered, and what it takes."""
