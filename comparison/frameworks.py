# pyright: basic, reportMissingImports=false
# ruff: noqa: F401 - the programs of the rows use these names
"""The framework that the command line names, under one set of names. Only one of them is installed where this runs."""

import json
import sys
from contextlib import suppress
from typing import Any

from mcp_types import ElicitResult, InputRequiredResult

FRAMEWORK = sys.argv[1]
MODERN, LEGACY = "2026-07-28", "legacy"

if FRAMEWORK == "bespeak":
    from bespeak import Client, Elicit, ElicitationResult, MCPServer, RequestStateSecurity, Resolve
elif FRAMEWORK == "mcp":
    from mcp import Client
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Elicit, ElicitationResult, RequestStateSecurity, Resolve
else:
    import logging

    from fastmcp import Client, Context, FastMCP
    from fastmcp.dependencies import CallArgument, Depends
    from fastmcp.server.elicitation import AcceptedElicitation

    logging.disable(logging.WARNING)


def connect(server: Any, mode: str = MODERN, questions: list[str] | None = None) -> Any:
    """A client of the framework itself, whose person notes each question and says yes."""

    def asked(message: str) -> None:
        if questions is not None:
            questions.append(message)

    async def person(_context: Any, params: Any) -> ElicitResult:
        asked(params.message)
        return ElicitResult(action="accept", content={"ok": True})

    async def handler(message: str, _type: Any, _params: Any, _context: Any) -> dict[str, bool]:
        asked(message)
        return {"ok": True}

    if FRAMEWORK == "fastmcp":
        return Client(server, mode=mode, elicitation_handler=handler)
    return Client(server, mode=mode, elicitation_callback=person)


async def send(client: Any, tool: str, arguments: dict[str, Any], after: Any = None, answers: Any = None) -> Any:
    """One request of a call: the first, or the one after a result that asked."""
    return await client.session.call_tool(
        tool,
        arguments,
        input_responses=answers,
        request_state=after.request_state if after is not None else None,
        allow_input_required=True,
    )


def yes(asked: Any) -> dict[str, ElicitResult]:
    """The answer yes to all questions of a result."""
    assert isinstance(asked, InputRequiredResult), asked
    return {key: ElicitResult(action="accept", content={"ok": True}) for key in asked.input_requests or {}}


def text(result: Any) -> str:
    """The text of a result, or of an exception that a client raised for it."""
    with suppress(AttributeError, IndexError):
        return result.content[0].text
    return str(result)


def report(good: bool, says: str) -> None:
    """Print what was measured: one sentence, and whether it is what one would wish for."""
    print(json.dumps({"good": good, "says": says}))
