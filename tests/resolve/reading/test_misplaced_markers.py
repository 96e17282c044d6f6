"""A marker inside a union, a container, a field or a default of an argument is refused, at any depth (design 4).

The tables of test_generated_signatures.py try every place; here is what an author is told, and what they leave out.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, TypeVarTuple

import pytest
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType, TypedDict

from bespeak import InvalidSignature, MCPServer, Resolve
from bespeak.resolve.reading import misplaced_markers
from tests.resolve.positions import Position, as_tool, everywhere, line_of, refusal, shown

T = TypeVar("T")


class Stock(BaseModel):
    title: str = ""


async def check_stock(title: str) -> Stock:
    return Stock(title=title)


Marked = Annotated[Stock, Resolve(check_stock)]
STRAY: Any = Resolve(check_stock)
Listed = TypeAliasType("Listed", list[T], type_params=(T,))
Unused = TypeAliasType("Unused", bool, type_params=(T,))


class Box(BaseModel, Generic[T]):
    content: Unused[T]


def takes(hint: Any) -> Callable[..., Any]:
    async def sell(title: str, stock: Any) -> None: ...

    sell.__annotations__["stock"] = hint
    return sell


@everywhere
@pytest.mark.parametrize(
    ("hint", "where"),
    [
        ("Marked | None", "inside a union or container"),
        (dict[str, list[tuple[Marked | None, int]]], "inside a union or container"),
        (Unused[Marked], "in a type argument that the alias Unused does not use"),
        (Box[Marked], "in a type argument that the alias Unused does not use"),
    ],
    ids=["union", "deep", "unused by an alias", "unused by a model"],
)
async def test_a_marker_inside_a_type_is_refused_with_its_place(position: Position, hint: Any, where: str) -> None:
    fn = takes(hint)
    error = await refusal(position, fn)

    fault = error.faults[0]
    assert fault.problem == f"sell: parameter 'stock' has a `Resolve` {where}, where it has no effect"
    assert fault.fix == "mark the parameter itself: stock: Annotated[..., Resolve(fn)]"
    assert fault.place == line_of(fn)


# In fields of structured arguments


class AsModelDefault(BaseModel):
    stock: Stock = STRAY


class LateModel(BaseModel):
    """Not complete when it is defined, as models in a file often are: what it names comes further down."""

    stock: "Annotated[DefinedLater, Resolve(check_stock)]"


class DefinedLater(Stock):
    pass


class Extra(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Marked]  # pyright: ignore[reportIncompatibleVariableOverride] - pydantic's own way


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
class AsDataclassFactory:
    stock: Any = dataclasses.field(default_factory=STRAY)


@dataclass(slots=True)
class AsSlotDefault:
    stock: Any = STRAY


@dataclass
class Crate(Generic[T]):
    inside: T


@dataclass
class OnBase(Crate[Marked]):
    label: str = ""


def as_pydantic_field_default() -> type[Any]:
    """Made anew for every test: pydantic rewrites such defaults in place when it meets the class."""
    stray: Any = Field(default=STRAY)

    @dataclass
    class Basket:
        stock: Any = stray

    return Basket


class AsKeyDefault(TypedDict):
    stock: Annotated[Any, Field(default=STRAY)]


class InText(TypedDict):
    stock: Annotated[bool, ["Resolve(check_stock)"]]


class AsNamedTupleDefault(NamedTuple):
    stock: Any = STRAY


class Deeper(BaseModel):
    baskets: dict[str, list[OnDataclass]]


@dataclass
class Deepest:
    below: Deeper | None
    again: "Deepest | None" = None


STRUCTURES = [
    AsModelDefault,
    LateModel,
    Extra,
    OnLateDataclass,
    OnKeywordField,
    AsDataclassFactory,
    AsSlotDefault,
    OnBase,
    as_pydantic_field_default,
    AsKeyDefault,
    InText,
    AsNamedTupleDefault,
    Deepest,
]


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.__name__)
async def test_a_marker_in_a_field_of_an_argument_is_refused(structure: Any) -> None:
    error = await refusal(as_tool, takes(structure if isinstance(structure, type) else structure()))

    (fault,) = error.faults
    assert "parameter 'stock' has a `Resolve` " in fault.problem


@everywhere
async def test_the_field_that_holds_the_marker_is_named(position: Position) -> None:
    error = await refusal(position, takes(list[OnDataclass] | None))

    assert "parameter 'stock' has a `Resolve` on field 'stock' of OnDataclass" in str(error)


Kept = Literal["kept"]


def test_a_type_without_markers_is_let_pass() -> None:
    class Tree(BaseModel):
        branches: "list[Tree]" = []
        kind: Kept = "kept"

    async def grow(tree: Tree, listed: Listed[int], box: Box[int]) -> None: ...

    as_tool(MCPServer("shop"), grow)


async def test_a_type_too_large_to_inspect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(misplaced_markers, "_MOST", 3)
    error = await refusal(as_tool, takes(dict[str, list[tuple[int, float]]]))
    assert "the type is too large to inspect" in str(error)


Ts = TypeVarTuple("Ts")
Many = TypeAliasType("Many", tuple[*Ts], type_params=(Ts,))
OneAndMany = TypeAliasType("OneAndMany", tuple[T, *Ts], type_params=(T, Ts))


@pytest.mark.parametrize("hint", [Many[int, str], OneAndMany[int, str, bool], list[Many[int]]], ids=str)
async def test_an_alias_of_many_types_without_a_marker_is_let_pass_or_beyond_pydantic(hint: Any) -> None:
    try:
        seen = str(await shown(takes(hint)))
    except InvalidSignature as error:
        seen = str(error)
    assert seen == "['title', 'stock']" or "parameter 'stock' takes " in seen


@pytest.mark.parametrize("hint", [Annotated[str, Field(pattern="(?=x)y")], Annotated[int, Field(multiple_of=0)]])
async def test_a_type_that_pydantic_cannot_build_is_a_fault(hint: Any) -> None:
    assert "JSON cannot represent" in str(await refusal(as_tool, takes(hint)))


async def test_an_alias_of_many_types_may_be_what_a_resolver_returns() -> None:
    async def many() -> Any:
        return 1, "one"

    assert await shown(takes(Annotated[Many[int, str], Resolve(many)])) == ["title"]


def with_a_local_name_as_text() -> Callable[..., Any]:
    class Inner(BaseModel):
        stock: Marked

    @dataclass
    class Outer:
        inner: "Inner"

    async def count(stock: Outer) -> int: ...

    return count


async def test_a_field_that_names_what_can_no_longer_be_read_is_refused_below_a_tool_too() -> None:
    count = with_a_local_name_as_text()

    async def sell(stock: Any, counted: Annotated[int, Resolve(count)]) -> None: ...

    error = await refusal(as_tool, sell)
    expected = (
        "parameter 'stock' of resolver 'count' uses a name that cannot be found: 'Inner' on field 'inner' of Outer"
    )
    assert expected in str(error)


async def test_a_field_that_names_what_can_no_longer_be_read_is_refused_in_a_tool() -> None:
    await refusal(as_tool, with_a_local_name_as_text())


async def consent() -> bool: ...


@dataclass
class ConsentInInit:
    consent: InitVar["Annotated[bool, Resolve(consent)]"]


async def test_a_marker_written_as_text_in_a_variable_of_a_dataclass_init_is_refused() -> None:
    async def sell(answer: ConsentInInit) -> None: ...

    error = await refusal(as_tool, sell)
    assert "has a `Resolve` on field 'consent' of ConsentInInit, where it has no effect" in str(error)
