"""Generators around a served body (design 6): scopes held across a yield, and cleanups shielded from cancellation."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import anyio
import pytest
from anyio.abc import TaskGroup
from pydantic import BaseModel

from bespeak import Elicit, MCPServer, Resolve, ToolError
from bespeak.resolve.running import generators
from tests.answering import Person, accept, text
from tests.conftest import Connect
from tests.waiting import eventually, turns


class Consent(BaseModel):
    ok: bool


def yes(*names: str) -> Person:
    return Person({name: accept(ok=True) for name in names})


async def workers() -> AsyncIterator[TaskGroup]:
    async with anyio.create_task_group() as group:
        yield group


async def standard_workers() -> AsyncIterator[asyncio.TaskGroup]:
    async with asyncio.TaskGroup() as group:
        yield group


async def more_workers(workers: Annotated[TaskGroup, Resolve(workers)]) -> AsyncIterator[TaskGroup]:
    async with anyio.create_task_group() as group:
        yield group


# Scopes across a yield


@pytest.mark.every_revision
async def test_a_generator_may_hold_a_task_group_across_its_yield(connect: Connect) -> None:
    mcp, done = MCPServer("Workers"), list[str]()

    async def work() -> None:
        await turns()
        done.append("work")

    @mcp.tool()
    async def spread(workers: Annotated[TaskGroup, Resolve(workers)]) -> str:
        workers.start_soon(work)
        return "spread"

    async with connect(mcp) as client:
        assert text(await client.call_tool("spread")) == "spread"
    assert done == ["work"]


@pytest.mark.asking_revisions
@pytest.mark.parametrize("group", [workers, more_workers, standard_workers])
async def test_a_task_group_a_question_depends_on_opens_in_every_round(
    in_memory: Connect, group: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    mcp = MCPServer("Workers")

    async def confirm(group: Annotated[object, Resolve(group)]) -> Consent | Elicit[Consent]:
        return Elicit("Really?", Consent)

    async def again(ok: Annotated[Consent, Resolve(confirm)]) -> Consent | Elicit[Consent]:
        return Elicit("Really, really?", Consent)

    @mcp.tool()
    async def spread(ok: Annotated[Consent, Resolve(again)]) -> str:
        return "spread"

    async with in_memory(mcp, elicitation_callback=yes("confirm", "again")) as client:
        call = asyncio.ensure_future(client.call_tool("spread"))
        await asyncio.wait({call})
    assert repr(call.exception()) == "None"  # in words: a group around GeneratorExit is more than a report can show
    assert text(call.result()) == "spread"
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("group", [workers, more_workers, standard_workers])
async def test_a_bodys_tool_error_reaches_the_client_through_a_task_group(
    in_memory: Connect, group: Callable[..., Any]
) -> None:
    mcp = MCPServer("Workers")

    @mcp.tool()
    async def spread(group: Annotated[object, Resolve(group)]) -> str:
        raise ToolError("nothing to spread")

    async with in_memory(mcp) as client:
        result = await client.call_tool("spread")
    assert text(result) == "Error executing tool spread: nothing to spread"


@pytest.mark.every_revision
async def test_a_child_task_that_fails_ends_the_body_and_names_the_generator(in_memory: Connect) -> None:
    mcp = MCPServer("Workers")

    async def work() -> None:
        raise ValueError

    @mcp.tool()
    async def spread(workers: Annotated[TaskGroup, Resolve(workers)]) -> str:
        workers.start_soon(work)
        await anyio.sleep_forever()
        return "spread"

    async with in_memory(mcp) as client:
        result = await client.call_tool("spread")
    assert result.is_error
    assert "resolver 'workers' failed in its cleanup" in text(result)


async def fails_after() -> AsyncIterator[int]:
    with anyio.fail_after(0.01):
        yield 1


async def moves_on_after() -> AsyncIterator[int]:
    with anyio.move_on_after(0.01):
        yield 1


@pytest.mark.timing
@pytest.mark.parametrize("scope", [fails_after, moves_on_after])
async def test_a_scope_across_a_yield_that_ends_the_body_is_a_failure_and_no_cancellation_of_the_client(
    in_memory: Connect, scope: Callable[..., Any]
) -> None:
    mcp = MCPServer("Workers")

    @mcp.tool()
    async def spread(scope: Annotated[int, Resolve(scope)]) -> str:
        await anyio.sleep_forever()
        return "spread"

    async with in_memory(mcp) as client:
        call = asyncio.ensure_future(client.call_tool("spread"))
        await asyncio.wait({call})
    assert not call.cancelled()
    assert call.result().is_error


async def test_phase_two_beside_an_open_task_group_runs_concurrently(in_memory: Connect) -> None:
    mcp, met = MCPServer("Workers"), asyncio.Barrier(2)

    async def left(workers: Annotated[TaskGroup, Resolve(workers)]) -> int:
        await met.wait()
        return 1

    async def right(workers: Annotated[TaskGroup, Resolve(workers)]) -> int:
        with anyio.fail_after(20):
            await met.wait()
        return 2

    @mcp.tool()
    async def spread(left: Annotated[int, Resolve(left)], right: Annotated[int, Resolve(right)]) -> str:
        return str(left + right)

    async with in_memory(mcp) as client:
        with anyio.fail_after(20):
            assert text(await client.call_tool("spread")) == "3"


# Shielded cleanups


class Order:
    """A tool with a connection whose cleanup takes a moment, and ways to stop in the body or in the cleanup."""

    def __init__(self, *, asks: bool = False) -> None:
        self.events: list[str] = []
        self.in_body = asyncio.Event()
        self.in_cleanup = asyncio.Event()
        self.body_waits = False
        self.cleanup_hangs = False
        self.mcp = MCPServer("Shop")
        self.mcp.add_tool(self.asking if asks else self.plain, name="order")

    async def connection(self) -> AsyncIterator[str]:
        try:
            yield "connection"
        except BaseException as error:
            self.events.append(type(error).__name__)
            raise
        finally:
            self.in_cleanup.set()
            # Long enough for a cancellation to arrive over any transport. If it comes later, the tests prove less but pass.
            await asyncio.sleep(60 if self.cleanup_hangs else 0.02)
            self.events.append("closed")

    async def body(self) -> str:
        self.in_body.set()
        if self.body_waits:
            await asyncio.sleep(30)
        return "ordered"

    @property
    def plain(self) -> Callable[..., Any]:
        async def order(connection: Annotated[str, Resolve(self.connection)]) -> str:
            return await self.body()

        return order

    @property
    def asking(self) -> Callable[..., Any]:
        async def confirm(connection: Annotated[str, Resolve(self.connection)]) -> Consent | Elicit[Consent]:
            return Elicit("Really?", Consent)

        async def order(ok: Annotated[Consent, Resolve(confirm)]) -> str:
            return await self.body()

        return order


@pytest.mark.every_revision
async def test_a_client_that_leaves_in_the_body_lets_the_cleanup_complete_which_sees_the_cancellation(
    connect: Connect,
) -> None:
    order = Order()
    order.body_waits = True
    async with connect(order.mcp) as client:
        call = asyncio.create_task(client.call_tool("order"))
        await order.in_body.wait()
        call.cancel()
        await asyncio.wait({call})
    assert call.cancelled()
    assert order.events == ["CancelledError", "closed"]


@pytest.mark.every_revision
async def test_a_client_that_leaves_during_the_cleanup_lets_it_complete(connect: Connect) -> None:
    order = Order()
    async with connect(order.mcp) as client:
        call = asyncio.create_task(client.call_tool("order"))
        await order.in_cleanup.wait()
        call.cancel()
        await asyncio.wait({call})
    assert call.cancelled()
    assert order.events == ["closed"]


@pytest.mark.every_revision
async def test_a_scope_of_the_clients_that_ends_lets_the_cleanup_complete(connect: Connect) -> None:
    order = Order()
    order.body_waits = True
    async with connect(order.mcp) as client, anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:

            async def end_the_scope() -> None:
                await order.in_body.wait()
                scope.cancel()

            group.start_soon(end_the_scope)
            await client.call_tool("order")
    assert order.events == ["CancelledError", "closed"]


async def test_a_client_that_leaves_while_a_round_closes_early_lets_the_cleanup_complete(connect: Connect) -> None:
    order = Order(asks=True)
    async with connect(order.mcp, elicitation_callback=yes("confirm")) as client:
        call = asyncio.create_task(client.call_tool("order"))
        await order.in_cleanup.wait()
        call.cancel()
        await asyncio.wait({call})
    assert order.events == ["GeneratorExit", "closed"]


async def test_a_cleanup_is_shielded_in_a_call_without_a_client_too() -> None:
    order = Order()
    call = asyncio.create_task(order.mcp.call_tool("order"))
    await order.in_cleanup.wait()
    call.cancel()
    await asyncio.wait({call})
    await eventually(lambda: order.events == ["closed"])


@pytest.mark.timing
@pytest.mark.every_revision
async def test_a_cleanup_that_did_not_finish_is_not_success(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(generators, "CLEANUP_SECONDS", 0.01)
    order = Order()
    order.cleanup_hangs = True
    async with connect(order.mcp) as client:
        result = await client.call_tool("order")
    assert result.is_error
    assert text(result) == (
        "Error executing tool order: the tool ran, but the cleanup of resolver 'Order.connection' did not finish, so some of "
        "its effects may be missing. Check whether it took effect before you repeat the call"
    )
    assert order.events == []
    assert "the cleanup of resolver 'Order.connection' took over 0.01 s and was stopped" in caplog.text


# Exceptions of the body


@pytest.mark.parametrize("sort", ["async", "sync"])
async def test_a_generator_rolls_back_when_the_body_fails_and_commits_when_it_does_not(
    in_memory: Connect, sort: str
) -> None:
    mcp, events = MCPServer("Shop"), list[str]()

    async def async_transaction() -> AsyncIterator[str]:
        try:
            yield "transaction"
        except ToolError:
            events.append("rollback")
            raise
        events.append("commit")

    def sync_transaction() -> Iterator[str]:
        try:
            yield "transaction"
        except ToolError:
            events.append("rollback")
            raise
        events.append("commit")

    transaction = async_transaction if sort == "async" else sync_transaction

    @mcp.tool()
    async def order(title: str, transaction: Annotated[str, Resolve(transaction)]) -> str:
        if title == "Neuromancer":
            raise ToolError("out of stock")
        return "ordered"

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("order", {"title": "Dune"})) == "ordered"
        failed = await client.call_tool("order", {"title": "Neuromancer"})
    assert text(failed) == "Error executing tool order: out of stock"
    assert events == ["commit", "rollback"]


async def test_a_cleanup_that_fails_after_a_failed_body_leaves_both_in_the_log(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = MCPServer("Shop")

    async def transaction() -> AsyncIterator[str]:
        try:
            yield "transaction"
        finally:
            raise ConnectionError("rollback failed")

    @mcp.tool()
    async def order(transaction: Annotated[str, Resolve(transaction)]) -> str:
        raise LookupError("in the body")

    async with in_memory(mcp) as client:
        result = await client.call_tool("order")
    assert result.is_error
    assert "rollback failed" not in text(result)
    assert "ConnectionError: rollback failed" in caplog.text
    assert "LookupError: in the body" in caplog.text
