"""The type that a JSON Schema describes, in a few words: `string`, `"C" or "F"`, `list of integer`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bespeak.conversation.schema_references import schema_at
from bespeak.terminal.safe_text import printable

DEEPEST = 5
"""How deep a type is described. A schema may refer to itself."""
CHOICES = 8
"""How many allowed values are named."""


def members(value: Any) -> Mapping[str, Any]:
    """Return a JSON object, or an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def entries(value: Any) -> Sequence[Any]:
    """Return a JSON array, or an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else ()


def type_text(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """Return the type of a schema. `root` is the schema that its references are in."""
    found = members(schema)
    if depth > DEEPEST:
        return "any"
    if "$ref" in found:
        return type_text(schema_at(root, found["$ref"]), root, depth + 1)
    offered = [found["const"]] if "const" in found else list(entries(found.get("enum")))
    if offered:
        shown = [json.dumps(one) for one in offered[:CHOICES]]
        return printable(" or ".join([*shown, "..."] if len(offered) > CHOICES else shown))
    for name in ("anyOf", "oneOf"):
        if options := entries(found.get(name)):
            return " or ".join(dict.fromkeys(type_text(one, root, depth + 1) for one in options[:CHOICES]))
    kind: Any = found.get("type")
    kinds = [one for one in ([kind] if isinstance(kind, str) else entries(kind)) if isinstance(one, str)]
    if kinds == ["array"]:
        inner = type_text(found.get("items"), root, depth + 1)
        return "list" if inner == "any" else f"list of {inner}"
    return printable(" or ".join(kinds)) or "any"
