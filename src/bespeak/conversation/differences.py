"""Differences between a value and what was expected, and how values and paths are shown in messages."""

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

LONGEST_SHOWN = 80
"""How many characters of a value a message shows."""
SEEN = 50
"""A difference after so many equal characters is not seen at the beginning of two texts."""
AROUND = 40
"""How many equal characters are shown before it, at most."""
_BREAKS = re.compile(r"""[\s,;:{}()<>"'\[\]]""")
"""Where a text may be cut at its beginning. Tokens and passwords are seldom divided by these."""


class Absent(Enum):
    """Stands for a missing value; `null` is a value."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


def shown(value: Any) -> str:
    """Return a value for use in a message: the beginning of its JSON."""
    if value is ABSENT:
        return "nothing"
    said = _written(value)
    return said if len(said) <= LONGEST_SHOWN else f"{said[: LONGEST_SHOWN - 3]}..."


def _written(value: Any) -> str:
    said = json.dumps(value, ensure_ascii=False, default=repr)
    return said if said.isprintable() else json.dumps(value, default=repr)


def both_shown(expected: Any, actual: Any) -> tuple[str, str]:
    """Return two values for use in one message. Long texts are shown around their first difference."""
    start = _start(expected, actual) if isinstance(expected, str) and isinstance(actual, str) else 0
    if not start:
        return shown(expected), shown(actual)
    return f'"...{shown(expected[start:])[1:]}', f'"...{shown(actual[start:])[1:]}'


def _start(expected: str, actual: str) -> int:
    """Where two texts are cut, at the end of a word before they differ; 0 if that is not needed, or in the middle of a word."""
    pairs = enumerate(zip(expected, actual, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(expected), len(actual)))
    if same <= SEEN or max(len(expected), len(actual)) < LONGEST_SHOWN - 2:
        return 0
    ends = (found.end() for found in _BREAKS.finditer(expected, same - AROUND, same))
    return next((end for end in ends if len(_written(expected[end:same])) <= AROUND + len('""')), 0)


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
