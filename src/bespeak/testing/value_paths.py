"""Paths to values inside JSON, such as `a.b[0].c`: parse a path, and get the value at it."""

import json
import re
from enum import Enum
from typing import Any, cast

from bespeak.conversation.differences import join
from bespeak.terminal.safe_text import quoted


class Every(Enum):
    """A step to every value of a map or list."""

    EVERY = "*"


EVERY = Every.EVERY
Step = str | int | Every
Path = tuple[Step, ...]

_STEP = re.compile(
    r"""
    \.  (?: (?P<any>\*) | (?P<name>[^\s.\[\]*"'\\]+) )
    | \[ (?: (?P<each>\*) | (?P<index>[0-9]{1,9}) | (?P<key>"(?:[^"\\]|\\.)*") ) \]
    """,
    re.VERBOSE,
)


def parse_path(text: str) -> Path:
    """Return the steps of a path: `a.b[0].c`, `*.token`, `items[*].id`, `a["odd key"]`. Raises `ValueError`."""
    rest = text if text.startswith("[") else f".{text}"
    steps: list[Step] = []
    while rest:
        found = _STEP.match(rest)
        if found is None:
            usage = 'write it like a.b[0].c, with * for any step and ["..."] for names with special characters'
            raise ValueError(f"the path {text!r:.80} cannot be read; {usage}")
        steps.append(_step(found))
        rest = rest[found.end() :]
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["name"]:
        return found["name"]
    if found["index"]:
        return int(found["index"])
    if found["key"]:
        try:
            return cast("str", json.loads(found["key"]))
        except ValueError:
            raise ValueError(f"{found['key']:.80} is not a JSON string; write \\\\ for a backslash") from None
    return EVERY


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path. Raises `LookupError` if there is none."""
    for step in parse_path(path):
        if step is EVERY:
            raise LookupError("a path with * matches many values")
        if isinstance(value, dict) and isinstance(step, str):
            value = cast("dict[str, Any]", value)[step]
        elif isinstance(value, list) and isinstance(step, int):
            value = cast("list[Any]", value)[step]
        else:
            raise LookupError(path)
    return value


def members_beside(value: Any, path: str) -> str | None:
    """Return what there is at the last place of a path that exists; `None` if that is nothing."""
    where = "the result"
    for step in parse_path(path):
        if isinstance(value, dict) and isinstance(step, str) and step in value:
            value = cast("dict[str, Any]", value)[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[step]
        else:
            break
        where = join("" if where == "the result" else where, step)
    if isinstance(value, dict):
        names = ", ".join(map(quoted, cast("dict[str, Any]", value)))
        return f"{where} has {names or 'no members'}"
    if isinstance(value, list):
        count = len(cast("list[Any]", value))
        return f"{where} is a list with {count} {'entry' if count == 1 else 'entries'}"
    return None if value is None else f"{where} is a value without members"
