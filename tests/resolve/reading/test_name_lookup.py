"""Postponed annotations mean what they meant where they were written, or they are refused (design 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from bespeak import Elicit, InvalidSignature, MCPServer, Resolve
from bespeak.server.features.tools import Tool
from bespeak.server.resolve import find_resolved_parameters, returns_input_required
from tests.resolve.positions import as_tool, refusal


class Stock(BaseModel):
    title: str


class Shadowed(BaseModel):
    title: str


async def check_stock(title: str) -> Stock:
    return Stock(title=title)


async def arguments_of(mcp: MCPServer[Any]) -> list[str]:
    (tool,) = await mcp.list_tools()
    return list(tool.input_schema["properties"])


async def test_classes_and_resolvers_local_to_a_function_are_found() -> None:
    class Local(BaseModel):
        title: str

    async def check(title: str) -> Local:
        return Local(title=title)

    async def again(local: Annotated[Local, Resolve(check)]) -> Local | Elicit[Local]:
        return local

    mcp = MCPServer("shop")

    @mcp.tool()
    async def sell(title: str, local: Annotated[Local, Resolve(again)]) -> str:
        return local.title

    assert await arguments_of(mcp) == ["title"]
    result = await mcp.call_tool("sell", {"title": "Dune"})
    assert result.structured_content == {"result": "Dune"}


async def test_every_way_to_register_sees_the_frame_it_is_called_from() -> None:
    class Local(BaseModel):
        title: str

    async def check(title: str) -> Local:
        return Local(title=title)

    async def sell(title: str, local: Annotated[Local, Resolve(check)]) -> str:
        return local.title

    bare, called, added = MCPServer("bare"), MCPServer("called"), MCPServer("added")
    bare.tool(sell)
    called.tool()(sell)
    added.add_tool(sell)
    handed = MCPServer("handed", tools=[Tool.from_function(sell)])

    for mcp in (bare, called, added, handed):
        assert await arguments_of(mcp) == ["title"]
    assert list(find_resolved_parameters(sell)) == ["local"]
    assert returns_input_required(sell) is False


async def takes_shadowed(shadowed: Shadowed) -> str:
    return shadowed.title


async def test_a_name_of_the_registering_frame_never_shadows_a_functions_own_module() -> None:
    class Shadowed(BaseModel):
        copies: int

    assert Shadowed.__name__ == "Shadowed"
    mcp = MCPServer("shop")
    mcp.add_tool(takes_shadowed)

    result = await mcp.call_tool("takes_shadowed", {"shadowed": {"title": "Dune"}})
    assert result.structured_content == {"result": "Dune"}


def closing() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two functions that name a local class, of which only one has it in its closure."""

    class Hidden(BaseModel):
        title: str

    async def inside(title: str) -> Hidden:
        return Hidden(title=title)

    async def outside(title: str) -> Hidden: ...

    return inside, outside


async def test_names_in_a_functions_closure_are_found_from_any_frame() -> None:
    inside, _ = closing()
    mcp = MCPServer("shop")

    @mcp.tool()
    async def sell(title: str, hidden: Annotated[object, Resolve(inside)]) -> str:
        assert isinstance(hidden, BaseModel)
        return str(hidden.model_dump())

    result = await mcp.call_tool("sell", {"title": "Dune"})
    assert result.structured_content == {"result": "{'title': 'Dune'}"}


async def test_a_local_name_that_nothing_reaches_any_more_is_refused_by_name() -> None:
    _, outside = closing()
    mcp = MCPServer("shop")

    async def sell(title: str, hidden: Annotated[object, Resolve(outside)]) -> None: ...

    with pytest.raises(InvalidSignature, match="outside: the return type names 'Hidden', which does not exist"):
        mcp.add_tool(sell)

    assert await mcp.list_tools() == []


async def test_a_resolver_defined_after_its_consumer_is_found_when_it_is_registered() -> None:
    async def sell(title: str, stock: Annotated[Stock, Resolve(later)]) -> str:  # pyright: ignore[reportUnboundVariable, reportUnknownArgumentType] - defined below
        return stock.title

    async def later(title: str) -> Stock:
        return Stock(title=title)

    mcp = MCPServer("shop")
    mcp.add_tool(sell)

    result = await mcp.call_tool("sell", {"title": "Dune"})
    assert result.structured_content == {"result": "Dune"}


async def test_a_name_in_the_closure_that_is_not_bound_yet_does_not_matter_to_hints() -> None:
    async def sell(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
        return suffix + stock.title

    mcp = MCPServer("shop")
    mcp.add_tool(sell)
    suffix = "a "

    result = await mcp.call_tool("sell", {"title": "Dune"})
    assert result.structured_content == {"result": "a Dune"}


# A local alias that shadows a global

Alias = str


async def test_a_local_alias_that_shadows_a_global_is_honoured_where_it_is_registered() -> None:
    Alias = Annotated[Stock, Resolve(check_stock)]
    mcp = MCPServer("shop")

    @mcp.tool()
    async def sell(title: str, stock: Alias) -> None: ...

    assert Alias
    assert await arguments_of(mcp) == ["title"]


def returned() -> Callable[[], Callable[..., Any]]:
    Alias = Annotated[Stock, Resolve(check_stock)]

    def make() -> Callable[..., Any]:
        async def sell(title: str, stock: Alias) -> None: ...

        return sell

    assert Alias
    return make


async def test_a_local_alias_of_a_function_that_has_returned_is_refused_by_name() -> None:
    error = await refusal(as_tool, returned()())

    (fault,) = error.faults
    assert fault.problem == (
        "sell: the hint of parameter 'stock' names 'Alias', which was local to a function that has returned"
    )
    assert fault.fix == "register the function where Alias is defined, or define Alias in the module"


def returned_with_a_global() -> Callable[..., Any]:
    async def sell(title: str, stock: Alias) -> None: ...

    return sell


async def test_a_global_that_nothing_shadows_is_read_from_any_frame() -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(returned_with_a_global())

    assert await arguments_of(mcp) == ["title", "stock"]


class Desk:
    Alias = Annotated[Stock, Resolve(check_stock)]
    Stock = "a name that a type has too"

    async def sell(self, title: str, stock: Alias) -> None: ...

    async def buy(self, title: str, stock: Stock) -> None: ...  # pyright: ignore[reportInvalidTypeForm] - on purpose


class LaterDesk(Desk):
    pass


async def test_an_alias_in_the_body_of_a_class_that_shadows_a_global_is_honoured() -> None:
    for desk in (Desk, LaterDesk):
        mcp = MCPServer("shop")
        mcp.add_tool(desk().sell)
        assert await arguments_of(mcp) == ["title"]


async def test_a_value_in_the_body_of_a_class_does_not_replace_a_type_of_its_name() -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(Desk().buy)
    assert await arguments_of(mcp) == ["title", "stock"]
