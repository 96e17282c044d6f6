"""How the stdio server ends (protocol section 22, design section 8): promptly, with a grace, never in mid-claim."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bespeak import Client, MCPServer
from bespeak.transports.stdio import stdio_server
from tests.transports.stdio.wire import Press, Shop, Wire, call, content, settled
from tests.waiting import eventually, pass_time, turns
from tests.wires import OverPipes

pytestmark = pytest.mark.timing


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio_server, "GRACE_SECONDS", 0.05)


Leave = Callable[[Wire], None]


def close(wire: Wire) -> None:
    wire.eof()


def stop(wire: Wire) -> None:
    wire.stdio.stop()


WAYS = pytest.mark.parametrize("leave", [close, stop], ids=["end of input", "told to stop"])


async def ended(wire: Wire, seconds: float) -> bool:
    done, _ = await asyncio.wait({wire.serving}, timeout=seconds)
    return bool(done)


async def paid(wire: Wire, shop: Shop) -> None:
    """A call is claimed, and held in its body."""
    state = (await wire.ask(call(1, "pay")))["result"]["requestState"]
    answers = {"ask": {"action": "accept", "content": {"value": True}}}
    wire.send(call(2, "pay", retry={"requestState": state, "inputResponses": answers}))
    await shop.begun()


@WAYS
async def test_calls_under_way_may_end_within_the_grace_and_are_answered(leave: Leave) -> None:
    shop = Shop()
    async with Wire(shop.mcp) as wire:
        wire.send(call(1, "wait"))
        await shop.begun()
        leave(wire)
        await wire.told()
        await turns()
        assert not wire.serving.done()
        shop.gate.set()
        assert content(await wire.next()) == "waited"


@WAYS
@pytest.mark.usefixtures("short_grace")
async def test_after_the_grace_calls_are_cancelled(leave: Leave) -> None:
    shop = Shop()
    async with Wire(shop.mcp) as wire:
        wire.send(call(1, "wait"))
        await shop.begun()
        leave(wire)
        assert await ended(wire, 5)
        assert shop.log == ["began", "cancelled"]


@pytest.mark.usefixtures("short_grace")
async def test_a_body_that_ignores_its_cancellation_does_not_keep_the_server_from_ending() -> None:
    shop = Shop()
    async with Wire(shop.mcp) as wire:
        wire.send(call(1, "stubborn"))
        await shop.begun()
        wire.eof()
        left = await ended(wire, 20)
        shop.gate.set()
        assert left, "one body that does not listen holds up the whole server"


@WAYS
@pytest.mark.usefixtures("short_grace")
async def test_claimed_bodies_finish_before_the_server_ends(leave: Leave) -> None:
    shop = Shop()
    async with Wire(shop.mcp) as wire:
        await paid(wire, shop)
        leave(wire)
        await wire.told()
        await pass_time(1, steps=4)
        assert not wire.serving.done(), "it is waited for beyond the grace"
        assert shop.log == ["began"]
        shop.gate.set()
        assert await ended(wire, 5)
        assert shop.log == ["began", "ended"]


@WAYS
@pytest.mark.long
async def test_a_client_that_does_not_read_does_not_keep_the_server_from_ending(
    leave: Leave, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_server, "FLUSH_SECONDS", 0.05)
    press = Press()
    async with Wire(press.mcp) as wire:
        transport: Any = wire.writer.transport
        transport.pause_reading()
        wire.send(*(call(id_, "print_") for id_ in range(20)))
        await settled(wire, press)
        wire.send(call(20, "print_"))
        await settled(wire, press)  # the server has stopped reading by now
        leave(wire)
        left = await ended(wire, 20)
        transport.resume_reading()
        assert left, "it waits for a client who has left to read"


async def test_a_client_that_is_gone_altogether_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    press = Press()
    async with Wire(press.mcp) as wire:
        wire.send(*(call(id_, "print_") for id_ in range(20)))
        await eventually(lambda: press.served == 20)
        wire.writer.transport.abort()
        assert await ended(wire, 5)
        await wire.serving
    assert not caplog.records


# The lifespan


@pytest.mark.parametrize("after", [False, True], ids=["entering", "leaving"])
async def test_a_lifespan_that_fails_is_raised_and_not_hidden(after: bool) -> None:
    @asynccontextmanager
    async def lifespan(server: MCPServer[Any]) -> AsyncGenerator[None]:
        if not after:
            raise OSError("no database")
        yield
        raise OSError("no database")

    wire = await Wire(MCPServer[Any]("shop", lifespan=lifespan)).__aenter__()
    wire.eof()
    leaving: Coroutine[Any, Any, None] = wire.__aexit__()
    with pytest.raises(OSError, match="no database"):
        await leaving


async def test_a_server_on_stdio_that_is_cancelled_ends_its_calls() -> None:
    begun: list[str] = []
    ended: list[str] = []
    mcp = MCPServer("shop")

    @mcp.tool()
    async def slow() -> None:
        begun.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    wire = OverPipes(mcp)
    async with Client(wire) as client:
        asked = asyncio.create_task(client.call_tool("slow"))
        await eventually(lambda: begun)
        wire.stop_serving()
        await eventually(lambda: ended)
        asked.cancel()
        await asyncio.wait({asked})
