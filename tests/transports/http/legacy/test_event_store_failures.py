"""Event stores that are slow or fail, and clients that do not read: no call hangs, and nothing grows without bound."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from mcp_types.jsonrpc import JSONRPCMessage

from bespeak import Context, MCPServer
from bespeak.transports.http.legacy.event_store import EventCallback, MemoryEventStore
from tests.transports.http.legacy.older_client import (
    JUNE,
    MARCH,
    Desk,
    Older,
    accepted,
    call,
    cancelled,
    events,
    served,
    text,
)
from tests.waiting import eventually, turns

pytestmark = pytest.mark.timing


class SlowStore(MemoryEventStore):
    """Takes a moment to keep an event, as one behind a network does."""

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        await asyncio.sleep(0.02)
        return await super().store_event(stream_id, message)


async def test_a_question_is_taken_back_though_the_store_is_slow() -> None:
    async with served(Desk().mcp, event_store=SlowStore()) as server:
        older = await server.client()
        async with older.open(call("count", id_="c")) as exchange:
            question = await older.asked(exchange)
            await older.post(cancelled("c"))
            (taken_back,) = await exchange.rest()
    assert taken_back["params"]["requestId"] == question["id"]


@pytest.mark.long
async def test_nothing_comes_twice_or_never_while_a_client_comes_and_goes() -> None:
    desk = Desk()
    async with served(desk.mcp, event_store=SlowStore()) as server:
        older = await server.client()
        async with older.open(call("speak", {"times": 20}, token="p")) as exchange:
            place = (await events(exchange, 1))[0]
        seen: list[Any] = []
        while not seen or "result" not in seen[-1]:
            async with older.stand(last_event_id=place) as resumed:
                for _ in range(3):
                    event = await resumed.event()
                    if event is None:
                        break
                    assert event.id is not None
                    seen.append(event.json)
                    place = event.id
        assert [one["params"]["progress"] for one in seen if one.get("method") == "notifications/progress"] == [
            *range(1, 21)
        ]


class BrokenStore(MemoryEventStore):
    """Its back end is down."""

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        raise ConnectionError("the back end is down")

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        raise ConnectionError("the back end is down")


async def test_a_store_that_fails_takes_no_call_with_it() -> None:
    async with served(Desk().mcp, event_store=BrokenStore()) as server:
        older = await server.client()
        async with older.open(call("approve")) as exchange:
            await older.post(accepted((await older.asked(exchange))["id"]))
            assert text(await exchange.message()) == "approved True"
        reply = await older.get(last_event_id="x-1")
        assert (reply.status, "back end" in reply.reason) == (500, False)
        for _ in range(6):
            async with older.stand() as standing:
                assert await standing.head() == 200
                standing.leave()
            await eventually(lambda: not any(one.standing for one in server.app._legacy._own_sessions.all()))  # pyright: ignore[reportPrivateUsage] - nobody else knows


@pytest.mark.parametrize("kept", [False, True], ids=["no store", "store"])
async def test_a_client_that_does_not_read_does_not_have_everything_held_for_it(kept: bool) -> None:
    sent: list[int] = []
    mcp = MCPServer[Any]("flood")

    @mcp.tool()
    async def flood(ctx: Context) -> str:
        for number in range(600):
            await ctx.report_progress(number + 1, message="x" * 65536)
            sent.append(number)
        return "done"

    async with served(mcp, event_store=MemoryEventStore(max_events=10) if kept else None) as server:
        older = await server.client()
        async with older.open(call("flood", id_="f", token="p")) as exchange:
            await exchange.head()
            held = -1
            while held != len(sent):
                held = len(sent)
                await turns(200)  # all of it happens in this loop
            await older.post(cancelled("f"))
    assert held < 600, "the tool has to wait for its reader"


async def test_with_json_only_or_without_sessions_nothing_is_kept() -> None:
    kinds: list[dict[str, Any]] = [{"json_response": True}, {"stateless_http": True}]
    for options in kinds:
        async with served(Desk().mcp, event_store=BrokenStore(), **options) as server:
            older = await server.client() if "json_response" in options else Older(server.port)
            assert (await older.post(call("echo", {"text": "hi"}))).text == "hi"


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


def cancels() -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    "odd", [lambda: 5, lambda: None, lambda: b"x-1", cancels], ids=["int", "none", "bytes", "cancelled"]
)
async def test_whatever_a_store_makes_of_an_event_the_call_is_answered(odd: Callable[[], Any]) -> None:
    async with served(Desk().mcp, event_store=OddStore(odd)) as server:
        older = await server.client()
        async with asyncio.timeout(20), older.open(call("echo", {"text": "hi"})) as exchange:
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
                async with asyncio.timeout(20):
                    assert await resumed.rest() == []
