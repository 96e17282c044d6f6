"""Attacks on a server's older era: what must be finished, what must end, and what must reach a client, whoever misbehaves."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from mcp_types import InputRequiredResult
from mcp_types.jsonrpc import JSONRPCMessage

from bespeak import Context, MCPServer, Resolve
from bespeak.protocol.messages import read_message
from bespeak.transports.http.legacy.event_store import EventCallback, MemoryEventStore
from tests.transports.http.legacy.older_client import (
    JUNE,
    MARCH,
    NOVEMBER,
    Desk,
    Json,
    accepted,
    call,
    cancelled,
    hello,
    really,
    served,
    text,
)
from tests.transports.stdio.older_on_stdio import Older as OnStdio
from tests.waiting import eventually


class SlowStore(MemoryEventStore):
    """Takes a moment for everything, as one behind a network does."""

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        await asyncio.sleep(0.02)
        return await super().store_event(stream_id, message)


class GatedStore(MemoryEventStore):
    """Can be held up when somebody comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        self.asked.set()
        await self.gate.wait()
        return await super().replay_events_after(last_event_id, send_callback)


class OddStore(MemoryEventStore):
    """Answers in its own way."""

    def __init__(self, odd: Callable[[], Any]) -> None:
        super().__init__()
        self._odd = odd

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        return self._odd()


def pausing() -> MCPServer[Any]:
    """A server whose tool lets go of the connection first."""
    mcp = MCPServer[Any]("pausing")

    @mcp.tool()
    async def pause(ctx: Context) -> str:
        await ctx.close_sse_stream()
        return "done"

    return mcp


# Nobody's connection is let go of who cannot come back


@pytest.mark.parametrize("version", ["2024-11-05", MARCH, JUNE])
async def test_a_client_that_was_given_no_place_to_come_back_to_keeps_its_connection(version: str) -> None:
    async with served(pausing(), event_store=MemoryEventStore()) as server:
        older = await server.client(version)
        async with older.open(call("pause")) as exchange:
            assert [text(one) for one in await exchange.rest()] == ["done"]


async def test_a_connection_is_let_go_of_only_when_the_client_knows_where_to_come_back_to() -> None:
    async with served(pausing(), event_store=SlowStore()) as server:
        older = await server.client()
        async with older.open(call("pause")) as exchange:
            first = await exchange.event()
        assert first is not None
        if not first.data:
            async with older.stand(last_event_id=first.id) as resumed:
                assert text(await resumed.message()) == "done"


async def test_nobody_s_connection_is_let_go_of_when_the_store_has_failed() -> None:
    def fails() -> Any:
        raise ConnectionError("the back end is down")

    async with served(pausing(), event_store=OddStore(fails)) as server:
        older = await server.client()
        async with older.open(call("pause")) as exchange:
            assert [text(one) for one in await exchange.rest()] == ["done"]


# Stores that misbehave


def cancels() -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    "odd", [lambda: 5, lambda: None, lambda: b"x-1", cancels], ids=["int", "none", "bytes", "cancelled"]
)
async def test_whatever_a_store_makes_of_an_event_the_call_is_answered(odd: Callable[[], Any]) -> None:
    async with served(Desk().mcp, event_store=OddStore(odd)) as server:
        older = await server.client()
        async with asyncio.timeout(3), older.open(call("echo", {"text": "hi"})) as exchange:
            assert text(await exchange.message()) == "hi"


class AccentedStore(MemoryEventStore):
    """Its ids are not all ASCII; in an event they are UTF-8, and so they come back."""

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        return "é" + await super().store_event(stream_id, message)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        if not last_event_id.startswith("é"):
            return None
        return await super().replay_events_after(last_event_id.removeprefix("é"), send_callback)


async def test_an_event_id_is_read_as_it_was_written() -> None:
    async with served(Desk().mcp, event_store=AccentedStore()) as server:
        older = await server.client()
        async with older.open(call("echo", {"text": "hi"})) as exchange:
            first = await exchange.event()
            assert first is not None
            assert first.id is not None
        async with older.stand(last_event_id=first.id.encode().decode("latin-1")) as resumed:
            assert text(await resumed.message()) == "hi"


async def test_nobody_comes_back_to_a_standing_stream_of_a_session_that_has_ended_meanwhile() -> None:
    store = GatedStore()
    async with served(Desk().mcp, event_store=store) as server:
        older = await server.client()
        async with older.stand() as standing:
            first = await standing.event()
            assert first is not None
        async with older.stand(last_event_id=first.id) as resumed:
            await store.asked.wait()
            await older.delete()
            store.gate.set()
            if await resumed.head() == 200:
                async with asyncio.timeout(1):
                    assert await resumed.rest() == []


# What somebody approved of is finished


def by_hand(log: list[str], reached: asyncio.Event, gate: asyncio.Event) -> MCPServer[Any]:
    """A tool that is approved, then wants to go on a moment later, then does what it was approved for."""
    mcp = MCPServer[Any]("by hand")
    question: Any = {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Really?", "requestedSchema": {"type": "object", "properties": {}}},
    }

    @mcp.tool()
    async def pay(ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state is None:
            return InputRequiredResult.model_validate({"inputRequests": {"really": question}, "requestState": "asked"})
        if ctx.request_state == "asked":
            log.append("approved")
            return InputRequiredResult(request_state="approved")
        log.append("paying")
        reached.set()
        try:
            await gate.wait()
        except asyncio.CancelledError:
            log.append("cut short")
            raise
        log.append("paid")
        return "paid"

    return mcp


async def test_a_body_that_goes_on_later_is_finished_if_somebody_approved_of_it_before() -> None:
    log: list[str] = []
    reached, gate = asyncio.Event(), asyncio.Event()
    async with served(by_hand(log, reached, gate)) as server:
        older = await server.client()
        async with older.open(call("pay", id_="c")) as exchange:
            question = await older.asked(exchange)
            await older.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}})
            await asyncio.wait_for(reached.wait(), 5)
            await older.post(cancelled("c"))
            await asyncio.sleep(0.02)
            gate.set()
            await eventually(lambda: len(log) > 2)
    assert log == ["approved", "paying", "paid"]


@pytest.mark.parametrize("how", ["cancel", "delete"])
async def test_at_whatever_moment_a_call_is_cancelled_its_body_is_whole_and_its_cleanups_run(how: str) -> None:
    log: list[str] = []
    mcp = MCPServer[Any]("whole")

    async def till() -> AsyncGenerator[str]:
        log.append("opened")
        try:
            yield "till"
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    async def late() -> str:
        await asyncio.sleep(0)
        return "late"

    @mcp.tool()
    async def pay(
        till: Annotated[str, Resolve(till)], late: Annotated[str, Resolve(late)], ok: Annotated[bool, Resolve(really)]
    ) -> str:
        log.append("paying")
        for _ in range(5):
            await asyncio.sleep(0)
        log.append("paid")
        return "paid"

    peer_log: list[list[str]] = []
    for moments in range(30):
        log.clear()
        peer = mcp.peer()
        channel = Recording()
        await peer.answer(read(hello(NOVEMBER)), channel)
        task = asyncio.create_task(peer.answer(read(call("pay", id_="c")), channel))
        await eventually(lambda channel=channel: channel.pushed)
        peer.heard(read(accepted(channel.pushed[0]["id"])))
        for _ in range(moments):
            await asyncio.sleep(0)
        if how == "delete":
            peer.close("over")
        else:
            peer.heard(read(cancelled("c")))
        task.cancel()
        await asyncio.wait({task})
        await eventually(lambda: ("paying" in log) == ("paid" in log) and log.count("opened") == log.count("closed"))
        peer_log.append(list(log))
    assert ["opened", "paying", "paid", "closed"] in peer_log
    assert [] in peer_log


def read(message: Json) -> Any:
    return read_message(json.dumps(message).encode())


class Recording:
    """A channel that remembers."""

    has_reader = True

    def __init__(self) -> None:
        self.pushed: list[Json] = []

    def notify(self, message: bytes) -> Awaitable[None] | None:
        return None

    def push(self, message: bytes) -> None:
        self.pushed.append(json.loads(message))

    def pause(self) -> None:
        pass

    def when_gone(self, callback: Callable[[], object]) -> None:
        """There is no connection that could be gone."""


# The end of a server


@pytest.mark.parametrize("stateless", [False, True])
async def test_no_call_runs_on_when_the_lifespan_has_ended(stateless: bool) -> None:
    log: list[str] = []
    reached = asyncio.Event()

    @asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncGenerator[None]:
        yield
        log.append("lifespan over")

    mcp = MCPServer[Any]("lived", lifespan=lifespan)

    @mcp.tool()
    async def hold() -> str:
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.02)
            log.append("call over")
        return ""

    async with served(mcp, stateless_http=stateless) as server:
        older = server.stranger(NOVEMBER)
        if not stateless:
            await older.initialize(NOVEMBER)
        async with older.open(call("hold")):
            await asyncio.wait_for(reached.wait(), 5)
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
    assert log == ["call over", "lifespan over"]


async def test_an_open_question_does_not_keep_a_server_from_stopping() -> None:
    """Nobody can answer it any more: a server that stops takes no new connections."""
    loop = asyncio.get_running_loop()
    desk = Desk()
    async with served(desk.mcp) as server:
        older = await server.client()
        exchange = await older.open(call("count")).__aenter__()
        await older.asked(exchange)
        began = loop.time()
    exchange.leave()
    assert desk.log == ["opened", "closed"]
    assert loop.time() - began < 2


# stdio


async def test_what_comes_after_a_batch_is_heard_after_it() -> None:
    desk = Desk()
    async with OnStdio(desk.mcp) as wire:
        await wire.greet(MARCH)
        entries = [call("hold", id_="c"), call("echo", id_="e")]
        wire.send(json.dumps(entries).encode() + b"\n", cancelled("c"))
        answers: Any = await asyncio.wait_for(wire.next(), 2)
        assert [answer["id"] for answer in answers] == ["e"]


async def test_a_batch_is_answered_though_it_is_the_last_line_and_has_no_end() -> None:
    async with OnStdio(Desk().mcp) as wire:
        await wire.greet(MARCH)
        wire.send(json.dumps([call("echo", {"text": "hi"}, id_="e")]).encode())
        wire.eof()
        assert json.loads(await wire.line() or b"null"), "nothing was answered"
