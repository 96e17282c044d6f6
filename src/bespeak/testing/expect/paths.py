"""The value at a path of a result."""

from typing import Any, cast

from bespeak.testing.redaction import EVERY, parse_path


def value_at(value: Any, path: str) -> Any:
    """What lies at a path. Raises `LookupError` if nothing does."""
    for step in parse_path(path):
        if step is EVERY:
            raise LookupError("a path with * leads to many values")
        if isinstance(value, dict) and isinstance(step, str):
            value = cast("dict[str, Any]", value)[step]
        elif isinstance(value, list) and isinstance(step, int):
            value = cast("list[Any]", value)[step]
        else:
            raise LookupError(path)
    return value
