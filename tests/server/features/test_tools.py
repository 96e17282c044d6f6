"""Registering tools: names, descriptions and what travels with them, duplicates, removal, and calls without a client."""

import functools
import logging
import threading
from typing import Annotated, Any

import pytest
from mcp_types import CallToolResult, Icon, InputRequiredResult, ToolAnnotations
from pydantic import BaseModel

from bespeak import Context, Elicit, InvalidSignature, MCPError, MCPServer, Resolve, ToolError
from bespeak.server.features.tools import Tool
from tests.answering import text
from tests.conftest import Connect


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Confirmation(BaseModel):
    sure: bool


async def ask_if_sure() -> Elicit[Confirmation]:
    return Elicit("Sure?", Confirmation)


# The decorator


async def test_tool_works_without_parentheses(in_memory: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"hello {name}"

    assert greet("you") == "hello you"
    async with in_memory(mcp) as client:
        assert text(await client.call_tool("greet", {"name": "you"})) == "hello you"


async def test_tool_takes_a_name_as_its_first_argument() -> None:
    mcp = MCPServer("shop")
    mcp.tool("plus", "Plus", "Adds.")(add)
    (tool,) = await mcp.list_tools()
    assert (tool.name, tool.title, tool.description) == ("plus", "Plus", "Adds.")


async def test_name_and_description_come_from_the_function() -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(add)
    (tool,) = await mcp.list_tools()
    assert (tool.name, tool.title, tool.description) == ("add", None, "Add two numbers.")


async def test_an_empty_description_replaces_the_docstring() -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(add, description="")
    (tool,) = await mcp.list_tools()
    assert tool.description == ""


async def test_all_that_describes_a_tool_is_listed(connect: Connect) -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(
        add,
        name="sum",
        title="Sum",
        description="Sums up",
        annotations=ToolAnnotations(title="Adder", read_only_hint=True, open_world_hint=False),
        icons=[Icon(src="https://example.com/i.png", mime_type="image/png", sizes=["48x48"])],
        meta={"team": "maths", "empty": None},
    )
    async with connect(mcp) as client:
        (tool,) = (await client.list_tools()).tools
    assert (tool.name, tool.title, tool.description) == ("sum", "Sum", "Sums up")
    assert tool.annotations == ToolAnnotations(title="Adder", read_only_hint=True, open_world_hint=False)
    assert tool.icons == [Icon(src="https://example.com/i.png", mime_type="image/png", sizes=["48x48"])]
    assert tool.meta == {"team": "maths", "empty": None}


async def test_the_tool_with_a_partial_is_described_by_its_function() -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(functools.partial(add, b=1))
    (tool,) = await mcp.list_tools()
    assert (tool.name, tool.description) == ("add", "Add two numbers.")


async def test_a_method_and_a_callable_object_are_tools(in_memory: Connect) -> None:
    class Till:
        """Counts."""

        def __init__(self, start: int) -> None:
            self.start = start

        def plus(self, n: int) -> int:
            return self.start + n

        async def __call__(self, n: int) -> int:
            return self.start - n

    mcp = MCPServer("shop")
    mcp.add_tool(Till(5).plus)
    mcp.add_tool(Till(5), name="minus")
    async with in_memory(mcp) as client:
        assert text(await client.call_tool("plus", {"n": 2})) == "7"
        assert text(await client.call_tool("minus", {"n": 2})) == "3"
        assert all("self" not in tool.input_schema["properties"] for tool in (await client.list_tools()).tools)


async def test_tools_are_handed_to_the_server_when_it_is_made(in_memory: Connect) -> None:
    mcp = MCPServer("shop", tools=[Tool.from_function(add, name="plus")])
    async with in_memory(mcp) as client:
        assert text(await client.call_tool("plus", {"a": 1, "b": 2})) == "3"


# Names


def test_a_second_tool_of_the_same_name_is_refused() -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(add)
    with pytest.raises(
        ValueError, match=r"tool 'add' is already registered; call remove_tool\('add'\) first, or rename one"
    ):
        mcp.add_tool(add)


def test_two_tools_of_one_name_are_refused_when_the_server_is_made() -> None:
    with pytest.raises(ValueError, match="tool 'add' is already registered"):
        MCPServer("shop", tools=[Tool.from_function(add), Tool.from_function(add)])


@pytest.mark.every_revision
async def test_a_removed_tool_is_unknown_and_its_name_free_again(connect: Connect) -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(add)
    mcp.remove_tool("add")
    async with connect(mcp) as client:
        with pytest.raises(MCPError, match="unknown tool 'add'"):
            await client.call_tool("add", {"a": 1, "b": 2})
        mcp.add_tool(add)
        assert text(await client.call_tool("add", {"a": 1, "b": 2})) == "3"


def test_removing_a_tool_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ToolError, match="there is no tool 'add' to remove"):
        MCPServer("shop").remove_tool("add")


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(ValueError, match="a lambda has no name; pass one"):
        MCPServer("shop").add_tool(lambda: 1)


def test_a_lambda_needs_a_name_wherever_it_was_written() -> None:
    class Shelf:
        pick = staticmethod(lambda: 1)

    with pytest.raises(ValueError, match="a lambda has no name"):
        MCPServer("shop").add_tool(Shelf.pick)


async def test_a_lambda_with_a_name_is_a_tool(in_memory: Connect) -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(lambda: 1, name="one")
    async with in_memory(mcp) as client:
        assert text(await client.call_tool("one")) == "1"


@pytest.mark.parametrize("name", ["two words", "x" * 129, "naïve", "a/b"])
def test_a_name_that_clients_may_refuse_is_logged(name: str, caplog: pytest.LogCaptureFixture) -> None:
    MCPServer("shop").add_tool(add, name=name)
    assert "or clients may refuse it" in caplog.text


@pytest.mark.parametrize("name", ["a", "x" * 128, "A-b_c.9"])
def test_a_name_the_protocol_recommends_is_not_remarked_on(name: str, caplog: pytest.LogCaptureFixture) -> None:
    MCPServer("shop").add_tool(add, name=name)
    assert caplog.records == []


# What cannot be registered


def test_a_generator_is_no_tool() -> None:
    def numbers() -> Any:
        yield 1

    with pytest.raises(InvalidSignature, match="numbers is a generator, but a tool must return its result"):
        MCPServer("shop").add_tool(numbers)


def test_an_async_generator_is_no_tool() -> None:
    async def numbers() -> Any:
        yield 1

    with pytest.raises(InvalidSignature, match="return instead of yielding"):
        MCPServer("shop").add_tool(numbers)


def test_all_faults_of_a_tool_are_told_at_once() -> None:
    def search(session: threading.Thread, *words: str, limit: Annotated[int, Resolve]) -> Any:  # pyright: ignore[reportUnusedParameter]
        ...

    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").tool(structured_output=True)(search)
    told = str(caught.value)
    assert "cannot register 'search': 4 faults" in told
    assert "parameter 'session' takes Thread, which JSON cannot represent" in told
    assert "takes any positional arguments" in told
    assert "without a call" in told
    assert "cannot be described by a JSON Schema" in told
    assert "test_tools.py:" in told


def test_a_refused_tool_is_not_registered_halfway() -> None:
    mcp = MCPServer("shop")

    def numbers() -> Any:
        yield 1

    with pytest.raises(InvalidSignature):
        mcp.add_tool(numbers)
    mcp.add_tool(add, name="numbers")


def test_a_resolver_beside_an_input_required_result_is_refused() -> None:
    async def order(sure: Annotated[Confirmation, Resolve(ask_if_sure)]) -> str | InputRequiredResult:
        return str(sure)

    with pytest.raises(InvalidSignature, match="InputRequiredResult"):
        MCPServer("shop").add_tool(order)


@pytest.mark.parametrize("size", [0, -1])
def test_a_page_must_hold_a_tool(size: int) -> None:
    with pytest.raises(ValueError, match="page_size must be at least 1"):
        MCPServer("shop", page_size=size)


# Calling without a client


async def test_a_call_without_a_client_gives_the_result() -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(add)
    result = await mcp.call_tool("add", {"a": 1, "b": 2})
    assert isinstance(result, CallToolResult)
    assert result.structured_content == {"result": 3}


async def test_a_call_without_a_client_needs_no_arguments_and_knows_no_version() -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def version(ctx: Context) -> str:
        return repr(ctx.protocol_version)

    assert text(await mcp.call_tool("version")) == "None"


async def test_a_call_without_a_client_raises_the_tool_s_own_error() -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    def fail() -> str:
        raise ToolError("sold out")

    with pytest.raises(ToolError, match=r"^Error executing tool fail: sold out$"):
        await mcp.call_tool("fail")


async def test_a_crash_without_a_client_is_a_tool_error_with_its_cause(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    def fail() -> str:
        raise KeyError("secret")

    with caplog.at_level(logging.ERROR), pytest.raises(ToolError, match=r"^Error executing tool fail$") as caught:
        await mcp.call_tool("fail")
    assert isinstance(caught.value.__cause__, KeyError)


async def test_bad_arguments_without_a_client_are_a_tool_error() -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(add)
    with pytest.raises(ToolError, match=r"Error executing tool add: invalid arguments: b: Field required"):
        await mcp.call_tool("add", {"a": 1})


async def test_an_unknown_tool_without_a_client_is_a_protocol_error() -> None:
    with pytest.raises(MCPError, match="unknown tool 'add'") as caught:
        await MCPServer("shop").call_tool("add")
    assert caught.value.code == -32602


async def test_a_question_without_a_client_says_how_to_answer_in_a_test() -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def order(sure: Annotated[Confirmation, Resolve(ask_if_sure)]) -> str:
        return str(sure.sure)

    with pytest.raises(RuntimeError) as caught:
        await mcp.call_tool("order")
    told = str(caught.value)
    assert "'order' asks (" in told
    assert "ask_if_sure" in told
    assert "there is no client to answer" in told
    assert "Client(mcp, elicitation_callback=...)" in told
    assert "mcp.override(resolver, value=...)" in told
    with mcp.override(ask_if_sure, value=Confirmation(sure=True)):
        assert text(await mcp.call_tool("order")) == "True"
