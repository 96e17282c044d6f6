"""Questions over several rounds (design section 5): attempts and notes, recorded outcomes, and pins."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from bespeak import Elicit, ElicitationResult, MCPServer, Resolve, Sample
from tests.answering import Person, unresolved
from tests.answering import accept as accepted
from tests.conftest import Connect
from tests.rules.raw_calls import accept, answer, asked, failed, message, opened, said, send


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def is_even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("must be even")
        return number


def even(attempts: int | None = None) -> MCPServer:
    mcp = MCPServer("numbers")

    async def ask() -> Elicit[Even]:
        return Elicit("A number?", Even) if attempts is None else Elicit("A number?", Even, attempts=attempts)

    @mcp.tool()
    async def take(even: Annotated[Even, Resolve(ask, key="even")]) -> str:
        return f"{even.number}"

    _ = take
    return mcp


# What the author's validators refuse


@pytest.mark.asking_revisions
async def test_a_slip_is_asked_again_with_the_validators_message_under_the_question(connect: Connect) -> None:
    person = Person({"even": [accepted(number=3), accepted(number=5), accepted(number=4)]})
    async with connect(even(), elicitation_callback=person) as client:
        result = await client.call_tool("take")
    assert not result.is_error
    assert person.messages == ["A number?", *["A number?\n\nnumber: must be even"] * 2]


@pytest.mark.asking_revisions
async def test_after_three_attempts_in_all_the_call_fails_with_the_validators_message(in_memory: Connect) -> None:
    person = Person({"even": accepted(number=3)})
    async with in_memory(even(), elicitation_callback=person) as client:
        result = await client.call_tool("take")
    assert person.asked == ["even"] * 3
    assert result.model_dump()["content"][0]["text"] == (
        "Error executing tool take: no valid answer to 'even' after 3 attempts: number: must be even"
    )


@pytest.mark.asking_revisions
@pytest.mark.parametrize(("attempts", "words"), [(1, "after 1 attempt:"), (2, "after 2 attempts:")])
async def test_the_author_sets_the_number_of_attempts(in_memory: Connect, attempts: int, words: str) -> None:
    person = Person({"even": accepted(number=3)})
    async with in_memory(even(attempts), elicitation_callback=person) as client:
        result = await client.call_tool("take")
    assert len(person.asked) == attempts
    assert words in result.model_dump()["content"][0]["text"]


@pytest.mark.asking_revisions
async def test_re_asking_is_not_drift_however_often(in_memory: Connect) -> None:
    person = Person({"even": [*[accepted(number=3)] * 8, accepted(number=8)]})
    async with in_memory(even(attempts=9), elicitation_callback=person) as client:
        result = await client.call_tool("take")
    assert not result.is_error
    assert len(person.asked) == 9


async def test_a_round_without_an_answer_uses_up_no_attempt(in_memory: Connect) -> None:
    async with opened(in_memory, even(attempts=2)) as client:
        result = await answer(client, "take", {"even": accept(number=3)})
        for _ in range(4):
            result = await send(client, "take", {}, result["requestState"])
            assert asked(result) == ["even"]
        assert said(await send(client, "take", {"even": accept(number=2)}, result["requestState"])) == "2"


async def test_breaking_the_form_uses_up_no_attempt(in_memory: Connect) -> None:
    async with opened(in_memory, even(attempts=1)) as client:
        state = (await send(client, "take"))["requestState"]
        assert "does not match the form" in failed(await send(client, "take", {"even": accept(number="3")}, state))
        assert said(await send(client, "take", {"even": accept(number=4)}, state)) == "4"


async def test_the_last_slip_is_final(in_memory: Connect) -> None:
    async with opened(in_memory, even(attempts=1)) as client:
        state = (await send(client, "take"))["requestState"]
        for _ in range(2):
            assert "no valid answer" in failed(await send(client, "take", {"even": accept(number=3)}, state))
        assert "takes no more answers" in failed(await send(client, "take", {"even": accept(number=4)}, state))


async def test_a_question_may_be_declined_after_a_slip(in_memory: Connect) -> None:
    async with opened(in_memory, even()) as client:
        again = await answer(client, "take", {"even": accept(number=3)})
        text = failed(await send(client, "take", {"even": {"action": "decline"}}, again["requestState"]))
    assert text == f"Error executing tool take: {unresolved('even', 'decline')}"


async def test_a_question_with_zero_attempts_is_an_error(in_memory: Connect) -> None:
    async with opened(in_memory, even(attempts=0)) as client:
        text = failed(await send(client, "take"))
    assert "resolver 'ask' returned a question that cannot be sent: attempts must be between 1 and 100" in text


LACKING: dict[str, tuple[Any, Any]] = {
    "schema": (Elicit, "Sure?"),
    "messages": (Sample, "Hello"),
    "max_tokens": (Sample, []),
}
WRITE_INSTEAD = {
    "schema": "it has no schema; say what is asked for, as in Elicit('Sure?', bool)",
    "messages": "its messages are a string; write Sample([SamplingMessage(",
    "max_tokens": "it has no max_tokens; say how long the message may be, as in Sample(messages, max_tokens=500)",
}


@pytest.mark.parametrize("what", LACKING)
async def test_a_question_that_lacks_something_says_what_to_write(in_memory: Connect, what: str) -> None:
    async def ask() -> Any:
        question, first = LACKING[what]
        return question(first)

    mcp = MCPServer("shop")

    @mcp.tool()
    async def take(answer: Annotated[Any, Resolve(ask)]) -> str:
        return "taken"

    async with opened(in_memory, mcp) as client:
        text = failed(await send(client, "take"))
    assert f"resolver 'ask' returned a question that cannot be sent: {WRITE_INSTEAD[what]}" in text


async def test_a_message_that_json_cannot_carry_fails_naming_the_resolver_and_not_once(in_memory: Connect) -> None:
    mcp = MCPServer("files")

    async def ask() -> Elicit[bool]:
        return Elicit("Delete caf\udce9.txt?", bool)  # how Python spells a file name that is not UTF-8

    @mcp.tool()
    async def take(ok: Annotated[bool, Resolve(ask)]) -> str:
        return f"{ok}"

    _ = take
    async with opened(in_memory, mcp) as client:
        text = failed(await send(client, "take"))
    assert "resolver 'ask'" in text
    assert "once=True" not in text


# Recorded outcomes


class Renamed(BaseModel):
    """Reads one name and writes another, so that a dumped model could not be read back."""

    model_config = ConfigDict(extra="forbid")
    amount: int = Field(validation_alias="amountIn", serialization_alias="amountOut")


def three_rounds() -> MCPServer:
    mcp = MCPServer("rounds")

    async def first() -> Elicit[Renamed]:
        return Elicit("First?", Renamed)

    async def second(one: Annotated[Renamed, Resolve(first, key="first")]) -> Elicit[Renamed]:
        return Elicit(f"Second after {one.amount}?", Renamed)

    async def third(two: Annotated[Renamed, Resolve(second, key="second")]) -> Elicit[Renamed]:
        return Elicit(f"Third after {two.amount}?", Renamed)

    @mcp.tool()
    async def add(
        one: Annotated[Renamed, Resolve(first, key="first")],
        two: Annotated[Renamed, Resolve(second, key="second")],
        three: Annotated[Renamed, Resolve(third, key="third")],
    ) -> str:
        return f"{one.amount} {two.amount} {three.amount}"

    _ = add
    return mcp


@pytest.mark.asking_revisions
async def test_three_rounds_with_differing_aliases_restore_what_was_sent(connect: Connect) -> None:
    answers = {"first": accepted(amountIn=1), "second": accepted(amountIn=2), "third": accepted(amountIn=3)}
    person = Person(answers)
    async with connect(three_rounds(), elicitation_callback=person) as client:
        result = await client.call_tool("add")
    assert result.model_dump()["content"][0]["text"] == "1 2 3"
    assert person.messages == ["First?", "Second after 1?", "Third after 2?"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_decline_and_cancel_are_recorded_across_rounds(in_memory: Connect, action: str) -> None:
    mcp = MCPServer("gifts")

    async def wrap() -> Elicit[bool]:
        return Elicit("Wrap it?", bool)

    async def card(wrapped: Annotated[ElicitationResult[bool], Resolve(wrap, key="wrap")]) -> Elicit[str]:
        return Elicit(f"A card? ({wrapped.action})", str)

    @mcp.tool()
    async def gift(
        wrapped: Annotated[ElicitationResult[bool], Resolve(wrap, key="wrap")],
        text: Annotated[str, Resolve(card, key="card")],
    ) -> str:
        return f"{wrapped.action} {text}"

    _ = gift
    async with opened(in_memory, mcp) as client:
        second = await answer(client, "gift", {"wrap": {"action": action}})
        assert asked(second) == ["card"]
        assert message(second, "card") == f"A card? ({action})"
        answers = {"wrap": accept(value=True), "card": accept(value="hi")}
        assert said(await send(client, "gift", answers, second["requestState"])) == f"{action} hi"


async def test_a_recorded_outcome_never_stands_in_for_what_a_resolver_computes_itself(in_memory: Connect) -> None:
    mcp, known = MCPServer("memory"), list[str]()

    async def colour() -> str | Elicit[str]:
        return known[0] if known else Elicit("Colour?", str)

    async def size(colour: Annotated[str, Resolve(colour, key="colour")]) -> Elicit[str]:
        return Elicit("Size?", str)

    @mcp.tool()
    async def shirt(
        colour: Annotated[str, Resolve(colour, key="colour")], size: Annotated[str, Resolve(size, key="size")]
    ) -> str:
        return f"{colour} {size}"

    _ = shirt
    async with opened(in_memory, mcp) as client:
        second = await answer(client, "shirt", {"colour": accept(value="red")})
        known.append("blue")
        # The size rested on an answer that no longer counts, so it is asked again.
        third = await send(client, "shirt", {"size": accept(value="L")}, second["requestState"])
        assert asked(third) == ["size"]
        assert said(await send(client, "shirt", {"size": accept(value="L")}, third["requestState"])) == "blue L"


async def test_a_recorded_answer_that_no_longer_fits_is_dropped_and_asked_again(in_memory: Connect) -> None:
    mcp, closed = MCPServer("seats"), list[int]()

    class Seat(BaseModel):
        row: int

        @field_validator("row")
        @classmethod
        def is_open(cls, row: int) -> int:
            if row in closed:
                raise ValueError("row closed")
            return row

    async def seat() -> Elicit[Seat]:
        return Elicit("Row?", Seat)

    async def snack(seat: Annotated[Seat, Resolve(seat, key="seat")]) -> Elicit[str]:
        return Elicit("Snack?", str)

    @mcp.tool()
    async def book(
        seat: Annotated[Seat, Resolve(seat, key="seat")], snack: Annotated[str, Resolve(snack, key="snack")]
    ) -> str:
        return f"{seat.row} {snack}"

    _ = book
    async with opened(in_memory, mcp) as client:
        second = await answer(client, "book", {"seat": accept(row=1)})
        closed.append(1)
        third = await send(client, "book", {"snack": accept(value="nuts")}, second["requestState"])
        assert asked(third) == ["seat"]
        fourth = await send(client, "book", {"seat": accept(row=2)}, third["requestState"])
        assert asked(fourth) == ["snack"]
        assert said(await send(client, "book", {"snack": accept(value="nuts")}, fourth["requestState"])) == "2 nuts"


async def test_an_approval_given_under_one_answer_does_not_survive_another(connect: Connect) -> None:
    mcp, price = MCPServer("prices"), [5]

    async def amount() -> Elicit[int]:
        return Elicit(f"How many at {price[0]}?", int)

    async def approve(amount: Annotated[int, Resolve(amount, key="amount")]) -> Elicit[bool]:
        return Elicit("Approve?", bool)  # the same words whatever was answered before

    async def note(ok: Annotated[bool, Resolve(approve, key="approve")]) -> Elicit[str]:
        return Elicit("Note?", str)

    @mcp.tool()
    async def buy(
        amount: Annotated[int, Resolve(amount, key="amount")], note: Annotated[str, Resolve(note, key="note")]
    ) -> str:
        return f"{amount} {note}"

    _ = buy
    async with opened(connect, mcp) as client:
        result = await answer(client, "buy", {"amount": accept(value=1)})
        result = await send(client, "buy", {"approve": accept(value=True)}, result["requestState"])
        assert asked(result) == ["note"]
        price[0] = 500
        result = await send(client, "buy", {"note": accept(value="x")}, result["requestState"])
        assert asked(result) == ["amount"]
        result = await send(client, "buy", {"amount": accept(value=9)}, result["requestState"])
        assert asked(result) == ["approve"]


async def test_an_answer_to_a_question_that_changed_is_asked_again(connect: Connect) -> None:
    mcp, price = MCPServer("prices"), [5]

    async def approve() -> Elicit[bool]:
        return Elicit(f"Pay {price[0]}?", bool)

    @mcp.tool()
    async def pay(ok: Annotated[bool, Resolve(approve, key="approve")]) -> str:
        return f"paid {price[0]}: {ok}"

    _ = pay
    async with opened(connect, mcp) as client:
        state = (await send(client, "pay"))["requestState"]
        price[0] = 500
        again = await send(client, "pay", {"approve": accept(value=True)}, state)
        assert message(again, "approve") == "Pay 500?"
        assert (
            said(await send(client, "pay", {"approve": accept(value=True)}, again["requestState"])) == "paid 500: True"
        )
