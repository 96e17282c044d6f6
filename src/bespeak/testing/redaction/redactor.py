"""Removes secrets, request states and declared values from what is written or compared."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from bespeak.conversation.patterns import Expression, PatternTimeout
from bespeak.conversation.question_names import name_of
from bespeak.testing.redaction.folder_paths import Folder
from bespeak.testing.redaction.secret_forms import SHORTEST_PIECE, Form, Plain, Span, Text, all_forms
from bespeak.testing.value_paths import EVERY, Path, parse_path

REDACTED = "[redacted]"
TOKEN = "[requestState]"
SHORTEST = 4
"""A shorter token would match almost any text."""
WORDS = frozenset(("type", "resultType", "role", "action"))
"""Members that hold words of the protocol. Patterns do not apply to them: without them, nothing could be replayed."""
BY_KEY = ("inputRequests", "inputResponses")
"""Maps whose keys are question keys. A path may use question names there."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """Redacts the values at declared paths, and secrets and tokens wherever they appear."""

    paths: Sequence[str] = ()
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Environment variables and their values. An empty value is ignored."""
    tokens: Sequence[str] = field(default=(), repr=False)
    """Request states to remove."""
    patterns: Sequence[Expression] = ()
    """Regular expressions. What they find in a text is removed; names of members and words of the protocol are kept."""
    folders: Sequence[Folder] = ()
    """Folders of this machine, whose paths are replaced."""
    _paths: tuple[Path, ...] = field(init=False, repr=False)
    _hidden: tuple[tuple[Form, str], ...] = field(init=False, repr=False)
    """The forms to replace, with their replacements: the longest first, because a short secret may be part of a long one."""

    _least: int = field(init=False, repr=False)
    """A shorter text cannot contain any of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_paths", tuple(parse_path(path) for path in self.paths))
        shown = {(form, f"${{env:{name}}}") for name, secret in self.secrets.items() for form in all_forms(secret)}
        # A state may be very long, and there are many; none has characters that are escaped one by one.
        tokens = (token for token in self.tokens if len(token) >= SHORTEST)
        shown |= {(form, TOKEN) for token in tokens for form in all_forms(token, escaped=False)}
        shown |= {(form, folder.shown) for folder in self.folders for form in folder.forms()}
        object.__setattr__(self, "_hidden", tuple(sorted(shown, key=_first)))
        object.__setattr__(self, "_least", self._hidden[-1][0].length if self._hidden else sys.maxsize)

    def apply(self, value: Any) -> Any:
        """Return a redacted copy."""
        if not isinstance(value, dict) or not self._paths:
            return self._apply(value, self._paths)
        told: dict[str, Any] = {}
        for name, member in cast("dict[str, Any]", value).items():
            paths = _beyond(name, self._paths)
            if name in BY_KEY and isinstance(member, dict) and () not in paths:
                told[self.text(name)] = self._apply_by_key(cast("dict[str, Any]", member), paths)
            else:
                told[self.text(name)] = self._member(name, member, paths)
        return told

    def _member(self, name: str, member: Any, paths: tuple[Path, ...]) -> Any:
        if name in WORDS and isinstance(member, str) and () not in paths:
            return self.text(member)
        return self._apply(member, paths)

    def _apply_by_key(self, members: Mapping[str, Any], paths: tuple[Path, ...]) -> dict[str, Any]:
        """Redact a map whose keys are question keys: a path names one by its key or by its question name."""
        return {
            self.text(key): self._apply(member, _beyond(key, paths) + (_beyond(name_of(key), paths)))
            for key, member in members.items()
        }

    def said(self, text: str) -> str:
        """Return a text without secrets, tokens and what the patterns find."""
        return self._without_found("".join(self._pieces(text)))

    def _without_found(self, text: str) -> str:
        for pattern in self.patterns:
            try:
                spans = [span for span in pattern.spans_in(text) if span[0] < span[1]]
            except PatternTimeout:
                return REDACTED  # it is not known where it would be found
            text = "".join(_replaced([text], REDACTED, lambda _, spans=spans: spans))
        return text

    def restored(self, value: Any) -> Any:
        """Return a copy with the secrets and folders put back in place of their names."""
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value).items()
            return {cast("str", self.restored(key)): self.restored(member) for key, member in members}
        if isinstance(value, list):
            return [self.restored(entry) for entry in cast("list[Any]", value)]
        if not isinstance(value, str):
            return value
        for folder in self.folders:
            value = folder.restored(value)
        for name, secret in self.secrets.items() if "${env:" in value else ():
            value = value.replace(f"${{env:{name}}}", secret) if secret else value
        return value

    def text(self, text: str) -> str:
        """Return a text without secrets and tokens."""
        return "".join(self._pieces(text))

    def message(self, text: str) -> str:
        """Return a message without secrets, tokens and what the patterns find, including secrets that were cut off."""
        pieces = self._pieces(text)
        for form, shown in self._hidden:
            if isinstance(form, Plain) and form.length > SHORTEST_PIECE and form.needle[:SHORTEST_PIECE] in text:
                pieces = _replaced(pieces, shown, lambda piece, form=form: form.pieces(piece))
        return self._without_found("".join(pieces))

    def _pieces(self, text: str) -> list[str]:
        # Texts and replacements alternate, and only texts are searched again: `env` may be a secret too.
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
            return {self.text(key): self._member(key, member, _beyond(key, paths)) for key, member in members.items()}
        if isinstance(value, list):
            entries = enumerate(cast("list[Any]", value))
            return [self._apply(entry, _beyond(index, paths)) for index, entry in entries]
        return self.said(value) if isinstance(value, str) else value


def _first(hidden: tuple[Form, str]) -> tuple[int, str, str]:
    form, shown = hidden
    return -form.length, repr(form), shown


def _replaced(pieces: Sequence[str], shown: str, find: Callable[[str], Iterable[Span]]) -> list[str]:
    """Replace a secret in the texts among the pieces."""
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
    """The rest of the paths that start with a step."""
    return tuple(path[1:] for path in paths if path[0] in (EVERY, step))
