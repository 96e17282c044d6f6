# pyright: basic, reportMissingImports=false
"""A function that fills in a parameter wants the tool's argument `title`, but says `titel`."""

import asyncio
from typing import Annotated

from comparison import frameworks as f


async def main() -> None:
    try:
        if f.FRAMEWORK == "fastmcp":
            mcp = f.FastMCP("Shop")

            async def stock(titel: str = f.CallArgument()) -> int:
                return len(titel)

            @mcp.tool
            async def reserve(title: str, copies: int = f.Depends(stock)) -> str:
                return str(copies)
        else:
            mcp = f.MCPServer("Shop")

            async def stock(titel: str) -> int:
                return len(titel)

            @mcp.tool()
            async def reserve(title: str, copies: Annotated[int, f.Resolve(stock)]) -> str:
                return str(copies)
    except Exception as error:  # noqa: BLE001 - whatever a framework raises is what it does
        suggests = "did you mean" in str(error)
        f.report(True, f"found at registration{', with the right name' if suggests else ''} ({type(error).__name__})")
        return
    async with f.connect(mcp) as client:
        (tool,) = (await client.session.list_tools()).tools
        got = await f.send(client, "reserve", {"title": "Dune"})
    if "titel" in tool.input_schema["properties"]:
        f.report(False, "registered; `titel` becomes an argument that the model must send")
    else:
        f.report(False, "registered; the call fails" if got.is_error else "registered; the call succeeds")


asyncio.run(main())
