"""Handles: what a cassette has in place of question keys that change with the wording.

Such a key ends in a digest of the question. The digest would change the cassette with every wording, and would reveal something
about redacted text. So a key is recorded as its name with a number: `confirm~1` for the first key of that name, `confirm~2` for
the next. A cassette lists its handles, because a server may have a key that only looks like one.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, cast

from bespeak.conversation.json_values import as_array, as_object
from bespeak.conversation.question_names import name_of
from bespeak.protocol.question_keys import full_key
from bespeak.testing.redaction.secret_forms import forms_of

Turns = Sequence[Mapping[str, Any]]
"""The turns of a conversation in a cassette."""
_HANDLE = re.compile(r"(.+)(~[1-9][0-9]*)", re.DOTALL)
_ENDING = re.compile(r"~[0-9a-f]{8}")


def is_handle(text: str) -> bool:
    return _HANDLE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class KeyHandles:
    """The handles of one conversation, by the keys they stand for."""

    by_key: Mapping[str, str]
    others: Set[str] = frozenset()
    """The keys without a handle, which are recorded as they are."""
    _keys: Mapping[str, str] = field(init=False, repr=False)
    _numbers: Mapping[str, Sequence[tuple[str, str]]] = field(init=False, repr=False)
    """By the ending of a key: the name before it in each escaped form, and the number that replaces the ending."""

    def __post_init__(self) -> None:
        numbers: dict[str, list[tuple[str, str]]] = {}
        for key, handle in self.by_key.items():
            name = name_of(key)
            known = numbers.setdefault(key[len(name) :], [])
            known += [(form, handle[len(name) :]) for form in forms_of(name)]
            known.sort(key=lambda one: -len(one[0]))  # the longest first: a name may be the end of another
        object.__setattr__(self, "_keys", {handle: key for key, handle in self.by_key.items()})
        object.__setattr__(self, "_numbers", numbers)

    @classmethod
    def of(cls, turns: Turns, written: str) -> "KeyHandles":
        """Create handles for the keys of a conversation, except those that the suite writes out."""
        keys = list(dict.fromkeys(_asked(turns)))
        taken, numbers = set(keys), dict[str, int]()
        by_key: dict[str, str] = {}
        for key in keys:
            name = name_of(key)
            if name == key or key in written:
                continue
            number = numbers.get(name, 0) + 1
            while f"{name}~{number}" in taken:
                number += 1
            numbers[name] = number
            by_key[key] = f"{name}~{number}"
        return cls(by_key, taken - by_key.keys())

    @classmethod
    def listed(cls, handles: Sequence[str], turns: Turns) -> "KeyHandles":
        """Return the handles that a cassette lists, each with an invented key: the original is not recorded."""
        taken, by_key = set(_asked(turns)), dict[str, str]()
        others = taken.difference(handles)
        for handle in handles:
            name, attempt = handle.rpartition("~")[0], 0
            while (key := full_key(name, _digest(handle, attempt))) in taken:
                attempt += 1
            taken.add(key)
            by_key[key] = handle
        return cls(by_key, others)

    def key(self, stored: str) -> str:
        """Return the key of a handle. Other text is returned as it is."""
        return self._keys.get(stored, stored)

    def stored(self, value: Any) -> Any:
        """Return a value with handles in place of keys, wherever they appear."""
        if not self.by_key:
            return value
        if isinstance(value, str):
            if value in self.others:
                return value
            return self.by_key.get(value) or _ENDING.sub(self._number, value)
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value).items()
            return {cast("str", self.stored(key)): self.stored(member) for key, member in members}
        return [self.stored(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value

    def _number(self, ending: re.Match[str]) -> str:
        for name, number in self._numbers.get(ending[0], ()):
            if ending.string.endswith(name, 0, ending.start()):
                return number
        return ending[0]


def _asked(turns: Turns) -> Iterator[str]:
    """The keys of all questions in the order they arrived, in either format."""
    for turn in turns:
        yield from (one["key"] for one in turn.get("asked", []))
        listed: Any = turn.get("listed")
        for one in as_array(listed):
            id_: Any = as_object(one).get("id")
            if isinstance(id_, str):
                yield id_


def _digest(handle: str, attempt: int) -> str:
    return hashlib.sha256(f"{attempt} {handle}".encode(errors="surrogatepass")).hexdigest()
