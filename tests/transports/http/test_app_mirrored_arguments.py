"""Arguments that headers repeat: none reaches a tool past its header."""

import json
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, BaseModel, Field

from bespeak import InvalidSignature, MCPServer
from bespeak.protocol.errors import HEADER_MISMATCH
from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import Request as WireRequest
from bespeak.protocol.messages import read_message

VERSION = "2026-07-28"


META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


def message(name: str, arguments: dict[str, Any], id_: int = 1, **more: Any) -> bytes:
    params = {"name": name, "arguments": arguments, "_meta": META, **more}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}).encode()


class To(BaseModel):
    region: str


NESTED = {"to": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}


def mirroring() -> MCPServer[Any]:
    mcp = MCPServer("mirrors")

    @mcp.tool()
    async def pay(amount: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Amount"})]) -> int:
        return amount

    @mcp.tool(input_schema={"type": "object", "properties": NESTED})
    async def send(to: To) -> str:
        return to.region

    return mcp


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param("pay", {"amount": 2**53}, id="an integer above 2**53 - 1"),
        pytest.param("pay", {"amount": 10**30}, id="an integer of any size"),
        pytest.param("pay", {"amount": 1e16}, id="a float above 2**53 - 1"),
        pytest.param("send", {"to": '{"region": "eu"}'}, id="an object as text"),
    ],
)
async def test_no_mirrored_argument_reaches_the_body_without_its_header(name: str, arguments: dict[str, Any]) -> None:
    mcp = mirroring()
    request = read_message(message(name, arguments))
    assert isinstance(request, WireRequest)
    answer = await mcp.answer(request, lambda _: None, Headers([]))
    refused = answer.code == HEADER_MISMATCH or b'"isError":true' in answer.message
    assert refused, answer.message


def test_a_mirrored_argument_has_one_name() -> None:
    async def pay(
        amount: Annotated[
            int,
            Field(validation_alias=AliasChoices("amount", "sum"), json_schema_extra={"x-mcp-header": "Amount"}),
        ],
    ) -> int:
        return amount

    with pytest.raises(InvalidSignature, match="'amount' is repeated in a header, but it can also be sent as sum"):
        MCPServer("mirrors").add_tool(pay)
