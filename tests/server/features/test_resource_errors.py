"""`ResourceError` and `ResourceNotFoundError`: what a client reads when a resource raises them, in both eras."""

from typing import Any

import pytest
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from bespeak import Context, MCPError, MCPServer, ResourceError, ResourceNotFoundError
from tests.answering import text
from tests.conftest import Connect

pytestmark = pytest.mark.asking_revisions

NOT_FOUND_BEFORE_2026 = -32002


def books() -> MCPServer[Any]:
    mcp = MCPServer[Any]("books")

    @mcp.resource("books://{title}")
    def book(title: str) -> str:
        if title == "Dune":
            raise ResourceError("Dune is lent out.")
        raise ResourceNotFoundError(f"No book is titled {title!r}.")

    @mcp.resource("shelf://closed")
    def shelf() -> str:
        raise ResourceError("The shelf is closed.", {"until": "Monday"})

    @mcp.tool()
    async def look_up(title: str, ctx: Context) -> str:
        try:
            await ctx.read_resource(title)
        except ResourceNotFoundError as error:
            return f"caught: {error}"
        return "found"

    return mcp


async def test_what_does_not_exist_is_not_found(in_memory: Connect) -> None:
    async with in_memory(books()) as client:
        with pytest.raises(MCPError, match=r"^No book is titled 'Emma'\.$") as caught:
            await client.read_resource("books://Emma")
        modern = client.protocol_version >= "2026"
    assert caught.value.code == (INVALID_PARAMS if modern else NOT_FOUND_BEFORE_2026)
    assert caught.value.data == {"uri": "books://Emma"}


async def test_the_text_of_a_resource_error_reaches_the_client_as_it_is(in_memory: Connect) -> None:
    async with in_memory(books()) as client:
        with pytest.raises(MCPError, match=r"^Dune is lent out\.$") as caught:
            await client.read_resource("books://Dune")
    assert (caught.value.code, caught.value.data) == (INTERNAL_ERROR, {"uri": "books://Dune"})


async def test_the_data_of_a_resource_error_is_kept(in_memory: Connect) -> None:
    async with in_memory(books()) as client:
        with pytest.raises(MCPError, match=r"^The shelf is closed\.$") as caught:
            await client.read_resource("shelf://closed")
    assert caught.value.data == {"until": "Monday"}


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("books://Emma", "caught: No book is titled 'Emma'."),
        ("films://Emma", "caught: unknown resource 'films://Emma'"),
    ],
)
async def test_a_tool_can_catch_that_a_resource_does_not_exist(in_memory: Connect, uri: str, shown: str) -> None:
    async with in_memory(books()) as client:
        assert text(await client.call_tool("look_up", {"title": uri})) == shown
