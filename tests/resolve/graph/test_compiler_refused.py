"""Graphs that are refused: parameters that nobody fills, cycles, and markers beside questions made by hand (design 4)."""

from typing import Annotated, Any

import pytest
from mcp_types import CallToolResult, InputRequiredResult
from typing_extensions import TypeAliasType

from bespeak import Context, MCPServer, Resolve
from tests.resolve.positions import Position, as_tool, below_a_tool, everywhere, line_of, refusal


async def check_stock(title: str) -> int: ...


# Parameters that nobody fills


@below_a_tool
async def test_a_parameter_that_nobody_fills_is_refused_with_the_ways_to_fill_it(position: Position) -> None:
    async def price(amount: int) -> int: ...

    error = await refusal(position, price)

    (fault,) = error.faults
    assert fault.problem == "parameter 'amount' of resolver 'price' cannot be resolved: nothing fills it"
    assert fault.fix == (
        "use Annotated[..., Resolve(fn)], the Context, a default, or an argument of that name (arguments: title)"
    )
    assert fault.place == line_of(price)
    assert fault.drawing.endswith("└─ amount <- nothing")


@below_a_tool
async def test_a_near_miss_among_the_argument_names_is_suggested(position: Position) -> None:
    async def price(titel: str) -> int: ...

    error = await refusal(position, price)

    assert "fix: did you mean the argument 'title'?" in str(error)


async def test_without_arguments_the_message_says_so() -> None:
    async def price(amount: int) -> int: ...

    async def sell(price: Annotated[int, Resolve(price)]) -> None: ...

    assert "(arguments: none)" in str(await refusal(as_tool, sell))


async def test_a_resolver_does_not_get_a_resolved_parameter_by_its_name_alone() -> None:
    async def price(stock: int) -> int: ...

    async def sell(
        title: str, stock: Annotated[int, Resolve(check_stock)], price: Annotated[int, Resolve(price)]
    ) -> None: ...

    error = await refusal(as_tool, sell)

    (fault,) = error.faults
    assert fault.problem == "parameter 'stock' of resolver 'price' cannot be resolved: nothing fills it"
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

    assert "parameter 'context' of resolver 'price' cannot be resolved: nothing fills it" in str(error)


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
    cycle = fault.problem.removeprefix("cyclic dependency between resolvers: ").split(" -> ")
    assert set(cycle) == {"chicken", "egg", "nest"}
    assert cycle[0] == cycle[-1]
    assert fault.fix == "break the cycle at one of them"
    assert all(line_of(fn) in fault.drawing for fn in (chicken, egg, nest))


@everywhere
async def test_a_resolver_that_needs_itself_is_a_cycle(position: Position) -> None:
    error = await refusal(position, narcissus)

    assert [fault.problem for fault in error.faults] == ["cyclic dependency between resolvers: narcissus -> narcissus"]


async def test_a_resolver_taken_twice_on_different_paths_is_not_a_cycle() -> None:
    async def left(stock: Annotated[int, Resolve(check_stock)]) -> int: ...

    async def right(stock: Annotated[int, Resolve(check_stock)]) -> int: ...

    async def sell(title: str, a: Annotated[int, Resolve(left)], b: Annotated[int, Resolve(right)]) -> None: ...

    as_tool(MCPServer("shop"), sell)


# Questions made by hand


ByHand = TypeAliasType("ByHand", CallToolResult | InputRequiredResult)


@everywhere
@pytest.mark.parametrize("returns", [InputRequiredResult, str | InputRequiredResult, ByHand | None], ids=str)
async def test_a_marker_beside_questions_made_by_hand_is_refused(position: Position, returns: Any) -> None:
    async def asks_by_hand(title: str, stock: Annotated[int, Resolve(check_stock)]) -> Any: ...

    asks_by_hand.__annotations__["return"] = returns
    error = await refusal(position, asks_by_hand)

    (fault,) = error.faults
    assert "has `Resolve` parameters and also returns `InputRequiredResult`" in fault.problem
    assert fault.fix == "ask everything in resolvers, or everything by hand"
    assert fault.place == line_of(asks_by_hand)
