"""The schemas that a server lists for its tools, and whether the results of calls keep them."""

from collections.abc import Mapping
from typing import Any, cast

from bespeak.client.errors import InvalidServerResponse
from bespeak.client.session import ClientSession
from bespeak.conversation.json_schemas import Uncheckable, first_error
from bespeak.conversation.json_values import as_array, as_object
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.protocol.errors import MCPError
from bespeak.terminal.safe_text import printable, quoted

PAGES = 100
"""How many pages are read. A server may hand out cursors forever."""
LIST_SECONDS = 5.0
LONGEST = 300


class ToolSchemas:
    """The tools of one server, read when they are first needed."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._tools: dict[str, dict[str, Any]] | None = None

    async def findings(self, name: str, result: Mapping[str, Any]) -> list[Finding]:
        """Return the rules that a tool and the complete result of a call to it break."""
        known = self._tools is not None
        found = await self._found(name, result)
        if found and known:  # the list may have changed since it was read
            self._tools = None
            found = await self._found(name, result)
        return [finding for finding in found if RULES[finding.rule].holds_at(self._session.version)]

    async def _found(self, name: str, result: Mapping[str, Any]) -> list[Finding]:
        if self._tools is None:
            self._tools = await self._read()
        tool = self._tools.get(name)
        return [] if tool is None else [*input_findings(name, tool), *output_findings(name, tool, result)]

    async def _read(self) -> dict[str, dict[str, Any]]:
        """The tools by name. What cannot be read is not there: whether the list is right is for tests of the list."""
        tools: dict[str, dict[str, Any]] = {}
        cursor: str | None = None
        try:
            for _ in range(PAGES):
                params = {} if cursor is None else {"cursor": cursor}
                page = await self._session.request("tools/list", params, read_timeout_seconds=LIST_SECONDS)
                listed: Any = page.get("tools")
                for one in as_array(listed):
                    tool = as_object(one)
                    if isinstance(tool.get("name"), str):
                        tools[tool["name"]] = tool
                cursor = page.get("nextCursor")
                if not isinstance(cursor, str):
                    break
        except (MCPError, OSError, InvalidServerResponse):
            pass
        return tools


def input_findings(name: str, tool: Mapping[str, Any]) -> list[Finding]:
    """Return what is wrong with the schema of a tool's arguments."""
    schema: Any = tool.get("inputSchema")
    if isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "object":
        return []
    what = "has no inputSchema" if "inputSchema" not in tool else "has an inputSchema whose type is not object"
    return [Finding("tool-schema", f"the tool {quoted(name)} {what}")]


def output_findings(name: str, tool: Mapping[str, Any], result: Mapping[str, Any]) -> list[Finding]:
    """Return how the structured content of a result differs from the tool's schema. An error needs no content."""
    schema: Any = tool.get("outputSchema")
    if not isinstance(schema, dict) or result.get("isError") is True:
        return []
    if "structuredContent" not in result:
        return [Finding("output-schema", f"the tool {quoted(name)} has an outputSchema, but no structuredContent came")]
    try:
        wrong = first_error(cast("dict[str, Any]", schema), result["structuredContent"])
    except Uncheckable:
        return []  # what cannot be checked proves nothing
    if wrong is None:
        return []
    path, told = wrong
    where = f" at {printable(path)}" if path else ""
    told = told if len(told) <= LONGEST else f"{told[:LONGEST]}..."
    return [Finding("output-schema", f"the structuredContent of {quoted(name)} does not match{where}: {told}")]
