"""All faults of a consumer are reported at once, each with its place, a drawing of the path and a fix (design 4)."""

from typing import Annotated

import pytest
from pydantic import BaseModel

from bespeak import Elicit, InvalidSignature, MCPServer, Resolve
from tests.resolve.positions import Position, as_tool, everywhere, refusal


async def check_stock(title: str) -> int:
    return len(title)


class Inner(BaseModel):
    street: str


class Nested(BaseModel):
    address: Inner


async def price(amount: int, titel: str) -> int: ...


async def consent(title: str, price: Annotated[str, Resolve(price)]) -> Nested | Elicit[Nested]: ...


async def sell_everything(
    title: int,
    basket: list[Annotated[int, Resolve(check_stock)]],
    consent: Annotated[Nested, Resolve(consent, once=True, guard=True)],
    stock: Annotated[int, Resolve] = 0,
) -> None: ...


ALL = [
    ("sell_everything: parameter 'basket' has a `Resolve` inside a union or container", "mark the parameter itself"),
    ("sell_everything: parameter 'stock' is marked with `Resolve` without a call", "write Resolve(fn)"),
    ("parameter 'amount' of resolver 'price' cannot be resolved: nothing fills it", "an argument of that name"),
    (
        "parameter 'titel' of resolver 'price' cannot be resolved: nothing fills it",
        "did you mean the argument 'title'?",
    ),
    (
        "parameter 'title' of resolver 'consent' takes str, but the argument of that name is int",
        "make the two types agree",
    ),
    ("resolver 'price' returns int, but parameter 'price' takes str", "make the two types agree"),
    ("resolver 'consent' is marked once=True but may ask", "remove once=True"),
    ("guard 'consent' may ask", "remove guard=True"),
    ("resolver 'consent' is marked guard=True and once=True; a guard runs in every round", "remove one of the two"),
    ("the form is not allowed: field 'address' of Nested is nested", "ask for its fields one by one"),
]


async def test_all_faults_of_a_consumer_are_reported_at_once() -> None:
    error = await refusal(as_tool, sell_everything)

    assert str(error).startswith("cannot register 'tool': 10 faults\n\n1. ")
    assert len(error.faults) == len(ALL)
    for problem, fix in ALL:
        (fault,) = [one for one in error.faults if one.problem.startswith(problem)]
        assert fix in fault.fix


async def test_every_fault_is_reported_with_its_place_a_drawing_of_the_path_and_a_fix() -> None:
    error = await refusal(as_tool, sell_everything)

    (fault,) = [one for one in error.faults if "'titel'" in one.problem]
    here, asked, root = (f"{__file__}:{fn.__code__.co_firstlineno}" for fn in (price, consent, sell_everything))
    assert str(fault).splitlines() == [
        "parameter 'titel' of resolver 'price' cannot be resolved: nothing fills it",
        f"    at {here}",
        f"    sell_everything   {root}",
        f"    └─ consent <- consent   {asked}",
        f"       └─ price <- price   {here}",
        "          └─ titel <- nothing",
        "    fix: did you mean the argument 'title'?",
    ]
    for one in error.faults:
        assert one.drawing.startswith(f"    sell_everything   {root}")
        assert one.place in (here, asked, root)


@everywhere
async def test_a_fault_of_a_resolver_with_several_consumers_is_reported_once(position: Position) -> None:
    async def broken(amount: int) -> int: ...

    async def left(broken: Annotated[int, Resolve(broken)]) -> int: ...

    async def both(title: str, broken: Annotated[int, Resolve(broken)], left: Annotated[int, Resolve(left)]) -> int: ...

    error = await refusal(position, both)

    assert [fault.problem for fault in error.faults] == [
        "parameter 'amount' of resolver 'broken' cannot be resolved: nothing fills it"
    ]


async def test_one_refused_tool_leaves_the_others_registered() -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def sell(title: str) -> None: ...

    with pytest.raises(InvalidSignature):
        mcp.add_tool(sell_everything)

    assert [tool.name for tool in await mcp.list_tools()] == ["sell"]
