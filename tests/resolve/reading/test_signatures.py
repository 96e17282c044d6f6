"""Reading a signature: what its parameters are, who fills them and with what, and what it returns (design 4)."""

import functools
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
)
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from mcp_types import InputRequiredResult
from pydantic import BaseModel, BeforeValidator, Field

from bespeak import (
    AcceptedElicitation,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    InvalidSignature,
    MCPServer,
    Resolve,
)
from bespeak.resolve.reading.signatures import EMPTY, read
from bespeak.server.features.tools import Tool
from bespeak.server.resolve import find_resolved_parameters, returns_input_required
from tests.conftest import Connect


async def check_stock(title: str) -> int:
    return len(title)


MARKER = Resolve(check_stock)


# What is read


def test_parameters_are_read_in_order_with_hint_default_and_marker() -> None:
    def sell(title: str, stock: Annotated[int, MARKER] = 3, *, unhinted: Any = None) -> str: ...

    del sell.__annotations__["unhinted"]
    title, stock, unhinted = read(sell).parameters

    assert (title.name, title.hint, title.marker, title.required) == ("title", str, None, True)
    assert (stock.name, stock.marker, stock.default, stock.required) == ("stock", MARKER, 3, False)
    assert (unhinted.name, unhinted.hint, unhinted.default) == ("unhinted", Any, None)


OUTCOMES: dict[str, tuple[Any, set[type[BaseModel]]]] = {
    "value": (int, set()),
    "all": (ElicitationResult[int], {AcceptedElicitation, DeclinedElicitation, CancelledElicitation}),
    "bare": (ElicitationResult, {AcceptedElicitation, DeclinedElicitation, CancelledElicitation}),
    "some": (AcceptedElicitation[int] | DeclinedElicitation, {AcceptedElicitation, DeclinedElicitation}),
}


@pytest.mark.parametrize(("hint", "takes"), OUTCOMES.values(), ids=OUTCOMES)
def test_a_marked_parameter_takes_the_outcomes_its_hint_names(hint: Any, takes: set[type[BaseModel]]) -> None:
    async def sell(title: str, stock: Any) -> None: ...

    sell.__annotations__["stock"] = Annotated[hint, MARKER]

    assert read(sell).parameters[1].takes == takes
    assert find_resolved_parameters(sell) == {"stock": (MARKER, bool(takes))}


async def generates() -> AsyncIterator[int]:
    yield 1


def generates_in_sync() -> Iterator[int]:
    yield 1


RETURNS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "awaitable": (check_stock, Awaitable[int], int),
    "plain": (check_stock, int, int),
    "async iterator": (generates, AsyncIterator[int], int),
    "async generator": (generates, AsyncGenerator[int, None], int),
    "iterator": (generates_in_sync, Iterator[int], int),
    "generator": (generates_in_sync, Generator[int, None, None], int),
    "generator said to be something else": (generates_in_sync, int, EMPTY),
}


@pytest.mark.parametrize(("fn", "hint", "value"), RETURNS.values(), ids=RETURNS)
def test_what_a_function_gives_is_what_arrives_at_its_consumer(fn: Callable[..., Any], hint: Any, value: Any) -> None:
    fn = functools.partial(fn)
    original = fn.func.__annotations__["return"]
    fn.func.__annotations__["return"] = hint
    try:
        assert read(fn).returns is value
    finally:
        fn.func.__annotations__["return"] = original


@pytest.mark.parametrize(
    ("hint", "said"),
    [(InputRequiredResult, True), (str | InputRequiredResult, True), (str, False), (Any, False)],
    ids=str,
)
def test_an_arm_of_questions_made_by_hand_is_found(hint: Any, said: bool) -> None:
    async def sell(title: str) -> Any: ...

    sell.__annotations__["return"] = hint

    assert returns_input_required(sell) is said


# Nothing but arguments is shown, and nothing else is taken


@pytest.mark.every_revision
async def test_the_model_sees_arguments_only(connect: Connect) -> None:
    mcp = MCPServer("shop")

    async def ask(title: str) -> bool | Elicit[bool]:
        return True

    @mcp.tool()
    async def sell(
        context: Context,
        title: str,
        stock: Annotated[int, MARKER],
        sure: Annotated[ElicitationResult[bool], Resolve(ask)],
        defaulted: Annotated[int | None, MARKER] = None,
        copies: int = 1,
    ) -> None: ...

    async with connect(mcp) as client:
        (tool,) = (await client.list_tools()).tools

    assert list(tool.input_schema["properties"]) == ["title", "copies"]
    assert tool.input_schema["required"] == ["title"]


@pytest.mark.asking_revisions
async def test_what_a_client_sends_for_a_resolved_parameter_is_ignored(connect: Connect) -> None:
    mcp = MCPServer("shop")

    async def double(stock: Annotated[int, MARKER]) -> int:
        return stock * 2

    @mcp.tool()
    async def sell(title: str, stock: Annotated[int, MARKER], double: Annotated[int, Resolve(double)]) -> list[int]:
        return [stock, double]

    async with connect(mcp) as client:
        result = await client.call_tool("sell", {"title": "Dune", "stock": 99, "double": 98, "MARKER": 97})

    assert result.structured_content == {"result": [4, 8]}


async def test_what_a_client_sends_for_a_defaulted_parameter_of_a_resolver_is_ignored() -> None:
    mcp = MCPServer("shop")

    async def limited(title: str, limit: int = 2) -> int:
        return limit

    @mcp.tool()
    async def sell(title: str, limited: Annotated[int, Resolve(limited)]) -> int:
        return limited

    result = await mcp.call_tool("sell", {"title": "Dune", "limit": 99})

    assert result.structured_content == {"result": 2}


# By-name parameters get what the body gets


class Order(BaseModel):
    title: str


def fresh() -> list[str]:
    return ["made"]


FACTORY: Any = Field(default_factory=fresh)

BY_NAME: dict[str, tuple[Any, Any, dict[str, Any], Any]] = {
    "validated": (int, EMPTY, {"value": "5"}, 5),
    "a model": (Order, EMPTY, {"value": {"title": "Dune"}}, Order(title="Dune")),
    "through a validator": (Annotated[str, BeforeValidator(str.upper)], EMPTY, {"value": "Dune"}, "DUNE"),
    "the default": (int, 7, {}, 7),
    "a default in a field": (Annotated[int, Field(default=7)], EMPTY, {}, 7),
    "a factory's default": (list[str], FACTORY, {}, ["made"]),
    "by alias": (Annotated[str, Field(alias="bookTitle")], EMPTY, {"bookTitle": "Dune"}, "Dune"),
    "by validation alias": (Annotated[str, Field(validation_alias="isbn")], EMPTY, {"isbn": "Dune"}, "Dune"),
}


@pytest.mark.parametrize(("hint", "default", "sent", "got"), BY_NAME.values(), ids=BY_NAME)
async def test_a_parameter_taken_by_name_gets_exactly_the_value_the_body_gets(
    hint: Any, default: Any, sent: dict[str, Any], got: Any
) -> None:
    mcp = MCPServer("shop")
    seen: list[Any] = []

    async def look(value: object) -> None:
        seen.append(value)

    async def sell(looked: Annotated[None, Resolve(look)], value: Any) -> None:
        seen.append(value)

    sell.__annotations__["value"] = hint
    if default is not EMPTY:
        sell.__defaults__ = (default,)
    mcp.add_tool(sell)

    await mcp.call_tool("sell", sent)

    in_resolver, in_body = seen
    assert in_resolver is in_body
    assert in_body == got


async def test_names_that_models_reserve_are_arguments_like_any_other() -> None:
    mcp = MCPServer("shop")

    async def look(schema: str, _hidden: str) -> str:
        return schema + _hidden

    @mcp.tool()
    async def sell(schema: str, _hidden: str, looked: Annotated[str, Resolve(look)]) -> str:
        return looked

    (tool,) = await mcp.list_tools()
    assert list(tool.input_schema["properties"]) == ["schema", "_hidden"]
    result = await mcp.call_tool("sell", {"schema": "a", "_hidden": "b"})
    assert result.structured_content == {"result": "ab"}


@pytest.mark.parametrize("hint", [Context, Context[Any, Any], Context | None, Annotated[Context, "noted"]], ids=str)
async def test_the_context_is_found_by_its_type_whatever_its_name(hint: Any) -> None:
    mcp = MCPServer("shop")

    async def name(anything: Any, title: str) -> str:
        return anything.mcp_server.name

    name.__annotations__["anything"] = hint

    @mcp.tool()
    async def sell(title: str, name: Annotated[str, Resolve(name)]) -> str:
        return name

    result = await mcp.call_tool("sell", {"title": "Dune", "anything": "sent"})
    assert result.structured_content == {"result": "shop"}


def test_a_field_without_a_default_is_required() -> None:
    described: Any = Field(description="how many")

    async def price(copies: int = described) -> int: ...

    async def sell(title: str, price: Annotated[int, Resolve(price)]) -> None: ...

    with pytest.raises(
        InvalidSignature, match="parameter 'copies' of resolver 'price' cannot be resolved: nothing fills it"
    ):
        Tool.from_function(sell)


# A class as a resolver has parameters like any other


@dataclass
class Session:
    title: str
    stock: Annotated[int, MARKER]


class Account(BaseModel):
    stock: Annotated[int, MARKER, Field(alias="inStock")]


class Basket:
    def __init__(self, session: Annotated[Session, Resolve(Session)]) -> None:
        self.stock = session.stock


@pytest.mark.parametrize("cls", [Session, Account, Basket], ids=lambda cls: cls.__name__)
async def test_a_class_that_is_a_resolver_may_have_its_fields_resolved(cls: type[Any]) -> None:
    mcp = MCPServer("shop")

    async def sell(title: str, taken: Any) -> int:
        return taken.stock

    sell.__annotations__["taken"] = Annotated[cls, Resolve(cls)]
    mcp.add_tool(sell)

    (tool,) = await mcp.list_tools()
    assert list(tool.input_schema["properties"]) == ["title"]
    result = await mcp.call_tool("sell", {"title": "Dune", "stock": 99, "inStock": 98})
    assert result.structured_content == {"result": 4}
