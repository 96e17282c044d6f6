"""Graphs that are refused: gaps, cycles, questions where they cannot be, options that conflict, keys (design 4)."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, TypeVar

import pytest
from mcp_types import CallToolResult, CreateMessageResult, InputRequiredResult
from pydantic import BaseModel
from typing_extensions import TypeAliasType

from bespeak import Context, Elicit, InvalidSignature, ListRoots, MCPServer, Resolve, Sample
from tests.resolve.positions import Position, as_tool, below_a_tool, everywhere, line_of, refusal

T = TypeVar("T")


class Consent(BaseModel):
    sure: bool


class Address(BaseModel):
    street: str


async def check_stock(title: str) -> int: ...


async def consent(title: str) -> Consent | Elicit[Consent]: ...


def refused(fn: Callable[..., Any]) -> InvalidSignature:
    """The error of registering a tool, for what needs no position."""
    with pytest.raises(InvalidSignature) as caught:
        as_tool(MCPServer("shop"), fn)
    return caught.value


# Parameters that nobody fills


@below_a_tool
async def test_a_parameter_that_nobody_fills_is_refused_with_the_ways_to_fill_it(position: Position) -> None:
    async def price(amount: int) -> int: ...

    error = await refusal(position, price)

    (fault,) = error.faults
    assert fault.problem == "parameter 'amount' of resolver 'price' is filled by nobody"
    assert fault.fix == (
        "use Annotated[..., Resolve(fn)], the Context, a default, or an argument of that name (there are: title)"
    )
    assert fault.place == line_of(price)
    assert fault.drawing.endswith("└─ amount <- nobody")


@below_a_tool
async def test_a_near_miss_among_the_argument_names_is_suggested(position: Position) -> None:
    async def price(titel: str) -> int: ...

    error = await refusal(position, price)

    assert "fix: did you mean the argument 'title'?" in str(error)


def test_without_arguments_the_message_says_so() -> None:
    async def price(amount: int) -> int: ...

    async def sell(price: Annotated[int, Resolve(price)]) -> None: ...

    assert "(there are: none)" in str(refused(sell))


async def test_a_resolver_does_not_get_a_resolved_parameter_by_its_name_alone() -> None:
    async def price(stock: int) -> int: ...

    async def sell(
        title: str, stock: Annotated[int, Resolve(check_stock)], price: Annotated[int, Resolve(price)]
    ) -> None: ...

    error = await refusal(as_tool, sell)

    (fault,) = error.faults
    assert fault.problem == "parameter 'stock' of resolver 'price' is filled by nobody"
    assert fault.fix == "'stock' is itself resolved: mark it here too, Annotated[..., Resolve(check_stock)]"


async def test_a_default_for_what_the_tool_resolves_is_refused() -> None:
    async def charge(title: str, stock: int = 0) -> int: ...

    async def sell(
        title: str, stock: Annotated[int, Resolve(check_stock)], charged: Annotated[int, Resolve(charge)]
    ) -> None: ...

    (fault,) = (await refusal(as_tool, sell)).faults
    assert "has a resolved parameter of that name" in fault.problem
    assert fault.fix == "'stock' is itself resolved: mark it here too, Annotated[..., Resolve(check_stock)]"


async def test_a_resolver_does_not_get_the_context_by_its_name_alone() -> None:
    async def price(context) -> int: ...  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType] - unannotated on purpose

    async def sell(context: Context, price: Annotated[int, Resolve(price)]) -> None: ...  # pyright: ignore[reportUnknownArgumentType] - see above

    error = await refusal(as_tool, sell)

    assert "parameter 'context' of resolver 'price' is filled by nobody" in str(error)


# Cycles


async def chicken(title: str, hatched: "FromEgg") -> int: ...


async def egg(kept: "FromNest") -> int: ...


async def nest(laid: Annotated[int, Resolve(chicken)]) -> int: ...


async def narcissus(mirror: "FromHimself") -> int: ...


FromEgg = Annotated[int, Resolve(egg)]
FromNest = Annotated[int, Resolve(nest)]
FromHimself = Annotated[int, Resolve(narcissus)]


@everywhere
async def test_a_cycle_is_refused_and_all_its_nodes_are_named(position: Position) -> None:
    error = await refusal(position, chicken)

    (fault,) = error.faults
    cycle = fault.problem.removeprefix("resolvers depend on each other: ").split(" -> ")
    assert set(cycle) == {"chicken", "egg", "nest"}
    assert cycle[0] == cycle[-1]
    assert fault.fix == "break the cycle at one of them"
    assert all(line_of(fn) in fault.drawing for fn in (chicken, egg, nest))


@everywhere
async def test_a_resolver_that_needs_itself_is_a_cycle(position: Position) -> None:
    error = await refusal(position, narcissus)

    assert [fault.problem for fault in error.faults] == ["resolvers depend on each other: narcissus -> narcissus"]


async def test_a_resolver_taken_twice_on_different_paths_is_not_a_cycle() -> None:
    async def left(stock: Annotated[int, Resolve(check_stock)]) -> int: ...

    async def right(stock: Annotated[int, Resolve(check_stock)]) -> int: ...

    async def sell(title: str, a: Annotated[int, Resolve(left)], b: Annotated[int, Resolve(right)]) -> None: ...

    as_tool(MCPServer("shop"), sell)


# Questions where they cannot be

Either = TypeAliasType("Either", Elicit[Consent] | Elicit[Address])


@below_a_tool
@pytest.mark.parametrize(
    "returns",
    [Elicit[Consent] | Elicit[Address], Sample | ListRoots, Consent | Either],
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


ByHand = TypeAliasType("ByHand", CallToolResult | InputRequiredResult)


@everywhere
@pytest.mark.parametrize("returns", [InputRequiredResult, str | InputRequiredResult, ByHand | None], ids=str)
async def test_a_marker_beside_questions_made_by_hand_is_refused(position: Position, returns: Any) -> None:
    async def asks_by_hand(title: str, stock: Annotated[int, Resolve(check_stock)]) -> Any: ...

    asks_by_hand.__annotations__["return"] = returns
    error = await refusal(position, asks_by_hand)

    (fault,) = error.faults
    assert "has `Resolve` parameters and returns `InputRequiredResult` too" in fault.problem
    assert fault.fix == "ask everything in resolvers, or everything by hand"
    assert fault.place == line_of(asks_by_hand)


# Options


@everywhere
@pytest.mark.parametrize("options", [{"once": True}, {"guard": True}, {"timeout": 2.0}, {"key": "stock"}], ids=str)
async def test_one_function_with_different_options_is_refused(position: Position, options: dict[str, Any]) -> None:
    async def price(stock: Annotated[int, Resolve(check_stock, **options)]) -> int: ...

    async def sell(
        title: str, stock: Annotated[int, Resolve(check_stock)], price: Annotated[int, Resolve(price)]
    ) -> None: ...

    error = await refusal(position, sell)

    (fault,) = error.faults
    assert fault.problem == "resolver 'check_stock' is marked with different options in one graph"
    assert fault.fix == "give every Resolve of it the same key, once, guard and timeout"
    assert line_of(price) in fault.drawing


async def asks(title: str) -> int | Elicit[int]: ...


async def says_nothing(title: str): ...


async def says_any(title: str) -> Any: ...


async def says_variable(title: T) -> T: ...  # pyright: ignore[reportInvalidTypeVarUse] - says nothing


async def samples(title: str) -> CreateMessageResult | Sample: ...


ASKING = [asks, says_nothing, says_any, says_variable, samples]


def generates(title: str) -> Iterator[int]:
    yield 1


async def gives_a_lock(title: str) -> threading.Event: ...


class Opaque:
    def __init__(self, title: str) -> None: ...


def using(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A consumer that takes `fn` with these options."""

    async def consumer(title: str, taken: Annotated[object, Resolve(fn, **options)]) -> int: ...

    return consumer


@everywhere
@pytest.mark.parametrize(
    ("fn", "problem"),
    [
        *((fn, "may ask; the answer to a question is kept anyway") for fn in ASKING),
        (generates, "is a generator, whose value cannot outlive the round"),
        (gives_a_lock, "returns Event, which cannot be serialised"),
        (Opaque, "returns Opaque, which cannot be serialised"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_once_is_refused_where_the_value_cannot_be_kept(
    position: Position, fn: Callable[..., Any], problem: str
) -> None:
    error = await refusal(position, using(fn, once=True))

    (fault,) = error.faults
    assert fault.problem.startswith(f"resolver {fn.__name__!r} is marked once=True but ")
    assert fault.problem.endswith(problem)
    assert fault.fix == "drop once=True, or return a plain value, model or dataclass"


@everywhere
@pytest.mark.parametrize("fn", ASKING, ids=lambda fn: fn.__name__)
async def test_a_guard_that_may_ask_is_refused(position: Position, fn: Callable[..., Any]) -> None:
    error = await refusal(position, using(fn, guard=True))

    (fault,) = error.faults
    assert fault.problem == f"guard {fn.__name__!r} may ask; guards run before anybody is asked"
    assert fault.fix == "annotate what it returns without a question, or drop guard=True"


@everywhere
async def test_a_guard_that_depends_on_one_that_may_ask_is_refused(position: Position) -> None:
    async def between(consent: Annotated[Consent, Resolve(consent)]) -> int: ...

    async def allowed(between: Annotated[int, Resolve(between)]) -> None: ...

    error = await refusal(position, using(allowed, guard=True))

    (fault,) = error.faults
    assert fault.problem == "guard 'allowed' depends on 'consent', which may ask; guards run before anybody is asked"
    assert fault.place == line_of(allowed)


@pytest.mark.parametrize("timeout", ["2s", 0, float("nan")])
async def test_a_timeout_is_a_positive_number_of_seconds(timeout: Any) -> None:
    error = await refusal(as_tool, using(check_stock, timeout=timeout))

    assert "resolver 'check_stock' has a timeout that is not a positive number of seconds" in str(error)


# Keys


@pytest.mark.parametrize("key", ["\ud800", "a\nb"])
async def test_a_key_that_is_not_plain_text_is_refused(key: str) -> None:
    assert "the key of a question is no text" in str(await refusal(as_tool, using(check_stock, key=key)))


@everywhere
@pytest.mark.parametrize("first", ["confirm", None], ids=["an author's", "a derived"])
async def test_a_key_equal_to_another_key_is_refused(position: Position, first: str | None) -> None:
    second = first or f"{__name__}:check_stock"

    async def both(
        title: str,
        stock: Annotated[int, Resolve(check_stock, key=first)],
        consent: Annotated[Consent, Resolve(consent, key=second)],
    ) -> int: ...

    error = await refusal(position, both)

    (fault,) = error.faults
    assert fault.problem == f"the key {second!r} of 'consent' is also the key of 'check_stock'"
    assert fault.fix == "give each question a key of its own"


@everywhere
async def test_an_empty_key_is_refused(position: Position) -> None:
    error = await refusal(position, using(consent, key=""))

    assert [fault.problem for fault in error.faults] == ["the key of a question is empty"]
    assert error.faults[0].fix == "give it a name"
