"""A resolver asks only what its return annotation says: another form, or another kind of question, is an error."""

from typing import Annotated, Any, Literal

import pytest
from mcp_types import ElicitResult, SamplingMessage, TextContent
from pydantic import BaseModel

from bespeak import Client, Elicit, ElicitUrl, MCPServer, Resolve, Sample
from tests.answering import text


class City(BaseModel):
    name: str = "Rome"


class Capital(City):
    country: str = "Italy"


class Hotel(BaseModel):
    stars: int = 3


ANSWERS: dict[str, dict[str, Any]] = {"How many?": {"value": 1}, "Which one?": {"value": "a"}}
MESSAGES = [SamplingMessage(role="user", content=TextContent(type="text", text="Why?"))]


async def another_form() -> City | Elicit[City]:
    return Elicit("Which hotel?", Hotel)  # pyright: ignore[reportReturnType]  # the mistake itself


async def one_value_for_a_form() -> Elicit[City]:
    return Elicit("Sure?", bool)  # pyright: ignore[reportReturnType]


async def another_value() -> Elicit[bool]:
    return Elicit("How many?", int)  # pyright: ignore[reportReturnType]


async def a_page() -> Elicit[City]:
    return ElicitUrl("Pay", "https://pay.example.com/7")  # pyright: ignore[reportReturnType]


async def a_model() -> Annotated[City | Elicit[City], "documented"]:
    return Sample(MESSAGES, max_tokens=10)  # pyright: ignore[reportReturnType]


async def asked_by(resolver: Any) -> tuple[str, list[str]]:
    """What the call says, and what the person was asked."""
    mcp, questions = MCPServer("travel"), list[str]()

    @mcp.tool()
    async def book(value: Annotated[Any, Resolve(resolver)]) -> str:
        return repr(value)

    async def person(_: Any, params: Any) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content=ANSWERS.get(params.message, {"name": "Rome"}))

    async with Client(mcp, elicitation_callback=person) as client:
        return text(await client.call_tool("book", {})), questions


@pytest.mark.parametrize(
    ("resolver", "told"),
    [
        (another_form, "returned a question for Hotel, but its return annotation says Elicit[City]"),
        (one_value_for_a_form, "returned a question for bool, but its return annotation says Elicit[City]"),
        (another_value, "returned a question for int, but its return annotation says Elicit[bool]"),
        (a_page, "returned ElicitUrl, but its return annotation says Elicit"),
        (a_model, "returned Sample, but its return annotation says Elicit"),
    ],
)
async def test_another_question_than_the_annotation_says_is_an_error_and_nobody_is_asked(
    resolver: Any, told: str
) -> None:
    said, questions = await asked_by(resolver)
    assert said.endswith(f"resolver '{resolver.__name__}' {told} (book -> value -> {resolver.__name__})")
    assert questions == []


async def a_subclass() -> Elicit[City]:
    return Elicit("Which capital?", Capital)


async def anything() -> Elicit[Any]:
    return Elicit("Which city?", City)


async def no_annotation():
    return Elicit("Which city?", City)


async def a_choice() -> Elicit[Literal["a", "b"]]:
    return Elicit("Which one?", Literal["a", "b"])


async def a_number() -> Elicit[int]:
    return Elicit("How many?", int)


async def either() -> City | Elicit[City] | None:
    return Elicit("Which city?", City)


@pytest.mark.parametrize("resolver", [a_subclass, anything, no_annotation, a_number, a_choice, either])
async def test_what_the_annotation_allows_is_asked(resolver: Any) -> None:
    said, questions = await asked_by(resolver)
    assert len(questions) == 1
    assert "annotation" not in said
