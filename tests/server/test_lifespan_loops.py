"""One server object in several event loops: each has its own users, its own lifespan and its own calls."""

import asyncio
import gc
import logging
import threading
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx2
import pytest

from bespeak import Client, Context, Elicit, MCPServer, Resolve
from tests.answering import Person, accept, text
from tests.waiting import eventually, turns
from tests.wires import Listening


class Shop:
    """A server that notes its lifespans, and whose approved tool takes until it is let go."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.let_go = threading.Event()
        self.mcp = MCPServer[int]("shop", lifespan=self._lifespan)
        self.mcp.add_tool(self.hello)
        self.mcp.add_tool(self.buy)

    @asynccontextmanager
    async def _lifespan(self, server: MCPServer[int]) -> AsyncGenerator[int]:
        loop = asyncio.get_running_loop()
        self.events.append("entered")
        yield id(loop)
        assert asyncio.get_running_loop() is loop
        self.events.append("left")

    @staticmethod
    async def hello(ctx: Context[int]) -> bool:
        return ctx.request_context.lifespan_context == id(asyncio.get_running_loop())

    @staticmethod
    async def sure() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    async def buy(self, sure: Annotated[bool, Resolve(sure)]) -> str:
        self.events.append("buying")
        while not self.let_go.is_set():  # noqa: ASYNC110 - set by whichever loop
            await asyncio.sleep(0.005)
        self.events.append("bought")
        return "bought"


def person() -> Person:
    return Person({"sure": accept(value=True)})


async def in_another_loop(mcp: MCPServer[Any]) -> str:
    """Use the server from a loop of its own in a thread of its own."""

    async def use() -> str:
        async with Client(mcp) as client:
            return text(await client.call_tool("hello"))

    return await asyncio.to_thread(asyncio.run, use())


async def test_a_live_http_server_goes_on_when_another_loop_has_used_it() -> None:
    shop = Shop()
    async with (
        Listening(shop.mcp.streamable_http_app()) as listening,
        Client(listening.url) as client,
        httpx2.AsyncClient() as http,
    ):
        assert text(await client.call_tool("hello")) == "true"
        assert await in_another_loop(shop.mcp) == "true"
        assert shop.events == ["entered", "entered", "left"]
        assert text(await client.call_tool("hello")) == "true"
        assert (await http.get(listening.url.replace("/mcp", "/health"))).json() == {"status": "ok"}
    assert shop.events == ["entered", "entered", "left", "left"]


async def test_many_loops_in_many_threads_enter_and_leave_without_disturbing_each_other() -> None:
    shop = Shop()
    async with Client(shop.mcp) as client:
        assert await asyncio.gather(*(in_another_loop(shop.mcp) for _ in range(12))) == ["true"] * 12
        assert text(await client.call_tool("hello")) == "true"
    assert shop.events.count("entered") == shop.events.count("left") == 13


async def test_an_approved_body_is_waited_for_though_another_loop_came_and_went() -> None:
    shop = Shop()
    async with Client(shop.mcp, elicitation_callback=person()) as client:
        call = asyncio.create_task(client.call_tool("buy"))
        await eventually(lambda: "buying" in shop.events)
        assert await in_another_loop(shop.mcp) == "true"
        call.cancel()
        await asyncio.wait({call})
        leaving = asyncio.create_task(turns(50))  # while the client waits for the body
        leaving.add_done_callback(lambda _: shop.let_go.set())
    assert shop.events == ["entered", "buying", "entered", "left", "bought", "left"]


async def test_ready_and_attended_are_said_of_the_loop_that_asks() -> None:
    shop = Shop()

    async def here() -> tuple[bool, bool]:
        return shop.mcp.ready, shop.mcp.attended

    async with shop.mcp.running():
        assert await here() == (True, True)
        assert await asyncio.to_thread(asyncio.run, here()) == (False, False)
    assert await here() == (False, False)


def test_outside_a_loop_nobody_attends_to_it() -> None:
    assert (Shop().mcp.ready, Shop().mcp.attended) == (False, False)
    assert MCPServer("plain").ready


@pytest.mark.long
def test_a_closed_loop_is_not_kept() -> None:
    shop = Shop()
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def use() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        async with Client(shop.mcp) as client:
            await client.call_tool("hello")

    async def cut_off() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await Client(shop.mcp).__aenter__()

    asyncio.run(cut_off())
    for _ in range(3):
        asyncio.run(use())
    gc.collect()
    assert [loop() for loop in loops] == [None] * 4


def test_an_approved_body_whose_loop_was_closed_under_it_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    shop = Shop()
    loop = asyncio.new_event_loop()

    async def begin() -> None:
        client = await Client(shop.mcp, elicitation_callback=person()).__aenter__()
        task = asyncio.create_task(client.call_tool("buy"))
        await eventually(lambda: "buying" in shop.events)
        kept.append(task)

    kept: list[object] = []
    loop.run_until_complete(begin())
    pending = asyncio.all_tasks(loop)
    loop.close()
    with caplog.at_level(logging.ERROR, "bespeak"):
        asyncio.run(in_another_loop(shop.mcp))
    assert CLOSED in caplog.messages
    assert "bought" not in shop.events
    for task in pending:  # which nobody can end any more: no word about that from asyncio
        task._log_destroy_pending = False  # pyright: ignore[reportAttributeAccessIssue]
        coroutine = task.get_coro()
        assert asyncio.iscoroutine(coroutine)
        coroutine.close()
    assert "'buy' raised GeneratorExit" not in caplog.text


CLOSED = "'buy' was approved and still running when its event loop was closed; whether it took effect is unknown"


def test_an_approved_body_that_the_end_of_asyncio_run_cancels_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    shop = Shop()

    async def begin() -> None:
        client = await Client(shop.mcp, elicitation_callback=person()).__aenter__()
        kept.append(asyncio.create_task(client.call_tool("buy")))
        await eventually(lambda: "buying" in shop.events)

    kept: list[object] = []
    with caplog.at_level(logging.ERROR, "bespeak"):
        asyncio.run(begin())
    assert CANCELLED in caplog.messages
    assert "bought" not in shop.events


CANCELLED = "'buy' was approved, and was cancelled while it ran; whether it took effect is unknown"
