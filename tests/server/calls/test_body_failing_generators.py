"""Generators that fail or are interrupted: task groups whose workers die, and whose failure a client is told."""

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable
from typing import Annotated, Any

import anyio
import pytest

from bespeak import MCPServer, Resolve, ToolError
from tests.answering import text
from tests.conftest import Connect
from tests.waiting import turns


class Workers:
    """Generators that hold a task group across their yield. Its only task fails when it is told to."""

    def __init__(self) -> None:
        self.may_fail = asyncio.Event()

    async def _fail(self) -> None:
        await self.may_fail.wait()
        raise ValueError("a worker died")

    async def standard_workers(self) -> AsyncGenerator[int]:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fail())
            yield 1

    async def workers(self) -> AsyncGenerator[int]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._fail)
            yield 1


@pytest.mark.parametrize("name", ["standard_workers", "workers"])
async def test_a_group_that_fails_before_the_body_is_a_failure_and_no_cancellation(
    in_memory: Connect, name: str
) -> None:
    mcp, group = MCPServer[Any]("shop"), Workers()
    held: Callable[..., Any] = getattr(group, name)

    async def slow_to_open() -> AsyncGenerator[int]:
        await turns()  # the group has begun by now
        group.may_fail.set()
        await asyncio.Event().wait()
        yield 2

    @mcp.tool()
    async def tool(a: Annotated[int, Resolve(held)], b: Annotated[int, Resolve(slow_to_open)]) -> str:
        return "never"

    async with in_memory(mcp) as client:
        told = text(await client.call_tool("tool"))
    assert f"resolver 'Workers.{name}' ended the call: a cancel scope that it holds was cancelled" in told


@pytest.mark.parametrize("name", ["standard_workers", "workers"])
async def test_a_group_that_fails_in_the_body_lets_the_other_cleanups_run(in_memory: Connect, name: str) -> None:
    mcp, group = MCPServer[Any]("shop"), Workers()
    held: Callable[..., Any] = getattr(group, name)
    closed: list[str] = []

    async def inner(a: Annotated[int, Resolve(held)]) -> AsyncGenerator[int]:
        try:
            yield a
        finally:
            closed.append("inner")

    async def outer() -> AsyncGenerator[int]:
        try:
            yield 0
        finally:
            closed.append("outer")

    @mcp.tool()
    async def tool(c: Annotated[int, Resolve(outer)], b: Annotated[int, Resolve(inner)]) -> str:
        group.may_fail.set()
        await asyncio.Event().wait()
        return "never"

    async with in_memory(mcp) as client:
        assert (await client.call_tool("tool")).is_error
    assert closed == ["inner", "outer"]


async def test_a_group_of_exceptions_from_the_body_is_not_blamed_on_a_generator(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    async def generator() -> AsyncGenerator[int]:
        yield 2

    @mcp.tool()
    async def tool(a: Annotated[int, Resolve(generator)]) -> str:
        raise ExceptionGroup("several", [ValueError()])

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool")) == "Error executing tool tool"


async def test_a_generator_that_was_interrupted_does_not_hide_why(in_memory: Connect) -> None:
    mcp, opening = MCPServer[Any]("shop"), asyncio.Event()

    async def generator() -> AsyncGenerator[int]:
        try:
            opening.set()
            await asyncio.Event().wait()
        except BaseException as error:
            raise RuntimeError("lost connection") from error
        yield 1

    async def refuses() -> int:
        await opening.wait()
        raise ToolError("the real reason")

    @mcp.tool()
    async def tool(a: Annotated[int, Resolve(generator)], b: Annotated[int, Resolve(refuses)]) -> str:
        return "never"

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool")) == "Error executing tool tool: the real reason"


@pytest.mark.parametrize(("opening", "beside"), [(5, 20), (20, 5)])
async def test_what_a_generator_sets_is_seen_whoever_is_faster(in_memory: Connect, opening: int, beside: int) -> None:
    mcp, variable = MCPServer[Any]("shop"), contextvars.ContextVar("variable", default="unset")

    async def sets() -> AsyncGenerator[int]:
        await turns(opening)
        variable.set("set")
        yield 1

    async def other() -> int:
        await turns(beside)
        return 1

    async def sees(a: Annotated[int, Resolve(sets)], b: Annotated[int, Resolve(other)]) -> str:
        return variable.get()

    @mcp.tool()
    async def tool(seen: Annotated[str, Resolve(sees)]) -> str:
        return seen

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool")) == "set"
