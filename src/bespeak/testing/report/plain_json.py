"""Converts values to JSON in plain ASCII, whatever a server sent."""

import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, cast

from bespeak.conversation.matchers import ABSENT
from bespeak.terminal.safe_text import REPLACED

DEEPEST = 100
"""How many levels of one value a report shows."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def as_text(told: Any) -> str:
    """Return a value as JSON in plain ASCII, whatever a server put into it."""
    return json.dumps(plain(told), allow_nan=False)


def plain(value: Any, depth: int = 0) -> Any:
    """Return the value without anything that JSON cannot represent. Absent values are left out."""
    if isinstance(value, str):
        return _SURROGATE.sub(REPLACED, value)
    if value is None or isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, Mapping | list | tuple) and depth == DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value).items()
        return {plain(str(key)): plain(member, depth + 1) for key, member in members if member is not ABSENT}
    if isinstance(value, list | tuple):
        return [plain(member, depth + 1) for member in cast("Sequence[Any]", value)]
    return plain(str(value))
