"""Consumers of an outcome (design section 5): bare values, outcomes, some outcomes only, and defaults."""

from typing import Annotated, Any

import pytest
from pydantic import Field

from bespeak import (
    AcceptedElicitation,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    MCPServer,
    Resolve,
)
from tests.answering import CANCEL, DECLINE, Person, accept, text
from tests.conftest import Connect
from tests.rules.consumers import (
    ACCEPTED,
    CANCELLED,
    DECLINED,
    ask,
    computed,
    ended,
    serving,
    take_accepted,
    take_accepted_or_default,
    take_clear,
    take_outcome,
    take_outcome_or_default,
    take_refusal,
    take_value,
    take_value_or_default,
)

# Consumers


@pytest.mark.asking_revisions
@pytest.mark.parametrize(
    ("consumer", "accepted", "declined", "cancelled"),
    [
        (take_value, "3", ended("decline"), ended("cancel")),
        (take_value_or_default, "3", "-1", "-1"),
        (take_outcome, ACCEPTED, DECLINED, CANCELLED),
        (take_outcome_or_default, ACCEPTED, DECLINED, CANCELLED),
        (take_accepted, ACCEPTED, ended("decline"), ended("cancel")),
        (take_accepted_or_default, ACCEPTED, "None", "None"),
        (take_clear, ACCEPTED, DECLINED, ended("cancel")),
        (take_refusal, ended("accept"), DECLINED, CANCELLED),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
async def test_a_consumer_gets_what_its_annotation_names_and_any_other_outcome_ends_the_call(
    in_memory: Connect, consumer: Any, accepted: str, declined: str, cancelled: str
) -> None:
    for answer, expected in ((accept(value=3), accepted), (DECLINE, declined), (CANCEL, cancelled)):
        async with in_memory(serving(consumer), elicitation_callback=Person({"ask": answer})) as client:
            result = await client.call_tool("take")
        assert text(result) == expected
        assert bool(result.is_error) == expected.startswith("Error")


@pytest.mark.every_revision
async def test_a_computed_value_arrives_as_accepted_where_the_outcome_is_taken(in_memory: Connect) -> None:
    async def take(
        bare: Annotated[int, Resolve(computed)],
        outcome: Annotated[ElicitationResult[int], Resolve(computed)],
        accepted: Annotated[AcceptedElicitation[int], Resolve(computed)],
        defaulted: Annotated[AcceptedElicitation[int] | None, Resolve(computed)] = None,
    ) -> str:
        return f"{bare} {outcome!r} {accepted!r} {defaulted!r}"

    wrapped = repr(AcceptedElicitation(data=7))
    async with in_memory(serving(take)) as client:
        assert text(await client.call_tool("take")) == f"7 {wrapped} {wrapped} {wrapped}"


@pytest.mark.every_revision
async def test_a_computed_value_nobody_can_take_ends_the_call_as_an_answer_would(in_memory: Connect) -> None:
    async def take(it: Annotated[DeclinedElicitation, Resolve(computed)]) -> str:
        return f"{it!r}"

    async with in_memory(serving(take)) as client:
        assert text(await client.call_tool("take")) == ended("accept")


@pytest.mark.asking_revisions
async def test_each_consumer_of_one_question_gets_it_in_its_own_way(connect: Connect) -> None:
    async def double(number: Annotated[int, Resolve(ask)] = 50) -> int:
        return number * 2

    async def take(it: Annotated[ElicitationResult[int], Resolve(ask)], twice: Annotated[int, Resolve(double)]) -> str:
        return f"{it.action} {twice}"

    for answer, expected in ((accept(value=3), "accept 6"), (DECLINE, "decline 100")):
        person = Person({"ask": answer})
        async with connect(serving(take), elicitation_callback=person) as client:
            assert text(await client.call_tool("take")) == expected
        assert person.asked == ["ask"]


@pytest.mark.asking_revisions
async def test_a_decline_that_a_resolver_cannot_do_without_ends_the_call_naming_its_parameter(connect: Connect) -> None:
    async def double(number: Annotated[int, Resolve(ask)]) -> int:
        return number * 2

    async def take(
        it: Annotated[ElicitationResult[int], Resolve(ask)], twice: Annotated[int, Resolve(double)] = 0
    ) -> str:
        return f"{it!r} {twice}"

    async with connect(serving(take), elicitation_callback=Person({"ask": DECLINE})) as client:
        result = await client.call_tool("take")
    assert text(result) == ended("decline", "number")


@pytest.mark.asking_revisions
async def test_a_resolver_annotated_any_may_ask_for_a_typed_parameter(in_memory: Connect) -> None:
    async def unsure() -> Any:
        return Elicit("How many?", int)

    async def take(it: Annotated[int, Resolve(unsure)]) -> str:
        return f"{it!r}"

    async with in_memory(serving(take), elicitation_callback=Person({"unsure": accept(value=3)})) as client:
        assert text(await client.call_tool("take")) == "3"


@pytest.mark.asking_revisions
async def test_the_default_of_one_call_is_not_the_default_of_the_next(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    async def ask() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    @mcp.tool()
    async def tool(who: str, seen: Annotated[Any, Resolve(ask)] = Field(default_factory=list)) -> list[str]:  # noqa: B008
        seen.append(who)
        return seen

    async with in_memory(mcp, elicitation_callback=Person({"ask": DECLINE})) as client:
        for who in ("one", "two"):
            result = await client.call_tool("tool", {"who": who})
            assert result.structured_content == {"result": [who]}
