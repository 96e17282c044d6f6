"""Differences between a value and what was expected, and how values and paths are shown in messages."""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Absent(Enum):
    """Stands for a missing value; `null` is a value."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


def shown(value: Any) -> str:
    """Return a value for use in a message: the beginning of its JSON."""
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
    """The expectation for this place; `ABSENT` if nothing was expected."""
    actual: Any
    stopped: bool = False
    """Whether the comparison was stopped because it took too long."""


def join(path: str, step: str | int) -> str:
    """Return a path extended by one step: `.name`, `[0]`, or `["any other key"]`."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    if not step.isidentifier():
        return f"{path}[{json.dumps(step, ensure_ascii=not step.isprintable())}]"
    return f"{path}.{step}" if path else step
