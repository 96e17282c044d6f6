"""Headers that repeat arguments: learned from the list of tools, and learned again if the server finds them wrong."""

from typing import Annotated, Any

import pytest
from pydantic import Field

from bespeak import Client, MCPError, MCPServer
from bespeak.client.raw_session import PAGES
from tests.answering import Person, accept, text
from tests.client.sample_questions import FORM
from tests.client.scripted_transport import COMPLETE, REGION, Stdio, Wire, asking, fails, listing, tool
from tests.conftest import Connect

MISMATCH = {"code": -32020, "message": "the header Mcp-Param-Region is missing"}


# Learning


@pytest.mark.parametrize(
    ("kind", "value", "header"),
    [("string", " north", "=?base64?IG5vcnRo?="), ("integer", -1, "-1"), ("boolean", False, "false")],
)
async def test_an_argument_is_repeated_once_the_tools_are_known(kind: str, value: Any, header: str) -> None:
    listed = listing(tool("buy", region={"type": kind, "x-mcp-header": "Region"}))
    wire = Wire(COMPLETE, listed, COMPLETE)
    async with Client(wire) as client:
        await client.call_tool("buy", {"region": value})
        await client.list_tools()
        await client.call_tool("buy", {"region": value})
    before, after = wire.calls
    assert "Mcp-Param-Region" not in before.headers
    assert after.headers["Mcp-Param-Region"] == header


@pytest.mark.parametrize("arguments", [None, {"region": None}, {"other": "x"}])
async def test_an_argument_that_is_absent_or_null_is_not_repeated(arguments: dict[str, Any] | None) -> None:
    wire = Wire(listing(REGION), COMPLETE)
    async with Client(wire) as client:
        await client.list_tools()
        await client.call_tool("buy", arguments)
    assert wire.calls[0].headers.keys() == {"MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"}


async def test_the_newest_listing_decides_and_every_page_of_it_counts() -> None:
    other = tool("sell", to={"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}})
    wire = Wire(listing(REGION, more="2"), listing(other), COMPLETE, listing(tool("buy")), COMPLETE)
    async with Client(wire) as client:
        await client.list_tools()
        await client.list_tools(cursor="2")
        await client.call_tool("sell", {"to": {"zone": "b"}})
        await client.list_tools()
        await client.call_tool("buy", {"region": "north"})
    assert wire.calls[0].headers["Mcp-Param-Zone"] == "b"
    assert "Mcp-Param-Region" not in wire.calls[1].headers


ODD = {"a\nb": {"type": "array", "x-mcp-header": "A"}}


async def test_a_tool_with_invalid_headers_is_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with Client(Wire(listing(tool("odd", **ODD), REGION))) as client:
        assert [listed.name for listed in (await client.list_tools()).tools] == ["buy"]
    assert caplog.messages == [
        "The tool 'odd' is ignored: a\\nb: only a string, an integer or a boolean can be repeated in a header"
    ]


async def test_without_headers_no_tool_is_ignored() -> None:
    async with Client(Stdio(listing(tool("odd", **ODD)))) as client:
        assert [listed.name for listed in (await client.list_tools()).tools] == ["odd"]


# Headers that were wrong


async def test_after_a_mismatch_the_tools_are_read_again_and_the_call_is_sent_once_more() -> None:
    wire = Wire(fails(MISMATCH), listing(tool("other"), more="2"), listing(REGION), COMPLETE)
    async with Client(wire) as client:
        assert text(await client.call_tool("buy", {"region": "north"})) == "done"
    assert wire.methods == ["server/discover", "tools/call", "tools/list", "tools/list", "tools/call"]
    first, second = wire.calls
    assert second.headers["Mcp-Param-Region"] == "north"
    assert first.id != second.id
    assert wire.params[2]["cursor"] == "2"


async def test_a_mismatch_in_a_later_round_is_repaired_without_asking_again() -> None:
    wire = Wire(asking({"q": FORM}, "state"), fails(MISMATCH), listing(REGION), COMPLETE)
    person = Person({"q": accept(sure=True)})
    async with Client(wire, elicitation_callback=person) as client:
        assert text(await client.call_tool("buy", {"region": "north"})) == "done"
    assert person.asked == ["q"]
    assert wire.params[-1]["requestState"] == "state"
    assert wire.params[-1]["inputResponses"] == {"q": {"action": "accept", "content": {"sure": True}}}


@pytest.mark.parametrize(
    ("replies", "then"),
    [
        ([fails(MISMATCH), listing(REGION), fails(MISMATCH)], ["tools/list", "tools/call"]),
        ([fails(MISMATCH), listing()], ["tools/list"]),  # the same headers again
        ([fails(MISMATCH), listing(more="again")], ["tools/list"] * PAGES),
        ([fails({"code": -32602, "message": "Region is missing"})], []),
    ],
)
async def test_a_call_that_new_headers_cannot_help_fails_with_the_error(replies: list[Any], then: list[str]) -> None:
    wire = Wire(*replies)
    async with Client(wire) as client:
        with pytest.raises(MCPError, match="Region is missing"):
            await client.call_tool("buy", {"region": "north"})
    assert wire.methods[1:] == ["tools/call", *then]


async def test_a_mismatch_of_a_listing_or_without_headers_is_an_error() -> None:
    listed, called = Wire(fails(MISMATCH)), Stdio(fails(MISMATCH))
    async with Client(listed) as client:
        with pytest.raises(MCPError, match="is missing"):
            await client.list_tools()
    async with Client(called) as client:
        with pytest.raises(MCPError, match="is missing"):
            await client.call_tool("buy", {"region": "north"})
    assert (listed.methods[1:], called.methods[1:]) == (["tools/list"], ["tools/call"])


@pytest.mark.every_revision
async def test_repeated_arguments_arrive_with_any_content_though_nobody_listed_the_tools(connect: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool("größe")
    def size(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
        number: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Number"})] = 0,
        sure: Annotated[bool, Field(json_schema_extra={"x-mcp-header": "Sure"})] = False,
    ) -> str:
        return repr((region, number, sure))

    async with connect(mcp) as client:
        for region in ["north", "", " x ", "日本語", "a\r\nb: c", "=?base64?eA==?=", "\t", "\x7f"]:
            arguments = {"region": region, "number": -7, "sure": True}
            assert text(await client.call_tool("größe", arguments)) == repr((region, -7, True))
        assert text(await client.call_tool("größe", {"region": "south"})) == repr(("south", 0, False))
