# pyright: basic, reportMissingImports=false
"""A desk that refunds what the record of an order says, after asking people what to refund."""

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

mcp = MCPServer("Refund desk", version="1.0.0", instructions="Refund orders by their id.")


class Line(BaseModel):
    sku: str
    title: str
    cents: int
    shelved: bool = True


class Order(BaseModel):
    id: str
    lines: list[Line]


ORDERS = {
    "ORD-7001": Order(id="ORD-7001", lines=[Line(sku="EBOOK-1", title="Dune (e-book)", cents=1299, shelved=False)]),
    "ORD-7002": Order(
        id="ORD-7002",
        lines=[
            Line(sku="LAMP-9", title="Desk lamp", cents=4550),
            Line(sku="BULB-2", title="Light bulb", cents=650),
        ],
    ),
}


class Scope(BaseModel):
    full: bool = Field(description="Refund the whole order?")
    sku: str = Field(default="", description="Otherwise, the SKU of the one line to refund")


class Restock(BaseModel):
    restock: bool = Field(description="Put the goods back on the shelf?")


class Refund(BaseModel):
    order_id: str
    cents: int
    reason: str
    restocked: bool


async def load_order(order_id: str) -> Order:
    if order_id not in ORDERS:
        raise ToolError(f"there is no order {order_id!r}")
    return ORDERS[order_id]


async def refund_scope(order: Annotated[Order, Resolve(load_order)]) -> Scope | Elicit[Scope]:
    if len(order.lines) == 1:
        return Scope(full=True)  # one line: nothing to choose, so nobody is asked
    listed = ", ".join(f"{line.sku} ({line.title}, {dollars(line.cents)})" for line in order.lines)
    return Elicit(f"{order.id} has {len(order.lines)} lines: {listed}. Refund all of it?", Scope)


async def refund_amount(
    order: Annotated[Order, Resolve(load_order)], scope: Annotated[Scope, Resolve(refund_scope)]
) -> int:
    return sum(line.cents for line in _scoped(order, scope))


async def ask_restock(
    order: Annotated[Order, Resolve(load_order)], scope: Annotated[Scope, Resolve(refund_scope)]
) -> Restock | Elicit[Restock]:
    shelved = [line.title for line in _scoped(order, scope) if line.shelved]
    if not shelved:
        return Restock(restock=False)
    return Elicit(f"Put {' and '.join(shelved)} back on the shelf?", Restock)


def _scoped(order: Order, scope: Scope) -> list[Line]:
    """Return the lines to refund. A person typed the SKU, so it is checked against the order before it is used."""
    if scope.full:
        return order.lines
    chosen = [line for line in order.lines if line.sku == scope.sku.strip()]
    if not chosen:
        raise ToolError(f"{order.id} has no line {scope.sku!r}; it has {', '.join(line.sku for line in order.lines)}")
    return chosen


@mcp.tool()
async def refund_order(
    order_id: str,
    reason: str,
    cents: Annotated[int, Resolve(refund_amount)],
    restock: Annotated[ElicitationResult[Restock], Resolve(ask_restock)],
) -> Refund:
    """Refund an order, or one line of it."""
    restocked = isinstance(restock, AcceptedElicitation) and restock.data.restock
    return Refund(order_id=order_id, cents=cents, reason=reason, restocked=restocked)


def dollars(cents: int) -> str:
    return f"${cents / 100:.2f}"


if __name__ == "__main__":
    mcp.run("streamable-http" if "--http" in sys.argv[1:] else "stdio")
