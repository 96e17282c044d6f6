"""Checks the content of a form against its flat schema, strictly: `"5"` is not an integer, `"yes"` is not a boolean."""

import math
import sys
from collections.abc import Mapping
from typing import Any, cast

from bespeak.protocol.text_formats import check_format


def check_content(schema: Mapping[str, Any], content: Mapping[str, Any], *, formats: bool = False) -> list[str]:
    """Return the faults of a form's content, one line each. The lines do not repeat the content.

    With `formats`, texts must have the format that the schema names. A server leaves that to its own types, which may accept more.
    """
    properties: Mapping[str, Any] = schema.get("properties") or {}
    found = [f"{name}: is required" for name in schema.get("required") or () if name not in content]
    for name, value in content.items():
        shown: Any = properties.get(name)
        described: Mapping[str, Any] = shown
        if (type(shown) is dict or isinstance(shown, Mapping)) and (
            problem := check_value(described, value, formats=formats)
        ):
            found.append(f"{name}: {problem}")
    return found


def check_value(shown: Mapping[str, Any], value: Any, *, formats: bool = False) -> str | None:
    """Return how one value breaks its property's schema; `None` if it is valid."""
    kind = shown.get("type")
    if kind == "string":
        problem = _check_string(shown, value)
        return problem or (check_format(shown.get("format"), value) if formats else None)
    if kind == "boolean":
        return None if isinstance(value, bool) else "must be true or false"
    if kind in ("integer", "number"):
        return _check_number(shown, value, whole=kind == "integer")
    if kind == "array":
        return _check_list(shown, value)
    return None


def offered_by(shown: Mapping[str, Any]) -> list[Any] | None:
    """Return the choices of a property; `None` if any text will do."""
    titled = shown.get("oneOf") or shown.get("anyOf")
    return [option.get("const") for option in titled] if titled else shown.get("enum")


def _check_string(shown: Mapping[str, Any], value: Any) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    offered = offered_by(shown)
    if offered is not None and value not in offered:
        return "must be one of the offered choices"
    if len(value) < shown.get("minLength", 0):
        return f"must have at least {shown['minLength']} characters"
    if len(value) > shown.get("maxLength", math.inf):
        return f"must have at most {shown['maxLength']} characters"
    return None


def _check_number(shown: Mapping[str, Any], value: Any, *, whole: bool) -> str | None:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or (isinstance(value, float) and not math.isfinite(value))
    ):
        return "must be a whole number" if whole else "must be a number"
    if not whole and isinstance(value, int) and abs(value) > sys.float_info.max:
        return "must be within the supported range"
    if whole and value != int(value):
        return "must be a whole number"
    if value < shown.get("minimum", -math.inf):
        return f"must be at least {shown['minimum']}"
    if value > shown.get("maximum", math.inf):
        return f"must be at most {shown['maximum']}"
    return None


def _check_list(shown: Mapping[str, Any], value: Any) -> str | None:
    if not isinstance(value, list):
        return "must be a list of choices"
    items = cast("list[Any]", value)
    if any(_check_string({"type": "string", **shown.get("items", {})}, item) for item in items):
        return "must contain only offered choices"
    if len(items) < shown.get("minItems", 0):
        return f"must contain at least {shown['minItems']} choices"
    if len(items) > shown.get("maxItems", math.inf):
        return f"must contain at most {shown['maxItems']} choices"
    return None
