"""The arguments of `bespeak call`: KEY=VALUE words and `--arguments`, typed as the tool's input schema says."""

import itertools
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bespeak.cli.listing import KINDS
from bespeak.cli.schema_types import entries, members, type_text
from bespeak.cli.suggestions import DID_YOU_MEAN, SHOWN, suggestion
from bespeak.client.errors import InvalidServerResponse
from bespeak.conversation.argument_names import is_closed
from bespeak.conversation.connection import Connection
from bespeak.conversation.feature_list import list_all, list_tools
from bespeak.conversation.schema_references import schema_at
from bespeak.protocol.errors import MCPError
from bespeak.terminal.safe_text import printable, quoted, text_at

DEEPEST = 20
"""How many schemas are followed from one to the next."""


class BadArguments(ValueError):
    """The arguments on the command line cannot be read."""


def check_arguments(words: Sequence[str], whole: str | None) -> None:
    """Raises `BadArguments` for what can be seen to be wrong without the tool's schema."""
    given: set[str] = set()
    for number, word in enumerate(words):
        key = _key(word)
        if key is None:
            raise BadArguments(_not_a_pair(words, number))
        if key in given:
            raise BadArguments(f"the tool argument {quoted(key)} is given twice")
        given.add(key)
    _object(whole)


def _key(word: str) -> str | None:
    key, equals, _ = word.partition("=")
    return key if key and equals else None


def _not_a_pair(words: Sequence[str], number: int) -> str:
    """What to say of a word without a key. After another argument it is probably the rest of a value with spaces."""
    if number == 0:
        return f"tool arguments must be KEY=VALUE, such as title=Dune, not {words[0]!r}"
    rest = itertools.takewhile(lambda word: _key(word) is None, words[number:])
    value = " ".join([words[number - 1], *rest])
    return f"tool arguments must be KEY=VALUE, not {words[number]!r}; put a value with spaces in quotes: {shlex.quote(value)}"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the command line says it."""

    params: dict[str, Any]
    doubt: str | None
    """What to say if the call fails: the server does not list such a tool. Some servers do not list all of them."""
    unknown: str | None
    """What to say if the server refuses the name of the tool."""


async def read_call(connection: Connection, tool: str, words: Sequence[str], whole: str | None) -> ToolCall:
    """Return a call. A VALUE stays text where the schema wants a string, and is read as JSON elsewhere.

    Raises `BadArguments` if the name of the tool is almost one that the server lists, or that of something else, or if an
    argument is unknown or missing. With `--arguments`, names are not checked.
    """
    listed = await _tools(connection)
    unknown = doubt = None
    if tool not in listed and whole is None and (kind := await _other_kind(connection, tool)):
        raise BadArguments(f"{quoted(tool)} is a {kind}; bespeak call calls tools")
    if listed and tool not in listed:
        meant = suggestion(tool, listed, "tools of this server:")
        unknown = f"unknown tool {quoted(tool)}; {meant}"
        if meant.startswith(DID_YOU_MEAN) and whole is None:
            raise BadArguments(unknown)
        doubt = f"the server does not list a tool {quoted(tool)}; {meant}"
    schema = listed.get(tool, {})
    properties = members(schema.get("properties"))
    pairs = [word.partition("=") for word in words]
    arguments = _object(whole)
    if whole is None:
        _check_names(tool, [key for key, _, _ in pairs], schema)
    arguments |= {key: _typed(properties.get(key), value, schema) for key, _, value in pairs}
    return ToolCall({"name": tool, "arguments": arguments}, doubt, unknown)


def _check_names(tool: str, given: Sequence[str], schema: Mapping[str, Any]) -> None:
    """Raises `BadArguments` for unknown and missing arguments, as far as the schema says which there are."""
    known = members(schema.get("properties"))
    unknown = [key for key in given if key not in known]
    if unknown and is_closed(schema):
        accepted = suggestion(unknown[0], known, "it accepts") if known else "it accepts none"
        end = "" if accepted.endswith("?") else "."
        raise BadArguments(
            f"unknown argument {quoted(unknown[0])} of tool {quoted(tool)}; {accepted}{end} "
            "To send it all the same, use --arguments."
        )
    missing = [one for one in entries(schema.get("required")) if isinstance(one, str) and one not in given]
    if missing:
        shown = ", ".join(f"{quoted(one)} ({type_text(known.get(one), schema)})" for one in missing[:SHOWN])
        noun = "argument" if len(missing) == 1 else "arguments"
        raise BadArguments(f"missing {noun} of tool {quoted(tool)}: {shown}; write {printable(missing[0])}=VALUE")


def json_or_text(value: str) -> Any:
    try:
        return json.loads(value, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return value


def _not_json(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def read_json(option: str, text: str, example: str) -> Any:
    """Return the value of an option that has to be JSON. Raises `BadArguments` with what to write."""
    try:
        return json.loads(text, parse_constant=_not_json)
    except json.JSONDecodeError as error:
        quotes = "; JSON has double quotes" if "'" in text else ""
        where = f"line {error.lineno}, column {error.colno}"
        raise BadArguments(f"{option} is not valid JSON: {error.msg} ({where}){quotes}; {example}") from None
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"{option} cannot be read as JSON: {error}") from None


def _object(whole: str | None) -> dict[str, Any]:
    """The arguments in `--arguments`. Raises `BadArguments`."""
    if whole is None:
        return {}
    read = read_json("--arguments", whole, _OBJECT)
    if not isinstance(read, dict):
        raise BadArguments(f"--arguments takes a JSON object; {_OBJECT}")
    return cast("dict[str, Any]", read)


_OBJECT = """write it like '{"title": "Dune"}'"""


async def _tools(connection: Connection) -> dict[str, Mapping[str, Any]]:
    """The input schemas of the tools that the server lists; none if it does not list them."""
    found: dict[str, Mapping[str, Any]] = {}
    try:
        async for one in list_tools(connection.session):
            if name := text_at(one.get("name")):
                found[name] = members(one.get("inputSchema"))
    except (MCPError, InvalidServerResponse, OSError):
        pass  # the tools of the pages before are known
    return found


async def _other_kind(connection: Connection, name: str) -> str | None:
    """Return what the server lists under a name, other than a tool: a prompt, a resource or a resource template."""
    for kind, (_, member, method, key, _) in KINDS.items():
        if kind == "tool":
            continue
        try:
            async for one in list_all(connection.session, method, member):
                if name in (one.get("name"), one.get(key)):
                    return kind
        except (MCPError, InvalidServerResponse, OSError):
            continue
    return None


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
        described = members(schema)
        kind: Any = described.get("type")
        self.types |= {one for one in ([kind] if isinstance(kind, str) else entries(kind)) if isinstance(one, str)}
        offered = [*entries(described.get("enum")), *([described["const"]] if "const" in described else [])]
        self.texts |= {one for one in offered if isinstance(one, str)}
        self.types |= {_json_type(one) for one in offered} if kind is None else set()
        if "$ref" in described:
            self.add(schema_at(root, described["$ref"]), root, depth + 1)
        for name in ("anyOf", "oneOf", "allOf"):
            for option in entries(described.get(name)):
                self.add(option, root, depth + 1)


def _json_type(value: Any) -> str:
    kinds = ((str, "string"), (bool, "boolean"), (int | float, "number"), (list, "array"), (dict, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")
