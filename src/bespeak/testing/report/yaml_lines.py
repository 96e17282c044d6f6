"""Values as lines of YAML, for people to read."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from bespeak.conversation.differences import ABSENT

DEEPEST = 50
"""How many levels of a value are written."""


def yaml_lines(value: Any) -> Iterator[str]:
    """Return a value as lines of YAML; a text as its own lines, and nothing for a missing value."""
    if isinstance(value, str):
        yield from value.split("\n")
    elif value is not ABSENT:
        yield from _nested(value, 0)


def _nested(value: Any, depth: int) -> Iterator[str]:
    if depth == DEEPEST:
        yield "..."
    elif isinstance(value, Mapping) and value:
        for key, member in cast("Mapping[Any, Any]", value).items():
            if member is not ABSENT:
                yield from _after(f"{_key(str(key))}:", member, depth)
    elif isinstance(value, list) and value:
        for entry in cast("list[Any]", value):
            first, *rest = _nested(entry, depth + 1) if _is_nested(entry) else _after("", entry, depth)
            yield f"- {first.strip()}" if not _is_nested(entry) else f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _after(start: str, value: Any, depth: int) -> Iterator[str]:
    """A value behind its key."""
    if _is_nested(value):
        yield start
        yield from (f"  {line}" for line in _nested(value, depth + 1))
    elif isinstance(value, str) and "\n" in value:
        yield f"{start} |"
        yield from (f"  {line}" for line in value.split("\n"))
    else:
        yield f"{start} {_scalar(value)}"


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list) and bool(cast("Any", value))


def _key(text: str) -> str:
    return text if text.replace("-", "_").isidentifier() else _scalar(text)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
