"""The arguments of `bespeak call`: KEY=VALUE words and `--arguments`, typed as the tool's input schema says."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bespeak.client.errors import InvalidServerResponse
from bespeak.conversation.connection import Connection
from bespeak.conversation.tool_list import list_tools
from bespeak.protocol.errors import MCPError


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
        schema = await _properties(connection, tool)
        arguments |= {key: _typed(schema.get(key), value) for key, _, value in pairs}
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


async def _properties(connection: Connection, tool: str) -> Mapping[str, Any]:
    """The properties of a tool's input schema; empty if the server does not list the tool."""
    try:
        async for one in list_tools(connection):
            if one.get("name") == tool:
                schema: Any = one.get("inputSchema")
                properties: Any = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
                return cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
    except (MCPError, InvalidServerResponse, OSError):
        pass
    return {}


def _typed(schema: Any, value: str) -> Any:
    return value if _types(schema) - {"null"} == {"string"} else json_or_text(value)


def _types(schema: Any) -> set[str]:
    """The JSON types that a schema accepts, as far as it names them."""
    if not isinstance(schema, dict):
        return set()
    members = cast("dict[str, Any]", schema)
    kind: Any = members.get("type")
    found = {kind} if isinstance(kind, str) else set(cast("list[str]", kind)) if isinstance(kind, list) else set[str]()
    options: Any = members.get("anyOf")
    return found.union(*map(_types, cast("list[Any]", options))) if isinstance(options, list) else found
