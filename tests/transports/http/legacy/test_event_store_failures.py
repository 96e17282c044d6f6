"""Event stores that are slow, or fail, and clients that do not read: no call hangs, and nothing grows without bound."""

import asyncio
from typing import Any

import pytest
from mcp_types.jsonrpc import JSONRPCMessage

from bespeak import Context, MCPServer
from bespeak.transports.http.legacy.event_store import EventCallback, MemoryEventStore
from tests.transports.http.legacy.older_client import Desk, Older, accepted, call, cancelled, events, served, text


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
            await asyncio.sleep(0.02)


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
                await asyncio.sleep(0.05)
            await older.post(cancelled("f"))
    assert held < 600, "the tool has to wait for its reader"


async def test_with_json_only_or_without_sessions_nothing_is_kept() -> None:
    kinds: list[dict[str, Any]] = [{"json_response": True}, {"stateless_http": True}]
    for options in kinds:
        async with served(Desk().mcp, event_store=BrokenStore(), **options) as server:
            older = await server.client() if "json_response" in options else Older(server.port)
            assert (await older.post(call("echo", {"text": "hi"}))).text == "hi"
