"""Attacks on a server: altered request states and lost responses, and checking that they fail."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bespeak.conversation.call_rounds import Round
from bespeak.conversation.exchange import Interference
from bespeak.conversation.question_names import name_of
from bespeak.conversation.responses import Verdict, read_envelope
from bespeak.testing.report.results import Failure
from bespeak.testing.suite.suite_file import Fault, Tamper


class NotReached(Exception):
    """The round of the attack was not reached, or there was nothing to attack."""


@dataclass(slots=True)
class Attack(Interference):
    """An attack on one request of a conversation."""

    tamper: Tamper | None = None
    fault: Fault | None = None
    retry: int = 0
    done: bool = False
    """Whether the round was reached."""

    def alter(self, number: int, params: dict[str, Any]) -> dict[str, Any]:
        """Return the params of the request after `number` answered rounds, altered if it is the one to attack."""
        tamper = self.tamper
        if tamper is None or number != tamper.round:
            return params
        state: Any = params.get("requestState")
        if state is None:
            raise NotReached(f"round {number} returned no requestState, so there is nothing to alter")
        self.done = True
        if tamper.requestState == "other-arguments":
            return _other_than(params, {**params, "arguments": tamper.arguments})
        if tamper.requestState == "drop":
            return {name: value for name, value in params.items() if name != "requestState"}
        return _other_than(params, {**params, "requestState": altered(state, tamper.requestState)})

    def is_tampered(self, number: int) -> bool:
        return self.tamper is not None and number == self.tamper.round

    def loses(self, number: int) -> int:
        """Return how many times the request is sent again because its response is lost."""
        if self.fault is None or number != self.fault.round:
            return 0
        self.done = True
        return self.retry

    def check_reached(self) -> None:
        """Raises `NotReached`."""
        part = self.tamper or self.fault
        if part is not None and not self.done:
            raise NotReached(f"the server never reached round {part.round}, so the attack was not made")


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


def judge_tampered(tamper: Tamper, envelope: Any, rounds: Sequence[Round], *, expected: bool = False) -> list[Failure]:
    """Return a failure unless the server refused the altered state with an error.

    A result with `isError` passes only if the test says what it expects.
    """
    if isinstance(envelope, dict) and "error" in envelope:
        return []
    if expected and _fails(envelope):
        return []
    how = tamper.requestState
    read = read_envelope(envelope)
    asks = read.verdict is Verdict.ASKING
    if asks and how == "drop" and _begins_anew([question.key for question in read.questions], rounds):
        return []
    what = {
        "flip": "a requestState with one character altered",
        "truncate": "a requestState cut in half",
        "empty": "an empty requestState",
        "drop": "answers without the requestState they belong to",
        "other-arguments": "a requestState that was issued for other arguments",
    }[how]
    did = "asked again after receiving" if asks and how != "drop" else "processed" if _fails(envelope) else "accepted"
    return [Failure(f"the server {did} {what}; it must answer with an error", rule="state-verified")]


def _begins_anew(keys: list[str], rounds: Sequence[Round]) -> bool:
    """Return whether the questions are those of the first or the last round: then the server accepted nothing.

    Names are compared, not keys: the key changes when a price has changed.
    """
    names = sorted(map(name_of, keys))
    return any(names == sorted(map(name_of, one.asked)) for one in (rounds[0], rounds[-1]))


def _fails(envelope: Any) -> bool:
    result: Any = cast("dict[str, Any]", envelope).get("result") if isinstance(envelope, dict) else None
    return isinstance(result, dict) and cast("dict[str, Any]", result).get("isError") is True
