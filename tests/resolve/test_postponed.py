"""Postponed annotations: hints are evaluated with globals, closure and the registering frame (design 4, rule one)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import BaseModel

from bespeak import Context, Elicit, InvalidSignature, MCPServer, Resolve
from bespeak.server.features.tools import Tool
from bespeak.server.resolve import find_resolved_parameters, returns_input_required
from tests.conftest import Connect

pytestmark = pytest.mark.asking_revisions

if TYPE_CHECKING:
    from decimal import Decimal as Missing

    from mcp_types import InputRequiredResult


class Stock(BaseModel):
    title: str


class Shadowed(BaseModel):
    title: str


async def check_stock(title: str) -> Stock:
    return Stock(title=title)


async def arguments_of(mcp: MCPServer[Any]) -> list[str]:
    (tool,) = await mcp.list_tools()
    return list(tool.input_schema["properties"])


async def test_module_names_are_found(connect: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def sell(context: Context, title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
        return stock.title

    assert await arguments_of(mcp) == ["title"]
    async with connect(mcp) as client:
        result = await client.call_tool("sell", {"title": "Dune", "stock": {"title": "Emma"}})
    assert result.structured_content == {"result": "Dune"}


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


async def test_a_local_name_comes_before_a_module_name_for_a_function_defined_there() -> None:
    class Shadowed(BaseModel):
        copies: int

    mcp = MCPServer("shop")

    async def sell(shadowed: Any) -> int:
        return shadowed.copies

    sell.__annotations__["shadowed"] = Shadowed.__name__
    mcp.add_tool(sell)

    result = await mcp.call_tool("sell", {"shadowed": {"copies": 3}})
    assert result.structured_content == {"result": 3}


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


async def test_a_marker_is_never_lost_with_a_name_that_exists_for_type_checkers_only() -> None:
    mcp = MCPServer("shop")

    async def sell(title: str, price: Annotated[Missing, Resolve(check_stock)]) -> None: ...

    with pytest.raises(InvalidSignature) as caught:
        mcp.add_tool(sell)

    (fault,) = caught.value.faults
    assert fault.problem == "sell: the hint of parameter 'price' names 'Missing', which does not exist at run time"
    assert fault.place == f"{__file__}:{sell.__code__.co_firstlineno}"
    assert await mcp.list_tools() == []


async def test_a_marker_beside_a_return_type_for_type_checkers_only_is_refused() -> None:
    mcp = MCPServer("shop")

    async def sell(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str | InputRequiredResult: ...

    with pytest.raises(InvalidSignature, match="sell: the return type names 'InputRequiredResult'"):
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


async def test_a_cycle_of_local_resolvers_is_refused() -> None:
    async def chicken(egg: Annotated[int, Resolve(lay)]) -> int: ...  # pyright: ignore[reportUnboundVariable, reportUnknownArgumentType] - defined below

    async def lay(chicken: Annotated[int, Resolve(chicken)]) -> int: ...

    async def sell(title: str, chicken: Annotated[int, Resolve(chicken)]) -> None: ...

    mcp = MCPServer("shop")

    with pytest.raises(InvalidSignature, match="depend on each other: chicken -> lay -> chicken"):
        mcp.add_tool(sell)

    assert await mcp.list_tools() == []


def traced(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await fn(*args, **kwargs)

    return wrapper


async def test_local_names_are_found_in_every_sort_of_callable() -> None:
    class Local(BaseModel):
        title: str

    @traced
    async def decorated(title: str) -> Local:
        return Local(title=title)

    @dataclass
    class Made:
        local: Annotated[Local, Resolve(decorated)]

    class Called:
        async def __call__(self, made: Annotated[object, Resolve(Made)]) -> Local:
            assert isinstance(made, Made)
            return made.local

    class Shop:
        async def method(self, local: Annotated[Local, Resolve(Called())], suffix: str) -> Local:
            return Local(title=local.title + suffix)

    method = functools.partial(Shop().method, suffix="!")
    mcp = MCPServer("shop")

    @mcp.tool()
    async def sell(title: str, local: Annotated[Local, Resolve(method)]) -> str:
        return local.title

    assert await arguments_of(mcp) == ["title"]
    result = await mcp.call_tool("sell", {"title": "Dune"})
    assert result.structured_content == {"result": "Dune!"}


@dataclass
class OnDataclass:
    stock: Annotated[Stock, Resolve(check_stock)]


class OnModel(BaseModel):
    stock: Annotated[Stock, Resolve(check_stock)]


class OnLateModel(BaseModel):
    stock: Annotated[Later, Resolve(check_stock)]


class Later(Stock):
    pass


@pytest.mark.parametrize("structure", [OnDataclass, OnModel, OnLateModel], ids=lambda structure: structure.__name__)
async def test_a_marker_in_a_postponed_field_of_an_argument_is_refused(structure: Any) -> None:
    mcp = MCPServer("shop")

    async def sell(basket: Any) -> None: ...

    sell.__annotations__["basket"] = structure.__name__
    with pytest.raises(InvalidSignature, match="on field 'stock' of On"):
        mcp.add_tool(sell)

    assert await mcp.list_tools() == []


async def test_a_marker_in_a_field_of_a_local_dataclass_is_refused() -> None:
    class Local(BaseModel):
        title: str

    @dataclass
    class Basket:
        local: Annotated[Local, Resolve(check_stock)]

    mcp = MCPServer("shop")

    async def sell(basket: Basket) -> None: ...

    with pytest.raises(InvalidSignature):
        mcp.add_tool(sell)

    assert await mcp.list_tools() == []
