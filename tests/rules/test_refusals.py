"""What a client reads when a person says no, or dismisses a question (design section 5, "Consumers"), in both eras."""

from typing import Annotated, Any

import pytest

from bespeak import DeclinedElicitation, Elicit, MCPError, MCPServer, Resolve
from tests.answering import CANCEL, DECLINE, Person, accept, text
from tests.conftest import Connect

NO = "elicitation was decline. A person said no. Do not try again in another way."
DISMISSED = "elicitation was cancel. The question was dismissed without an answer."
ENDS = pytest.mark.parametrize(("answer", "words"), [(DECLINE, NO), (CANCEL, DISMISSED)])


async def ask() -> Elicit[bool]:
    return Elicit("Refund 40 EUR?", bool)


def desk() -> MCPServer[Any]:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def refund(sure: Annotated[bool, Resolve(ask)]) -> str:
        raise AssertionError("nobody has agreed")

    @mcp.prompt()
    async def letter(sure: Annotated[bool, Resolve(ask)]) -> str:
        raise AssertionError("nobody has agreed")

    @mcp.resource("desk://receipt")
    async def receipt(sure: Annotated[bool, Resolve(ask)]) -> str:
        raise AssertionError("nobody has agreed")

    @mcp.tool()
    async def apologise(no: Annotated[DeclinedElicitation, Resolve(ask)]) -> str:
        raise AssertionError("nobody has declined")

    _ = refund, letter, receipt, apologise
    return mcp


@ENDS
@pytest.mark.asking_revisions
async def test_the_words_of_a_tools_error_say_what_a_person_did(connect: Connect, answer: Any, words: str) -> None:
    async with connect(desk(), elicitation_callback=Person({"ask": answer})) as client:
        result = await client.call_tool("refund")
    assert result.is_error
    assert text(result) == f"Error executing tool refund: Resolver for parameter 'sure' could not resolve: {words}"


@ENDS
@pytest.mark.asking_revisions
async def test_prompts_and_resources_end_with_the_same_words_as_a_json_rpc_error(
    in_memory: Connect, answer: Any, words: str
) -> None:
    told = f"Resolver for parameter 'sure' could not resolve: {words}"
    async with in_memory(desk(), elicitation_callback=Person({"ask": answer})) as client:
        with pytest.raises(MCPError) as prompt:
            await client.get_prompt("letter")
        with pytest.raises(MCPError) as resource:
            await client.read_resource("desk://receipt")
    assert (prompt.value.code, prompt.value.message) == (-32603, f"Error rendering prompt letter: {told}")
    assert (resource.value.code, resource.value.message) == (-32603, f"Error reading resource desk://receipt: {told}")


@pytest.mark.asking_revisions
async def test_a_yes_that_a_tool_cannot_use_is_not_called_a_no(in_memory: Connect) -> None:
    async with in_memory(desk(), elicitation_callback=Person({"ask": accept(value=True)})) as client:
        result = await client.call_tool("apologise")
    assert text(result).endswith("Resolver for parameter 'no' could not resolve: elicitation was accept")
