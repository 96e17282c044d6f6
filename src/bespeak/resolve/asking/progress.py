"""What a call has settled so far, as it travels between rounds: encoding, decoding, and finding the largest part."""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

Action = Literal["accept", "decline", "cancel"]


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


class Kept(NamedTuple):
    """One value that was computed once per call."""

    rests: str
    """Digest of the answers and other `once` values it was computed from. If those change, it is computed again."""
    value: Any
    """As JSON."""


@dataclass(slots=True)
class Progress:
    """Everything that a call must remember between rounds."""

    settled: dict[str, Settled] = field(default_factory=dict[str, Settled])
    shown: dict[str, Shown] = field(default_factory=dict[str, Shown])
    once: dict[str, Kept] = field(default_factory=dict[str, Kept])

    def encode(self) -> bytes:
        return to_json(
            [
                self.settled,
                self.shown,
                self.once,
            ]
        )

    @staticmethod
    def decode(encoded: bytes) -> "Progress":
        """Return the progress that `encode` has written. Raises `ValueError` for anything else."""
        try:
            settled, shown, once = _read_parts(encoded)
        except ValidationError:
            raise ValueError("not the progress of a call in this version") from None
        return Progress(
            {key: Settled._make(entry) for key, entry in settled.items()},
            {key: Shown._make(entry) for key, entry in shown.items()},
            {key: Kept._make(entry) for key, entry in once.items()},
        )

    def heaviest(self) -> str:
        """Return a description of the largest entry, for an error message."""
        sizes = {f"the answer to {key!r}": len(to_json(entry.content)) for key, entry in self.settled.items()}
        sizes |= {f"the once=True value of {key!r}": len(to_json(one.value)) for key, one in self.once.items()}
        name = max(sizes, key=lambda one: sizes[one], default="the set of open questions")
        return f"{name} ({sizes[name]} bytes)" if name in sizes else name


_Parts = tuple[
    dict[str, tuple[str, Action, Any]],
    dict[str, tuple[str, str, int, int, tuple[str, ...]]],
    dict[str, tuple[str, Any]],
]
_read_parts = TypeAdapter[_Parts](_Parts).validator.validate_json
