"""What a resolver may return: no forgotten coroutine, and nothing that its annotation plainly rules out."""

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from bespeak import (
    AcceptedElicitation,
    Client,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    ElicitUrl,
    MCPServer,
    Resolve,
    Sample,
)
from bespeak.resolve.reading.returned_values import PLAIN, ruled_out
from bespeak.resolve.reading.signatures import EMPTY
from tests.answering import text


class Colour(enum.StrEnum):
    RED = "red"


class Backorder(BaseModel):
    confirm: bool


@dataclass
class Copy:
    number: int


class Whole(int):
    """An int of the author's."""


@pytest.mark.parametrize(
    ("returns", "allowed"),
    [
        (int, {int, bool}),
        (float, {float, int, bool}),
        (bool, {bool}),
        (str | None, {str, type(None)}),
        (bool | Elicit[bool], {bool}),
        (Annotated[int, "of euros"], {int, bool}),
        (bytes | DeclinedElicitation, {bytes}),
        (Elicit[bool], {bool}),
        (Backorder, set()),
        (Backorder | Elicit[Backorder], set()),
        (Backorder | str | None, {str, type(None)}),
        (Copy, set()),
        (Sample, set()),
        (str | ElicitUrl, {str}),
        (AcceptedElicitation[bool] | DeclinedElicitation, {bool}),
        (ElicitUrl, PLAIN),
        (Any, PLAIN),
        (EMPTY, PLAIN),
        (list[int], PLAIN),
        (Literal["a"], PLAIN),
        (int | MCPServer, PLAIN),
        (Colour, PLAIN),
    ],
)
def test_an_annotation_of_plain_types_rules_the_others_out(returns: Any, allowed: set[type]) -> None:
    assert PLAIN - ruled_out(returns) == allowed


async def sure() -> bool:
    return False


async def forgets_await(title: str) -> bool:
    return sure()  # pyright: ignore[reportReturnType]


async def says_no(title: str) -> bool:
    return "no"  # pyright: ignore[reportReturnType]


def says_nothing(title: str) -> int | Elicit[int]:
    return None  # pyright: ignore[reportReturnType]


def yields_text(title: str) -> Iterator[int]:
    yield "one"  # pyright: ignore[reportReturnType]


async def a_text_for_a_form(title: str) -> Backorder | Elicit[Backorder]:
    return "Order anyway?"  # pyright: ignore[reportReturnType]


async def a_text_for_a_question(title: str) -> Elicit[bool]:
    return "Order anyway?"  # pyright: ignore[reportReturnType]


async def called_with(resolver: Any, hint: Any = Any) -> str:
    mcp, ran = MCPServer("shop"), list[Any]()

    @mcp.tool()
    async def order(title: str, value: Annotated[hint, Resolve(resolver)]) -> str:
        ran.append(value)
        return repr(value)

    async with Client(mcp) as client:
        result = await client.call_tool("order", {"title": "Neuromancer"})
    assert bool(ran) is not result.is_error
    return text(result)


@pytest.mark.parametrize(
    ("resolver", "told"),
    [
        (forgets_await, "returned a coroutine that was never awaited; write `return await ...`"),
        (says_no, "returned str, but its return annotation says bool"),
        (says_nothing, "returned None, but its return annotation says int | Elicit[int]"),
        (yields_text, "returned str, but its return annotation says int"),
        (a_text_for_a_form, "returned str, but its return annotation says Backorder | Elicit[Backorder]"),
        (a_text_for_a_question, "returned str, but its return annotation says Elicit[bool]"),
    ],
)
async def test_a_value_that_is_ruled_out_fails_the_call_before_the_body(resolver: Any, told: str) -> None:
    assert f"resolver '{resolver.__name__}' {told} (order -> value -> {resolver.__name__})" in await called_with(
        resolver
    )


def returning(value: Any) -> Callable[[str], Any]:
    """A resolver without a return annotation."""

    async def ask(title: str):
        return value

    return ask


@pytest.mark.parametrize(
    ("value", "hint", "told"),
    [
        ("Order anyway?", bool, "returned str, but parameter 'value' takes bool"),
        (None, Backorder, "returned None, but parameter 'value' takes Backorder"),
        (
            "Order anyway?",
            ElicitationResult[bool],
            "returned str, but parameter 'value' takes AcceptedElicitation[bool]",
        ),
    ],
)
async def test_a_resolver_without_a_return_annotation_is_held_to_the_parameters_it_fills(
    value: Any, hint: Any, told: str
) -> None:
    assert f"resolver 'ask' {told}" in await called_with(returning(value), hint)


@pytest.mark.parametrize(
    ("value", "hint"), [(True, bool), (3, float), (Backorder(confirm=True), Backorder), ("no", str | None)]
)
async def test_a_resolver_without_a_return_annotation_may_return_what_its_parameter_takes(
    value: Any, hint: Any
) -> None:
    assert await called_with(returning(value), hint) == repr(value)


async def whole(title: str) -> int:
    return Whole(3)


async def red(title: str) -> str:
    return Colour.RED


async def three(title: str) -> float:
    return 3


@pytest.mark.parametrize(("resolver", "value"), [(whole, "3"), (red, repr(Colour.RED)), (three, "3")])
async def test_a_subclass_and_a_whole_number_for_a_float_are_as_good(resolver: Any, value: str) -> None:
    assert await called_with(resolver) == value


async def test_an_answer_may_have_another_type_than_the_value() -> None:
    async def name(title: str) -> int | Elicit[str]:
        return Elicit("Who?", str)

    mcp = MCPServer("shop")

    @mcp.tool()
    async def order(title: str, name: Annotated[Any, Resolve(name)]) -> str:
        return repr(name)

    async def person(*_: Any) -> Any:
        from mcp_types import ElicitResult

        return ElicitResult(action="accept", content={"value": "Ada"})

    async with Client(mcp, elicitation_callback=person) as client:
        assert text(await client.call_tool("order", {"title": "x"})) == "'Ada'"
