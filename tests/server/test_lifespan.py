"""A lifespan: entered by the first user, left by the last, in one task, whatever happens to those who use it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bespeak import Client, Context, MCPServer
from tests.answering import text
from tests.conftest import Connect
from tests.waiting import eventually

pytestmark = pytest.mark.every_revision


class Diary:
    """A lifespan that notes when, and in which task, it is entered and left."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.tasks: set[Any] = set()

    @asynccontextmanager
    async def lifespan(self, server: MCPServer[str]) -> AsyncGenerator[str]:
        self.note("entered")
        await asyncio.sleep(0)
        try:
            yield f"opened by {server.name}"
        finally:
            await asyncio.sleep(0)
            self.note("left")

    def note(self, entry: str) -> None:
        self.entries.append(entry)
        self.tasks.add(asyncio.current_task())


def shop(diary: Diary) -> MCPServer[str]:
    mcp = MCPServer("shop", lifespan=diary.lifespan)

    @mcp.tool()
    async def tool(ctx: Context[str]) -> str:
        return ctx.request_context.lifespan_context

    return mcp


async def test_a_tool_sees_what_the_lifespan_yields(connect: Connect) -> None:
    async with connect(shop(Diary())) as client:
        assert text(await client.call_tool("tool")) == "opened by shop"


async def test_a_resolver_and_a_call_without_a_client_see_it_too() -> None:
    diary = Diary()
    assert text(await shop(diary).call_tool("tool")) == "opened by shop"
    assert diary.entries == ["entered", "left"]


async def test_a_server_without_a_lifespan_yields_none(connect: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        return repr(ctx.request_context.lifespan_context)

    async with connect(mcp) as client:
        assert text(await client.call_tool("tool")) == "None"


async def test_two_clients_share_one_lifespan_that_the_last_one_leaves(in_process: Connect) -> None:
    diary = Diary()
    mcp = shop(diary)
    first, second = in_process(mcp), in_process(mcp)
    await first.__aenter__()
    await second.__aenter__()
    await first.__aexit__(None, None, None)
    assert diary.entries == ["entered"]
    assert text(await second.call_tool("tool")) == "opened by shop"
    await second.__aexit__(None, None, None)
    assert diary.entries == ["entered", "left"]


async def test_clients_that_come_at_once_enter_it_once(in_process: Connect) -> None:
    diary = Diary()
    mcp = shop(diary)

    async def use() -> None:
        async with in_process(mcp) as client:
            await client.call_tool("tool")

    await asyncio.gather(*(use() for _ in range(5)))
    assert diary.entries[0] == "entered"
    assert diary.entries.count("entered") == diary.entries.count("left")


async def test_it_is_entered_and_left_in_one_task_though_its_users_live_in_others(in_process: Connect) -> None:
    diary = Diary()
    mcp = shop(diary)
    first, second = in_process(mcp), in_process(mcp)
    await asyncio.create_task(first.__aenter__())
    await asyncio.create_task(second.__aenter__())
    await asyncio.create_task(first.__aexit__(None, None, None))
    await asyncio.create_task(second.__aexit__(None, None, None))
    assert diary.entries == ["entered", "left"]
    assert len(diary.tasks) == 1


async def test_a_task_group_may_stay_open_in_it(in_process: Connect) -> None:
    ticks: list[int] = []

    @asynccontextmanager
    async def lifespan(server: MCPServer[None]) -> AsyncGenerator[None]:
        async def tick() -> None:
            while True:
                ticks.append(1)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            group.start_soon(tick)
            yield
            group.cancel_scope.cancel()

    mcp = MCPServer("shop", lifespan=lifespan)
    first, second = in_process(mcp), in_process(mcp)
    await first.__aenter__()
    await second.__aenter__()
    await eventually(lambda: ticks)
    await first.__aexit__(None, None, None)
    await second.__aexit__(None, None, None)


# Failures


async def test_a_lifespan_that_fails_to_start_is_the_error_of_whoever_came(in_process: Connect) -> None:
    attempts: list[int] = []

    @asynccontextmanager
    async def lifespan(server: MCPServer[None]) -> AsyncGenerator[None]:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("no database")
        yield

    mcp = MCPServer("shop", lifespan=lifespan)
    with pytest.raises(OSError, match="no database"):
        await in_process(mcp).__aenter__()
    async with in_process(mcp):
        assert len(attempts) == 2


async def test_a_lifespan_that_yields_nothing_is_an_error(in_process: Connect) -> None:
    @asynccontextmanager
    async def lifespan(server: MCPServer[None]) -> AsyncGenerator[None]:
        for nothing in list[None]():
            yield nothing

    with pytest.raises(RuntimeError, match="yield"):
        await in_process(MCPServer("shop", lifespan=lifespan)).__aenter__()


async def test_a_lifespan_that_fails_to_end_is_the_error_of_the_last_to_leave(in_process: Connect) -> None:
    @asynccontextmanager
    async def lifespan(server: MCPServer[None]) -> AsyncGenerator[None]:
        yield
        raise OSError("could not close")

    mcp = MCPServer("shop", lifespan=lifespan)
    first, second = in_process(mcp), in_process(mcp)
    await first.__aenter__()
    await second.__aenter__()
    await first.__aexit__(None, None, None)
    with pytest.raises(OSError, match="could not close"):
        await second.__aexit__(None, None, None)


async def test_a_lifespan_is_left_properly_though_the_last_user_was_cancelled(in_process: Connect) -> None:
    diary = Diary()
    inside = asyncio.Event()

    async def use() -> None:
        async with in_process(shop(diary)):
            inside.set()
            await asyncio.sleep(10)

    task = asyncio.create_task(use())
    await inside.wait()
    task.cancel()
    await asyncio.wait({task})
    assert diary.entries == ["entered", "left"]


async def test_a_lifespan_is_left_properly_though_the_last_user_s_scope_was_cancelled(in_process: Connect) -> None:
    # a cancel scope of anyio cancels again at every await, also while the client leaves
    diary = Diary()
    with anyio.CancelScope() as scope:
        async with in_process(shop(diary)):
            scope.cancel()
            await anyio.sleep(10)
    await eventually(lambda: diary.entries == ["entered", "left"])


async def test_a_user_cancelled_while_it_starts_leaves_no_lifespan_behind(in_process: Connect) -> None:
    entered: list[str] = []
    left: list[str] = []
    starting, go_on = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def lifespan(server: MCPServer[None]) -> AsyncGenerator[None]:
        entered.append("entered")
        starting.set()
        try:
            await go_on.wait()
            yield
        finally:
            left.append("left")

    mcp = MCPServer("shop", lifespan=lifespan)
    task = asyncio.create_task(in_process(mcp).__aenter__())
    await starting.wait()
    task.cancel()
    await asyncio.wait({task})
    go_on.set()
    async with in_process(mcp):
        pass
    await eventually(lambda: len(entered) == len(left))


def test_a_server_outlives_an_event_loop_whose_users_never_left() -> None:
    diary = Diary()
    mcp = shop(diary)

    async def cut_off() -> None:
        await Client(mcp).__aenter__()

    async def use() -> str:
        async with Client(mcp) as client:
            return text(await client.call_tool("tool"))

    asyncio.run(cut_off())
    assert asyncio.run(use()) == "opened by shop"


async def test_a_lifespan_without_its_decorator_says_what_to_write() -> None:
    async def lifespan(server: Any) -> AsyncGenerator[int]:
        yield 1

    unusable: Any = lifespan
    with pytest.raises(
        TypeError, match=r"the lifespan returned async_generator, .*; write @asynccontextmanager above it"
    ):
        await Client(MCPServer("shop", lifespan=unusable)).__aenter__()
