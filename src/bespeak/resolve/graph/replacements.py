"""What stands in for a resolver while an override is open, and what makes two functions the same one."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from bespeak.resolve.reading.callables import Kind
from bespeak.resolve.reading.signatures import Signature, read


@dataclass(frozen=True, slots=True)
class Replacement:
    """What stands in for a resolver while an override is open."""

    fn: Callable[..., Any]
    signature: Signature
    below: dict[Hashable, Signature] = field(default_factory=dict[Hashable, Signature])
    """What was read of the functions it depends on, when it was put in force."""


def constant(original: Callable[..., Any], value: Any) -> Replacement:
    """A replacement that is just a value."""
    read_from = read(original)
    signature = Signature(read_from.name, read_from.place, Kind.VALUE, (), value.__class__, ())
    return Replacement(lambda: value, signature)


def identity(fn: Callable[..., Any]) -> Hashable:
    """The same for the same function, and for the same method of the same object."""
    owner = getattr(fn, "__self__", None)
    if owner is None:
        return id(fn)
    return getattr(fn, "__func__", None) or getattr(fn, "__name__", None), id(owner)
