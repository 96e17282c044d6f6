"""`bespeak test --init`: a first suite for a server, with one test for each tool."""

import asyncio
import math
import operator
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from bespeak.client.errors import InvalidServerResponse
from bespeak.conversation.answer_examples import in_yaml
from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.conversation.connection_settings import EVERYTHING, TIMEOUT_SECONDS
from bespeak.conversation.feature_list import list_tools
from bespeak.conversation.json_values import as_array, as_object, is_number, is_whole
from bespeak.conversation.schema_references import schema_at
from bespeak.conversation.server_targets import Target, parse_target
from bespeak.conversation.servers import Unreachable
from bespeak.protocol.errors import MCPError
from bespeak.protocol.methods import ROOTS
from bespeak.protocol.text_formats import FORMATS
from bespeak.terminal.safe_text import printable

SLOW_SECONDS = 1.5
"""After how long it is said that a server is being started."""
DEEPEST = 5
MOST_ENTRIES, LONGEST = 10, 200
"""The largest placeholders: a schema may demand more than anybody reads."""
LARGEST = 2**53
"""The largest bound of a number that is kept to."""
_FITS: Mapping[str, Callable[[float, float], bool]] = {
    "minimum": operator.ge,
    "exclusiveMinimum": operator.gt,
    "maximum": operator.le,
    "exclusiveMaximum": operator.lt,
}
HEADING = (
    "# The arguments are placeholders: replace them by real ones.",
    "# If a tool asks something, its test fails and shows the inputResponses to add below its arguments.",
)
WARNING = "the tool may change or delete something; check the arguments, then remove this line"

ROOTS_LINE = "roots: []  # the server asks for the client's roots: list the folders that it may use, such as [data]"


async def draft(target: str, tell: Callable[[str], None] = lambda _: None) -> str:
    """Return a suite with one test for each tool. Raises `Unreachable`, and `ValueError` for an invalid target.

    `tell` is called with what takes long, if it does.
    """
    server = parse_target(target)
    pool = Pool()
    doing = f"starting {shlex.join(server.command)}" if server.command else "waiting for the server"
    waiting = asyncio.get_running_loop().call_later(SLOW_SECONDS, tell, f"{printable(doing)} ...")
    try:
        wanted = Wanted("", server, Path.cwd(), "auto", EVERYTHING, TIMEOUT_SECONDS)
        connection = await pool.connection(wanted)
        waiting.cancel()
        tools = [tool async for tool in list_tools(connection.session)]
        asks_roots = any(one.question.method == ROOTS for one in connection.outside)
    except (OSError, MCPError, InvalidServerResponse) as error:
        raise Unreachable(f"the server did not list its tools: {error}") from None
    finally:
        waiting.cancel()
        await pool.close()
    named = {name: tool for tool in tools if isinstance(name := tool.get("name"), str)}
    if not named:
        raise ValueError("the server lists no tools; write tests for its prompts and resources by hand")
    return _suite(server, named, asks_roots=asks_roots)


def _suite(server: Target, tools: Mapping[str, Mapping[str, Any]], *, asks_roots: bool) -> str:
    lines = [*HEADING, "version: 1", "servers:", "  server:"]
    reached = {"command": server.command, "url": server.url, "python": server.python}
    lines += [f"    {name}: {in_yaml(value)}" for name, value in reached.items() if value is not None]
    lines += ["    protocol: auto", *([f"    {ROOTS_LINE}"] if asks_roots else []), "tests:"]
    for name, tool in tools.items():
        schema: Any = tool.get("inputSchema")
        arguments: Any = example(cast("dict[str, Any]", schema)) if isinstance(schema, dict) else {}
        lines += [f"  - name: {in_yaml(f'{name} answers')}", f"    tool: {in_yaml(name)}"]
        if may_change(tool):
            lines.append(f"    skip: {WARNING}")
        if arguments:
            lines.append(f"    arguments: {in_yaml(arguments)}")
        lines += ["    expect:", "      isError: false"]
    return "\n".join(lines) + "\n"


def may_change(tool: Mapping[str, Any]) -> bool:
    """Return whether a tool may change something: it does not say that it is read-only. The arguments are only placeholders."""
    hints: Any = tool.get("annotations")
    said = as_object(hints)
    return said.get("readOnlyHint") is not True


def example(schema: Mapping[str, Any], depth: int = 0, root: Mapping[str, Any] | None = None) -> Any:
    """Return a value that a schema probably accepts."""
    root = schema if root is None else root
    schema = _meant(schema, root)
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("enum", "examples"):
        if found := _list(schema.get(name)):
            return found[0]
    for name in ("anyOf", "oneOf", "allOf"):
        if (options := _list(schema.get(name))) and isinstance(options[0], dict):
            return example(cast("dict[str, Any]", options[0]), depth + 1, root) if depth < DEEPEST else None
    return _of_type(schema, depth, root)


def _of_type(schema: Mapping[str, Any], depth: int, root: Mapping[str, Any]) -> Any:
    kinds: Any = schema.get("type")
    kind: Any = next(iter(_list(kinds)), None) if isinstance(kinds, list) else kinds
    if kind == "object":
        properties: Any = schema.get("properties")
        known = cast("dict[str, Any]", properties) if isinstance(properties, dict) and depth < DEEPEST else {}
        required = _list(schema.get("required"))
        return {
            name: example(cast("dict[str, Any]", one), depth + 1, root)
            for name, one in known.items()
            if name in required and isinstance(one, dict)
        }
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    if kind == "array":
        return _entries(schema, depth, root)
    form: Any = schema.get("format")
    fewest = min(_whole(schema.get("minLength")), LONGEST)
    text = FORMATS[form].example if isinstance(form, str) and form in FORMATS else "..." + "." * (fewest - 3)
    return {"boolean": True, "null": None}.get(str(kind), text)


def _number(schema: Mapping[str, Any], *, whole: bool) -> int | float:
    """Return a number within the bounds of a schema: the least one if it names it, 1 if that fits, or one near a bound."""
    bounds = {name: value for name in _FITS if is_number(value := schema.get(name)) and -LARGEST <= value <= LARGEST}
    offered: list[int | float] = [bounds["minimum"]] if "minimum" in bounds else []
    offered.append(1)
    for value in bounds.values():
        offered += [math.floor(value), math.floor(value) + 1, math.ceil(value) - 1]
    if bounds:
        offered.append(sum(bounds.values()) / len(bounds))
    fitting = (one for one in offered if all(_FITS[name](one, value) for name, value in bounds.items()))
    return next((one for one in fitting if not whole or is_whole(one)), offered[0])


def _entries(schema: Mapping[str, Any], depth: int, root: Mapping[str, Any]) -> list[Any]:
    """As many entries as an array needs, and one that shows the place if it needs none. They differ if there are choices."""
    items: Any = schema.get("items")
    known: Mapping[str, Any] = _meant(cast("dict[str, Any]", items), root) if isinstance(items, dict) else {}
    most = 0 if depth >= DEEPEST or schema.get("maxItems") == 0 else MOST_ENTRIES
    fewest = min(max(1, _whole(schema.get("minItems"))), most)
    choices = _list(known.get("enum"))
    return choices[:fewest] if len(choices) >= fewest else [example(known, depth + 1, root)] * fewest


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _meant(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to another part of the same document."""
    for _ in range(DEEPEST):
        found = schema_at(root, schema.get("$ref"))
        if not isinstance(found, dict):
            break
        schema = cast("dict[str, Any]", found)
    return schema


def _list(value: Any) -> list[Any]:
    return as_array(value)
