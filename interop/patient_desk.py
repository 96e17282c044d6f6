"""A refund desk that says every second that it is alive while it waits for a person: for clients that give up soon."""

from typing import Annotated

from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("Patient desk", version="1.0.0", question_heartbeat=1.0)
refunded: list[str] = []


async def confirm(order_id: str) -> Elicit[bool]:
    return Elicit(f"Refund {order_id}?", bool)


@mcp.tool()
async def refund(order_id: str, confirmed: Annotated[bool, Resolve(confirm)]) -> str:
    """Refund an order, if a person confirms it."""
    if not confirmed:
        return f"{order_id} is not refunded"
    refunded.append(order_id)
    return f"{order_id} is refunded"


@mcp.tool()
async def refunds() -> list[str]:
    """The orders that were refunded."""
    return refunded
