"""Differences between a value and what was expected, and how values and paths are shown in messages."""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Absent(Enum):
    """Stands where there is no value at all; `null` is one."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


def shown(value: Any) -> str:
    """A value in a message: as JSON, the beginning of it."""
    if value is ABSENT:
        return "nothing"
    said = json.dumps(value, ensure_ascii=False, default=repr)
    said = said if said.isprintable() else json.dumps(value, default=repr)
    return said if len(said) <= 80 else f"{said[:77]}..."


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a value is not as expected."""

    path: str
    """`a.b[0].c`; empty for the whole value."""
    message: str
    expected: Any
    """What was written for this place; `ABSENT` if nothing should be there."""
    actual: Any
    stopped: bool = False
    """Whether nobody knows, because finding out took too long."""


def join(path: str, step: str | int) -> str:
    """A path, one step further: `.name`, `[0]`, or `["any other key"]`."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    if not step.isidentifier():
        return f"{path}[{json.dumps(step, ensure_ascii=not step.isprintable())}]"
    return f"{path}.{step}" if path else step
