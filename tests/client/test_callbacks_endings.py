"""Callbacks that never end, or end in a cancellation of their own."""

import asyncio
from typing import Annotated, Any

import pytest
from mcp_types import ElicitResult

from bespeak import (
    Client,
    Context,
    Elicit,
    MCPServer,
    Resolve,
)
from bespeak.client import CallbackFailed
from tests.conftest import Connect


async def ask() -> Elicit[bool]:
    return Elicit("Sure?", bool)


async def test_a_handler_that_never_ends_does_not_outlive_a_cancelled_request(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        await ctx.report_progress(1)
        return "done"

    async def never(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(100)

    async with in_memory(mcp) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.call_tool("tool", progress_callback=never), 0.05)
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "bespeak notifications"]


async def test_a_callback_that_ends_in_a_cancellation_of_its_own_has_failed() -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(sure: Annotated[bool, Resolve(ask)]) -> str:
        return "never"

    async def cancelled(context: Any, params: Any) -> ElicitResult:
        raise asyncio.CancelledError

    async with Client(mcp, elicitation_callback=cancelled) as client:
        with pytest.raises(CallbackFailed, match="the callback raised CancelledError"):
            await client.call_tool("tool")
