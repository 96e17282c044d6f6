"""A resolver that depends on another: two consumers need the stock, and it is looked up once."""

from typing import Annotated

from bespeak import MCPServer, Resolve
from examples.bookshop.shop import Stock, check_stock

mcp = MCPServer("Bookshop")


async def estimate_delivery(stock: Annotated[Stock, Resolve(check_stock)]) -> str:
    return "tomorrow" if stock.copies else "in 2-3 weeks"


@mcp.tool()
async def order_book(
    title: str,
    stock: Annotated[Stock, Resolve(check_stock)],
    delivery: Annotated[str, Resolve(estimate_delivery)],
) -> str:
    """Order a book from the shop."""
    if not stock.copies:
        return f"{title!r} is on backorder; it would arrive {delivery}."
    return f"Ordered {title!r}; it arrives {delivery}."
