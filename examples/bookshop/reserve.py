"""One resolver: the stock is looked up, so the model cannot make it up."""

from typing import Annotated

from bespeak import MCPServer, Resolve
from examples.bookshop.shop import Stock, check_stock

mcp = MCPServer("Bookshop")


@mcp.tool()
async def reserve_book(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
    """Reserve a copy of a book."""
    if not stock.copies:
        return f"{title!r} is out of stock."
    return f"Reserved {title!r} ({stock.copies - 1} copies left)."
