"""Resuming a stream (protocol 25.3): what a store keeps, event ids, and what a client is sent again."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from mcp_types.jsonrpc import JSONRPCMessage, JSONRPCNotification

from bespeak import MCPServer
from bespeak.transports.http.legacy.event_store import EventMessage, MemoryEventStore
from bespeak.transports.http.legacy.http_sessions import HttpSession
from tests.transports.http.legacy.older_client import (
    JUNE,
    NOVEMBER,
    Desk,
    Served,
    accepted,
    call,
    events,
    request,
    served,
    text,
)
from tests.waiting import eventually, pass_time, turns

pytestmark = pytest.mark.timing


def note(number: int) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method="note", params={"number": number})


def read(message: JSONRPCMessage) -> int:
    assert isinstance(message, JSONRPCNotification)
    return (message.params or {})["number"]


async def after(store: MemoryEventStore, id_: str) -> tuple[str | None, list[int], list[str | None]]:
    """Which stream an event was on, and what came after it."""
    found: list[EventMessage] = []

    async def take(event: EventMessage) -> None:
        found.append(event)

    stream = await store.replay_events_after(id_, take)
    numbers = [read(event.message) for event in found]
    return stream, numbers, [event.event_id for event in found]


# The store in memory


async def test_what_came_after_an_event_is_handed_over_in_order_and_of_its_own_stream_only() -> None:
    store = MemoryEventStore()
    ids = [await store.store_event("ab"[number % 2], note(number)) for number in range(6)]
    assert await after(store, ids[0]) == ("a", [2, 4], [ids[2], ids[4]])
    assert await after(store, ids[3]) == ("b", [5], [ids[5]])
    assert await after(store, ids[4]) == ("a", [], [])


async def test_ids_are_unique_among_all_streams_and_fit_a_header() -> None:
    store = MemoryEventStore()
    ids = [await store.store_event(f"stream {number % 50}", note(number)) for number in range(500)]
    assert len(set(ids)) == 500
    assert all(id_.isascii() and id_.isprintable() and " " not in id_ for id_ in ids)


async def test_an_event_without_a_message_is_a_place_to_begin_and_is_not_sent_again() -> None:
    store = MemoryEventStore()
    first = await store.store_event("a", None)
    await store.store_event("a", note(1))
    await store.store_event("a", None)
    await store.store_event("a", note(2))
    assert (await after(store, first))[:2] == ("a", [1, 2])


@pytest.mark.parametrize("id_", ["", "-", "nonsense-1", "1" * 5000])
async def test_an_id_it_never_gave_is_not_known(id_: str) -> None:
    store = MemoryEventStore()
    await store.store_event("a", note(1))
    assert await after(store, id_) == (None, [], [])


async def test_of_each_stream_only_the_last_events_are_kept() -> None:
    store = MemoryEventStore(max_events=3)
    ids = [await store.store_event("a", note(number)) for number in range(10)]
    assert await after(store, ids[6]) == (None, [], []), "what came after it would have a hole"
    assert (await after(store, ids[7]))[:2] == ("a", [8, 9])


async def test_streams_that_were_not_written_for_longest_are_forgotten() -> None:
    store = MemoryEventStore(max_streams=2)
    first, second = await store.store_event("a", note(1)), await store.store_event("b", note(2))
    await store.store_event("a", note(3))
    await store.store_event("c", note(4))
    assert (await after(store, first))[:2] == ("a", [3])
    assert await after(store, second) == (None, [], [])


# On the wire


@pytest.fixture
async def server() -> AsyncGenerator[Served]:
    async with served(Desk().mcp, event_store=MemoryEventStore()) as listening:
        yield listening


async def test_a_stream_begins_with_an_event_that_says_where_to_come_back_to_and_when() -> None:
    async with served(Desk().mcp, event_store=MemoryEventStore(), retry_interval=1500) as server:
        older = await server.client()
        async with older.open(call("speak")) as exchange, older.stand() as standing:
            for stream in (exchange, standing):
                first = await stream.event()
                assert first is not None
                assert (first.data, first.retry) == (b"", "1500")
                assert first.id


async def test_a_client_from_before_gets_ids_but_no_event_without_a_message(server: Served) -> None:
    async with (await server.client(JUNE)).open(call("echo", {"text": "hi"})) as exchange:
        first = await exchange.event()
    assert first is not None
    assert text(first.json) == "hi"
    assert first.id


def inside(server: Served) -> HttpSession:
    """The server's side of the only session."""
    (session,) = server.app._legacy._own_sessions.all()  # pyright: ignore[reportPrivateUsage] - nobody else knows
    return session


@pytest.mark.parametrize("version", [JUNE, NOVEMBER])
async def test_who_comes_back_gets_what_was_missed_then_what_is_to_come_then_the_response(version: str) -> None:
    desk = Desk()
    async with served(desk.mcp, event_store=MemoryEventStore()) as server:
        older = await server.client(version)
        async with older.open(call("hold_and_speak", id_="r", token="p")) as exchange:
            place = (await events(exchange, 1))[0] if version == NOVEMBER else (await events(exchange, 1))[-1]
            await desk.begun()
        async with older.stand(last_event_id=place) as resumed:
            if version == NOVEMBER:
                assert (await resumed.message())["params"]["progress"] == 1
            desk.gate.set()
            progress, response = await resumed.rest()
    assert progress["params"]["progress"] == 2
    assert (response["id"], text(response)) == ("r", "held")


async def test_who_comes_back_after_the_response_gets_it_and_the_stream_ends(server: Served) -> None:
    older = await server.client()
    async with older.open(call("speak", token="p")) as exchange:
        ids = await events(exchange, 6)
    async with older.stand(last_event_id=ids[2]) as resumed:
        progress, log, response = await resumed.rest()
    assert (progress["params"]["progress"], log["method"]) == (3, "notifications/message")
    assert text(response) == "spoken"
    async with older.stand(last_event_id=ids[-1]) as resumed:
        assert await resumed.rest() == [], "there is nothing more"


async def test_who_comes_back_twice_gets_the_rest_on_the_later_connection() -> None:
    desk = Desk()
    async with served(desk.mcp, event_store=MemoryEventStore()) as server:
        older = await server.client()
        async with older.open(call("hold_and_speak", token="p")) as exchange:
            place = (await events(exchange, 1))[0]
            await desk.begun()
        async with older.stand(last_event_id=place) as first, older.stand(last_event_id=place) as second:
            await first.message()
            await second.message()
            assert await first.rest() == [], "a message goes to one stream only"
            desk.gate.set()
            assert text((await second.rest())[-1]) == "held"


async def test_a_question_is_still_open_for_who_comes_back_and_later_ones_follow(server: Served) -> None:
    older = await server.client()
    async with older.open(call("approve_twice", id_="r")) as exchange:
        place = (await events(exchange, 1))[0]
        question = await older.asked(exchange)
    await older.post(accepted(question["id"]))
    async with older.stand(last_event_id=place) as resumed:
        assert await older.asked(resumed) == question
        await older.post(accepted((await older.asked(resumed))["id"], value=False))
        assert text(await resumed.message()) == "approved True and False"


async def test_what_is_sent_again_is_what_was_sent() -> None:
    mcp = MCPServer[Any]("nulls")

    @mcp.tool()
    async def nulls() -> dict[str, Any]:
        return {
            "nothing": None,
            "list": [None, {"deep": None}],
            "text": "é\u2028😀",
        }

    async with served(mcp, event_store=MemoryEventStore()) as server:
        older = await server.client()
        async with older.open(call("nulls")) as exchange:
            place = (await events(exchange, 1))[0]
            (sent,) = await exchange.rest()
        async with older.stand(last_event_id=place) as resumed:
            assert await resumed.rest() == [sent]


@pytest.mark.parametrize("id_", ["made-up", ""])
async def test_an_id_that_is_not_known_is_refused(server: Served, id_: str) -> None:
    reply = await (await server.client()).get(last_event_id=id_)
    assert (reply.status, reply.code) == (400, -32600)
    assert "the Last-Event-ID is not known; the events after it are lost" in reply.reason


async def test_an_event_of_another_session_is_as_unknown_as_any(server: Served) -> None:
    mine, other = await server.client(), await server.client()
    async with mine.open(call("echo", {"text": "secret"})) as exchange, mine.stand() as standing:
        places = [*await events(exchange, 1), *await events(standing, 1)]
        for place in places:
            reply = await other.get(last_event_id=place)
            assert (reply.status, b"secret" in reply.body) == (400, False)
            assert "the Last-Event-ID is not known" in reply.reason
            assert (await server.stranger().get(last_event_id=place)).status == 400


async def test_coming_back_to_a_standing_stream_makes_no_more_of_them_than_are_allowed(server: Served) -> None:
    older = await server.client()
    async with AsyncExitStack() as stack:
        standing = await stack.enter_async_context(older.stand())
        (place,) = await events(standing, 1)
        for last in (None, None, None, *[place] * 4):
            again = await stack.enter_async_context(older.stand(last_event_id=last))
            await again.head()
        assert len(inside(server).standing) <= 4


async def test_a_stream_that_was_come_back_to_leaves_nothing_under_way(server: Served) -> None:
    older = await server.client()
    async with older.open(call("approve", id_="r")) as exchange:
        place = (await events(exchange, 1))[0]
        question = await older.asked(exchange)
    async with older.stand(last_event_id=place) as resumed:
        await older.asked(resumed)
    await older.post(accepted(question["id"]))
    await eventually(lambda: not inside(server).busy)
    assert (await older.post(request("ping"))).status == 200


# Answers


async def test_answers_that_nobody_waits_for_do_no_harm(server: Served) -> None:
    older = await server.client()
    async with older.open(call("approve_twice")) as exchange:
        first = await older.asked(exchange)
        for id_ in ("q-99", "", 1, None, first["id"] + " "):
            assert (await older.post({**accepted(id_), "id": id_})).status == 202
        assert (await older.post(accepted(first["id"], value=True))).status == 202
        assert (await older.post(accepted(first["id"], value=False))).status == 202, "the first answer stands"
        second = await older.asked(exchange)
        assert second["params"]["message"] == "You said True. Sure?"
        await older.post(accepted(first["id"], value=False))
        await older.post(accepted(second["id"]))
        assert text(await exchange.message()) == "approved True and True"


# Heartbeats


class Counting(MemoryEventStore):
    """Counts what it is given."""

    kept = 0

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self.kept += 1
        return await super().store_event(stream_id, message)


async def test_heartbeats_are_not_kept_while_the_client_is_away_and_go_on_when_it_is_back() -> None:
    store = Counting()
    async with served(Desk(question_heartbeat=0.02).mcp, event_store=store) as server:
        older = await server.client()
        async with older.open(call("approve", id_="r", token="p")) as exchange:
            place = (await events(exchange, 1))[0]
            question = await older.asked(exchange)
            assert (await exchange.message())["params"]["message"] == "Waiting for an answer"
        (stream,) = inside(server).streams.values()
        await eventually(lambda: not stream.has_reader)
        await turns()  # one may just have been on its way
        kept = store.kept
        await pass_time(1, steps=10)
        assert store.kept == kept
        async with older.stand(last_event_id=place) as resumed:
            assert await older.asked(resumed) == question
            await eventually(lambda: store.kept > kept + 2)
            await older.post(accepted(question["id"]))
            *heard, response = await resumed.rest()
    values = [one["params"]["progress"] for one in heard]
    assert values == sorted(set(values))
    assert len(values) > 2
    assert text(response) == "approved True"
