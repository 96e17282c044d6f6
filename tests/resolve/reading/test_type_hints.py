"""Type hints: aliases of every kind are resolved, and types that cannot agree are refused (design 4)."""

from abc import ABC, abstractmethod
from asyncio import Future
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, Generic, Literal, NewType, Protocol, TypeVar

import pytest
from mcp_types import CreateMessageResult, ListRootsResult
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType, TypedDict

from bespeak import (
    AcceptedElicitation,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
)
from tests.resolve.positions import Position, as_tool, below_a_tool, refusal

T = TypeVar("T")
S = TypeVar("S")


class Stock(BaseModel):
    title: str = ""


class RareStock(Stock):
    pass


class Price(BaseModel):
    amount: int = 0


async def check_stock(title: str) -> Stock:
    return Stock(title=title)


# Aliases

MARKER = Resolve(check_stock)
Plain = TypeAliasType("Plain", Annotated[Stock, MARKER])
Assigned = Annotated[Stock, MARKER]
OfAlias = TypeAliasType("OfAlias", Plain)
Resolved = TypeAliasType("Resolved", Annotated[T, MARKER], type_params=(T,))
ResolvedAgain = TypeAliasType("ResolvedAgain", Resolved[S], type_params=(S,))
Noted = TypeAliasType("Noted", Annotated[T, MARKER, {"not": "hashable"}], type_params=(T,))
InText = TypeAliasType("InText", "Annotated[Stock, MARKER]")
New = NewType("New", Plain)  # pyright: ignore[reportGeneralTypeIssues] - a new type of an alias exists at run time
Same = TypeAliasType("Same", T, type_params=(T,))

ALIASES: dict[str, Any] = {
    "assignment": Assigned,
    "alias": Plain,
    "alias of an alias": OfAlias,
    "generic alias": Resolved[Stock],
    "generic alias of a generic alias": ResolvedAgain[Stock],
    "generic alias with unhashable metadata": Noted[Stock],
    "alias of a string": InText,
    "new type": New,
    "annotated alias": Annotated[Plain, Field(description="noted")],
    "filled with a marked type": Same[Assigned],
}


@pytest.mark.parametrize("hint", ALIASES.values(), ids=ALIASES)
async def test_a_marker_is_found_through_aliases_of_every_kind(hint: Any) -> None:
    mcp = MCPServer("shop")

    async def sell(title: str, stock: Any) -> str:
        return stock.title

    sell.__annotations__["stock"] = hint
    mcp.add_tool(sell)

    (tool,) = await mcp.list_tools()
    assert list(tool.input_schema["properties"]) == ["title"]
    result = await mcp.call_tool("sell", {"title": "Dune", "stock": {"title": "Emma"}})
    assert result.structured_content == {"result": "Dune"}


Asking = TypeAliasType("Asking", Stock | Elicit[Stock])
Outcome = TypeAliasType("Outcome", ElicitationResult[T], type_params=(T,))
AnyContext = TypeAliasType("AnyContext", Context)


async def test_questions_outcomes_and_the_context_are_found_through_aliases() -> None:
    mcp = MCPServer("shop")

    async def ask(context: AnyContext) -> Asking:
        return Stock(title=context.mcp_server.name)

    @mcp.tool()
    async def sell(context: AnyContext, stock: Annotated[Outcome[Stock], Resolve(ask)]) -> str:
        assert isinstance(stock, AcceptedElicitation)
        return stock.data.title

    result = await mcp.call_tool("sell", {})
    assert result.structured_content == {"result": "shop"}


# Types that cannot agree


def giving(returns: Any) -> Callable[..., Any]:
    async def give(title: str) -> Any: ...

    give.__annotations__["return"] = returns
    return give


def consumer(given: Any, taken: Any) -> Callable[..., Any]:
    """Takes as `taken` what a resolver declares as `given`."""

    async def consume(title: str, value: Any) -> int: ...

    consume.__annotations__["value"] = Annotated[taken, Resolve(giving(given))]
    return consume


Two = TypeAliasType("Two", Annotated[Stock, "noted"])


@dataclass
class Crate(Generic[T]):
    content: T


DISAGREE: dict[str, tuple[Any, Any, str]] = {
    "models": (Stock, Price, "returns Stock, but parameter 'value' takes Price"),
    "scalars": (int, str, "returns int, but parameter 'value' takes str"),
    "nothing": (None, Stock, "returns None, but parameter 'value' takes Stock"),
    "annotated": (Annotated[int, Field(gt=0)], Annotated[str, "noted"], "returns int, but parameter 'value' takes str"),
    "alias": (Two, Price, "takes Price"),
    "unions": (Stock | None, Price | int, "takes "),
    "question": (Stock | Elicit[Stock], Price, "takes Price"),
    "question alone": (Elicit[bool], str, "takes str"),
    "outcome": (Stock | Elicit[Stock], ElicitationResult[Price], "takes "),
    "accepted only": (Elicit[Stock], AcceptedElicitation[Price], "takes "),
    "sample": (Sample, str, "returns Sample, but parameter 'value' takes str"),
    "roots": (ListRoots, list, "returns ListRoots, but parameter 'value' takes list"),
    "awaitable": (Awaitable[int], str, "takes str"),
    "an item for a list": (int, list[int], "returns int, but parameter 'value' takes list[int]"),
    "a list for an item": (list[int], int, "returns list[int], but parameter 'value' takes int"),
    "a model for a dict": (Stock, dict[str, int], "returns Stock, but parameter 'value' takes dict[str, int]"),
    "a bare list for a dict": (list, dict[str, int], "returns list, but parameter 'value' takes dict[str, int]"),
    "a tuple for a set": (tuple[int, ...], set[int], "takes set[int]"),
    "a dict for a union of lists": (dict[str, int], list[int] | list[str] | None, "takes list[int] | list[str] | None"),
    "a list of the form's model": (Elicit[Stock], list[Stock], "takes list["),
    "a model for a generic dataclass": (Stock, Crate[int], "takes "),
}


@pytest.mark.parametrize(("given", "taken", "said"), DISAGREE.values(), ids=DISAGREE)
async def test_a_resolver_whose_result_cannot_be_what_the_parameter_takes_is_refused(
    given: Any, taken: Any, said: str
) -> None:
    error = await refusal(as_tool, consumer(given, taken))

    (fault,) = error.faults
    assert fault.problem.startswith("resolver 'give' ")
    assert said in fault.problem
    assert fault.fix == "make the two types agree"
    assert fault.place.startswith(f"{__file__}:")


@below_a_tool
@pytest.mark.parametrize("taken", [int, Stock, Annotated[bytes, "noted"], int | None, list[str]], ids=str)
async def test_a_parameter_taken_by_name_that_cannot_be_the_argument_is_refused(position: Position, taken: Any) -> None:
    async def by_name(title: Any) -> int: ...

    by_name.__annotations__["title"] = taken
    error = await refusal(position, by_name)

    (fault,) = error.faults
    assert "parameter 'title' of resolver 'by_name' takes " in fault.problem
    assert fault.problem.endswith("but the argument of that name is str")
    assert fault.fix == "make the two types agree, or rename one of them"
    assert fault.drawing.endswith("└─ title <- the argument")


# Whatever is less certain passes


class Sized(Protocol):
    size: int


class Row(TypedDict):
    title: str


class Readable(ABC):
    @abstractmethod
    def read(self) -> str: ...


class Closable(ABC):
    @abstractmethod
    def close(self) -> None: ...


class Level(IntEnum):
    LOW = 1


class Box(BaseModel, Generic[T]):
    content: T


UserId = NewType("UserId", int)
OrderId = NewType("OrderId", int)
Count = TypeVar("Count", bound=int)

PASS: dict[str, tuple[Any, Any]] = {
    "a subclass": (RareStock, Stock),
    "a superclass": (Stock, RareStock),
    "bool for int": (bool, int),
    "an enum of ints for int": (Level, int),
    "an int where a float is taken, as type checkers have it": (int, float),
    "optional taken": (Stock, Stock | None),
    "overlapping unions": (Stock | int, Price | int),
    "any taken": (Stock, Any),
    "a union with any": (Stock, Price | Any),
    "a type variable": (Stock, T),
    "literal": (Literal["a"], int),
    "parametrised lists": (list[int], list[str]),
    "bare list for parametrised list": (list, list[int]),
    "a list for a sequence": (list[int], Sequence[int]),
    "a model for a mapping": (Stock, Mapping[str, int]),
    "a dict for a typed dict": (dict[str, int], Row),
    "a counter for a dict": (Counter[str], dict[str, int]),
    "a generic dataclass of another type": (Crate[int], Crate[str]),
    "a list or nothing for an item or nothing": (list[int] | None, int | None),
    "a future": (Future[int], int),
    "protocol": (Stock, Sized),
    "typed dict": (dict, Row),
    "callable": (Callable[[], int], int),
    "type": (type[Stock], Stock),
    "new types of one type": (UserId, OrderId),
    "abstract classes": (Readable, Closable),
    "generic model": (Box[int], Box),
    "bare question": (Stock | Elicit, Price),  # pyright: ignore[reportMissingTypeArgument] - bare on purpose
    "question with an unknown form": (Elicit[Any], Price),
    "outcome": (Stock | Elicit[Stock], ElicitationResult[Stock]),
    "computed, taken as outcome": (Stock, ElicitationResult[Stock]),
    "accepted only": (Elicit[Stock], AcceptedElicitation[Stock]),
    "bare accepted": (Elicit[Stock], AcceptedElicitation),
    "refusals only": (Elicit[Stock], DeclinedElicitation | CancelledElicitation),
    "sample": (Sample, CreateMessageResult),
    "roots": (ListRootsResult | ListRoots, ListRootsResult),
    "coroutine": (Coroutine[Any, Any, Stock], Stock),
    "iterator": (Iterator[Stock], Stock),
}


@pytest.mark.parametrize(("given", "taken"), PASS.values(), ids=PASS)
def test_types_that_may_agree_pass(given: Any, taken: Any) -> None:
    as_tool(MCPServer("shop"), consumer(given, taken))


@pytest.mark.parametrize(
    ("argument", "taken"),
    [
        (str | None, str),
        (Literal["a", "b"], str),
        (Annotated[str, Field(min_length=1)], str),
        (Row, dict),
        (T, str),
    ],
    ids=str,
)
def test_an_argument_that_may_be_what_is_taken_by_name_passes(argument: Any, taken: Any) -> None:
    async def by_name(title: Any) -> int: ...

    async def sell(title: Any, count: Annotated[int, Resolve(by_name)]) -> None: ...

    by_name.__annotations__["title"] = taken
    sell.__annotations__["title"] = argument
    MCPServer("shop").add_tool(sell)


def test_parameters_without_hints_agree_with_everything() -> None:
    def by_name(title): ...  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType] - on purpose

    async def sell(title: str, count: Annotated[int, Resolve(by_name)]) -> None: ...  # pyright: ignore[reportUnknownArgumentType] - see above

    MCPServer("shop").add_tool(sell)
