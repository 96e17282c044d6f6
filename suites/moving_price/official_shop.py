# pyright: basic, reportMissingImports=false
"""The shop with the official Python SDK, on stdio."""

from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult, Resolve
from pydantic import BaseModel

from suites.moving_price.prices import CHARGED, charge, price_of

mcp = MCPServer("shop", version="1.0.0")


class Approval(BaseModel):
    ok: bool


async def price(order: str) -> int:
    return price_of(order)


async def ask_price(order: str, eur: Annotated[int, Resolve(price)]) -> Elicit[Approval]:
    return Elicit(f"Pay {eur} EUR for the order {order}?", Approval)


@mcp.tool()
async def pay(
    order: str,
    eur: Annotated[int, Resolve(price)],
    approval: Annotated[ElicitationResult[Approval], Resolve(ask_price)],
) -> str:
    """Pay an order."""
    return charge(eur) if isinstance(approval, AcceptedElicitation) and approval.data.ok else "Not paid."


@mcp.tool()
async def book() -> str:
    """Return every charge there was."""
    return ", ".join(f"{eur} EUR" for eur in CHARGED) or "Nothing was charged."


if __name__ == "__main__":
    mcp.run("stdio")
