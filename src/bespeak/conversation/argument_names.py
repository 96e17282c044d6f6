"""Names of tools and arguments that a server does not list, and those that were probably meant."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from bespeak.conversation.json_values import as_object
from bespeak.terminal.safe_text import quoted

SHOWN = 20
"""How many names a message lists."""
_COMPOSED = {"$ref", "allOf", "anyOf", "oneOf", "patternProperties", "if", "dependentSchemas"}
"""Members of a schema that may bring further properties."""


def is_closed(schema: Mapping[str, Any]) -> bool:
    """Whether the properties of a schema are all there are. One that only allows others by saying nothing is taken as closed."""
    open_to_others = schema.get("additionalProperties", False) is not False
    return "properties" in schema and not (open_to_others or _COMPOSED & schema.keys())


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name that the server does not list."""

    what: str
    is_tool: bool
    """Whether it is the name of a tool, and not of an argument."""
    meant: str | None
    """The name that was probably meant."""
    known: Collection[str]

    def __str__(self) -> str:
        if self.meant is not None:
            return f"{self.what}; did you mean {quoted(self.meant)}?"
        shown = ", ".join(quoted(one)[1:-1] for one in list(self.known)[:SHOWN]) or "(none)"
        more = len(self.known) - SHOWN
        return f"{self.what}; there are: {shown}{f' and {more} more' if more > 0 else ''}"


def unknown_name(tools: Mapping[str, Mapping[str, Any]], tool: str, arguments: Collection[str]) -> UnknownName | None:
    """Return the first name of a call that is not in the list of tools. An empty list says nothing."""
    if not tools:
        return None
    if tool not in tools:
        return _unknown(f"the server has no tool {quoted(tool)}", tool, tools, is_tool=True)
    schema: Any = tools[tool].get("inputSchema")
    if not isinstance(schema, dict) or not is_closed(cast("dict[str, Any]", schema)):
        return None
    properties: Any = cast("dict[str, Any]", schema)["properties"]
    known = cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
    wrong = next((name for name in arguments if name not in known), None)
    return None if wrong is None else _unknown(f"tool {quoted(tool)} has no argument {quoted(wrong)}", wrong, known)


def may_be_hidden(declared: Mapping[str, Any]) -> str:
    """Return why a server may not list a tool to a client that declares only these capabilities."""
    modes = {name: as_object(value) for name, value in declared.items()}
    told = [f"{name}.{mode}" if mode else name for name, known in modes.items() for mode in known or ("",)]
    listed = f"only {', '.join(told)}" if told else "no capabilities"
    return f"the server may hide the tool from this client, which declares {listed}"


def _unknown(what: str, name: str, known: Collection[str], *, is_tool: bool = False) -> UnknownName:
    return UnknownName(what, is_tool, next(iter(difflib.get_close_matches(name, known, 1)), None), known)
