"""A body or a resolver that cancels the task it runs in has failed; nobody else is stopped, and nothing is left unknown."""

import asyncio
import signal
from typing import Annotated, Any

import pytest

from bespeak import Elicit, MCPError, MCPServer, Resolve, ToolError
from tests.answering import Person, accept, text
from tests.conftest import Connect
from tests.waiting import turns


def cancel() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def ask() -> Elicit[bool]:
    return Elicit("Sure?", bool)


@pytest.mark.every_revision
async def test_a_body_that_cancels_its_own_task_is_a_failure_of_the_tool(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    async def stop() -> str:
        cancel()
        await asyncio.sleep(0)
        raise AssertionError

    @mcp.tool()
    async def go() -> str:
        return "on"

    async with connect(mcp) as client:
        result = await client.call_tool("stop")
        assert (result.is_error, text(result)) == (True, "Error executing tool stop")
        assert text(await client.call_tool("go")) == "on"
    assert "'stop' cancelled its own task" in caplog.text
    assert stop is not go


@pytest.mark.asking_revisions
async def test_an_approved_body_that_cancels_its_own_task_has_failed_and_its_outcome_is_known(connect: Connect) -> None:
    mcp, runs = MCPServer("Shop"), list[int]()

    @mcp.tool()
    async def stop(ok: Annotated[bool, Resolve(ask, key="ok")]) -> str:
        runs.append(1)
        cancel()
        await asyncio.sleep(0)
        raise AssertionError

    async with connect(mcp, elicitation_callback=Person({"ok": accept(value=True)})) as client:
        result = await client.call_tool("stop")
    assert (result.is_error, text(result)) == (True, "Error executing tool stop")
    assert runs == [1]
    assert stop is not None


async def test_the_same_approval_again_gets_the_same_failure_and_no_second_run(in_memory: Connect) -> None:
    mcp, runs = MCPServer[Any]("Shop"), list[int]()

    @mcp.tool()
    async def stop(ok: Annotated[bool, Resolve(ask, key="ok")]) -> str:
        runs.append(1)
        cancel()
        await asyncio.sleep(0)
        raise AssertionError

    async with in_memory(mcp, elicitation_callback=Person()) as client:
        call: dict[str, Any] = {"name": "stop", "arguments": {}}
        asked = await client.session.request("tools/call", call)
        yes = {"ok": {"action": "accept", "content": {"value": True}}}
        retry = {**call, "requestState": asked["requestState"], "inputResponses": yes}
        first, again = [await client.session.request("tools/call", retry) for _ in range(2)]
    assert first["content"] == again["content"] == [{"type": "text", "text": "Error executing tool stop"}]
    assert runs == [1]
    assert stop is not None


@pytest.mark.every_revision
@pytest.mark.parametrize("company", [False, True])
async def test_a_resolver_that_cancels_its_own_task_is_named(in_memory: Connect, company: bool) -> None:
    mcp = MCPServer("Shop")

    async def stops() -> int:
        cancel()
        await asyncio.sleep(0)
        raise AssertionError

    async def other() -> int:
        await asyncio.sleep(0)
        return 1

    async def alone(it: Annotated[int, Resolve(stops)]) -> str:
        raise AssertionError

    async def beside(it: Annotated[int, Resolve(stops)], other: Annotated[int, Resolve(other)]) -> str:
        raise AssertionError

    mcp.add_tool(beside if company else alone, name="take")
    async with in_memory(mcp) as client:
        said = text(await client.call_tool("take"))
    assert said.startswith("Error executing tool take: resolver 'stops' cancelled its own task")


async def cancels_itself() -> bool:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)
    await asyncio.Event().wait()
    raise ToolError("not allowed")


async def takes_a_while() -> bool:
    await turns(20)
    return True


@pytest.mark.every_revision
@pytest.mark.parametrize("guard", [True, False])
async def test_a_resolver_whose_task_was_cancelled_by_somebody_is_a_failure(in_memory: Connect, guard: bool) -> None:
    mcp = MCPServer[Any]("shop")
    ran: list[Any] = []

    @mcp.tool()
    async def refund(
        allowed: Annotated[bool, Resolve(cancels_itself, guard=guard)],
        exists: Annotated[bool, Resolve(takes_a_while, guard=guard)],
    ) -> str:
        ran.append(allowed)
        return "refunded"

    async with in_memory(mcp) as client:
        result = await client.call_tool("refund")
    assert "resolver 'cancels_itself' raised CancelledError although nothing cancelled it" in text(result)
    assert ran == []


async def test_a_result_that_was_returned_stands_though_the_body_cancelled_its_task_before(in_memory: Connect) -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    async def sell() -> str:
        cancel()
        return "sold"

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("sell")) == "sold"
        assert text(await client.call_tool("sell")) == "sold"
    assert sell is not None


def test_an_interrupt_of_the_program_while_a_body_runs_is_not_taken_for_the_body_s_own_cancellation() -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    async def sell() -> str:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(mcp.call_tool("sell"))
    assert sell is not None


async def test_a_cancellation_that_the_body_takes_back_does_not_end_the_call(in_memory: Connect) -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    async def sell() -> str:
        cancel()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
        await asyncio.sleep(0)
        return "sold"

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("sell")) == "sold"
    assert sell is not None


def cancelled_later() -> None:
    """The way a body's helper does it: the task is not the current one when it is cancelled."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)


@pytest.mark.asking_revisions
async def test_an_approved_body_that_has_itself_cancelled_by_a_helper_has_failed_and_its_outcome_is_known(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    async def stop(ok: Annotated[bool, Resolve(ask, key="ok")]) -> str:
        cancelled_later()
        await asyncio.sleep(30)
        raise AssertionError

    async with in_memory(mcp, elicitation_callback=Person({"ok": accept(value=True)})) as client:
        result = await asyncio.wait_for(client.call_tool("stop"), 20)
    assert (result.is_error, text(result)) == (True, "Error executing tool stop")
    assert "'stop' raised CancelledError although nothing cancelled it" in caplog.text
    assert stop is not None


@pytest.mark.asking_revisions
async def test_a_plain_body_that_has_itself_cancelled_by_a_helper_is_answered_all_the_same(connect: Connect) -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    async def stop() -> str:
        cancelled_later()
        await asyncio.sleep(30)
        raise AssertionError

    @mcp.tool()
    async def go() -> str:
        return "on"

    async def call() -> str:
        async with connect(mcp) as client:
            try:
                await asyncio.wait_for(client.call_tool("stop"), 20)
            except MCPError as error:
                return error.message
        return "no error"

    # In one process it is the caller's own task that is cancelled; over a wire the caller gets an answer.
    try:
        said = await call()
    except asyncio.CancelledError:
        said = ""
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
    assert said == "" or said.endswith("whether it was carried out is not known")
    async with connect(mcp) as client:
        assert text(await client.call_tool("go")) == "on"
    assert stop is not go


async def test_a_body_behind_a_plain_decorator_that_cancels_its_own_task_is_a_failure_of_the_tool(
    in_memory: Connect,
) -> None:
    mcp = MCPServer("Shop")

    async def stops() -> str:
        cancel()
        await asyncio.sleep(0)
        raise AssertionError

    def stop() -> Any:
        return stops()

    mcp.add_tool(stop)
    async with in_memory(mcp) as client:
        assert text(await client.call_tool("stop")) == "Error executing tool stop"


async def test_a_body_that_cancels_its_own_task_and_raises_is_a_failure_like_any_other(in_memory: Connect) -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    async def stop() -> str:
        cancel()
        raise ToolError("out of stock")

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("stop")) == "Error executing tool stop: out of stock"
        assert text(await client.call_tool("stop")) == "Error executing tool stop: out of stock"
    assert stop is not None
