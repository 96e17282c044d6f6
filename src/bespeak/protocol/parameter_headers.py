"""`x-mcp-header`: the arguments of a tool that HTTP requests repeat in `Mcp-Param-...` headers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from pydantic_core import from_json

from bespeak.protocol.errors import HEADER_MISMATCH, MCPError
from bespeak.protocol.headers import Headers, decode_value, encode_value

ANNOTATION = "x-mcp-header"
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]+")
_TYPES = ("string", "integer", "boolean")
_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?")
_SAFE = 2**53 - 1
_ENORMOUS = 10**400


class InvalidParameterHeader(ValueError):
    """A schema uses `x-mcp-header` in a way that the protocol forbids, so the tool cannot be used over HTTP."""


@dataclass(frozen=True, slots=True)
class ParameterHeader:
    """One argument of a tool, and the header that repeats it."""

    header: str
    path: tuple[str, ...]

    def value(self, arguments: Mapping[str, Any]) -> Any:
        """Return the argument as it was sent; `None` if it is absent."""
        found: Any = arguments
        for step in self.path:
            found = unpacked(found)
            if not isinstance(found, dict):
                return None
            found = cast("dict[str, Any]", found).get(step)
        return found


def unpacked(value: Any) -> Any:
    """Return the list or object in a JSON text, which some models send instead; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):
            return from_json(value, allow_inf_nan=False)
    return value


def read_parameter_headers(schema: Mapping[str, Any]) -> tuple[ParameterHeader, ...]:
    """Return the parameter headers of an input schema. Raises `InvalidParameterHeader`."""
    found = tuple(_reachable(schema, ()))
    if len(found) != _count(schema):
        raise InvalidParameterHeader(
            f"{ANNOTATION} is only allowed on properties that are reachable through plain 'properties'"
        )
    claimed: set[str] = set()
    for parameter in found:
        if parameter.header.lower() in claimed:
            raise InvalidParameterHeader(f"two properties use the same header {parameter.header}")
        claimed.add(parameter.header.lower())
    return found


def _reachable(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[ParameterHeader]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, below in cast("dict[str, Any]", properties).items():
        if not isinstance(below, dict):
            continue
        inner = cast("dict[str, Any]", below)
        here = (*path, name)
        if ANNOTATION in inner:
            yield _parameter_header(inner, here)
        yield from _reachable(inner, here)


def _parameter_header(schema: dict[str, Any], path: tuple[str, ...]) -> ParameterHeader:
    name, place = schema[ANNOTATION], ".".join(path)
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise InvalidParameterHeader(f"{place}: {ANNOTATION} must be a header name (letters, digits, -), not {name!r}")
    if schema.get("type") not in _TYPES:
        raise InvalidParameterHeader(f"{place}: only a string, an integer or a boolean can be repeated in a header")
    said = [schema.get(keyword) for keyword in ("minimum", "maximum", "const", "default")]
    listed = schema.get("enum")
    said += cast("list[Any]", listed) if isinstance(listed, list) else []
    if any(isinstance(number, (int, float)) and abs(number) > _SAFE for number in said):
        raise InvalidParameterHeader(f"{place}: an integer that is repeated in a header must not exceed 2**53 - 1")
    return ParameterHeader(f"Mcp-Param-{name}", path)


_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_DATA = ("default", "const", "enum", "examples", "required", "dependentRequired")


def _count(schema: Any) -> int:
    """Return the number of annotations in a schema, wherever they are."""
    if isinstance(schema, list):
        return sum(_count(one) for one in cast("list[Any]", schema))
    if not isinstance(schema, dict):
        return 0
    total = 0
    for key, value in cast("dict[str, Any]", schema).items():
        if key == ANNOTATION:
            total += 1
        elif key in _MAPS and isinstance(value, dict):  # a property may have any name, this one too
            total += sum(_count(below) for below in cast("dict[str, Any]", value).values())
        elif key not in _DATA:
            total += _count(value)
    return total


def write_parameter_headers(found: Sequence[ParameterHeader], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that a client adds to a call."""
    values = ((parameter.header, _text(parameter.value(arguments))) for parameter in found)
    return {header: encode_value(text) for header, text in values if text is not None}


def check_parameter_headers(found: Sequence[ParameterHeader], headers: Headers, arguments: Mapping[str, Any]) -> None:
    """Check the parameter headers of a call against its arguments. Raises `MCPError` if they differ."""
    for parameter in found:
        value = parameter.value(arguments)
        sent = headers.only(parameter.header)
        where = f"the argument {'.'.join(parameter.path)!r}"
        wanted = _text(value)
        if sent is None:
            # A list cannot be repeated in a header, so its header may be absent. That a list is the wrong type is reported
            # with the other arguments.
            if wanted is None and not isinstance(value, int):
                continue
            raise MCPError(HEADER_MISMATCH, f"the header {parameter.header} is missing; it repeats {where}")
        text = decode_value(parameter.header, sent)
        if value is None:
            raise MCPError(
                HEADER_MISMATCH, f"the header {parameter.header} is present, but {where}, which it repeats, is missing"
            )
        if text != wanted and not (wanted and _equal_numbers(text, value)):
            raise MCPError(HEADER_MISMATCH, f"the header {parameter.header} differs from {where}, which it repeats")


def _text(value: Any) -> str | None:
    """Return a value as header text; `None` if it cannot be repeated in a header."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and abs(value) < _ENORMOUS and value == int(value):
        return str(int(value))
    return None


def _equal_numbers(text: str, value: Any) -> bool:
    """Whether a text is the same number as the argument: 42.0 equals 42."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _NUMBER.fullmatch(text):
        return False
    return Decimal(text) == value
