"""A lifespan that is entered again while it is still being left."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from bespeak import MCPServer
from tests.waiting import eventually, turns


async def test_a_lifespan_begun_while_another_ends_is_left_though_its_user_was_cancelled() -> None:
    diary: list[str] = []
    leaving, may_leave = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def lifespan(_: MCPServer[None]) -> AsyncGenerator[None]:
        diary.append("enter")
        try:
            yield
        finally:
            leaving.set()
            await may_leave.wait()
            diary.append("exit")

    mcp = MCPServer("shop", lifespan=lifespan)

    async def use() -> None:
        async with mcp.running():
            pass

    first = asyncio.create_task(use())
    await leaving.wait()
    second = asyncio.create_task(use())
    await asyncio.sleep(0)
    second.cancel()
    await turns()
    may_leave.set()
    await asyncio.gather(first, second, return_exceptions=True)
    await eventually(lambda: diary.count("enter") == diary.count("exit"))


async def test_a_lifespan_that_fails_to_leave_does_not_keep_the_next_from_leaving() -> None:
    diary: list[str] = []
    leaving, may_leave = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def lifespan(_: MCPServer[None]) -> AsyncGenerator[None]:
        diary.append("enter")
        yield
        leaving.set()
        await may_leave.wait()
        diary.append("leave")
        if diary.count("leave") == 1:
            raise ValueError("leaving")

    mcp = MCPServer("shop", lifespan=lifespan)

    async def use() -> None:
        async with mcp.running():
            pass

    first = asyncio.create_task(use())
    await leaving.wait()
    second = asyncio.create_task(use())
    await asyncio.sleep(0)
    second.cancel()
    await turns()
    may_leave.set()
    await asyncio.gather(first, second, return_exceptions=True)
    await eventually(lambda: not [task for task in asyncio.all_tasks() if task.get_name() == "bespeak lifespan"])
