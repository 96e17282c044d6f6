"""What a client can do to a server that it should not get away with: altered states, and responses that are lost."""

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
    """The round in which something was to be done never came."""


@dataclass(slots=True)
class Attack(Interference):
    """What is done to one request of a conversation."""

    tamper: Tamper | None = None
    fault: Fault | None = None
    retry: int = 0
    done: bool = False
    """Whether the round was reached."""

    def alter(self, number: int, params: dict[str, Any]) -> dict[str, Any]:
        """The params of the request that follows so many answered rounds, altered if it is their turn."""
        tamper = self.tamper
        if tamper is None or number != tamper.round:
            return params
        state: Any = params.get("requestState")
        if state is None:
            raise NotReached(f"round {number} handed out no requestState that could be altered")
        self.done = True
        if tamper.requestState == "other-arguments":
            return _other_than(params, {**params, "arguments": tamper.arguments})
        if tamper.requestState == "drop":
            return {name: value for name, value in params.items() if name != "requestState"}
        return _other_than(params, {**params, "requestState": altered(state, tamper.requestState)})

    def is_tampered(self, number: int) -> bool:
        return self.tamper is not None and number == self.tamper.round

    def loses(self, number: int) -> int:
        """How often the request is sent again because its response is lost."""
        if self.fault is None or number != self.fault.round:
            return 0
        self.done = True
        return self.retry

    def check_reached(self) -> None:
        """Raises `NotReached`."""
        part = self.tamper or self.fault
        if part is not None and not self.done:
            raise NotReached(f"round {part.round} never came, so nothing was tried in it")


def _other_than(params: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    if other == params:
        raise NotReached("what is sent instead is what would be sent anyway, so nothing is tried")
    return other


def altered(state: str, how: str) -> str:
    """A state that is not the one that was handed out."""
    if how == "empty":
        return ""
    if how == "truncate":
        return state[: len(state) // 2]
    return _readably_altered(state) or _flipped(state)


def _flipped(text: str) -> str:
    """One character in the middle is another: the last one of Base64 may hold bits that nobody reads."""
    middle = len(text) // 2
    return f"{text[:middle]}{'A' if text[middle : middle + 1] != 'A' else 'B'}{text[middle + 1 :]}"


def _readably_altered(state: str) -> str | None:
    """A state that anybody could have written, altered so that it can still be read: only who verifies it will refuse it."""
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
    """A value of the same shape with one part altered; `None` if there is nothing in it to alter."""
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
    """Whether an altered state was refused, as it must be: an error, not a result and not the question once more.

    A result that says it is one of a failure passes only where the test says what it expects.
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
        "other-arguments": "a requestState that was handed out for other arguments",
    }[how]
    did = "asked again at" if asks and how != "drop" else "took" if _fails(envelope) else "accepted"
    return [Failure(f"the server {did} {what}; it must answer with an error", rule="state-verified")]


def _begins_anew(keys: list[str], rounds: Sequence[Round]) -> bool:
    """Whether questions are those of the first round, or those that were just answered: then nothing was taken for granted.

    Their names are compared, each as often as it is there: a price may have moved, and then the keys are others.
    """
    names = sorted(map(name_of, keys))
    return any(names == sorted(map(name_of, one.asked)) for one in (rounds[0], rounds[-1]))


def _fails(envelope: Any) -> bool:
    result: Any = cast("dict[str, Any]", envelope).get("result") if isinstance(envelope, dict) else None
    return isinstance(result, dict) and cast("dict[str, Any]", result).get("isError") is True
