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


async def fail_soon() -> None:
    await asyncio.sleep(0.01)
    raise ValueError("a worker died")


async def standard_workers() -> AsyncGenerator[int]:
    async with asyncio.TaskGroup() as group:
        group.create_task(fail_soon())
        yield 1


async def workers() -> AsyncGenerator[int]:
    async with anyio.create_task_group() as group:
        group.start_soon(fail_soon)
        yield 1


async def slow_to_open() -> AsyncGenerator[int]:
    await asyncio.sleep(0.1)
    yield 2


@pytest.mark.parametrize("held", [standard_workers, workers])
async def test_a_group_that_fails_before_the_body_is_a_failure_and_no_cancellation(
    in_memory: Connect, held: Callable[..., Any]
) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(a: Annotated[int, Resolve(held)], b: Annotated[int, Resolve(slow_to_open)]) -> str:
        return "never"

    async with in_memory(mcp) as client:
        told = text(await client.call_tool("tool"))
    assert f"resolver '{held.__name__}' ended the call: a cancel scope that it holds was cancelled" in told


@pytest.mark.parametrize("held", [standard_workers, workers])
async def test_a_group_that_fails_in_the_body_lets_the_other_cleanups_run(
    in_memory: Connect, held: Callable[..., Any]
) -> None:
    mcp = MCPServer[Any]("shop")
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
        await asyncio.sleep(1)
        return "never"

    async with in_memory(mcp) as client:
        assert (await client.call_tool("tool")).is_error
    assert closed == ["inner", "outer"]


async def test_a_group_of_exceptions_from_the_body_is_not_blamed_on_a_generator(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(a: Annotated[int, Resolve(slow_to_open)]) -> str:
        raise ExceptionGroup("several", [ValueError()])

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool")) == "Error executing tool tool"


async def test_a_generator_that_was_interrupted_does_not_hide_why(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    async def generator() -> AsyncGenerator[int]:
        try:
            await asyncio.sleep(1)
        except BaseException as error:
            raise RuntimeError("lost connection") from error
        yield 1

    async def refuses() -> int:
        await asyncio.sleep(0.01)
        raise ToolError("the real reason")

    @mcp.tool()
    async def tool(a: Annotated[int, Resolve(generator)], b: Annotated[int, Resolve(refuses)]) -> str:
        return "never"

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool")) == "Error executing tool tool: the real reason"


@pytest.mark.parametrize(("opening", "beside"), [(0.01, 0.03), (0.03, 0.01)])
async def test_what_a_generator_sets_is_seen_whoever_is_faster(
    in_memory: Connect, opening: float, beside: float
) -> None:
    mcp, variable = MCPServer[Any]("shop"), contextvars.ContextVar("variable", default="unset")

    async def sets() -> AsyncGenerator[int]:
        await asyncio.sleep(opening)
        variable.set("set")
        yield 1

    async def other() -> int:
        await asyncio.sleep(beside)
        return 1

    async def sees(a: Annotated[int, Resolve(sets)], b: Annotated[int, Resolve(other)]) -> str:
        return variable.get()

    @mcp.tool()
    async def tool(seen: Annotated[str, Resolve(sees)]) -> str:
        return seen

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool")) == "set"
