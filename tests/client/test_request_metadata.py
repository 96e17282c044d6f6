"""What every request carries: the routing headers over HTTP, and none where the transport has no headers."""

import pytest

from bespeak import Client
from tests.answering import Person, accept
from tests.client.sample_questions import FORM
from tests.client.scripted_transport import COMPLETE, REGION, Stdio, Wire, asking, listing


async def test_every_request_of_a_call_carries_the_routing_headers() -> None:
    wire = Wire(listing(), asking({"q": FORM}, "state"), COMPLETE)
    async with Client(wire, elicitation_callback=Person({"q": accept(sure=True)})) as client:
        await client.list_tools()
        await client.call_tool("buy", {"a": 1})
    version = {"MCP-Protocol-Version": "2026-07-28"}
    call = {**version, "Mcp-Method": "tools/call", "Mcp-Name": "buy"}
    assert [request.headers for request in wire.sent] == [
        {**version, "Mcp-Method": "server/discover"},
        {**version, "Mcp-Method": "tools/list"},
        call,
        call,
    ]


async def test_a_transport_without_headers_is_given_none() -> None:
    wire = Stdio(listing(REGION), COMPLETE)
    async with Client(wire) as client:
        await client.list_tools()
        await client.call_tool("buy", {"region": "north"})
    assert [request.headers for request in wire.sent] == [{}, {}, {}]


@pytest.mark.parametrize(("name", "header"), [("with space", "with space"), ("日本語", "=?base64?5pel5pys6Kqe?=")])
async def test_a_name_that_a_header_cannot_carry_is_encoded(name: str, header: str) -> None:
    wire = Wire(COMPLETE)
    async with Client(wire) as client:
        await client.call_tool(name)
    assert wire.calls[0].headers["Mcp-Name"] == header
