"""Calls of older clients that wait at a question: how many there may be, what they keep, and what ends them."""

import asyncio
import gc
import json
import tracemalloc
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult
from pydantic import BaseModel

from bespeak import Context, Elicit, MCPServer, Resolve
from bespeak.client.client import Client
from bespeak.resolve.errors import NotAnswered
from bespeak.server import MemoryEventStore
from bespeak.server.legacy.waiting_calls import WaitingCalls, WaitingLimits, weigh
from tests.answering import accept, text
from tests.conftest import Connect
from tests.transports.http.legacy.older_client import Desk, Exchange, Older, accepted, call, cancelled, served
from tests.waiting import eventually, pass_time

KEPT = "Error executing tool pay: resolver 'approve' got no answer: "
SESSION_FULL = (
    KEPT + "2 calls of this session are already waiting for answers, which is the limit; answer or cancel one of them"
)
SERVER_FULL = KEPT + "2 calls are already waiting for answers, which is the limit of this server; try again later"
TOO_HEAVY = (
    KEPT
    + "with this call, the arguments of all calls that are waiting for answers would take more than 100000 bytes of "
    "memory, which is the limit of this server; send less, or try again later"
)


async def approve() -> Elicit[bool]:
    return Elicit("Pay?", bool)


def till(**options: Any) -> MCPServer[Any]:
    mcp = MCPServer[Any]("till", **options)

    @mcp.tool()
    async def pay(approval: Annotated[bool, Resolve(approve, key="approve")], note: Any = "") -> str:
        return f"paid {approval}"

    return mcp


class Slow:
    """Somebody who thinks about every question until told to go on."""

    def __init__(self) -> None:
        self.asked = 0
        self.go_on = asyncio.Event()

    async def __call__(self, context: object, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked += 1
        await self.go_on.wait()
        return accept(value=True)


@asynccontextmanager
async def waiting(client: Client, slow: Slow, number: int) -> AsyncGenerator[list[asyncio.Task[Any]]]:
    """So many calls that wait; they are answered at the end."""
    before = slow.asked
    calls = [asyncio.create_task(client.call_tool("pay")) for _ in range(number)]
    await eventually(lambda: slow.asked == before + number)
    yield calls
    slow.go_on.set()
    assert {text(await one) for one in calls} == {"paid True"}


@pytest.mark.asking_revisions
async def test_a_call_too_many_of_one_session_is_refused_where_calls_wait_and_the_others_are_answered(
    connect: Connect,
) -> None:
    slow = Slow()
    async with connect(till(max_waiting_calls_per_session=2), elicitation_callback=slow) as client:
        async with waiting(client, slow, 2):
            third = asyncio.create_task(client.call_tool("pay"))
            if client.protocol_version >= "2026":
                await eventually(lambda: slow.asked == 3)
            else:
                refused = await third
                assert (refused.is_error, text(refused)) == (True, SESSION_FULL)
        assert text(await client.call_tool("pay")) == "paid True", "there is room again"
        await third


async def test_32_calls_of_a_session_may_wait_unless_the_author_says_otherwise() -> None:
    slow = Slow()
    async with (
        Client(till(), elicitation_callback=slow, mode="2025-11-25") as client,
        waiting(client, slow, 32),
    ):
        assert "32 calls of this session are already waiting for answers" in text(await client.call_tool("pay"))


async def test_a_call_too_many_of_all_sessions_is_refused() -> None:
    slow = Slow()
    mcp = till(max_waiting_calls=2)
    async with (
        Client(mcp, elicitation_callback=slow, mode="2025-11-25") as one,
        Client(mcp, elicitation_callback=slow, mode="2025-11-25") as two,
    ):
        async with waiting(one, slow, 1), waiting(two, slow, 1):
            assert text(await one.call_tool("pay")) == SERVER_FULL
        assert text(await one.call_tool("pay")) == "paid True"


async def test_arguments_too_heavy_for_all_calls_together_are_refused() -> None:
    slow = Slow()
    async with Client(till(max_waiting_bytes=100_000), elicitation_callback=slow, mode="2025-11-25") as client:
        heavy = asyncio.create_task(client.call_tool("pay", {"note": "x" * 60_000}))
        await eventually(lambda: slow.asked == 1)
        notes: list[Any] = ["x" * 60_000, [{} for _ in range(2000)]]
        refused = [text(await client.call_tool("pay", {"note": note})) for note in notes]
        slow.go_on.set()
        assert refused == [TOO_HEAVY, TOO_HEAVY]
        assert text(await heavy) == "paid True"
        assert text(await client.call_tool("pay", {"note": "x" * 60_000})) == "paid True"


async def test_what_else_a_request_holds_is_weighed_too() -> None:
    async with served(till(max_waiting_bytes=100_000)) as server:
        client = await server.client()
        heavy = call("pay", {})
        heavy["params"]["_meta"] = {"note": ["x"] * 5000}
        assert (await client.post(heavy)).text == TOO_HEAVY
        named = call("pay", {}, id_="i" * 100_000)
        assert (await client.post(named)).text == TOO_HEAVY


@pytest.mark.timing
async def test_a_session_has_room_again_when_its_calls_were_cancelled_or_not_answered() -> None:
    desk = Desk(max_waiting_calls_per_session=1, question_timeout=0.05)
    async with served(desk.mcp) as server:
        client = await server.client()
        async with client.open(call("approve")) as late:
            await client.asked(late)
            assert "nobody answered within 0.05 s" in str(await late.rest())
        async with client.open(call("approve", id_=2)) as given_up:
            await client.asked(given_up)
            await client.post(cancelled(2))
            await given_up.rest()
        async with client.open(call("approve", id_=3)) as answered:
            asked = await client.asked(answered)
            await client.post(accepted(asked["id"]))
            assert "approved True" in str(await answered.rest())


SHARE_TAKEN = "too many calls from your address are waiting for answers"


def test_above_half_one_address_may_have_a_tenth_of_the_waiting_calls_and_others_are_not_limited_by_it() -> None:
    calls = WaitingCalls(WaitingLimits(server=20))
    for _ in range(11):
        calls.enter(lambda _: 0, "10.0.0.1")
    with pytest.raises(NotAnswered, match=SHARE_TAKEN):
        calls.enter(lambda _: 0, "10.0.0.1")
    for _ in range(2):
        calls.enter(lambda _: 0, "10.0.0.2")
    with pytest.raises(NotAnswered, match=SHARE_TAKEN):
        calls.enter(lambda _: 0, "10.0.0.2")
    for _ in range(7):
        calls.enter(lambda _: 0, None)  # over stdio, say
    with pytest.raises(NotAnswered, match="which is the limit of this server"):
        calls.enter(lambda _: 0, None)


def test_an_address_has_room_again_when_its_calls_have_ended() -> None:
    calls = WaitingCalls(WaitingLimits(server=20))
    for _ in range(11):
        calls.enter(lambda _: 5, "10.0.0.1")
    for _ in range(11):
        calls.leave(5, "10.0.0.1")
    assert (calls.calls, calls.bytes) == (0, 0)
    calls.enter(lambda _: 5, "10.0.0.1")


def test_above_half_one_address_may_have_a_tenth_of_the_bytes_or_one_call() -> None:
    calls = WaitingCalls(WaitingLimits(bytes=1000))
    calls.enter(lambda _: 501, "10.0.0.1")
    with pytest.raises(NotAnswered, match=SHARE_TAKEN):
        calls.enter(lambda _: 1, "10.0.0.1")
    calls.enter(lambda _: 200, "10.0.0.2")
    with pytest.raises(NotAnswered, match=SHARE_TAKEN):
        calls.enter(lambda _: 1, "10.0.0.2")
    calls.enter(lambda _: 60, "10.0.0.3")
    calls.enter(lambda _: 40, "10.0.0.3")


async def test_one_address_that_fills_the_waiting_calls_over_many_sessions_does_not_keep_another_out() -> None:
    async with served(till(max_waiting_calls=10)) as server, AsyncExitStack() as left:
        for _ in range(6):
            client = await server.client(address="127.0.0.2")
            await client.asked(await left.enter_async_context(client.open(call("pay", {}))))
        refused = await server.client(address="127.0.0.2")
        assert (await refused.post(call("pay", {}))).text.startswith(KEPT + SHARE_TAKEN)
        other = await server.client(address="127.0.0.1")
        await other.asked(await left.enter_async_context(other.open(call("pay", {}))))


async def test_several_questions_of_one_body_count_as_one_call() -> None:
    slow, mcp = Slow(), MCPServer[Any]("till", max_waiting_calls_per_session=1)

    @mcp.tool()
    async def both(ctx: Context) -> str:
        answers = await asyncio.gather(ctx.elicit("One?", bool), ctx.elicit("Two?", bool))
        return " ".join(answer.action for answer in answers)

    async with Client(mcp, elicitation_callback=slow, mode="2025-11-25") as client:
        calling = asyncio.create_task(client.call_tool("both"))
        await eventually(lambda: slow.asked == 2)
        slow.go_on.set()
        assert text(await calling) == "accept accept"


@pytest.mark.parametrize(
    "options",
    [{"max_waiting_calls": 0}, {"max_waiting_calls_per_session": 0}, {"max_waiting_bytes": 0}],
)
def test_bounds_below_one_are_refused(options: dict[str, int]) -> None:
    words = "max_waiting_calls, max_waiting_calls_per_session and max_waiting_bytes must be at least 1"
    with pytest.raises(ValueError, match=words):
        till(**options)


@pytest.mark.parametrize("seconds", [0, -1.0, float("inf")])
def test_a_grace_that_is_not_some_seconds_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="disconnect_grace must be a positive number of seconds"):
        till(disconnect_grace=seconds)


# What is kept


@pytest.mark.parametrize("where", ["an unknown argument", "an unknown member", "a resolved parameter", "the raw body"])
@pytest.mark.long
async def test_a_waiting_call_keeps_its_arguments_and_nothing_else_of_its_request(where: str) -> None:
    async with served(till()) as server:
        client = await server.client()
        heavy = call("pay", {})
        junk: Any = ["x" * 10] * 100_000
        if where == "an unknown argument":
            heavy["params"]["arguments"]["junk"] = junk
        elif where == "a resolved parameter":
            heavy["params"]["arguments"]["approval"] = junk
        elif where == "an unknown member":
            heavy["params"]["junk"] = junk
        raw = json.dumps(heavy).encode()
        if where == "the raw body":
            raw = raw[:-1] + b" " * 2_000_000 + b"}"
        exchange = client.open(raw)
        gc.collect()
        tracemalloc.start()
        try:
            async with exchange:
                await client.asked(exchange)
                gc.collect()
                assert tracemalloc.get_traced_memory()[0] < 400_000
        finally:
            tracemalloc.stop()


class Shelf(BaseModel):
    books: list[str]


@dataclass
class Case:
    shelves: list[Shelf]


class Slotted:
    __slots__ = "only"

    def __init__(self, only: Any) -> None:
        self.only = only


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10_000,
        ["x" * 100] * 1_500,
        [["x"]] * 2_000,
        [[] for _ in range(200)],
        {f"key {number}": number for number in range(200)},
        {"x" * 10_000},
        deque(["x" * 10_000]),
        Shelf(books=["x" * 10_000]),
        Case([Shelf(books=["x" * 10_000])]),
        Slotted(b"x" * 10_000),
        [Slotted(Slotted("x" * 10_000))],
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_weight_of_a_value_counts_all_it_holds(value: Any) -> None:
    assert weigh([value], 10**9) > 10_000
    assert weigh([value], 1_000) > 1_000


def test_what_holds_itself_is_weighed_once() -> None:
    ring: list[Any] = ["x" * 1000]
    ring.append(ring)
    assert 1000 < weigh([ring, ring], 10**9) < 2000


# What ends them


@asynccontextmanager
async def left_at_its_question(desk: Desk, tool: str, **options: Any) -> AsyncGenerator[tuple[Older, Any]]:
    """A client that lost the connection of a call which waits at a question."""
    async with served(desk.mcp, **options) as server:
        client = await server.client()
        exchange: Exchange = client.open(call(tool))
        async with exchange:
            asked = await client.asked(exchange)
        await eventually(lambda: server.readers == 0)
        yield client, asked["id"]


@pytest.mark.timing
async def test_a_call_whose_connection_is_gone_is_ended_after_the_grace() -> None:
    desk = Desk(disconnect_grace=0.05)
    async with left_at_its_question(desk, "count") as (client, id_):
        await eventually(lambda: desk.log == ["opened", "closed"])
        assert (await client.post(accepted(id_))).status == 202, "it comes too late, and changes nothing"
        assert (await client.post(call("echo", {"text": "still here"}))).text == "still here"


async def test_an_answer_that_comes_within_the_grace_counts() -> None:
    desk = Desk(disconnect_grace=30.0)
    async with left_at_its_question(desk, "approve") as (client, id_):
        await client.post(accepted(id_))
        await eventually(lambda: desk.log == ["approved True"])


async def test_with_an_event_store_the_call_is_not_ended() -> None:
    desk = Desk(disconnect_grace=0.01)
    async with left_at_its_question(desk, "approve", event_store=MemoryEventStore()) as (client, id_):
        await pass_time(1)
        await client.post(accepted(id_))
        await eventually(lambda: desk.log == ["approved True"])


async def test_a_call_that_something_was_approved_for_is_not_ended() -> None:
    desk = Desk(disconnect_grace=0.01)

    @desk.mcp.tool()
    async def pay(approval: Annotated[bool, Resolve(approve, key="approve")], ctx: Context) -> str:
        answer = await ctx.elicit("A tip?", bool)
        desk.log.append(f"tip {answer.action}")
        return "paid"

    async with served(desk.mcp) as server:
        client = await server.client()
        async with client.open(call("pay")) as exchange:
            await client.post(accepted((await client.asked(exchange))["id"]))
            tip = await client.asked(exchange)
        await eventually(lambda: server.readers == 0)
        await pass_time(1)
        await client.post(accepted(tip["id"]))
        await eventually(lambda: desk.log == ["tip accept"])
