"""The arguments of `bespeak call`: KEY=VALUE words and `--arguments`, typed as the tool's input schema says."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

from bespeak.client.errors import InvalidServerResponse
from bespeak.conversation.connection import Connection
from bespeak.conversation.tool_list import list_tools
from bespeak.protocol.errors import MCPError

DEEPEST = 20
"""How many schemas are followed from one to the next."""


class BadArguments(ValueError):
    """The arguments on the command line cannot be read."""


def check_arguments(words: Sequence[str], whole: str | None) -> None:
    """Raises `BadArguments` for what can be seen to be wrong without the tool's schema."""
    for word in words:
        key, equals, _ = word.partition("=")
        if not (key and equals):
            raise BadArguments(f"tool arguments must be KEY=VALUE, not {word!r}")
    _object(whole)


async def typed_arguments(connection: Connection, tool: str, words: Sequence[str], whole: str | None) -> dict[str, Any]:
    """Return the arguments of a call. A VALUE stays text where the schema wants a string, and is read as JSON elsewhere."""
    arguments = _object(whole)
    pairs = [word.partition("=") for word in words]
    if pairs:
        schema = await _input_schema(connection, tool)
        properties = _members(schema.get("properties"))
        arguments |= {key: _typed(properties.get(key), value, schema) for key, _, value in pairs}
    return arguments


def json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _object(whole: str | None) -> dict[str, Any]:
    read: Any = {} if whole is None else json_or_text(whole)
    if not isinstance(read, dict):
        raise BadArguments("--arguments takes a JSON object")
    return cast("dict[str, Any]", read)


async def tool_names(connection: Connection) -> list[str]:
    """Return the names of the server's tools, or a note if it does not list them."""
    try:
        names = [name async for tool in list_tools(connection) if isinstance(name := tool.get("name"), str)]
    except (MCPError, InvalidServerResponse, OSError):
        names = []
    return names or ["(the server does not list any)"]


async def _input_schema(connection: Connection, tool: str) -> Mapping[str, Any]:
    """The input schema of a tool; empty if the server does not list the tool."""
    try:
        async for one in list_tools(connection):
            if one.get("name") == tool:
                return _members(one.get("inputSchema"))
    except (MCPError, InvalidServerResponse, OSError):
        pass
    return {}


def _members(value: Any) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _entries(value: Any) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _typed(schema: Any, value: str, root: Mapping[str, Any]) -> Any:
    """A value as the schema wants it: text where only text fits, or where it is one of the offered texts."""
    found = _Accepted()
    found.add(schema, root)
    if value in found.texts:
        return value
    return value if found.types - {"null"} == {"string"} else json_or_text(value)


class _Accepted:
    """What a schema accepts, as far as it says: JSON types, and texts that it offers."""

    def __init__(self) -> None:
        self.types: set[str] = set()
        self.texts: set[str] = set()

    def add(self, schema: Any, root: Mapping[str, Any], depth: int = 0) -> None:
        if depth > DEEPEST:  # a schema may refer to itself
            return
        members = _members(schema)
        kind: Any = members.get("type")
        self.types |= {one for one in ([kind] if isinstance(kind, str) else _entries(kind)) if isinstance(one, str)}
        offered = [*_entries(members.get("enum")), *([members["const"]] if "const" in members else [])]
        self.texts |= {one for one in offered if isinstance(one, str)}
        self.types |= {_json_type(one) for one in offered} if kind is None else set()
        if "$ref" in members:
            self.add(_at(root, members["$ref"]), root, depth + 1)
        for name in ("anyOf", "oneOf", "allOf"):
            for option in _entries(members.get(name)):
                self.add(option, root, depth + 1)


def _json_type(value: Any) -> str:
    kinds = ((str, "string"), (bool, "boolean"), (int | float, "number"), (list, "array"), (dict, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _at(root: Mapping[str, Any], reference: Any) -> Any:
    """The part of a schema that a reference such as `#/$defs/Size` names; `None` if it is not in the schema."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for step in unquote(reference[1:]).split("/")[1:]:
        found = _members(found).get(step.replace("~1", "/").replace("~0", "~"))
    return found
