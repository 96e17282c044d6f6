"""Spending an approval: from the claim on, a call must not be cancelled; while it waits for another one's claim, it may be."""

import asyncio
from typing import Annotated, Any

from bespeak import Elicit, Resolve
from bespeak.server.calls.call_tasks import Outliving
from bespeak.server.calls.spending import Approval, ApprovalSpender
from bespeak.server.features.tools import Tool
from bespeak.state.ledger import Ledger, Ticket
from bespeak.state.seal import RequestStateSecurity, Seal
from bespeak.state.stores.memory import MemoryStore
from tests.waiting import eventually


async def approve() -> Elicit[bool]:
    return Elicit("Pay?", bool)


async def pay(approval: Annotated[bool, Resolve(approve)]) -> str:
    return "paid"


class Running(Outliving):
    name = "pay"


def not_cancelled(error: asyncio.CancelledError) -> Exception:
    raise error


async def test_a_call_that_runs_is_closed_to_cancellation_and_one_that_waits_for_it_is_not() -> None:
    security = RequestStateSecurity.ephemeral()
    ledger, seal = Ledger(MemoryStore(), security.clock), Seal(security)
    tool = Tool.from_function(pay)
    now = security.clock()
    approval = Approval("call", b"request", Ticket(now, now + 600, now + 3600, None), None)
    running, waiting, go_on = Running(), Running(), asyncio.Event()

    def spender(call: Outliving) -> ApprovalSpender:
        return ApprovalSpender(ledger, seal, tool, call, not_cancelled, raise_exceptions=False)

    async def work() -> dict[str, Any]:
        await go_on.wait()
        return {"content": []}

    first = asyncio.create_task(spender(running).spend(approval, ["yes"], work))
    await eventually(lambda: running.approved)
    second = asyncio.create_task(spender(waiting).spend(approval, ["yes"], work))
    await eventually(lambda: not waiting.closed and not second.done())
    assert (running.closed, waiting.closed) == (True, False)
    go_on.set()
    assert await first == await second == {"content": []}
    assert (running.approved, waiting.approved) == (True, False)
