"""A first suite for a server, made of its list of tools."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from bespeak.testing.pool import Pool, Wanted
from bespeak.testing.servers import Unreachable, described
from bespeak.testing.suite import EVERYTHING, TIMEOUT_SECONDS, Server
from bespeak.testing.variables import lookup

PAGES = 100
DEEPEST = 5


async def draft(target: str) -> str:
    """A suite with one test for each tool. Raises `Unreachable`, and `ValueError` for a target that is none."""
    server = described(target)
    pool = Pool()
    try:
        wanted = Wanted("server", server, Path.cwd(), "auto", EVERYTHING, TIMEOUT_SECONDS, lookup({}, {}))
        connection = await pool.connection(wanted)
        tools: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await connection.session.request("tools/list", {} if cursor is None else {"cursor": cursor})
            tools += [tool for tool in page.get("tools") or () if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if cursor is None:
                break
    except OSError as error:
        raise Unreachable(str(error)) from None
    finally:
        await pool.close()
    return _suite(server, tools)


def _suite(server: Server, tools: list[dict[str, Any]]) -> str:
    lines = ["version: 1", "servers:", "  server:"]
    reached: dict[str, Any] = server.model_dump(exclude_unset=True)
    lines += [f"    {name}: {_yaml(value)}" for name, value in reached.items()]
    lines += ["    protocol: auto", "tests:"]
    for tool in tools:
        name = str(tool.get("name", ""))
        schema: Any = tool.get("inputSchema")
        arguments: Any = example(cast("dict[str, Any]", schema)) if isinstance(schema, dict) else {}
        lines += [f"  - name: {_yaml(f'{name} answers')}", f"    tool: {_yaml(name)}"]
        if arguments:
            lines.append(f"    arguments: {_yaml(arguments)}")
        lines += ["    # inputResponses: what it asks, by key; run it once, and the failure shows what to paste"]
        lines += ["    expect:", "      isError: false"]
    if not tools:
        lines += ["  # it has no tools; prompts and resources can be tested, too", "  []"]
    return "\n".join(lines) + "\n"


def _yaml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def example(schema: Mapping[str, Any], depth: int = 0) -> Any:
    """A value that a schema would take, as far as can be told."""
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("enum", "examples"):
        if isinstance(schema.get(name), list) and schema[name]:
            return schema[name][0]
    for name in ("anyOf", "oneOf", "allOf"):
        options: Any = schema.get(name)
        if isinstance(options, list) and options and isinstance(options[0], dict):
            return example(cast("dict[str, Any]", options[0]), depth + 1) if depth < DEEPEST else None
    return _of_type(schema, depth)


def _of_type(schema: Mapping[str, Any], depth: int) -> Any:
    kinds: Any = schema.get("type")
    kind: Any = kinds if isinstance(kinds, str) else next(iter(cast("list[Any]", kinds or [])), None)
    if kind == "object":
        properties: Any = schema.get("properties")
        known = cast("dict[str, Any]", properties) if isinstance(properties, dict) and depth < DEEPEST else {}
        required: Any = schema.get("required") or []
        return {
            name: example(cast("dict[str, Any]", one), depth + 1)
            for name, one in known.items()
            if name in required and isinstance(one, dict)
        }
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "array":
        return []
    return {"boolean": True, "null": None}.get(str(kind), "...")
