"""A marker inside a union, a container or a field of an argument is refused, however deep it sits (design 4, rule two)."""

import dataclasses
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, Required, TypeVar

import pytest
import typing_extensions
from pydantic import BaseModel, Field, RootModel
from typing_extensions import TypeAliasType, TypedDict

from bespeak import MCPServer, Resolve
from tests.resolve.test_invalid_signatures import Position, as_tool, everywhere, refusal

T = TypeVar("T")


class Stock(BaseModel):
    title: str = ""


async def check_stock(title: str) -> Stock:
    return Stock(title=title)


Marked = Annotated[Stock, Resolve(check_stock)]
STRAY: Any = Resolve(check_stock)


def line_of(fn: Callable[..., Any]) -> str:
    return f"{__file__}:{fn.__code__.co_firstlineno}"


# Inside unions and containers

Plain = TypeAliasType("Plain", list[Marked])
Listed = TypeAliasType("Listed", list[T], type_params=(T,))
Either = TypeAliasType("Either", Annotated[T, Resolve(check_stock)] | None, type_params=(T,))
Lazy = TypeAliasType("Lazy", "list[Marked]")
New = NewType("New", list[Marked])
Bound = TypeVar("Bound", bound=list[Marked])
Constrained = TypeVar("Constrained", int, list[Marked])
Defaulted = typing_extensions.TypeVar("Defaulted", default=Marked)


class Box(BaseModel, Generic[T]):
    content: T


@dataclass
class Crate(Generic[T]):
    content: T


INSIDE: dict[str, Any] = {
    "union": "Marked | None",
    "optional": Optional[Marked],  # noqa: UP045 - both spellings
    "annotated union": Annotated[Marked | None, Field(description="in a union in Annotated")],
    "without a call": Optional[Annotated[Stock, Resolve]],  # noqa: UP045 - a checker cannot add these two
    "list": list[Marked],
    "dict": dict[str, Marked],
    "tuple": tuple[int, Marked],
    "long tuple": tuple[Marked, ...],
    "set": set[Marked],
    "callable's parameter": Callable[[Marked], int],
    "callable's result": Callable[[int], Marked],
    "type": type[Marked],
    "deep": dict[str, list[tuple[Marked | None, int]]],
    "alias": Plain,
    "generic alias": Listed[Marked],
    "list of generic alias": list[Listed[Marked]],
    "generic alias of a union": Either[Stock],
    "alias of a string": Lazy,
    "new type": New,
    "bound": Bound,
    "constraint": Constrained,
    "type variable's default": Defaulted,
    "generic model": Box[Marked],
    "generic dataclass": Crate[Marked],
    "string in a string": "list['Marked']",
}


@everywhere
@pytest.mark.parametrize("hint", INSIDE.values(), ids=INSIDE)
async def test_a_marker_inside_a_union_or_container_is_refused(position: Position, hint: Any) -> None:
    async def strayed(title: str, stock: Any) -> None: ...

    strayed.__annotations__["stock"] = hint
    error = await refusal(position, strayed)

    (fault,) = error.faults
    assert "parameter 'stock' has a `Resolve` " in fault.problem
    assert fault.problem.endswith("where it has no effect")
    assert fault.fix == "mark the parameter itself: stock: Annotated[..., Resolve(fn)]"
    assert fault.place == line_of(strayed)


# In fields of structured arguments


class OnModel(BaseModel):
    stock: Marked


class OnModelInUnion(BaseModel):
    stock: Marked | None = None


class OnModelWithoutACall(BaseModel):
    stock: Annotated[Stock, Resolve]


class AsModelDefault(BaseModel):
    stock: Stock = STRAY


class AsModelFieldDefault(BaseModel):
    stock: Stock = Field(default=STRAY)


class LateModel(BaseModel):
    """Not complete when it is defined, as models in a file often are: what it names comes further down."""

    stock: "Annotated[DefinedLater, Resolve(check_stock)]"


class DefinedLater(Stock):
    pass


class Root(RootModel[Marked]):
    pass


@dataclass
class OnDataclass:
    stock: Marked


@dataclass
class OnLateDataclass:
    stock: "Annotated[DefinedLater, Resolve(check_stock)]"


@dataclass
class OnKeywordField:
    _: KW_ONLY
    stock: Marked


@dataclass
class OnInitVar:
    stock: InitVar[Marked]


@dataclass
class AsDataclassDefault:
    stock: Any = STRAY


@dataclass
class AsDataclassFactory:
    stock: Any = dataclasses.field(default_factory=STRAY)


@dataclass(slots=True)
class AsSlotDefault:
    stock: Any = STRAY


def as_pydantic_field_default() -> type[Any]:
    """Made anew for every test, as the next one: pydantic rewrites such defaults in place when it meets the class."""
    stray: Any = Field(default=STRAY)

    @dataclass
    class Basket:
        stock: Any = stray

    return Basket


def as_annotated_field_default() -> type[Any]:
    @dataclass
    class Basket:
        stock: Annotated[Any, Field(default=STRAY)]

    return Basket


class OnTypedDict(TypedDict):
    stock: Marked


class AsKeyDefault(TypedDict):
    stock: Annotated[Any, Field(default=STRAY)]


class OnRequiredKey(TypedDict, total=False):
    stock: Required[Marked]


class OnNamedTuple(NamedTuple):
    stock: Marked


class AsNamedTupleDefault(NamedTuple):
    stock: Any = STRAY


class Deeper(BaseModel):
    baskets: dict[str, list[OnDataclass]]


@dataclass
class Deepest:
    below: Deeper | None
    again: "Deepest | None" = None


STRUCTURES = [
    OnModel,
    OnModelInUnion,
    OnModelWithoutACall,
    AsModelDefault,
    AsModelFieldDefault,
    LateModel,
    Root,
    OnDataclass,
    OnLateDataclass,
    OnKeywordField,
    OnInitVar,
    AsDataclassDefault,
    AsDataclassFactory,
    AsSlotDefault,
    as_pydantic_field_default,
    as_annotated_field_default,
    OnTypedDict,
    AsKeyDefault,
    OnRequiredKey,
    OnNamedTuple,
    AsNamedTupleDefault,
    Deeper,
    Deepest,
]


@everywhere
@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.__name__)
async def test_a_marker_in_a_field_of_an_argument_is_refused(position: Position, structure: Any) -> None:
    async def takes_structure(title: str, basket: Any) -> None: ...

    takes_structure.__annotations__["basket"] = structure if isinstance(structure, type) else structure()
    error = await refusal(position, takes_structure)

    (fault,) = error.faults
    assert "takes_structure: parameter 'basket' has a `Resolve` " in fault.problem
    assert fault.place == line_of(takes_structure)


@everywhere
async def test_the_field_that_holds_the_marker_is_named(position: Position) -> None:
    async def takes_many(title: str, baskets: list[OnDataclass] | None) -> None: ...

    error = await refusal(position, takes_many)

    assert "parameter 'baskets' has a `Resolve` on field 'stock' of OnDataclass" in str(error)


Kept = Literal["kept"]


def test_a_type_without_markers_is_no_reason_to_refuse() -> None:
    class Tree(BaseModel):
        branches: "list[Tree]" = []
        kind: Kept = "kept"

    async def grow(
        tree: Tree, listed: Listed[int], box: Box[int], call: Annotated[str, Field(min_length=1)]
    ) -> None: ...

    as_tool(MCPServer("shop"), grow)
