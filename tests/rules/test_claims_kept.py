"""Design section 7: a claim outlives every state of its call, whatever the clocks and lifetimes of the workers are."""

import asyncio
from typing import Annotated, Any

import pytest

from bespeak import Elicit, MCPError, MCPServer, RequestStateSecurity, Resolve
from bespeak.client.client import Client
from bespeak.state.stores.memory import MemoryStore
from tests.waiting import eventually, turns

KEY = "a key of more than thirty-two characters"
FORGOTTEN = "no longer knows whether this call"
Sent = dict[str, Any]


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def approve() -> Elicit[bool]:
    return Elicit("Pay?", bool)


async def confirm(approval: Annotated[bool, Resolve(approve, key="approve")]) -> Elicit[bool]:
    return Elicit("Really?", bool)


class Till:
    """A worker: its tool takes two rounds, and counts how often it was paid."""

    def __init__(self, store: MemoryStore, clock: Clock, ttl: float = 600.0) -> None:
        security = RequestStateSecurity(keys=[KEY], clock=clock, ttl=ttl)
        self.mcp = mcp = MCPServer[Any]("till", request_state_security=security, store=store)
        self.paid = 0
        self.hold: asyncio.Event | None = None

        @mcp.tool()
        async def pay(
            approval: Annotated[bool, Resolve(approve, key="approve")],
            confirmed: Annotated[bool, Resolve(confirm, key="confirm")],
        ) -> str:
            self.paid += 1
            if self.hold is not None:
                await self.hold.wait()
            return "paid"


async def send(client: Client, asked: Sent | None = None, **more: Sent) -> Sent:
    retry: Sent = {}
    if asked is not None:
        yes = {"action": "accept", "content": {"value": True}}
        retry = {
            "requestState": asked["requestState"],
            "inputResponses": {**dict.fromkeys(asked["inputRequests"], yes), **more},
        }
    return await client.session.request("tools/call", {"name": "pay", "arguments": {}, **retry})


def text(result: Sent) -> str:
    return result["content"][0]["text"]


def asking(till: Till) -> Client:
    async def nobody(*_: Any) -> Any:
        raise AssertionError("answers are sent by hand here")

    return Client(till.mcp, elicitation_callback=nobody)


async def test_a_clock_stepped_back_after_a_purge_does_not_let_an_approval_be_spent_again() -> None:
    clock, store = Clock(), MemoryStore()
    till = Till(store, clock)
    async with asking(till) as client:
        second = await send(client, await send(client))
        assert text(await send(client, second)) == "paid"
        clock.now += 661
        await send(client)  # purges the claim
        assert store.claims == 0
        clock.now -= 650
        with pytest.raises(MCPError, match=FORGOTTEN):
            await send(client, second)
        clock.now += 650
        assert text(await send(client, await send(client, await send(client)))) == "paid"
    assert till.paid == 2


async def test_the_lifetime_lowered_between_two_processes_of_one_store_does_not_let_an_approval_be_spent_twice() -> (
    None
):
    clock, store = Clock(), MemoryStore()
    old, new = Till(store, clock, ttl=3000.0), Till(store, clock, ttl=60.0)
    async with asking(old) as one, asking(new) as two:
        first = await send(one)
        second = await send(two, first)
        assert text(await send(two, second)) == "paid"
        clock.now += 121
        await send(two)
        assert store.claims == 0
        # The first round's state came from the old process, and opens for a long time yet.
        for client in (one, two):
            with pytest.raises(MCPError, match=FORGOTTEN):  # not even its next question is asked
                await send(client, first)
    assert old.paid + new.paid == 1


async def test_a_body_longer_than_the_lifetime_is_run_once_and_finishes() -> None:
    clock, store = Clock(), MemoryStore()
    till = Till(store, clock, ttl=60.0)
    till.hold = asyncio.Event()
    async with asking(till) as client:
        second = await send(client, await send(client))
        paying = asyncio.create_task(send(client, second))
        await eventually(lambda: till.paid)
        for _ in range(100):
            clock.now += 50.0
            await send(client)  # would purge it, if it did not run
        assert store.claims == 1
        clock.now -= 5000.0  # so that the state opens once more
        again = asyncio.create_task(send(client, second))
        await turns(50)
        till.hold.set()
        assert [text(await paying), text(await again)] == ["paid", "paid"]
    assert till.paid == 1
