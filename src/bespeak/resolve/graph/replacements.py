"""Replacements of resolvers by overrides, and the identity of a resolver."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from bespeak.resolve.reading.callables import Kind
from bespeak.resolve.reading.signatures import Signature, read


@dataclass(frozen=True, slots=True)
class Replacement:
    """What replaces a resolver while an override is open."""

    fn: Callable[..., Any]
    signature: Signature
    below: dict[Hashable, Signature] = field(default_factory=dict[Hashable, Signature])
    """The signatures of the functions it depends on, as read when the override was opened."""


def constant(original: Callable[..., Any], value: Any) -> Replacement:
    """Return a replacement that returns a fixed value."""
    read_from = read(original)
    signature = Signature(read_from.name, read_from.place, Kind.VALUE, (), value.__class__, ())
    return Replacement(lambda: value, signature)


def identity(fn: Callable[..., Any]) -> Hashable:
    """Return a key that is equal for the same function, and for the same method of the same object."""
    owner = getattr(fn, "__self__", None)
    if owner is None:
        return id(fn)
    return getattr(fn, "__func__", None) or getattr(fn, "__name__", None), id(owner)
