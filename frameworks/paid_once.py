"""A till that charges an order once, however often an agent makes the call again."""

import sqlite3
from typing import Annotated

from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("Careful till")
PAYMENTS = sqlite3.connect(":memory:")  # a file, or your database
PAYMENTS.execute("CREATE TABLE payments (order_id TEXT PRIMARY KEY, eur INTEGER NOT NULL)")


async def price(order_id: str) -> int:
    return 100


async def ask_price(order_id: str, eur: Annotated[int, Resolve(price, once=True)]) -> Elicit[bool]:
    return Elicit(f"Pay {eur} EUR for order {order_id}?", bool)


@mcp.tool()
async def pay(
    order_id: str, eur: Annotated[int, Resolve(price, once=True)], ok: Annotated[bool, Resolve(ask_price)]
) -> str:
    """Pay an order."""
    if not ok:
        return "Not paid."
    try:
        with PAYMENTS:
            PAYMENTS.execute("INSERT INTO payments VALUES (?, ?)", (order_id, eur))
    except sqlite3.IntegrityError:
        return f"Order {order_id} is paid already. Nothing was charged."
    return f"Charged {eur} EUR."
