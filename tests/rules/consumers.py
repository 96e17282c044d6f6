"""Tools that take the answer to one question, each by another annotation."""

from typing import Annotated, Any

from bespeak import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    MCPServer,
    NotAsked,
    Resolve,
)
from tests.answering import unresolved


def ended(action: str, parameter: str = "it") -> str:
    """The error of a call that an outcome ends."""
    return f"Error executing tool take: {unresolved(parameter, action)}"


async def ask() -> Elicit[int]:
    return Elicit("How many?", int)


async def computed() -> int | Elicit[int]:
    return 7


async def take_value(it: Annotated[int, Resolve(ask)]) -> str:
    return f"{it!r}"


async def take_value_or_default(it: Annotated[int, Resolve(ask)] = -1) -> str:
    return f"{it!r}"


async def take_outcome(it: Annotated[ElicitationResult[int], Resolve(ask)]) -> str:
    return f"{it!r}"


async def take_outcome_or_default(it: Annotated[ElicitationResult[int] | None, Resolve(ask)] = None) -> str:
    return f"{it!r}"


async def take_accepted(it: Annotated[AcceptedElicitation[int], Resolve(ask)]) -> str:
    return f"{it!r}"


async def take_accepted_or_default(it: Annotated[AcceptedElicitation[int] | None, Resolve(ask)] = None) -> str:
    return f"{it!r}"


async def take_clear(it: Annotated[AcceptedElicitation[int] | DeclinedElicitation, Resolve(ask)]) -> str:
    return f"{it!r}"


async def take_refusal(it: Annotated[DeclinedElicitation | CancelledElicitation, Resolve(ask)]) -> str:
    return f"{it!r}"


ACCEPTED, DECLINED, CANCELLED = (
    repr(AcceptedElicitation(data=3)),
    repr(DeclinedElicitation()),
    repr(CancelledElicitation()),
)


def serving(*tools: Any) -> MCPServer:
    mcp = MCPServer("consumers")
    for tool in tools:
        mcp.add_tool(tool, name="take")
    return mcp


async def take_outcome_or_not_asked(it: Annotated[ElicitationResult[int] | NotAsked, Resolve(ask)]) -> str:
    return f"{it!r}"
