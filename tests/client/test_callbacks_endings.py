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
from tests.waiting import turns


async def ask() -> Elicit[bool]:
    return Elicit("Sure?", bool)


async def test_a_handler_that_never_ends_does_not_outlive_a_cancelled_request(in_memory: Connect) -> None:
    mcp, begun = MCPServer[Any]("shop"), asyncio.Event()

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        await ctx.report_progress(1)
        return "done"

    async def never(progress: float, total: float | None, message: str | None) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with in_memory(mcp) as client:
        call = asyncio.create_task(client.call_tool("tool", progress_callback=never))
        await asyncio.wait_for(begun.wait(), 20)
        await turns()  # the tool has ended, and only its handler runs
        call.cancel()
        await asyncio.wait({call}, timeout=20)
        assert call.cancelled()
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
