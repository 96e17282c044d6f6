"""A hint or marker that cannot be honoured is refused, on a tool and on resolvers at any depth (design 4, rules one and two)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import BaseModel, Field

from bespeak import Context, InvalidSignature, MCPServer, Resolve

if TYPE_CHECKING:
    from decimal import Decimal as Missing


class Stock(BaseModel):
    title: str = ""


async def check_stock(title: str) -> Stock:
    return Stock(title=title)


async def recheck_stock(title: str) -> Stock:
    return Stock(title=title)


Marked = Annotated[Stock, Resolve(check_stock)]
STRAY: Any = Resolve(check_stock)
STRAY_FIELD: Any = Field(default=STRAY)
STRAY_FACTORY: Any = Field(default_factory=STRAY)


# Where a function can stand. `refusal` and `POSITIONS` serve the other tests of invalid graphs too.


def as_tool(mcp: MCPServer[Any], fn: Callable[..., Any]) -> None:
    mcp.add_tool(fn, name="tool")


def as_resolver(mcp: MCPServer[Any], fn: Callable[..., Any]) -> None:
    async def tool(title: str, found: Annotated[object, Resolve(fn)]) -> None: ...

    mcp.add_tool(tool)


def as_nested_resolver(mcp: MCPServer[Any], fn: Callable[..., Any]) -> None:
    async def middle(found: Annotated[object, Resolve(fn)]) -> int: ...

    async def tool(title: str, counted: Annotated[int, Resolve(middle)]) -> None: ...

    mcp.add_tool(tool)


Position = Callable[[MCPServer[Any], Callable[..., Any]], None]
POSITIONS = [as_tool, as_resolver, as_nested_resolver]
RESOLVERS = [as_resolver, as_nested_resolver]
everywhere = pytest.mark.parametrize("position", POSITIONS)


async def refusal(position: Position, fn: Callable[..., Any]) -> InvalidSignature:
    """The error that registering raises; nothing of the consumer may show afterwards."""
    mcp = MCPServer("shop")
    with pytest.raises(InvalidSignature) as caught:
        position(mcp, fn)
    assert await mcp.list_tools() == []
    return caught.value


def line_of(fn: Callable[..., Any]) -> str:
    return f"{__file__}:{fn.__code__.co_firstlineno}"


async def refused_once(position: Position, fn: Callable[..., Any], problem: str) -> None:
    """Refused for this one fault, which says where it is and what to do."""
    error = await refusal(position, fn)
    assert [fault.problem for fault in error.faults] == [f"{fn.__name__}: {problem}"]
    (fault,) = error.faults
    assert fault.place == line_of(fn)
    assert line_of(fn) in fault.drawing
    assert fault.fix
    assert str(fault) in str(error)


# Hints that cannot be evaluated


async def missing_parameter(title: str, price: "Missing") -> str: ...


async def missing_inside(title: str, price: "list[Missing] | None" = None) -> str: ...


async def missing_under_a_marker(title: str, price: "Annotated[Missing, Resolve(check_stock)]") -> str: ...


@everywhere
@pytest.mark.parametrize("fn", [missing_parameter, missing_inside, missing_under_a_marker], ids=lambda fn: fn.__name__)
async def test_a_parameter_whose_hint_names_nothing_is_refused_with_its_place(
    position: Position, fn: Callable[..., Any]
) -> None:
    error = await refusal(position, fn)

    (fault,) = error.faults
    assert (
        fault.problem
        == f"{fn.__name__}: the hint of parameter 'price' names 'Missing', which does not exist at run time"
    )
    assert fault.fix == "import Missing outside `if TYPE_CHECKING:`, or define it before the function is registered"
    assert fault.place == line_of(fn)
    assert fault.drawing.endswith("─ price")


async def missing_return(title: str, stock: Marked) -> "Missing": ...


@everywhere
async def test_a_return_type_that_names_nothing_is_refused_with_its_place(position: Position) -> None:
    await refused_once(position, missing_return, "the return type names 'Missing', which does not exist at run time")


@everywhere
@pytest.mark.parametrize(
    "hint", ["pytest.Missing", "list[", "Annotated[int, Resolve(check_stock, nonsense=1)]", "1 / 0"]
)
async def test_a_hint_that_raises_anything_else_is_refused_too(position: Position, hint: str) -> None:
    async def raising(title: str, price: Any) -> str: ...

    raising.__annotations__["price"] = hint
    error = await refusal(position, raising)

    (fault,) = error.faults
    assert "raising: the hint of parameter 'price' cannot be evaluated: " in fault.problem
    assert fault.fix == "write a hint that Python can evaluate at run time"


# Not on the parameter itself


async def without_a_call(title: str, stock: Annotated[Stock, Resolve]) -> None: ...


async def twice(title: str, stock: Annotated[Stock, Resolve(check_stock), Resolve(recheck_stock)]) -> None: ...


async def twice_through_an_alias(title: str, stock: Annotated[Marked, Resolve(recheck_stock)]) -> None: ...


async def the_same_twice(title: str, stock: Annotated[Marked, Resolve(check_stock)]) -> None: ...


async def as_default(title: str, stock: Stock = STRAY) -> None: ...


async def as_default_unannotated(title: str, stock=STRAY) -> None: ...  # pyright: ignore[reportMissingParameterType] - on purpose


async def as_default_without_a_call(title: str, stock: Any = Resolve) -> None: ...


async def as_default_in_field(title: str, stock: Stock = STRAY_FIELD) -> None: ...


async def as_factory_in_field(title: str, stock: Stock = STRAY_FACTORY) -> None: ...


async def as_default_in_annotated_field(title: str, stock: Annotated[Stock, Field(default=STRAY)]) -> None: ...


async def as_default_beside_a_marker(title: str, stock: Annotated[Stock, Resolve(recheck_stock)] = STRAY) -> None: ...


@everywhere
@pytest.mark.parametrize(
    ("fn", "problem"),
    [
        (without_a_call, "is marked with `Resolve` without a call"),
        (twice, "is marked with `Resolve` 2 times"),
        (twice_through_an_alias, "is marked with `Resolve` 2 times"),
        (the_same_twice, "is marked with `Resolve` 2 times"),
        (as_default, "has `Resolve` as a default value"),
        (as_default_unannotated, "has `Resolve` as a default value"),
        (as_default_without_a_call, "has `Resolve` as a default value"),
        (as_default_in_field, "has `Resolve` as a default value"),
        (as_factory_in_field, "has `Resolve` as a default value"),
        (as_default_in_annotated_field, "has `Resolve` as a default value"),
        (as_default_beside_a_marker, "has `Resolve` as a default value"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_marker_that_is_not_one_call_in_annotated_is_refused(
    position: Position, fn: Callable[..., Any], problem: str
) -> None:
    await refused_once(position, fn, f"parameter 'stock' {problem}")


@everywhere
@pytest.mark.parametrize("value", [None, "check_stock", Stock()], ids=["none", "text", "object"])
async def test_a_marker_that_names_nothing_callable_is_refused(position: Position, value: Any) -> None:
    async def names_no_function(title: str, stock: Annotated[Stock, Resolve(value)]) -> None: ...

    error = await refusal(position, names_no_function)

    (fault,) = error.faults
    assert fault.problem == "parameter 'stock' names something that cannot be called"
    assert fault.fix == "write Resolve(fn) with the function itself: not what it returns, and not a question"
    assert fault.place == line_of(names_no_function)


# Parameters that cannot be filled by name


async def positional_only(title: str, stock: Marked, /) -> None: ...


async def positional_context(context: Context, /, title: str) -> None: ...


async def any_positional(title: str, *titles: str) -> None: ...


async def any_keyword(title: str, **titles: str) -> None: ...


async def marked_positional(title: str, *titles: Annotated[str, Resolve(check_stock)]) -> None: ...


async def marked_keyword(title: str, **titles: Annotated[str, Resolve(check_stock)]) -> None: ...


@everywhere
@pytest.mark.parametrize(
    ("fn", "problems"),
    [
        (positional_only, {"parameter 'title' is positional-only", "parameter 'stock' is positional-only"}),
        (positional_context, {"parameter 'context' is positional-only"}),
        (any_positional, {"parameter 'titles' takes any positional arguments"}),
        (any_keyword, {"parameter 'titles' takes any keyword arguments"}),
        (marked_positional, {"parameter 'titles' takes any positional arguments"}),
        (marked_keyword, {"parameter 'titles' takes any keyword arguments"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_parameter_that_cannot_be_filled_by_name_is_refused(
    position: Position, fn: Callable[..., Any], problems: set[str]
) -> None:
    error = await refusal(position, fn)

    said = {fault.problem for fault in error.faults}
    assert {f"{fn.__name__}: {problem}, so it cannot be filled by name" for problem in problems} <= said
    assert "fix: make it an ordinary parameter" in str(error)


@everywhere
async def test_a_positional_only_parameter_with_a_default_is_refused_where_an_argument_has_its_name(
    position: Position,
) -> None:
    async def optional(title: str = "Dune", /) -> None: ...

    error = await refusal(position, optional)

    assert "parameter 'title' is positional-only" in str(error)


def test_a_positional_only_default_that_nobody_would_fill_is_left_alone() -> None:
    def limit(copies: int = 3, /) -> int:
        return copies

    as_resolver(MCPServer("shop"), limit)


@everywhere
@pytest.mark.parametrize("builtin", [dict, min], ids=["class", "function"])
async def test_a_callable_without_a_signature_is_refused(position: Position, builtin: Any) -> None:
    error = await refusal(position, builtin)

    assert f"{builtin.__name__}: its signature cannot be read: " in error.faults[0].problem
    assert error.faults[0].fix == "wrap it in a function with parameters"
