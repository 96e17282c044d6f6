"""`x-mcp-header`: arguments of a tool that its HTTP requests repeat in headers."""

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


class InvalidMirror(ValueError):
    """A schema annotates a property in a way the protocol forbids: the whole tool is unusable over HTTP."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """One argument, and the header that repeats it."""

    header: str
    path: tuple[str, ...]

    def value(self, arguments: Mapping[str, Any]) -> Any:
        """The argument as it was sent; `None` if it was not."""
        found: Any = arguments
        for step in self.path:
            found = unpacked(found)
            if not isinstance(found, dict):
                return None
            found = cast("dict[str, Any]", found).get(step)
        return found


def unpacked(value: Any) -> Any:
    """What a text says, if it says a list or an object in JSON, as some models write them; else the value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):
            return from_json(value, allow_inf_nan=False)
    return value


def mirrors(schema: Mapping[str, Any]) -> tuple[Mirror, ...]:
    """The mirrored arguments of an input schema. Raises `InvalidMirror`."""
    found = tuple(_reachable(schema, ()))
    if len(found) != _count(schema):
        raise InvalidMirror(f"{ANNOTATION} stands where no path of plain properties leads")
    claimed: set[str] = set()
    for mirror in found:
        if mirror.header.lower() in claimed:
            raise InvalidMirror(f"two properties claim the header {mirror.header}")
        claimed.add(mirror.header.lower())
    return found


def _reachable(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Mirror]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, below in cast("dict[str, Any]", properties).items():
        if not isinstance(below, dict):
            continue
        inner = cast("dict[str, Any]", below)
        here = (*path, name)
        if ANNOTATION in inner:
            yield _mirror(inner, here)
        yield from _reachable(inner, here)


def _mirror(schema: dict[str, Any], path: tuple[str, ...]) -> Mirror:
    name, place = schema[ANNOTATION], ".".join(path)
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise InvalidMirror(f"{place}: {ANNOTATION} must be a header name (letters, digits, -), not {name!r}")
    if schema.get("type") not in _TYPES:
        raise InvalidMirror(f"{place}: only a string, an integer or a boolean can be repeated in a header")
    said = [schema.get(keyword) for keyword in ("minimum", "maximum", "const", "default")]
    listed = schema.get("enum")
    said += cast("list[Any]", listed) if isinstance(listed, list) else []
    if any(isinstance(number, (int, float)) and abs(number) > _SAFE for number in said):
        raise InvalidMirror(f"{place}: a mirrored integer must stay within 2**53 - 1")
    return Mirror(f"Mcp-Param-{name}", path)


_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_DATA = ("default", "const", "enum", "examples", "required", "dependentRequired")


def _count(schema: Any) -> int:
    """How many annotations there are in a schema, wherever they stand."""
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


def mirror_headers(found: Sequence[Mirror], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers a client adds to a call."""
    values = ((mirror.header, _text(mirror.value(arguments))) for mirror in found)
    return {header: encode_value(text) for header, text in values if text is not None}


def check_mirrors(found: Sequence[Mirror], headers: Headers, arguments: Mapping[str, Any]) -> None:
    """Hold mirrored arguments against their headers. Raises `MCPError`."""
    for mirror in found:
        value = mirror.value(arguments)
        sent = headers.only(mirror.header)
        where = f"the argument {'.'.join(mirror.path)!r}"
        wanted = _text(value)
        if sent is None:
            # A list has no place in a header, and it is no client's fault to leave it out; that it is one is said with the
            # other arguments.
            if wanted is None and not isinstance(value, int):
                continue
            raise MCPError(HEADER_MISMATCH, f"the header {mirror.header} is missing; it repeats {where}")
        text = decode_value(mirror.header, sent)
        if value is None:
            raise MCPError(HEADER_MISMATCH, f"the header {mirror.header} is there, but not {where}, which it repeats")
        if text != wanted and not (wanted and _equal_numbers(text, value)):
            raise MCPError(HEADER_MISMATCH, f"the header {mirror.header} differs from {where}, which it repeats")


def _text(value: Any) -> str | None:
    """A value as its header says it; `None` for what has no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and abs(value) < _ENORMOUS and value == int(value):
        return str(int(value))
    return None


def _equal_numbers(text: str, value: Any) -> bool:
    """Whether a text is the number that was sent: 42.0 is 42."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _NUMBER.fullmatch(text):
        return False
    return Decimal(text) == value
