"""Redaction: what a report or a cassette must not hold, taken out before anything is written or compared."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from bespeak.conversation.question_names import name_of
from bespeak.testing.redaction.secret_forms import SHORTEST_PIECE, Form, Plain, Span, Text, all_forms
from bespeak.testing.value_paths import EVERY, Path, parse_path

REDACTED = "[redacted]"
TOKEN = "[requestState]"
SHORTEST = 4
"""A token of fewer characters would be found in any text."""
BY_KEY = ("inputRequests", "inputResponses")
"""What has members that are called after questions: there a path may name them."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """What must not be seen: declared places, and the values of secrets wherever they turn up."""

    paths: Sequence[str] = ()
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Their values by name. An empty one is no secret."""
    tokens: Sequence[str] = field(default=(), repr=False)
    """Tokens of states, which have no names."""
    _paths: tuple[Path, ...] = field(init=False, repr=False)
    _hidden: tuple[tuple[Form, str], ...] = field(init=False, repr=False)
    """What is replaced, and by what: the longest first, for a short secret may be a part of a long one."""

    _least: int = field(init=False, repr=False)
    """No shorter text holds anything of that."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_paths", tuple(parse_path(path) for path in self.paths))
        shown = {(form, f"${{env:{name}}}") for name, secret in self.secrets.items() for form in all_forms(secret)}
        # A state may be very long, and there are many; none has characters that are escaped one by one.
        tokens = (token for token in self.tokens if len(token) >= SHORTEST)
        shown |= {(form, TOKEN) for token in tokens for form in all_forms(token, escaped=False)}
        object.__setattr__(self, "_hidden", tuple(sorted(shown, key=_first)))
        object.__setattr__(self, "_least", self._hidden[-1][0].length if self._hidden else sys.maxsize)

    def apply(self, value: Any) -> Any:
        """A copy without them."""
        if not isinstance(value, dict) or not self._paths:
            return self._apply(value, self._paths)
        told: dict[str, Any] = {}
        for name, member in cast("dict[str, Any]", value).items():
            paths = _beyond(name, self._paths)
            if name in BY_KEY and isinstance(member, dict) and () not in paths:
                told[self.text(name)] = self._apply_by_key(cast("dict[str, Any]", member), paths)
            else:
                told[self.text(name)] = self._apply(member, paths)
        return told

    def _apply_by_key(self, members: Mapping[str, Any], paths: tuple[Path, ...]) -> dict[str, Any]:
        """Members that are called after questions: a path leads to one by its whole key, or by its name."""
        return {
            self.text(key): self._apply(member, _beyond(key, paths) + (_beyond(name_of(key), paths)))
            for key, member in members.items()
        }

    def restored(self, value: Any) -> Any:
        """A copy with the values of secrets where their names stand: what was written down, as it was said."""
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value).items()
            return {cast("str", self.restored(key)): self.restored(member) for key, member in members}
        if isinstance(value, list):
            return [self.restored(entry) for entry in cast("list[Any]", value)]
        if not isinstance(value, str) or "${env:" not in value:
            return value
        for name, secret in self.secrets.items():
            value = value.replace(f"${{env:{name}}}", secret) if secret else value
        return value

    def text(self, text: str) -> str:
        """A text without the values of secrets."""
        return "".join(self._pieces(text))

    def message(self, text: str) -> str:
        """A message without the values of secrets, and without what was left of one where a long text was cut."""
        pieces = self._pieces(text)
        for form, shown in self._hidden:
            if isinstance(form, Plain) and form.length > SHORTEST_PIECE and form.needle[:SHORTEST_PIECE] in text:
                pieces = _replaced(pieces, shown, lambda piece, form=form: form.pieces(piece))
        return "".join(pieces)

    def _pieces(self, text: str) -> list[str]:
        # Texts and what stands for secrets take turns, and only texts are searched on: `env` may be a secret too.
        if len(text) < self._least:
            return [text]
        pieces, whole = [text], Text(text)
        for form, shown in self._hidden:
            if form.length <= len(text) and next(form.spans(whole), None) is not None:
                pieces = _replaced(pieces, shown, lambda piece, form=form: form.spans(Text(piece)))
        return pieces

    def _apply(self, value: Any, paths: tuple[Path, ...]) -> Any:
        if () in paths:
            return REDACTED
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {self.text(key): self._apply(member, _beyond(key, paths)) for key, member in members.items()}
        if isinstance(value, list):
            entries = enumerate(cast("list[Any]", value))
            return [self._apply(entry, _beyond(index, paths)) for index, entry in entries]
        return self.text(value) if isinstance(value, str) else value


def _first(hidden: tuple[Form, str]) -> tuple[int, str, str]:
    form, shown = hidden
    return -form.length, repr(form), shown


def _replaced(pieces: Sequence[str], shown: str, find: Callable[[str], Iterable[Span]]) -> list[str]:
    """The pieces with what stands for a secret wherever it is found in one of the texts."""
    told: list[str] = []
    for turn, piece in enumerate(pieces):
        if turn % 2:
            told.append(piece)
            continue
        last = 0
        for start, end in find(piece):
            told += [piece[last:start], shown]
            last = end
        told.append(piece[last:])
    return told


def _beyond(step: str | int, paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Where the paths lead on from a step."""
    return tuple(path[1:] for path in paths if path[0] in (EVERY, step))
