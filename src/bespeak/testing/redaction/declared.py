"""The redactions that a suite and its tests declare: made into a redactor, and checked for those that match nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from bespeak.conversation.matchers import ABSENT
from bespeak.conversation.patterns import Expression, PatternTimeout
from bespeak.conversation.question_names import name_of
from bespeak.testing.redaction.redactor import BY_KEY, Redactor
from bespeak.testing.suite.redact_keys import Redact
from bespeak.testing.value_paths import EVERY, Path, parse_path


def redactor_for(declared: Sequence[Redact], secrets: Mapping[str, str]) -> Redactor:
    """Return the redactor for what is declared, and for secrets of the environment."""
    paths = [one.path for one in declared if one.path is not None]
    patterns = [Expression(one.pattern) for one in declared if one.pattern is not None]
    return Redactor(paths, secrets, patterns=patterns)


def matched(declared: Iterable[Redact], values: Sequence[Any]) -> set[str]:
    """Return the paths and patterns that match something in at least one of the values."""
    return {one.written for one in declared if any(_matches(one, value) for value in values)}


def _matches(declared: Redact, value: Any) -> bool:
    if declared.path is not None:
        return next(_values_at(parse_path(declared.path), value, top=True), ABSENT) is not ABSENT
    expression = Expression(declared.written)
    try:
        return any(expression.found_in(text) for text in _texts(value))
    except PatternTimeout:
        return True  # then everything was redacted


def texts_at(path: Path, value: Any) -> Iterator[str]:
    """Return the strings to which a path leads."""
    return (found for found in _values_at(path, value, top=True) if isinstance(found, str))


def _values_at(path: Path, value: Any, *, top: bool = False) -> Iterator[Any]:
    """The values to which a path leads."""
    if not path:
        yield value
        return
    step, rest = path[0], path[1:]
    if isinstance(value, list):
        for index, entry in enumerate(cast("list[Any]", value)):
            if step in (EVERY, index):
                yield from _values_at(rest, entry)
    elif isinstance(value, dict):
        for key, member in cast("dict[str, Any]", value).items():
            if step not in (EVERY, key):
                continue
            if top and rest and key in BY_KEY and isinstance(member, dict):
                yield from _by_key(rest, cast("dict[str, Any]", member))
            else:
                yield from _values_at(rest, member)


def _by_key(path: Path, members: Mapping[str, Any]) -> Iterator[Any]:
    """The values in a map whose keys are question keys: a path names one by its key or by its question name."""
    for key, member in members.items():
        if path[0] in (EVERY, key, name_of(key)):
            yield from _values_at(path[1:], member)


def _texts(value: Any) -> Iterator[str]:
    """All strings that a pattern is applied to."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in cast("dict[str, Any]", value).values():
            yield from _texts(member)
    elif isinstance(value, list):
        for entry in cast("list[Any]", value):
            yield from _texts(entry)
