"""Types that refer to themselves, are large, or name values of another type; classes and functions that are unusual resolvers."""

import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import singledispatch
from typing import Annotated, Any, Generic, TextIO, TypeVar

import pytest
from pydantic import FutureDate, create_model
from typing_extensions import TypeAliasType

from bespeak import (
    InvalidSignature,
    MCPServer,
    Resolve,
)
from tests.answering import text
from tests.conftest import Connect

T = TypeVar("T")


Text = TypeAliasType("Text", "dict[str, Text] | list[Text] | int")  # pyright: ignore[reportGeneralTypeIssues] - as authors write it


@pytest.mark.timing
async def test_a_recursive_alias_written_as_text_is_read_once() -> None:
    mcp = MCPServer[Any]("shop")

    async def tool(a: Any) -> str:
        return "fine"

    tool.__annotations__["a"] = Text
    started = time.process_time()
    with suppress(InvalidSignature):  # what pydantic makes of such an alias is its own affair
        mcp.add_tool(tool)
    assert time.process_time() - started < 5


@pytest.mark.timing
def test_a_model_with_many_ways_to_one_field_is_searched_once() -> None:
    model: Any = create_model("L0", x=(int, ...))
    for number in range(1, 19):
        model = create_model(f"L{number}", a=(model, ...), b=(model, ...))

    def tool(a: Any) -> str:
        return ""

    tool.__annotations__["a"] = model
    started = time.process_time()
    MCPServer("shop").add_tool(tool)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(("argument", "taken"), [(FutureDate, date), (date, FutureDate), (TextIO, str)])
def test_a_type_that_only_names_values_of_another_may_agree(argument: Any, taken: Any) -> None:
    async def given() -> Any:
        return None

    given.__annotations__["return"] = argument

    async def tool(it: Any) -> None: ...

    tool.__annotations__["it"] = Annotated[taken, Resolve(given)]
    MCPServer("shop").add_tool(tool)


@dataclass
class Repo(Generic[T]):
    title: str = "Dune"


async def test_a_parametrised_class_is_a_resolver(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(title: str, repo: Annotated[Repo[int], Resolve(Repo[int])]) -> str:
        return repo.title

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool", {"title": "Neuromancer"})) == "Neuromancer"


def test_a_function_that_dispatches_by_position_is_refused() -> None:
    @singledispatch
    def price(title: str) -> int:
        return 1

    async def tool(title: str, cents: Annotated[int, Resolve(price)]) -> None: ...

    with pytest.raises(InvalidSignature, match="it is a singledispatch function"):
        MCPServer("shop").add_tool(tool)
