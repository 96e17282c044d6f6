"""Which calls of older clients run in a task of their own: those that may still wait when an approval has been spent on them."""

import asyncio
import logging
from typing import Annotated, Any

import pytest

from bespeak import Client, Elicit, MCPServer, Resolve
from bespeak.server import decisions
from tests.answering import Person, accept, text
from tests.server.legacy.older_client import NOVEMBER, Thinking
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def nobody_follows_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where somebody does, a call waits for the record of its decisions, and so has a task of its own."""
    monkeypatch.setattr(logging.getLogger("bespeak.decisions"), "disabled", True)
    monkeypatch.setattr(decisions, "is_tracing", lambda: False)


async def sure() -> Elicit[bool]:
    return Elicit("Sure?", bool)


def till(tasks: list[str]) -> MCPServer[Any]:
    """A server whose tools note the names of the tasks in which they run."""
    mcp = MCPServer[Any]("till")

    def note() -> str:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task.get_name())
        return "paid"

    @mcp.tool()
    async def pay(sure: Annotated[bool, Resolve(sure)]) -> str:
        return note()

    @mcp.tool()
    async def pay_slowly(sure: Annotated[bool, Resolve(sure)]) -> str:
        await asyncio.sleep(0)
        return note()

    return mcp


@pytest.mark.parametrize(("tool", "own"), [("pay", False), ("pay_slowly", True)])
async def test_only_a_call_that_may_wait_after_its_last_answer_has_a_task_of_its_own(tool: str, own: bool) -> None:
    tasks: list[str] = []
    person = Person({"sure": accept(value=True)})
    async with Client(till(tasks), mode=NOVEMBER, elicitation_callback=person) as client:
        assert text(await client.call_tool(tool)) == "paid"
    assert [name == f"bespeak call {tool}" for name in tasks] == [own]


@pytest.mark.parametrize("tool", ["pay", "pay_slowly"])
async def test_a_call_cancelled_while_a_resolver_asks_takes_its_question_back_and_runs_no_body(tool: str) -> None:
    tasks: list[str] = []
    person = Thinking(accept(value=True))
    async with Client(till(tasks), mode=NOVEMBER, elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool(tool))
        await eventually(lambda: person.open)
        call.cancel()
        await asyncio.wait({call})
        await eventually(lambda: person.taken_back)
    assert tasks == []
