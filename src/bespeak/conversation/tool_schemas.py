"""Checks a tool as a server lists it, and whether the results of calls keep its schema."""

import re
from collections.abc import Mapping
from typing import Any, cast

from bespeak.conversation.json_schemas import Uncheckable, first_error, schema_fault
from bespeak.conversation.json_values import as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.protocol.parameter_headers import InvalidParameterHeader, read_parameter_headers
from bespeak.terminal.safe_text import printable, quoted


def input_findings(name: str, tool: Mapping[str, Any]) -> list[Finding]:
    """Return what is wrong with the schema of a tool's arguments."""
    schema: Any = tool.get("inputSchema")
    if isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "object":
        return []
    what = "has no inputSchema" if "inputSchema" not in tool else "has an inputSchema whose type is not object"
    return [Finding("tool-schema", f"the tool {quoted(name)} {what}")]


_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def tool_findings(name: str, tool: Mapping[str, Any]) -> list[Finding]:
    """Return what is wrong with a tool as it is listed."""
    found = input_findings(name, tool)
    if not _NAME.fullmatch(name):
        found.append(
            Finding("tool-name", f"the tool {quoted(name)} has a name of other characters, or of another length")
        )
    for member in ("inputSchema", "outputSchema"):
        fault = schema_fault(tool.get(member))
        if fault is not None:
            found.append(Finding("valid-schema", f"the {member} of the tool {quoted(name)} is not valid: {fault}"))
    try:
        read_parameter_headers(as_object(tool.get("inputSchema")))
    except InvalidParameterHeader as error:
        found.append(Finding("parameter-header", f"the tool {quoted(name)}: {printable(str(error))}"))
    return found


def argument_fault(tool: Mapping[str, Any], arguments: Any) -> str | None:
    """Return how the arguments of a call differ from the schema of its tool; `None` if they do not, or nobody can say."""
    return _fault(tool.get("inputSchema"), arguments)


def output_findings(name: str, tool: Mapping[str, Any], result: Mapping[str, Any]) -> list[Finding]:
    """Return how the structured content of a result differs from the tool's schema. An error needs no content."""
    schema: Any = tool.get("outputSchema")
    if not isinstance(schema, dict) or result.get("isError") is True:
        return []
    if "structuredContent" not in result:
        return [Finding("output-schema", f"the tool {quoted(name)} has an outputSchema, but no structuredContent came")]
    fault = _fault(schema, result["structuredContent"])
    if fault is None:
        return []
    return [Finding("output-schema", f"the structuredContent of {quoted(name)} does not match its schema: {fault}")]


def _fault(schema: Any, value: Any) -> str | None:
    """The first difference, with its place. What cannot be checked proves nothing."""
    try:
        wrong = first_error(cast("dict[str, Any]", schema), value) if isinstance(schema, dict) else None
    except Uncheckable:
        return None
    if wrong is None:
        return None
    path, told = wrong
    return f"{printable(path)}: {told}" if path else told
