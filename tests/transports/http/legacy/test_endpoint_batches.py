"""Batches over HTTP (protocol 25.5): accepted up to 2025-03-26, refused later; each entry stands for itself."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Any

import pytest
from mcp_types import ListRootsResult

from bespeak import Context, ListRoots, MCPServer, Resolve
from bespeak.protocol.messages import MOST_IN_A_BATCH
from bespeak.transports.http.legacy.event_store import MemoryEventStore
from tests.transports.http.asgi_wire import Wire
from tests.transports.http.callers import soon
from tests.transports.http.legacy.older_client import (
    JUNE,
    MARCH,
    NOVEMBER,
    Desk,
    Served,
    accepted,
    call,
    hello,
    modern,
    notification,
    request,
    served,
    text,
)
from tests.waiting import turns


@pytest.fixture
async def server() -> AsyncGenerator[Served]:
    async with served(Desk().mcp) as listening:
        yield listening


def by_id(messages: list[Any]) -> dict[Any, Any]:
    return {message.get("id"): message for message in messages}


@pytest.mark.parametrize("version", ["2024-11-05", MARCH])
async def test_a_batch_is_answered_with_an_array(server: Served, version: str) -> None:
    older = await server.client(version)
    reply = await older.post([call("echo", {"text": "a"}, id_=1), request("ping", id_="two"), request("no", id_=3)])
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    found = by_id(reply.json)
    assert set(found) == {1, "two", 3}
    assert text(found[1]) == "a"
    assert found["two"]["result"] == {}
    assert found[3]["error"]["code"] == -32601


async def test_a_batch_that_wants_no_answer_is_taken_with_202(server: Served) -> None:
    reply = await (await server.client(MARCH)).post([notification("notifications/initialized"), accepted("q-9")])
    assert (reply.status, reply.body) == (202, b"")


BROKEN: list[tuple[Any, int]] = [
    (1, -32600),
    ([request("ping")], -32600),
    ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600),
]


@pytest.mark.parametrize(("entry", "code"), BROKEN)
@pytest.mark.parametrize("kept", [False, True], ids=["no store", "store"])
async def test_an_entry_that_is_no_message_spoils_no_other(entry: Any, code: int, kept: bool) -> None:
    options: Any = {"event_store": MemoryEventStore()} if kept else {}
    async with served(Desk().mcp, **options) as server:
        older = await server.client(MARCH)
        async with older.open([entry, request("ping", id_=2)]) as exchange:
            found = by_id(await exchange.rest() if kept else (await exchange.whole()).json)
    assert set(found) == {None, 2}
    assert found[None]["error"]["code"] == code
    assert found[2]["result"] == {}


async def test_a_modern_request_has_no_place_in_a_batch(server: Served) -> None:
    reply = await (await server.client(MARCH)).post([modern("tools/list", id_=1), request("ping", id_=2)])
    found = by_id(reply.json)
    assert found[1]["error"]["code"] == -32600
    assert "this request must not be part of a batch" in found[1]["error"]["message"]
    assert found[2]["result"] == {}


async def test_the_largest_allowed_batch_is_served(server: Served) -> None:
    batch = [call("echo", {"text": str(number)}, id_=number) for number in range(MOST_IN_A_BATCH)]
    reply = await (await server.client(MARCH)).post(batch)
    assert {message["id"]: text(message) for message in reply.json} == {
        number: str(number) for number in range(MOST_IN_A_BATCH)
    }


@pytest.mark.parametrize(("count", "says"), [(MOST_IN_A_BATCH + 1, "100"), (0, "empty")])
async def test_too_many_and_none_at_all_are_refused_with_the_reason(server: Served, count: int, says: str) -> None:
    reply = await (await server.client(MARCH)).post([request("ping", id_=number) for number in range(count)])
    assert (reply.status, reply.code) == (400, -32600)
    assert says in reply.reason, "a client that may send batches is not told to send none"


@pytest.mark.parametrize("version", [JUNE, NOVEMBER])
async def test_later_revisions_have_no_batches(server: Served, version: str) -> None:
    reply = await (await server.client(version)).post([request("ping")])
    assert (reply.status, reply.code) == (400, -32600)
    assert "one JSON-RPC message at a time" in reply.reason


async def test_a_handshake_does_not_come_in_a_batch(server: Served) -> None:
    reply = await server.stranger().post([hello(MARCH)])
    assert reply.status == 400
    assert "mcp-session-id" not in reply.headers
    assert server.sessions == 0
    (error,) = (await (await server.client(MARCH)).post([hello(MARCH)])).json
    assert error["error"]["code"] == -32600


async def test_notifications_of_calls_in_a_batch_come_before_the_responses_on_one_stream(server: Served) -> None:
    older = await server.client(MARCH)
    async with older.open([call("speak", id_=1, token="a"), call("speak", id_=2, token="b")]) as exchange:
        messages = await exchange.rest()
    assert {message["id"] for message in messages[-2:]} == {1, 2}
    progress = [message["params"] for message in messages if message.get("method") == "notifications/progress"]
    assert [one["progress"] for one in progress if one["progressToken"] == "b"] == [1, 2, 3]


@pytest.mark.parametrize("token", [None, "a"], ids=["json", "stream"])
async def test_a_batch_that_is_cut_off_has_all_its_responses_those_that_are_ready_among_them(token: str | None) -> None:
    began = asyncio.Event()

    async def slow(ctx: Context) -> str:
        await ctx.report_progress(1)
        began.set()
        await asyncio.Event().wait()
        return ""

    async def quick() -> str:
        return "done"

    mcp = MCPServer[Any]("desk")
    for tool in (slow, quick):
        mcp.add_tool(tool)
    batch = [call("quick", id_=1), call("slow", id_=2, token=token), call("slow", id_=3)]
    wire = Wire(batch, **{"MCP-Protocol-Version": MARCH})
    serving = asyncio.create_task(wire.through(mcp.streamable_http_app(stateless_http=True)))
    await soon(began)
    await turns(20)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    messages = wire.answer.messages
    assert (wire.answer.status, wire.answer.is_stream) == ((200, True) if token else (503, False))
    responses = by_id([one for one in messages if "id" in one] if token else messages[0])
    assert set(responses) == {1, 2, 3}
    assert text(responses[1]) == "done"
    for id_ in (2, 3):
        assert "the server is stopping; whether the request was carried out is not known" in str(responses[id_])


async def roots() -> ListRoots:
    return ListRoots()


async def test_an_answer_may_come_in_a_batch() -> None:
    mcp = MCPServer[Any]("roots")

    @mcp.tool()
    async def where(found: Annotated[ListRootsResult, Resolve(roots, key="roots")]) -> str:
        return str(found.roots[0].uri)

    async with served(mcp) as server:
        older = await server.client(MARCH)
        async with older.open([call("where", id_="w")]) as exchange:
            question = await exchange.message()
            assert question["method"] == "roots/list"
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///home"}]}}
            reply = await older.post([answer, request("ping", id_="p")])
            assert [message["id"] for message in reply.json] == ["p"]
            assert text(await exchange.message()) == "file:///home"
