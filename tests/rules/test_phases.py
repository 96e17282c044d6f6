"""A call through its rounds, end to end (design 5 and 6): guards every round, phase two once, `once` values kept."""

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, computed_field

from bespeak import Elicit, InvalidSignature, MCPServer, Resolve, ToolError
from tests.answering import DECLINE, Person, accept, text, unresolved
from tests.conftest import Connect


class Consent(BaseModel):
    ok: bool


class Chain:
    """A tool with three questions, each resting on the one before, and resolvers that count their runs."""

    def __init__(self) -> None:
        self.runs = Counter[str]()
        self.allowed = True
        self.mcp = MCPServer("Chain")
        self.mcp.add_tool(self.tool(), name="chain")

    def tool(self) -> Callable[..., Any]:
        runs = self.runs

        async def guard() -> None:
            runs["guard"] += 1
            if not self.allowed:
                raise ToolError("not allowed any more")

        async def price() -> int:
            runs["price"] += 1
            return 41 + runs["price"]

        async def stock() -> int:
            runs["stock"] += 1
            return 7

        async def first(price: Annotated[int, Resolve(price, once=True)]) -> Consent | Elicit[Consent]:
            runs["first"] += 1
            return Elicit(f"Pay {price}?", Consent)

        async def second(first: Annotated[Consent, Resolve(first)]) -> Consent | Elicit[Consent]:
            runs["second"] += 1
            return Elicit("Really?", Consent)

        async def third(second: Annotated[Consent, Resolve(second)]) -> Consent | Elicit[Consent]:
            runs["third"] += 1
            return Elicit("Really, really?", Consent)

        async def above(third: Annotated[Consent, Resolve(third)]) -> str:
            runs["above"] += 1
            return "above"

        async def body(
            guard: Annotated[None, Resolve(guard, guard=True)],
            price: Annotated[int, Resolve(price, once=True)],
            stock: Annotated[int, Resolve(stock)],
            third: Annotated[Consent, Resolve(third)],
            above: Annotated[str, Resolve(above)],
        ) -> str:
            runs["body"] += 1
            return f"{price} {stock} {third.ok}"

        return body


def yes(*names: str) -> Person:
    return Person({name: accept(ok=True) for name in names})


async def test_in_a_call_of_four_rounds_guards_run_in_each_and_phase_two_and_once_resolvers_run_once(
    connect: Connect,
) -> None:
    chain, person = Chain(), yes("first", "second", "third")
    async with connect(chain.mcp, elicitation_callback=person) as client:
        result = await client.call_tool("chain")
    assert text(result) == "42 7 True"
    assert person.asked == ["first", "second", "third"]
    assert chain.runs == {
        "guard": 4,
        "price": 1,
        "stock": 1,
        "first": 4,
        "second": 3,
        "third": 2,
        "above": 1,
        "body": 1,
    }


async def test_phase_two_and_once_values_are_computed_anew_in_the_next_call(in_memory: Connect) -> None:
    chain, person = Chain(), yes("first", "second", "third")
    async with in_memory(chain.mcp, elicitation_callback=person) as client:
        await client.call_tool("chain")
        result = await client.call_tool("chain")
    assert text(result) == "43 7 True"
    assert (chain.runs["guard"], chain.runs["stock"], chain.runs["price"]) == (8, 2, 2)


@pytest.mark.asking_revisions
async def test_a_decline_on_the_way_runs_no_phase_two(in_memory: Connect) -> None:
    chain = Chain()
    person = Person({"first": accept(ok=True), "second": DECLINE})
    async with in_memory(chain.mcp, elicitation_callback=person) as client:
        result = await client.call_tool("chain")
    assert result.is_error
    assert text(result) == f"Error executing tool chain: {unresolved('second', 'decline')}"
    assert {"stock", "above", "body"}.isdisjoint(chain.runs)


@pytest.mark.every_revision
async def test_a_guard_that_fails_in_the_first_round_means_nobody_is_asked(connect: Connect) -> None:
    chain, person = Chain(), yes()
    chain.allowed = False
    async with connect(chain.mcp, elicitation_callback=person) as client:
        result = await client.call_tool("chain")
    assert result.is_error
    assert text(result) == "Error executing tool chain: not allowed any more"
    assert person.asked == []
    assert chain.runs == {"guard": 1}


async def test_a_guard_that_fails_in_a_later_round_is_not_final_and_the_round_may_be_sent_again(
    in_memory: Connect,
) -> None:
    chain = Chain()
    async with in_memory(chain.mcp, elicitation_callback=yes("second", "third")) as client:
        asking: Any = await client.session.call_tool("chain", allow_input_required=True)
        answers = {key: {"action": "accept", "content": {"ok": True}} for key in asking.input_requests}
        retry: dict[str, Any] = {"input_responses": answers, "request_state": asking.request_state}
        chain.allowed = False
        refused = await client.call_tool("chain", **retry)
        chain.allowed = True
        result = await client.call_tool("chain", **retry)
    assert text(refused) == "Error executing tool chain: not allowed any more"
    assert text(result) == "42 7 True"


async def test_independent_questions_travel_in_one_round(connect: Connect) -> None:
    mcp, person = MCPServer("Paint"), yes("size", "colour")
    rounds: list[int] = []

    async def count() -> None:
        rounds.append(1)

    async def size() -> Elicit[Consent]:
        return Elicit("Large?", Consent)

    async def colour() -> Elicit[Consent]:
        return Elicit("Red?", Consent)

    @mcp.tool()
    async def paint(
        counted: Annotated[None, Resolve(count, guard=True)],
        size: Annotated[Consent, Resolve(size)],
        colour: Annotated[Consent, Resolve(colour)],
    ) -> str:
        return f"{size.ok} {colour.ok}"

    async with connect(mcp, elicitation_callback=person) as client:
        assert text(await client.call_tool("paint")) == "True True"
    assert sorted(person.asked) == ["colour", "size"]
    assert len(rounds) == 2


# Once


class Plain(BaseModel):
    amount: int


class Aliased(BaseModel):
    amount: int = Field(alias="unitAmount")


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    amount: Decimal
    day: date


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    amount: int

    @computed_field
    @property
    def doubled(self) -> int:
        return self.amount * 2


@dataclass
class Record:
    amount: int
    at: datetime


NUMBERS = itertools.count(1)


async def plain() -> Plain:
    return Plain(amount=next(NUMBERS))


async def aliased() -> Aliased:
    return Aliased(unitAmount=next(NUMBERS))


async def strict() -> Strict:
    return Strict(amount=Decimal(next(NUMBERS)), day=date(2026, 7, 28))


async def closed() -> Closed:
    return Closed(amount=next(NUMBERS))


async def record() -> Record:
    return Record(next(NUMBERS), datetime(2026, 7, 28, tzinfo=UTC))


async def by_number() -> dict[int, tuple[int, ...]]:
    return {1: (next(NUMBERS),)}


def in_thread() -> set[int]:
    return {next(NUMBERS)}


async def unbounded() -> tuple[int, float]:
    return next(NUMBERS), float("inf")


@pytest.mark.parametrize("price", [plain, aliased, strict, closed, record, by_number, in_thread, unbounded])
async def test_a_once_value_is_the_same_in_every_round_whatever_its_type(
    in_memory: Connect, price: Callable[..., Any]
) -> None:
    mcp, shown = MCPServer("Shop"), list[Any]()

    async def confirm(price: Annotated[object, Resolve(price, once=True)]) -> Consent | Elicit[Consent]:
        shown.append(price)
        return Elicit("Really?", Consent)

    @mcp.tool()
    async def pay(price: Annotated[object, Resolve(price, once=True)], ok: Annotated[Consent, Resolve(confirm)]) -> str:
        shown.append(price)
        return "paid"

    async with in_memory(mcp, elicitation_callback=yes("confirm")) as client:
        await client.call_tool("pay")
    assert len(shown) == 3
    assert shown[0] == shown[1] == shown[2]


class Excluding(BaseModel):
    amount: int = Field(default=0, exclude=True)


async def secret() -> SecretStr:
    return SecretStr("token")


async def excluding() -> Excluding:
    return Excluding(amount=5)


@pytest.mark.every_revision
@pytest.mark.parametrize("price", [secret, excluding])
async def test_a_once_value_that_does_not_survive_its_serialisation_is_never_replaced_by_what_does(
    in_memory: Connect, price: Callable[..., Any]
) -> None:
    mcp, shown = MCPServer("Shop"), list[Any]()

    async def confirm(price: Annotated[object, Resolve(price, once=True)]) -> Consent | Elicit[Consent]:
        shown.append(price)
        return Elicit("Really?", Consent)

    async def pay(ok: Annotated[Consent, Resolve(confirm)]) -> str:
        return "paid"

    with suppress(InvalidSignature):  # refusing it is as good as keeping it
        mcp.add_tool(pay)
        async with in_memory(mcp, elicitation_callback=yes("confirm")) as client:
            await client.call_tool("pay")
    assert shown in ([], [await price()] * 2)


@pytest.mark.every_revision
async def test_a_once_value_its_type_cannot_serialise_is_an_error_that_names_the_resolver(in_memory: Connect) -> None:
    mcp = MCPServer("Shop")

    async def declared() -> dict[str, object]:
        return {"price": object()}

    async def confirm(price: Annotated[object, Resolve(declared, once=True)]) -> Consent | Elicit[Consent]:
        return Elicit("Really?", Consent)

    @mcp.tool()
    async def pay(ok: Annotated[Consent, Resolve(confirm)]) -> str:
        return "paid"

    async with in_memory(mcp, elicitation_callback=yes()) as client:
        result = await client.call_tool("pay")
    assert text(result) == (
        "Error executing tool pay: resolver 'declared' returned a value that cannot be serialised by its return "
        "type, which once=True needs (pay -> ok -> confirm -> price -> declared)"
    )
