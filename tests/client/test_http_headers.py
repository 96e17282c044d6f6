"""What a session adds where requests travel with headers, what it sends again and what never, and what a client connects to."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from mcp_types import ElicitRequestParams, ElicitResult
from pydantic import BaseModel, Field

from bespeak import Client, Context, Elicit, MCPError, MCPServer, Resolve, StdioServerParameters
from bespeak.client import ClientRequestContext, InvalidServerResponse, Lost
from bespeak.client.session import PAGES
from bespeak.transports.interfaces import Ask, Outgoing
from tests.answering import Person, accept, text
from tests.client.test_session import COMPLETE, FORM, Fake, asking
from tests.conftest import Connect
from tests.wires import Listening

MISMATCH = {"code": -32020, "message": "the header Mcp-Param-Region is missing"}


class Wire(Fake):
    """A scripted transport whose requests travel with headers, which it remembers."""

    sends_headers = True

    def __init__(self, *replies: Any, **options: Any) -> None:
        super().__init__(*replies, **options)
        self.sent: list[Outgoing] = []

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        self.sent.append(request)
        return await super().exchange(request, notify, ask)

    @property
    def calls(self) -> list[Outgoing]:
        return [request for request in self.sent if request.method == "tools/call"]

    @property
    def methods(self) -> list[str]:
        return [request.method for request in self.sent]


class Stdio(Wire):
    sends_headers = False


def fails(error: dict[str, Any]) -> Any:
    def fail(request: Any, notify: Any) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()

    return fail


def lost(request: Any, notify: Any) -> Any:
    raise Lost("the request", "the connection broke")


def tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def listing(*tools: dict[str, Any], more: str | None = None) -> dict[str, Any]:
    page = {"resultType": "complete", "tools": list(tools), "ttlMs": 0, "cacheScope": "private"}
    return {**page, "nextCursor": more} if more else page


REGION = tool("buy", region={"type": "string", "x-mcp-header": "Region"})

# On every leg


async def test_every_leg_of_every_request_repeats_what_routes_it() -> None:
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


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("with space", "with space"),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("日本語", "=?base64?5pel5pys6Kqe?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("two\nlines", "=?base64?dHdvCmxpbmVz?="),
    ],
)
async def test_a_name_that_no_header_can_hold_is_encoded(name: str, header: str) -> None:
    wire = Wire(COMPLETE)
    async with Client(wire) as client:
        await client.call_tool(name)
    assert wire.calls[0].headers["Mcp-Name"] == header


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("buy", {"other": "\ud800"}), ("buy", {"region": "\ud800"}), ("buy\ud800", {})],
    ids=["an argument", "a mirrored argument", "the name"],
)
async def test_text_that_is_no_unicode_is_refused_as_what_is_not_json(name: str, arguments: dict[str, Any]) -> None:
    wire = Wire(listing(REGION), COMPLETE)
    async with Client(wire) as client:
        await client.list_tools()
        with pytest.raises(TypeError, match="the arguments of tools/call are not JSON"):
            await client.call_tool(name, arguments)
    assert wire.calls == []


# Arguments that headers repeat


@pytest.mark.parametrize(
    ("kind", "value", "header"),
    [
        ("string", "north", "north"),
        ("string", "", ""),
        ("string", " north", "=?base64?IG5vcnRo?="),
        ("string", "a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("integer", 42, "42"),
        ("integer", -1, "-1"),
        ("integer", 2**53 - 1, "9007199254740991"),
        ("boolean", True, "true"),
        ("boolean", False, "false"),
    ],
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


@pytest.mark.parametrize("arguments", [None, {}, {"region": None}, {"other": "x"}])
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


INVALID = [
    ({"region": {"type": "string", "x-mcp-header": ""}}, "region: x-mcp-header must be a header name"),
    ({"region": {"type": "string", "x-mcp-header": "a b"}}, "must be a header name"),
    ({"region": {"type": "string", "x-mcp-header": "a\nb"}}, "must be a header name"),
    ({"region": {"type": "string", "x-mcp-header": 5}}, "must be a header name"),
    ({"price": {"type": "number", "x-mcp-header": "Price"}}, "price: only a string, an integer or a boolean"),
    ({"a": {"type": "string", "x-mcp-header": "X"}, "b": {"type": "string", "x-mcp-header": "x"}}, "two properties"),
    ({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}, "where no path of plain properties"),
    ({"n": {"type": "integer", "maximum": 2**53, "x-mcp-header": "N"}}, "n: a mirrored integer must stay within 2**53"),
    ({"a\nb": {"type": "array", "x-mcp-header": "A"}}, "a\\nb: only a string, an integer or a boolean"),
]


@pytest.mark.parametrize(("properties", "reason"), INVALID)
async def test_a_tool_whose_headers_are_invalid_is_left_out_with_a_warning(
    properties: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(Wire(listing(tool("odd", **properties), REGION))) as client:
        assert [listed.name for listed in (await client.list_tools()).tools] == ["buy"]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning.startswith("the tool 'odd' is left out: ")
    assert reason in warning


async def test_where_there_are_no_headers_no_tool_is_left_out() -> None:
    async with Client(Stdio(listing(tool("odd", **INVALID[0][0])))) as client:
        assert [listed.name for listed in (await client.list_tools()).tools] == ["odd"]


@pytest.mark.parametrize("tools", [5, [5], [None], [{"name": 1}], [{"name": "x", "inputSchema": 5}]])
async def test_a_malformed_listing_is_said_to_be_one(tools: Any) -> None:
    async with Client(Wire({**listing(), "tools": tools})) as client:
        with pytest.raises(InvalidServerResponse, match=r"ListToolsResult is malformed: see tools"):
            await client.list_tools()


# A header that was wrong


async def test_after_a_mismatch_the_tools_are_read_again_and_the_call_is_sent_once_more() -> None:
    wire = Wire(fails(MISMATCH), listing(tool("other"), more="2"), listing(REGION), COMPLETE)
    async with Client(wire) as client:
        assert text(await client.call_tool("buy", {"region": "north"})) == "done"
    assert wire.methods == ["server/discover", "tools/call", "tools/list", "tools/list", "tools/call"]
    first, second = wire.calls
    assert second.headers["Mcp-Param-Region"] == "north"
    assert first.id != second.id
    assert wire.params[2]["cursor"] == "2"


async def test_a_mismatch_in_a_later_round_is_put_right_without_asking_again() -> None:
    wire = Wire(asking({"q": FORM}, "state"), fails(MISMATCH), listing(REGION), COMPLETE)
    person = Person({"q": accept(sure=True)})
    async with Client(wire, elicitation_callback=person) as client:
        assert text(await client.call_tool("buy", {"region": "north"})) == "done"
    assert person.asked == ["q"]
    assert wire.params[-1]["requestState"] == "state"
    assert wire.params[-1]["inputResponses"] == {"q": {"action": "accept", "content": {"sure": True}}}


async def test_a_second_mismatch_is_the_answer() -> None:
    wire = Wire(fails(MISMATCH), listing(REGION), fails(MISMATCH))
    async with Client(wire) as client:
        with pytest.raises(MCPError, match="Mcp-Param-Region is missing"):
            await client.call_tool("buy", {"region": "north"})
    assert wire.methods[1:] == ["tools/call", "tools/list", "tools/call"]


async def test_a_call_that_would_look_the_same_is_not_sent_again() -> None:
    wire = Wire(fails(MISMATCH), listing())
    async with Client(wire) as client:
        with pytest.raises(MCPError, match="Mcp-Param-Region is missing"):
            await client.call_tool("buy", {"region": "north"})
    assert wire.methods[1:] == ["tools/call", "tools/list"]


async def test_pages_without_end_are_not_read_for_ever() -> None:
    wire = Wire(fails(MISMATCH), listing(more="again"))
    async with Client(wire) as client:
        with pytest.raises(MCPError, match="Mcp-Param-Region is missing"):
            await client.call_tool("buy", {"region": "north"})
    assert wire.methods.count("tools/list") == PAGES


@pytest.mark.parametrize("wire", [Stdio(fails(MISMATCH)), Wire(fails({"code": -32602, "message": "is missing"}))])
async def test_other_errors_and_other_transports_are_no_reason_to_read_the_tools(wire: Wire) -> None:
    async with Client(wire) as client:
        with pytest.raises(MCPError, match="is missing"):
            await client.call_tool("buy", {"region": "north"})
    assert wire.methods[1:] == ["tools/call"]


async def test_a_mismatch_of_a_listing_is_the_answer() -> None:
    wire = Wire(fails(MISMATCH))
    async with Client(wire) as client:
        with pytest.raises(MCPError, match="is missing"):
            await client.list_tools()
    assert wire.methods[1:] == ["tools/list"]


@pytest.mark.every_revision
async def test_mirrored_arguments_arrive_whatever_they_hold_though_nobody_listed_the_tools(connect: Connect) -> None:
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


# A response that was lost


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
async def test_a_request_that_only_reads_is_sent_again_once_with_an_id_of_its_own(method: str) -> None:
    wire = Wire(lost, listing(REGION))
    async with Client(wire) as client:
        if method == "server/discover":
            wire._discovered = lost  # pyright: ignore[reportPrivateUsage] - it connects first
            with pytest.raises(Lost):
                await client.session.discover()
        else:
            assert (await client.list_tools()).tools[0].name == "buy"
    first, second = wire.sent[1:]
    assert (first.method, second.method) == (method, method)
    assert first.id != second.id
    assert first.headers == second.headers


async def test_a_response_lost_twice_is_lost() -> None:
    wire = Wire(lost)
    async with Client(wire) as client:
        with pytest.raises(Lost, match=r"the connection broke before it answered; whether .* is not known"):
            await client.list_tools()
    assert wire.methods[1:] == ["tools/list"] * 2


async def test_a_call_whose_response_is_lost_is_never_sent_again() -> None:
    wire = Wire(lost)
    async with Client(wire) as client:
        with pytest.raises(Lost, match="is not known"):
            await client.call_tool("buy")
    assert wire.methods[1:] == ["tools/call"]


@pytest.mark.parametrize("error", [ConnectionError("cannot connect"), TimeoutError("went silent")])
async def test_what_is_not_lost_is_not_sent_again(error: Exception) -> None:
    def fail(request: Any, notify: Any) -> Any:
        raise error

    wire = Wire(fail)
    async with Client(wire) as client:
        with pytest.raises(type(error), match=str(error)):
            await client.list_tools()
    assert wire.methods[1:] == ["tools/list"]


# Time


async def test_a_timeout_counts_each_request_and_never_the_time_a_callback_takes(connect: Connect) -> None:
    mcp = MCPServer("shop")

    class Sure(BaseModel):
        sure: bool

    async def confirm() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @mcp.tool()
    async def buy(sure: Annotated[Sure, Resolve(confirm)], ctx: Context) -> str:
        await ctx.report_progress(1, 1)
        return f"{sure.sure}"

    seen: list[float] = []

    async def slow_person(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        await asyncio.sleep(0.3)
        return accept(sure=True)

    async def slow_progress(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0.3)
        seen.append(progress)

    async with connect(mcp, elicitation_callback=slow_person, read_timeout_seconds=0.25) as client:
        assert text(await client.call_tool("buy", progress_callback=slow_progress)) == "True"
    assert seen == [1]


# What a client connects to


SCRIPT = """
from bespeak import MCPServer
mcp = MCPServer("child")

@mcp.tool()
def hello() -> str:
    return "hello"

mcp.run()
"""


@pytest.mark.parametrize("what", ["a URL", "a server", "a command"])
async def test_a_client_connects_to(what: str, tmp_path: Path) -> None:
    mcp = MCPServer("here")

    @mcp.tool()
    def hello() -> str:
        return "hello"

    (tmp_path / "child.py").write_text(SCRIPT)
    async with Listening(mcp.streamable_http_app()) as listening:
        server = {
            "a URL": listening.url,
            "a server": mcp,
            "a command": StdioServerParameters(sys.executable, [str(tmp_path / "child.py")]),
        }[what]
        async with Client(server) as client:
            assert text(await client.call_tool("hello")) == "hello"


@pytest.mark.parametrize("server", [5, None, object(), b"http://127.0.0.1/mcp", ["python", "server.py"]])
def test_a_client_says_what_it_connects_to(server: Any) -> None:
    told = "a client connects to a URL, StdioServerParameters, an MCPServer or a transport, not to "
    with pytest.raises(TypeError, match=told + type(server).__name__):
        Client(server)


async def test_a_client_over_http_without_httpx2_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ImportError, match=r"a client over HTTP needs httpx2: pip install 'bespeak\[http\]'"):
        await Client("http://127.0.0.1:1/mcp").__aenter__()
