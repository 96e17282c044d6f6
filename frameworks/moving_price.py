"""A till whose price moves. It keeps what was charged, so that a client can compare it with what a person approved."""

from typing import Annotated

from pydantic import BaseModel

from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("Till", version="1.0.0")


class Charge(BaseModel):
    order: str
    eur: int


class Book(BaseModel):
    charges: list[Charge]


PRICES: dict[str, list[int]] = {}
"""What the price of an order is at each look. The last one stays."""
CHARGES: list[Charge] = []


async def price(order: str) -> int:
    prices = PRICES[order]
    return prices.pop(0) if len(prices) > 1 else prices[0]


async def ask_price(eur: Annotated[int, Resolve(price)]) -> Elicit[bool]:
    return Elicit(f"Pay {eur} EUR?", bool)


async def ask_kept_price(eur: Annotated[int, Resolve(price, once=True)]) -> Elicit[bool]:
    return Elicit(f"Pay {eur} EUR?", bool)


async def ask_large_price(eur: Annotated[int, Resolve(price, once=True)]) -> bool | Elicit[bool]:
    return True if eur < 50 else Elicit(f"Pay {eur} EUR?", bool)


async def choose_price(eur: Annotated[int, Resolve(price)]) -> Elicit[str]:
    return Elicit("Buy it?", str, choices={str(eur): f"Pay {eur} EUR", "no": "Do not buy it"})


@mcp.tool()
async def pay(order: str, eur: Annotated[int, Resolve(price)], ok: Annotated[bool, Resolve(ask_price)]) -> str:
    """Pay an order at its price of this moment."""
    return charged(order, eur) if ok else "Not paid."


@mcp.tool()
async def pay_kept(
    order: str, eur: Annotated[int, Resolve(price, once=True)], ok: Annotated[bool, Resolve(ask_kept_price)]
) -> str:
    """Pay an order at the price that was computed once for this call."""
    return charged(order, eur) if ok else "Not paid."


@mcp.tool()
async def pay_chosen(order: str, chosen: Annotated[str, Resolve(choose_price)]) -> str:
    """Pay an order at the price that is in the answer."""
    return charged(order, int(chosen)) if chosen != "no" else "Not paid."


@mcp.tool()
async def pay_small_unasked(
    order: str, eur: Annotated[int, Resolve(price, once=True)], ok: Annotated[bool, Resolve(ask_large_price)]
) -> str:
    """Pay an order. Nobody is asked about less than 50 EUR."""
    return charged(order, eur) if ok else "Not paid."


@mcp.tool()
async def offer(order: str, prices: list[int]) -> str:
    """Set the price of an order, as each look at it finds it."""
    PRICES[order] = list(prices)
    return "Offered."


@mcp.tool()
async def book() -> Book:
    """Return every charge there was."""
    return Book(charges=CHARGES)


def charged(order: str, eur: int) -> str:
    CHARGES.append(Charge(order=order, eur=eur))
    return f"Charged {eur} EUR."
