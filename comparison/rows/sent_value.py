# pyright: basic, reportMissingImports=false
"""A client sends a value for a parameter that the server fills in itself."""

import asyncio
from typing import Annotated

from comparison import frameworks as f


async def price() -> int:
    return 100


async def main() -> None:
    if f.FRAMEWORK == "fastmcp":
        mcp = f.FastMCP("Shop")

        @mcp.tool
        async def quote(order: str, eur: int = f.Depends(price)) -> str:
            return f"{eur} EUR"
    else:
        mcp = f.MCPServer("Shop")

        @mcp.tool()
        async def quote(order: str, eur: Annotated[int, f.Resolve(price)]) -> str:
            return f"{eur} EUR"

    async with f.connect(mcp) as client:
        got = await f.send(client, "quote", {"order": "o-1", "eur": 1})
    if got.is_error:
        f.report(True, "the call is refused")
    else:
        f.report(f.text(got) == "100 EUR", "ignored" if f.text(got) == "100 EUR" else f"used: {f.text(got)}")


asyncio.run(main())
