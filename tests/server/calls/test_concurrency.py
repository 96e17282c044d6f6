"""Bounds on calls that run at the same time."""

import asyncio
from typing import Annotated, Any

import pytest

from bespeak import Client, Elicit, MCPError, MCPServer, Resolve
from bespeak.server.calls.concurrency import CallLimits, RunningCalls, TooManyCalls
from tests.answering import accept, text
from tests.server.legacy.older_client import Thinking
from tests.waiting import eventually


class Kitchen:
    """A tool that runs until it is told to end."""

    def __init__(self, most: int) -> None:
        self.mcp = MCPServer[Any]("kitchen", max_concurrent_calls=most)
        self.begun = 0
        self.gate = asyncio.Event()

        async def sure() -> Elicit[bool]:
            return Elicit("Sure?", bool)

        async def cook() -> str:
            self.begun += 1
            await self.gate.wait()
            return "done"

        async def ask(ok: Annotated[bool, Resolve(sure)]) -> str:
            return "asked"

        self.mcp.add_tool(cook)
        self.mcp.add_tool(ask)
        self.mcp.prompt(name="cook")(cook)


async def test_a_call_too_many_is_refused_with_a_clear_error_and_the_next_one_is_served() -> None:
    kitchen = Kitchen(2)
    async with Client(kitchen.mcp) as client:
        cooking = [asyncio.create_task(client.call_tool("cook")) for _ in range(2)]
        await eventually(lambda: kitchen.begun == 2)
        refused = await client.call_tool("cook")
        assert refused.is_error
        assert text(refused) == (
            "Error executing tool cook: 2 calls are running, which is the limit of this server; try again later"
        )
        with pytest.raises(MCPError, match="2 calls are running") as failed:
            await client.session.request("prompts/get", {"name": "cook"})
        assert failed.value.code == -32603
        kitchen.gate.set()
        await asyncio.gather(*cooking)
        assert text(await client.call_tool("cook")) == "done"


async def test_a_call_that_waits_for_a_person_does_not_count() -> None:
    kitchen, person = Kitchen(1), Thinking(accept(value=True))
    kitchen.gate.set()
    async with Client(kitchen.mcp, mode="2025-11-25", elicitation_callback=person) as client:
        asking = asyncio.create_task(client.call_tool("ask"))
        await eventually(lambda: person.open)
        assert text(await client.call_tool("cook")) == "done"
        person.done.set()
        assert text(await asking) == "asked"
        assert text(await client.call_tool("cook")) == "done"


def test_one_caller_is_bounded_and_others_are_not() -> None:
    calls = RunningCalls(CallLimits(caller=1))
    with calls.running("ana"), calls.running("ben"), calls.running(None), calls.running(None):
        refused = pytest.raises(TooManyCalls, match="1 of your calls are running, which is the limit; try again later")
        with refused, calls.running("ana"):
            pass
        assert calls.calls == 4
    with calls.running("ana") as slot:
        slot.pause()
        slot.pause()
        with calls.running("ana"):
            slot.resume()  # never refused: a person has answered
            assert calls.calls == 2
    assert calls.calls == 0


@pytest.mark.parametrize("option", ["max_concurrent_calls", "max_concurrent_calls_per_caller"])
def test_a_bound_must_be_at_least_one(option: str) -> None:
    with pytest.raises(ValueError, match="must be at least 1, or None for no limit"):
        MCPServer("kitchen", **{option: 0})  # pyright: ignore[reportArgumentType]
