"""Threads of sync functions in calls: their number is bounded, and none is lost."""

import asyncio
import threading
from typing import Annotated, Any

import pytest

from bespeak import MCPServer, Resolve
from bespeak.aio.threads import THREADS
from tests.answering import text
from tests.conftest import Connect
from tests.waiting import eventually, turns


async def test_clients_who_hang_up_do_not_pile_up_threads(in_memory: Connect, caplog: pytest.LogCaptureFixture) -> None:
    go_on = threading.Event()
    held: list[int] = []

    def slow() -> int:
        held.append(1)
        go_on.wait(30)
        held.pop()
        return 1

    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(value: Annotated[int, Resolve(slow)]) -> str:
        return "never"

    async with in_memory(mcp) as client:
        for _ in range(3):
            calls = [asyncio.create_task(client.call_tool("tool")) for _ in range(THREADS)]
            await eventually(lambda: len(held) == THREADS)
            await turns(50)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        piled = len(held)
        go_on.set()
        assert piled <= THREADS
        # The places are free again when the threads have ended.
        async with asyncio.timeout(5):
            assert text(await client.call_tool("tool")) == "never"


async def test_a_thread_that_cannot_start_gives_its_place_back(
    in_memory: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    mcp = MCPServer[Any]("shop")

    def one() -> int:
        return 1

    @mcp.tool()
    async def tool(value: Annotated[int, Resolve(one)]) -> str:
        return "fine"

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with in_memory(mcp) as client:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            for _ in range(THREADS + 1):
                assert (await client.call_tool("tool")).is_error
        async with asyncio.timeout(5):
            assert text(await client.call_tool("tool")) == "fine"
