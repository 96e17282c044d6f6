"""What a call has settled so far, as it travels between rounds: encoding, decoding, and finding the largest part."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pydantic_core import from_json, to_json

Action = Literal["accept", "decline", "cancel"]
_ACTIONS = ("accept", "decline", "cancel")


class Settled(NamedTuple):
    """One question's outcome, with exactly the content the client sent."""

    pin: str
    action: Action
    content: Any


class Shown(NamedTuple):
    """One question that was put to the client and is not settled."""

    pin: str
    rests: str
    """Digest of the answers and `once` values that the question depends on."""
    drift: int = 0
    """How many times in a row it has changed although nothing it depends on did."""
    attempts: int = 1
    """How many times it has been shown because the author's validators refused the answer, including the first time."""
    renderings: tuple[str, ...] = ()
    takes_tries: bool = False
    """Whether an answer to it takes a try in the ledger."""


class Kept(NamedTuple):
    """One value that was computed once per call."""

    rests: str
    """Digest of the answers and other `once` values it was computed from. If those change, it is computed again."""
    value: Any
    """As JSON."""


@dataclass(slots=True)
class Progress:
    """Everything that a call must remember between rounds."""

    settled: dict[str, Settled] = field(default_factory=dict)
    shown: dict[str, Shown] = field(default_factory=dict)
    once: dict[str, Kept] = field(default_factory=dict)

    def encode(self) -> bytes:
        return to_json((_plain(self.settled), _plain(self.shown), _plain(self.once)))

    @staticmethod
    def decode(encoded: bytes) -> "Progress":
        """Return the progress that `encode` has written. Raises `ValueError` for anything else."""
        try:
            settled, shown, once = from_json(encoded)
            return Progress(
                {} if settled == {} else {key: _settled(*entry) for key, entry in settled.items()},
                {} if shown == {} else {key: _shown(*entry) for key, entry in shown.items()},
                {} if once == {} else {key: _kept(*entry) for key, entry in once.items()},
            )
        except (ValueError, TypeError, AttributeError):
            raise ValueError("not the progress of a call in this version") from None

    def heaviest(self) -> str:
        """Return a description of the largest entry, for an error message."""
        sizes = {f"the answer to {key!r}": len(to_json(entry.content)) for key, entry in self.settled.items()}
        sizes |= {f"the once=True value of {key!r}": len(to_json(one.value)) for key, one in self.once.items()}
        name = max(sizes, key=lambda one: sizes[one], default="the set of open questions")
        return f"{name} ({sizes[name]} bytes)" if name in sizes else name


def _plain(part: Mapping[str, tuple[Any, ...]]) -> Mapping[str, tuple[Any, ...]]:
    """As plain tuples, which take half the time to write."""
    return {key: tuple(entry) for key, entry in part.items()} if part else part


# Each raises `TypeError` or `ValueError` unless it is given what was encoded.


def _settled(pin: Any, action: Any, content: Any) -> Settled:
    if type(pin) is not str or action not in _ACTIONS:
        raise ValueError
    return Settled(pin, action, content)


def _shown(pin: Any, rests: Any, drift: Any, attempts: Any, renderings: Any, takes_tries: Any) -> Shown:
    if not (type(pin) is type(rests) is str and type(drift) is type(attempts) is int and type(takes_tries) is bool):
        raise ValueError
    return Shown(pin, rests, drift, attempts, _texts(renderings), takes_tries)


_TEXT: frozenset[type] = frozenset({str})


def _texts(renderings: Any) -> tuple[str, ...]:
    texts = tuple(renderings)
    if type(renderings) is not list or not _TEXT.issuperset(map(type, texts)):
        raise ValueError
    return texts


def _kept(rests: Any, value: Any) -> Kept:
    if type(rests) is not str:
        raise ValueError
    return Kept(rests, value)
