"""What a newcomer types wrong: each is told at registration, with what to write instead."""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, cast

import pytest
from pydantic import BaseModel, ConfigDict

from bespeak import Client, Context, Elicit, InvalidSignature, MCPError, MCPServer, Resolve
from bespeak.resolve.asking.form_schemas import FormError
from bespeak.resolve.asking.questions import render
from bespeak.resolve.graph.compiler import compile_graph
from bespeak.resolve.reading.signatures import read

T = TypeVar("T")


async def stock() -> int:
    return 7


def refused(fn: Callable[..., Any], **options: Any) -> str:
    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").add_tool(fn, **options)
    return str(caught.value)


def test_a_bare_function_in_an_annotation_is_no_marker() -> None:
    async def tool(copies: Annotated[int, stock]) -> None: ...

    told = refused(tool)
    assert "parameter 'copies' has the bare function 'stock' in its annotation" in told
    assert "write Resolve(stock) to have it fill the parameter" in told


@pytest.mark.parametrize("named", [7, Elicit("Sure?", bool)])
def test_what_a_function_returns_is_no_function(named: Any) -> None:
    async def tool(copies: Annotated[int, Resolve(named)]) -> None: ...

    assert "with the function itself: not what it returns, and not a question" in refused(tool)


@pytest.mark.parametrize("timeout", ["2s", 0, -1, float("nan")])
def test_a_timeout_is_a_positive_number_of_seconds(timeout: Any) -> None:
    async def tool(copies: Annotated[int, Resolve(stock, timeout=timeout)]) -> None: ...

    assert "resolver 'stock' has a timeout that is not a positive number of seconds" in refused(tool)


def test_a_guard_runs_in_every_round_and_so_not_once() -> None:
    async def tool(copies: Annotated[int, Resolve(stock, guard=True, once=True)]) -> None: ...

    assert "is marked guard=True and once=True; a guard runs in every round" in refused(tool)


@pytest.mark.parametrize("key", ["\ud800", "a\nb"])
def test_a_key_is_plain_text(key: str) -> None:
    async def tool(copies: Annotated[int, Resolve(stock, key=key)]) -> None: ...

    assert "the key of a question is no text" in refused(tool)


def test_a_tool_does_not_ask_by_returning_a_question() -> None:
    async def tool() -> str | Elicit[bool]: ...

    told = refused(tool)
    assert "tool returns bespeak.resolve.markers.Elicit[bool], and only a resolver asks by returning it" in told
    assert "ask in a resolver" in told


async def test_a_question_returned_by_a_tool_all_the_same_is_told_to_the_author(
    caplog: pytest.LogCaptureFixture,
) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def tool() -> Any:
        return Elicit("Sure?", bool)

    async with Client(mcp) as client:
        assert (await client.call_tool("tool")).is_error
    assert "'tool' returned Elicit; only a resolver asks by returning it" in caplog.text


def test_a_method_is_registered_bound() -> None:
    class Shop:
        async def tool(self, title: str) -> None: ...

    told = refused(Shop.tool)
    assert "parameter 'self' would be an argument for the model to fill" in told
    assert "mcp.add_tool(thing.method)" in told


def test_tool_is_a_decorator() -> None:
    with pytest.raises(TypeError, match=r"use add_tool\(fn, name\)"):
        MCPServer("shop").tool("stock", cast("Any", stock))


def test_a_generator_behind_a_decorator_is_no_generator() -> None:
    @asynccontextmanager
    async def connection() -> AsyncGenerator[int]:
        yield 1

    async def tool(copies: Annotated[Any, Resolve(connection)]) -> None: ...

    told = refused(tool)
    assert "it is a generator behind a decorator" in told
    assert "remove the decorator: Bespeak opens and closes a plain generator itself" in told


def test_message_and_schema_are_not_swapped() -> None:
    with pytest.raises(FormError, match="the message is no text"):
        render("k", Elicit(cast("Any", bool), cast("Any", "Sure?")))


async def test_a_client_without_callbacks_is_told_which_to_give() -> None:
    mcp = MCPServer("shop")

    async def ask() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    @mcp.tool()
    async def tool(sure: Annotated[bool, Resolve(ask)]) -> None: ...

    async with Client(mcp) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("tool")
    assert "elicitation_callback=" in caught.value.__notes__[0]


# Markers in odd places


@pytest.mark.parametrize("metadata", [{"r": Resolve(stock)}, [Resolve(stock)], functools.partial(Resolve, stock)])
def test_a_marker_inside_other_metadata_is_refused(metadata: Any) -> None:
    async def tool(copies: int) -> None: ...

    tool.__annotations__["copies"] = Annotated[int, metadata]
    assert "parameter 'copies' has `Resolve`" in refused(tool)


@dataclass
class Box(Generic[T]):
    inside: T


@dataclass
class Boxed(Box[Annotated[int, Resolve(stock)]]):
    label: str = ""


class Extra(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[int, Resolve(stock)]]  # pyright: ignore[reportIncompatibleVariableOverride] - pydantic's own way


@pytest.mark.parametrize("argument", [Boxed, Extra])
def test_a_marker_in_what_an_argument_is_made_from_is_refused(argument: Any) -> None:
    async def tool(box: Any) -> None: ...

    tool.__annotations__["box"] = argument
    assert "where it has no effect" in refused(tool)


def test_a_signature_cannot_hide_a_marker() -> None:
    async def tool(copies: Annotated[int, Resolve(stock)]) -> None: ...

    shown = inspect.Parameter("copies", inspect.Parameter.KEYWORD_ONLY, annotation=int)
    tool.__signature__ = inspect.Signature([shown])  # pyright: ignore[reportFunctionMemberAccess] - what the test is about
    assert "parameter 'copies' is marked with `Resolve`, but the function's signature hides the marker" in refused(tool)


def test_a_wrapper_cannot_hide_a_marker() -> None:
    async def inner(copies: Annotated[int, Resolve(stock)]) -> None: ...

    @functools.wraps(inner)
    async def wrapper(copies: int) -> None: ...

    shown = inspect.Parameter("copies", inspect.Parameter.KEYWORD_ONLY, annotation=int)
    wrapper.__signature__ = inspect.Signature([shown])  # pyright: ignore[reportAttributeAccessIssue] - likewise
    assert "the function's signature hides the marker" in refused(wrapper)


@pytest.mark.parametrize(
    "schema",
    [{"type": "object", "patternProperties": {"^st": {}}}, {"type": "object", "dependentRequired": {"copies": []}}],
)
def test_a_schema_shows_a_name_in_other_ways_too(schema: dict[str, Any]) -> None:
    async def tool(stock: Annotated[int, Resolve(stock)], copies: Annotated[int, Resolve(stock)]) -> None: ...

    assert "which is resolved" in refused(tool, input_schema=schema)


def test_a_bare_value_beside_outcomes_is_refused() -> None:
    from bespeak import DeclinedElicitation

    async def ask() -> Elicit[int]:
        return Elicit("How many?", int)

    async def tool(copies: Annotated[int | DeclinedElicitation, Resolve(ask)]) -> None: ...

    assert "parameter 'copies' takes both a plain value and outcomes" in refused(tool)


# What a person reads


async def shelf(stock: Annotated[int, Resolve(stock)]) -> int:
    return stock


async def crate(shelf: Annotated[int, Resolve(shelf)]) -> int:
    return shelf


def test_a_resolver_with_several_consumers_is_drawn_once() -> None:
    async def tool(
        a: Annotated[int, Resolve(crate)], b: Annotated[int, Resolve(crate)], c: Annotated[int, Resolve(stock)]
    ) -> None: ...

    graph = compile_graph(read(tool), context_type=Context)
    assert graph.drawing().splitlines()[1:] == [
        "├─ a <- crate [phase 2]",
        "│  └─ shelf <- shelf [phase 2]",
        "│     └─ stock <- stock [phase 2]",
        "├─ b <- crate [phase 2] (drawn above)",
        "└─ c <- stock [phase 2]",
    ]


def test_an_error_is_a_wire_type_too() -> None:
    assert MCPError(7, "no", {"why": 1}).error.model_dump() == {"code": 7, "message": "no", "data": {"why": 1}}
