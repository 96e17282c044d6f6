"""Where a function under test can stand in a graph, and the error that registering it there raises."""

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from bespeak import InvalidSignature, MCPServer, Resolve

Position = Callable[[MCPServer[Any], Callable[..., Any]], None]


def as_tool(mcp: MCPServer[Any], fn: Callable[..., Any]) -> None:
    mcp.add_tool(fn, name="tool")


def as_resolver(mcp: MCPServer[Any], fn: Callable[..., Any]) -> None:
    async def tool(title: str, found: Annotated[object, Resolve(fn)]) -> None: ...

    mcp.add_tool(tool)


def as_nested_resolver(mcp: MCPServer[Any], fn: Callable[..., Any]) -> None:
    async def middle(found: Annotated[object, Resolve(fn)]) -> int: ...

    async def tool(title: str, counted: Annotated[int, Resolve(middle)]) -> None: ...

    mcp.add_tool(tool)


everywhere = pytest.mark.parametrize("position", [as_tool, as_resolver, as_nested_resolver])
below_a_tool = pytest.mark.parametrize("position", [as_resolver, as_nested_resolver])


async def refusal(position: Position, fn: Callable[..., Any]) -> InvalidSignature:
    """The error that registering raises. Nothing of the consumer may be listed afterwards."""
    mcp = MCPServer("shop")
    with pytest.raises(InvalidSignature) as caught:
        position(mcp, fn)
    assert await mcp.list_tools() == []
    return caught.value


def line_of(fn: Callable[..., Any]) -> str:
    """`file:line` of a function."""
    return f"{fn.__code__.co_filename}:{fn.__code__.co_firstlineno}"


async def refused_once(position: Position, fn: Callable[..., Any], problem: str) -> None:
    """Refused for this one fault, which says where it is and what to do."""
    error = await refusal(position, fn)
    assert [fault.problem for fault in error.faults] == [f"{fn.__name__}: {problem}"]
    (fault,) = error.faults
    assert fault.place == line_of(fn)
    assert line_of(fn) in fault.drawing
    assert fault.fix
    assert str(fault) in str(error)


async def shown(fn: Callable[..., Any]) -> list[str]:
    """The arguments that a model sees of a function registered as a tool."""
    mcp = MCPServer("shop")
    mcp.add_tool(fn, name="tool")
    (tool,) = await mcp.list_tools()
    return list(tool.input_schema["properties"])
