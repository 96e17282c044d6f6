# pyright: basic, reportMissingImports=false
"""A refund desk written with the official Python SDK: on stdio, or over HTTP when a port is given."""

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult, Resolve
from pydantic import BaseModel

mcp = MCPServer("Refund desk")


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
    full: bool


class Restock(BaseModel):
    restock: bool


class Refund(BaseModel):
    order_id: str
    cents: int
    reason: str
    restocked: bool


async def load_order(order_id: str) -> Order:
    return ORDERS[order_id]


async def refund_scope(order: Annotated[Order, Resolve(load_order)]) -> Scope | Elicit[Scope]:
    if len(order.lines) == 1:
        return Scope(full=True)
    listed = ", ".join(f"{line.sku} ({line.title}, ${line.cents / 100:.2f})" for line in order.lines)
    return Elicit(f"{order.id} has {len(order.lines)} lines: {listed}. Refund all of it?", Scope)


async def refund_amount(
    order: Annotated[Order, Resolve(load_order)], scope: Annotated[Scope, Resolve(refund_scope)]
) -> int:
    return sum(line.cents for line in order.lines) if scope.full else 0


async def ask_restock(
    order: Annotated[Order, Resolve(load_order)], scope: Annotated[Scope, Resolve(refund_scope)]
) -> Restock | Elicit[Restock]:
    shelved = [line.title for line in order.lines if line.shelved]
    if not shelved:
        return Restock(restock=False)
    return Elicit(f"Put {' and '.join(shelved)} back on the shelf?", Restock)


@mcp.tool()
async def refund_order(
    order_id: str,
    reason: str,
    cents: Annotated[int, Resolve(refund_amount)],
    restock: Annotated[ElicitationResult[Restock], Resolve(ask_restock)],
) -> Refund:
    """Refund an order."""
    restocked = isinstance(restock, AcceptedElicitation) and restock.data.restock
    return Refund(order_id=order_id, cents=cents, reason=reason, restocked=restocked)


if __name__ == "__main__":
    if sys.argv[1:]:
        mcp.run("streamable-http", port=int(sys.argv[1]))
    else:
        mcp.run("stdio")
