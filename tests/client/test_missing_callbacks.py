"""A client without the callback that a call needs says which one to give."""

from typing import Annotated

import pytest

from bespeak import Client, Elicit, MCPError, MCPServer, Resolve


async def test_a_client_without_callbacks_is_told_which_to_give() -> None:
    mcp = MCPServer("shop")

    async def ask() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    @mcp.tool()
    async def tool(sure: Annotated[bool, Resolve(ask)]) -> None: ...

    async with Client(mcp) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("tool")
    assert "elicitation_callback=" in caught.value.__notes__[0]
