"""Signatures that are refused: hints that cannot be evaluated, markers that are not one call, parameters nobody can fill.

Markers inside types and defaults: test_misplaced_markers.py. Markers that a signature hides: test_hidden_markers.py.
Every place a marker can stand in: test_generated_signatures.py.
"""

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType

from bespeak import Context, DeclinedElicitation, Elicit, InvalidSignature, ListRoots, MCPServer, Resolve, Sample
from tests.resolve.positions import (
    Position,
    as_resolver,
    as_tool,
    below_a_tool,
    everywhere,
    line_of,
    refusal,
    refused_once,
)

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


@pytest.mark.parametrize("hint", ["pytest.Missing", "list[", "Annotated[int, Resolve(check_stock, nonsense=1)]"])
async def test_a_hint_that_raises_anything_else_is_refused_too(hint: str) -> None:
    async def raising(title: str, price: Any) -> str: ...

    raising.__annotations__["price"] = hint
    error = await refusal(as_tool, raising)

    (fault,) = error.faults
    assert "raising: the hint of parameter 'price' cannot be evaluated: " in fault.problem
    assert fault.fix == "write a hint that Python can evaluate at run time"


# Not on the parameter itself


async def without_a_call(title: str, stock: Annotated[Stock, Resolve]) -> None: ...


async def twice(title: str, stock: Annotated[Stock, Resolve(check_stock), Resolve(recheck_stock)]) -> None: ...


async def twice_through_an_alias(title: str, stock: Annotated[Marked, Resolve(recheck_stock)]) -> None: ...


async def as_default(title: str, stock: Stock = STRAY) -> None: ...


async def as_default_unannotated(title: str, stock=STRAY) -> None: ...  # pyright: ignore[reportMissingParameterType] - on purpose


async def as_default_in_field(title: str, stock: Stock = STRAY_FIELD) -> None: ...


async def as_its_own_annotation(title: str, stock: Any) -> None: ...


as_its_own_annotation.__annotations__["stock"] = STRAY


async def as_text(title: str, stock: Annotated[Stock, "Resolve(check_stock)"]) -> None: ...


async def inside_a_list(title: str, stock: Annotated[Stock, [Resolve(check_stock)]]) -> None: ...


async def as_a_bare_function(title: str, stock: Annotated[Stock, check_stock]) -> None: ...


async def as_default_beside_a_marker(title: str, stock: Annotated[Stock, Resolve(recheck_stock)] = STRAY) -> None: ...


@everywhere
@pytest.mark.parametrize(
    ("fn", "problem"),
    [
        (without_a_call, "is marked with `Resolve` without a call"),
        (twice, "is marked with `Resolve` 2 times"),
        (twice_through_an_alias, "is marked with `Resolve` 2 times"),
        (as_default, "has `Resolve` as a default value"),
        (as_default_unannotated, "has `Resolve` as a default value"),
        (as_default_in_field, "has `Resolve` as a default value"),
        (as_its_own_annotation, "has `Resolve` as its annotation"),
        (as_text, "has a marker or a question written as text in its annotation"),
        (inside_a_list, "has `Resolve` inside another object in its annotation"),
        (as_a_bare_function, "has the bare function 'check_stock' in its annotation"),
        (as_default_beside_a_marker, "has `Resolve` as a default value"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_marker_that_is_not_one_call_in_annotated_is_refused(
    position: Position, fn: Callable[..., Any], problem: str
) -> None:
    await refused_once(position, fn, f"parameter 'stock' {problem}")


@everywhere
@pytest.mark.parametrize("value", [None, Elicit("Sure?", bool)], ids=["none", "a question"])
async def test_a_marker_that_names_nothing_callable_is_refused(position: Position, value: Any) -> None:
    async def names_no_function(title: str, stock: Annotated[Stock, Resolve(value)]) -> None: ...

    error = await refusal(position, names_no_function)

    (fault,) = error.faults
    assert fault.problem == "parameter 'stock' has a Resolve whose argument is not callable"
    assert fault.fix == "pass the function itself to Resolve, not its return value or a question"
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
    variadic = any("any positional" in problem or "any keyword" in problem for problem in problems)
    assert ("; if a decorator made this function, let it use functools.wraps" in str(error)) == variadic


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


# Return types that ask more than once, or cannot ask


class Consent(BaseModel):
    sure: bool


Either = TypeAliasType("Either", Elicit[Consent] | Elicit[Stock])


@below_a_tool
@pytest.mark.parametrize(
    "returns",
    [Elicit[Consent] | Elicit[Stock], Sample | ListRoots, Consent | Either],
    ids=["two forms", "sample and roots", "in an alias"],
)
async def test_more_than_one_question_in_a_return_type_is_refused(position: Position, returns: Any) -> None:
    async def asks_twice(title: str) -> Any: ...

    asks_twice.__annotations__["return"] = returns
    error = await refusal(position, asks_twice)

    problem = error.faults[0].problem
    assert problem.startswith("asks_twice: its return type names more than one question: ")
    assert error.faults[0].fix == "ask one question per resolver, and chain the resolvers"
    assert error.faults[0].place == line_of(asks_twice)


@below_a_tool
async def test_a_generator_that_asks_is_refused(position: Position) -> None:
    async def session(title: str) -> AsyncIterator[Consent | Elicit[Consent]]:
        yield Consent(sure=True)

    error = await refusal(position, session)

    assert error.faults[0].problem == "session: it is a generator, and a generator cannot ask"
    assert error.faults[0].fix == "ask in a resolver that the generator depends on"


# What has no end


def test_an_object_that_has_every_attribute_is_read_in_finite_time() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> "Proxy":
            return Proxy()

        def __call__(self, order: str) -> str: ...

    with pytest.raises(InvalidSignature, match="its signature cannot be read"):
        MCPServer("shop").add_tool(Proxy(), name="proxy")


def test_a_function_that_wraps_itself_is_refused() -> None:
    async def refund(order: str) -> str: ...

    refund.__wrapped__ = refund  # pyright: ignore[reportFunctionMemberAccess]
    with pytest.raises(InvalidSignature, match="its signature cannot be read"):
        MCPServer("shop").add_tool(refund)


# What a newcomer may write


def problem_of(fn: Callable[..., Any], **options: Any) -> str:
    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").add_tool(fn, name="tool", **options)
    return str(caught.value)


def test_the_official_sdks_marker_is_refused_and_the_fix_names_the_import() -> None:
    theirs = type("Resolve", (), {"__module__": "mcp.server.mcpserver"})

    async def sell(title: str, stock: Any) -> None: ...

    sell.__annotations__["stock"] = Annotated[Stock, theirs()]
    told = problem_of(sell)
    assert "parameter 'stock' is marked with the `Resolve` of the official SDK" in told
    assert "fix: import Resolve from bespeak" in told


@pytest.mark.parametrize("bound", [STRAY, Elicit("Sure?", bool), [STRAY]], ids=["marker", "question", "list"])
def test_a_marker_or_a_question_that_a_partial_binds_is_refused(bound: Any) -> None:
    async def sell(title: str, stock: Any) -> None: ...

    for partial in (functools.partial(sell, stock=bound), functools.partial(sell, bound)):
        assert "to a marker or a question" in problem_of(partial)


def test_a_bare_value_beside_outcomes_is_refused() -> None:
    async def ask() -> Elicit[int]: ...

    async def sell(copies: Annotated[int | DeclinedElicitation, Resolve(ask)]) -> None: ...

    assert "parameter 'copies' takes both a plain value and outcomes" in problem_of(sell)


def test_a_generator_behind_a_decorator_is_refused() -> None:
    @asynccontextmanager
    async def connection() -> AsyncGenerator[int]:
        yield 1

    async def sell(copies: Annotated[Any, Resolve(connection)]) -> None: ...

    told = problem_of(sell)
    assert "it is a generator behind a decorator" in told
    assert "remove the decorator: Bespeak opens and closes a plain generator itself" in told


def test_an_unbound_method_is_refused() -> None:
    class Shop:
        async def sell(self, title: str) -> None: ...

    told = problem_of(Shop.sell)
    assert "parameter 'self' would become an argument of the tool" in told
    assert "mcp.add_tool(thing.method)" in told


def test_a_tool_that_returns_a_question_is_refused() -> None:
    async def sell() -> str | Elicit[bool]: ...

    told = problem_of(sell)
    assert "sell returns Elicit[bool], which only a resolver may return" in told
    assert "ask in a resolver" in told
