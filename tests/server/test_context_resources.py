"""`ctx.read_resource`: a resource of the same server, read within a call."""

from typing import Annotated, Any

import pytest
from mcp_types import InputRequiredResult

from bespeak import Client, Context, Elicit, MCPError, MCPServer, Resolve
from bespeak.server import ReadResourceContents, TextResource
from bespeak.server.context_errors import CannotPush, OutsideRequest
from tests.answering import text
from tests.conftest import Connect

pytestmark = pytest.mark.asking_revisions


async def ask_shelf() -> Elicit[str]:
    return Elicit("Which shelf?", str)


def library() -> MCPServer[Any]:
    mcp = MCPServer[Any]("library")
    mcp.add_resource(TextResource(uri="books://hours", text="9 to 5"))

    @mcp.resource("books://{number}")
    def book(number: int, ctx: Context) -> str:
        return f"{number} for {ctx.request_id}, answers {ctx.input_responses}, state {ctx.request_state}"

    @mcp.resource("shelf://asked")
    def shelf(where: Annotated[str, Resolve(ask_shelf)]) -> str:
        return where

    @mcp.resource("shelf://by-hand")
    def by_hand() -> InputRequiredResult:
        return InputRequiredResult(request_state="kept")

    @mcp.resource("shelf://broken")
    def broken() -> str:
        raise LookupError("secret")

    @mcp.tool()
    async def show(uri: str, ctx: Context) -> str:
        return str([(one.content, one.mime_type) for one in await ctx.read_resource(uri)])

    return mcp


async def test_a_tool_reads_a_resource(in_memory: Connect) -> None:
    async with in_memory(library()) as client:
        assert text(await client.call_tool("show", {"uri": "books://hours"})) == "[('9 to 5', 'text/plain')]"
        shown = text(await client.call_tool("show", {"uri": "books://7"}))
    assert "7 for " in shown
    assert "answers None, state None" in shown


async def test_an_unknown_resource_and_a_failing_one_are_errors(in_memory: Connect) -> None:
    async with in_memory(library()) as client:
        with pytest.raises(MCPError, match=r"^unknown resource 'books://a/b'$") as caught:
            await client.call_tool("show", {"uri": "books://a/b"})
        assert caught.value.data == {"uri": "books://a/b"}
        with pytest.raises(MCPError, match=r"^Error reading resource shelf://broken$"):
            await client.call_tool("show", {"uri": "shelf://broken"})


@pytest.mark.parametrize("uri", ["shelf://asked", "shelf://by-hand"])
async def test_a_resource_that_asks_is_an_error_that_says_what_to_write(uri: str) -> None:
    async with Client(library(), raise_exceptions=True) as client:
        with pytest.raises(CannotPush) as caught:
            await client.call_tool("show", {"uri": uri})
    assert str(caught.value) == (
        f"'show' read the resource {uri!r}, which asks the client, but only a request of the client itself can ask. "
        "Ask here instead, with the resolver that the resource uses: Annotated[..., Resolve(fn)]"
    )


async def test_the_answers_of_a_call_are_not_those_of_a_resource_it_reads() -> None:
    mcp = library()

    @mcp.tool()
    async def ask(ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state is None:
            return InputRequiredResult(request_state="kept")
        (content,) = await ctx.read_resource("books://7")
        return str(content.content)

    async with Client(mcp) as client:
        shown = text(await client.call_tool("ask", {}))
    assert "answers None, state None" in shown


async def test_without_a_client_it_works_too() -> None:
    result = await library().call_tool("show", {"uri": "books://hours"})
    assert "9 to 5" in str(result.content)


async def test_a_context_made_by_hand_has_no_resources() -> None:
    with pytest.raises(OutsideRequest, match=r"^this context was created by hand and has no server$"):
        await Context[Any, Any]().read_resource("books://hours")


async def test_contents_are_texts_or_bytes() -> None:
    mcp = library()
    assert await mcp.read_resource("books://hours") == [ReadResourceContents("9 to 5", "text/plain")]


async def test_on_an_included_server_uris_are_those_it_registered() -> None:
    outer = MCPServer[Any]("outer")
    outer.include(library(), prefix="inner")
    async with Client(outer) as client:
        assert "9 to 5" in text(await client.call_tool("inner_show", {"uri": "books://hours"}))
