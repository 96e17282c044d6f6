"""A call that is claimed runs in a task of its own if it may wait, so that its request may go away (design section 7)."""

import asyncio
import logging
import sys
from typing import Annotated, Any

import pytest
from mcp_types import ElicitResult

from bespeak import Client, Elicit, MCPServer, Resolve
from bespeak.state.stores.memory import MemoryStore


class Waiting(MemoryStore):
    """Stands for a store that is not in this process."""

    may_wait = True


async def ask(order: str) -> Elicit[bool]:
    return Elicit(f"Refund {order}?", bool)


async def amount(order: str) -> int:
    return len(order)


async def looked_up_amount(order: str) -> int:
    await asyncio.sleep(0)
    return len(order)


def desk(resolver: Any, *, waits: bool, store: MemoryStore | None = None) -> tuple[MCPServer[Any], list[str]]:
    mcp, tasks = MCPServer[Any]("desk", store=store), list[str]()

    def note() -> str:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task.get_name())
        return "refunded"

    async def refund(order: str, sure: Annotated[bool, Resolve(ask)], total: Annotated[int, Resolve(resolver)]) -> str:
        return note()

    async def refund_later(
        order: str, sure: Annotated[bool, Resolve(ask)], total: Annotated[int, Resolve(resolver)]
    ) -> str:
        await asyncio.sleep(0)
        return note()

    mcp.add_tool(refund_later if waits else refund, name="refund")
    return mcp, tasks


async def person(_context: Any, _params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"value": True})


async def spend(mcp: MCPServer[Any]) -> None:
    async with Client(mcp, elicitation_callback=person) as client:
        result = await client.call_tool("refund", {"order": "o-1"})
    assert result.structured_content == {"result": "refunded"}


async def test_a_claimed_call_in_which_nothing_waits_stays_in_the_task_of_its_request(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A record of decisions may have to be waited for, so nobody reads one here.
    caplog.set_level(logging.ERROR, "bespeak.decisions")
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    mcp, tasks = desk(amount, waits=False)
    await spend(mcp)
    assert "bespeak call refund" not in tasks


@pytest.mark.parametrize(
    ("resolver", "waits", "store"), [(amount, True, None), (looked_up_amount, False, None), (amount, False, Waiting())]
)
async def test_a_claimed_call_has_a_task_of_its_own_if_its_body_a_last_resolver_or_the_store_may_wait(
    resolver: Any, waits: bool, store: MemoryStore | None
) -> None:
    mcp, tasks = desk(resolver, waits=waits, store=store)
    await spend(mcp)
    assert tasks == ["bespeak call refund"]
