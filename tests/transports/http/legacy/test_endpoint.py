"""Older clients over HTTP: the handshake, the era of a message (protocol 25.1, 27.1), and statuses."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from bespeak import MCPServer
from tests.transports.http.legacy.older_client import (
    JUNE,
    MODERN,
    NOVEMBER,
    OLDER,
    Desk,
    Older,
    Served,
    call,
    hello,
    modern,
    notification,
    request,
    served,
)

META = "io.modelcontextprotocol/protocolVersion"


@pytest.fixture(scope="module")
def mcp() -> MCPServer[Any]:
    """Nobody holds its tools up, so all tests may share it."""
    return Desk().mcp


@pytest.fixture
async def server(mcp: MCPServer[Any]) -> AsyncGenerator[Served]:
    async with served(mcp) as listening:
        yield listening


# The handshake


@pytest.mark.parametrize("version", OLDER)
async def test_a_revision_that_is_spoken_is_echoed(server: Served, version: str) -> None:
    reply = await server.stranger().post(hello(version))
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json["result"]["protocolVersion"] == version
    assert reply.json["id"] == 0


@pytest.mark.parametrize("version", ["2099-12-31", MODERN, ""])
async def test_any_other_revision_is_answered_with_the_newest_of_the_era(server: Served, version: str) -> None:
    reply = await server.stranger().post(hello(version))
    assert reply.status == 200
    assert reply.json["result"]["protocolVersion"] == NOVEMBER


async def test_the_handshake_says_who_serves_and_what_it_can_do() -> None:
    mcp = MCPServer("desk", title="The desk", description="Takes calls", instructions="Be brief", version="3")
    async with served(mcp) as server:
        result = (await server.stranger().post(hello())).json["result"]
    assert set(result) == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
    assert result["serverInfo"] == {"name": "desk", "title": "The desk", "description": "Takes calls", "version": "3"}
    assert result["instructions"] == "Be brief"
    assert "tools" in result["capabilities"]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({}, "protocolVersion must be the revision"),
        ({"protocolVersion": 3, "capabilities": {}}, "protocolVersion must be the revision"),
        ({"protocolVersion": NOVEMBER, "capabilities": []}, "capabilities must be an object"),
    ],
)
async def test_a_handshake_that_makes_no_sense_opens_no_session(server: Served, params: Any, says: str) -> None:
    reply = await server.stranger().post(request("initialize", params, id_="x"))
    assert (reply.status, reply.code, reply.json["id"]) == (400, -32602, "x")
    assert says in reply.reason
    assert "mcp-session-id" not in reply.headers
    assert server.sessions == 0


@pytest.mark.parametrize("info", [None, {"name": 3}])
async def test_a_client_that_does_not_say_who_it_is_is_served_all_the_same(server: Served, info: Any) -> None:
    reply = await server.stranger().post(
        request("initialize", {"protocolVersion": NOVEMBER, "capabilities": {}, "clientInfo": info})
    )
    assert reply.status == 200


async def test_initialize_twice_in_one_session_is_refused_and_the_session_goes_on(server: Served) -> None:
    older = await server.client()
    reply = await older.post(hello(id_=9))
    assert (reply.status, reply.code, reply.json["id"]) == (200, -32600, 9)
    assert "initialize was already answered" in reply.reason
    assert (await older.post(call("echo", {"text": "still here"}))).text == "still here"


async def test_a_client_that_never_says_it_is_initialized_is_served(server: Served) -> None:
    reply = await server.stranger().post(hello())
    older = Older(server.port, NOVEMBER, reply.headers["mcp-session-id"])
    assert (await older.post(call("echo", {"text": "hi"}))).text == "hi"


# Whose era a message is: the table, row by row


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_row_1_without_sessions_there_is_only_post(verb: str) -> None:
    async with (
        served(Desk().mcp, stateless_http=True) as server,
        server.stranger().open(verb=verb, mcp_session_id="x") as exchange,
    ):
        reply = await exchange.whole()
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert "this server has no sessions" in reply.reason


@pytest.mark.parametrize("version", ["2025-06-19", ""])
@pytest.mark.parametrize("method", ["tools/list", "initialize"])
async def test_row_2_an_unknown_version_in_the_header_is_unsupported(server: Served, version: str, method: str) -> None:
    body = hello() if method == "initialize" else request(method)
    reply = await server.stranger().post(body, mcp_protocol_version=version)
    assert (reply.status, reply.code) == (400, -32022)
    assert reply.json["error"]["data"]["supported"] == [MODERN, *reversed(OLDER)]
    assert reply.json["error"]["data"]["requested"] == version


async def test_row_2_a_modern_header_asks_for_modern_metadata(server: Served) -> None:
    older = await server.client()
    reply = await older.post(request("tools/list"), mcp_protocol_version=MODERN, mcp_method="tools/list")
    assert (reply.status, reply.code) == (400, -32602)
    assert "params._meta is missing" in reply.reason


@pytest.mark.parametrize("version", OLDER)
async def test_row_3_an_older_header_over_a_modern_body_is_a_mismatch(server: Served, version: str) -> None:
    older = await server.client()
    reply = await older.post(modern("tools/list"), mcp_protocol_version=version, mcp_method="tools/list")
    assert (reply.status, reply.code) == (400, -32020)
    assert f"MCP-Protocol-Version is {version!r}, but" in reply.reason


@pytest.mark.parametrize("version", OLDER)
async def test_row_4_an_older_header_finds_its_session(server: Served, version: str) -> None:
    older = await server.client(version)
    reply = await older.post(request("tools/list"), mcp_protocol_version=version)
    assert reply.status == 200
    assert "resultType" not in reply.json["result"]


async def test_row_4_an_older_header_without_a_session_is_told_what_is_missing(server: Served) -> None:
    reply = await server.stranger().post(request("tools/list", id_="x"), mcp_protocol_version=JUNE)
    assert (reply.status, reply.code, reply.json["id"]) == (400, -32600, "x")
    assert "Mcp-Session-Id is missing" in reply.reason
    assert "the response to initialize" in reply.reason


@pytest.mark.parametrize("within", [False, True], ids=["without a session", "within one"])
async def test_row_5_a_modern_body_without_the_header_lacks_it(server: Served, within: bool) -> None:
    older = await server.client() if within else server.stranger()
    reply = await older.post(modern("tools/list"), mcp_protocol_version=None, mcp_method="tools/list")
    assert (reply.status, reply.code) == (400, -32020)
    assert "MCP-Protocol-Version is missing" in reply.reason


@pytest.mark.parametrize("meta", [{"progressToken": 1}, [], {META.upper(): MODERN}])
async def test_row_6_a_bare_meta_is_no_sign_of_the_modern_revision(server: Served, meta: Any) -> None:
    body = hello()
    body["params"]["_meta"] = meta
    assert (await server.stranger().post(body)).status == 200


async def test_row_7_a_session_id_without_the_header_is_enough(server: Served) -> None:
    for version in OLDER:
        older = await server.client(version)
        reply = await older.post(call("echo", {"text": version}), mcp_protocol_version=None)
        assert (reply.status, reply.text) == (200, version)


@pytest.mark.parametrize("method", ["tools/call", "nonsense"])
async def test_row_8_neither_header_nor_session_is_told_of_both(server: Served, method: str) -> None:
    reply = await server.stranger().post(request(method, id_=4))
    assert (reply.status, reply.code, reply.json["id"]) == (400, -32020, 4)
    assert "the headers MCP-Protocol-Version and Mcp-Session-Id are missing" in reply.reason


async def test_a_modern_request_is_served_as_one_whatever_session_it_names(server: Served) -> None:
    older = await server.client()
    for session in (older.session, "made up"):
        reply = await older.post(
            modern("tools/list"), mcp_protocol_version=MODERN, mcp_method="tools/list", mcp_session_id=session
        )
        assert reply.json["result"]["resultType"] == "complete"
        assert "mcp-session-id" not in reply.headers


async def test_both_eras_are_served_on_one_connection_by_turns(server: Served) -> None:
    older = await server.client()
    now = {"mcp_protocol_version": MODERN, "mcp_method": "tools/list"}
    async with older.open(request("tools/list")) as exchange:
        for turn in range(4):
            if turn:
                message = modern("tools/list") if turn % 2 else request("tools/list")
                exchange.headers = older.headers(**now) if turn % 2 else older.headers()
                exchange.body = json.dumps(message).encode()
                exchange.send()
            reply = await exchange.whole()
            assert ("resultType" in reply.json["result"]) == bool(turn % 2)


# Headers that do not say one thing


@pytest.mark.parametrize("name", ["mcp-session-id", "mcp-protocol-version"])
async def test_a_header_that_is_there_twice_is_refused(server: Served, name: str) -> None:
    older = await server.client()
    value = older.headers()[name]
    reply = await older.post(request("tools/list"), **{name: f"{value}\r\n{name}: {value}"})
    assert (reply.status, reply.code) == (400, -32020)
    assert "occurs more than once" in reply.reason


@pytest.mark.parametrize("version", ["garbage"])
@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_an_invalid_version_header_is_refused_on_every_request_after_initialize(
    server: Served, verb: str, version: str
) -> None:
    older = await server.client()
    async with older.open(verb=verb, mcp_protocol_version=version) as exchange:
        assert await exchange.head() == 400
    assert server.sessions == 1


@pytest.mark.parametrize("origin", ["http://evil.example"])
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
async def test_a_foreign_origin_is_turned_away_whatever_it_asks(server: Served, verb: str, origin: str) -> None:
    older = await server.client()
    async with older.open(request("ping"), verb=verb, origin=origin) as exchange:
        assert (await exchange.whole()).status == 403
    assert server.sessions == 1


# Statuses within a session


@pytest.mark.parametrize(
    ("message", "code", "says"),
    [
        (request("nonsense"), -32601, "unknown method 'nonsense'"),
        (call("nonsense"), -32602, "unknown tool 'nonsense'"),
        (request("logging/setLevel", {"level": "loud"}), -32602, "level must be one of debug, info"),
    ],
)
async def test_an_error_within_a_session_is_no_failure_of_http(
    server: Served, message: dict[str, Any], code: int, says: str
) -> None:
    reply = await (await server.client()).post({**message, "id": "e"})
    assert (reply.status, reply.code, reply.json["id"]) == (200, code, "e")
    assert says in reply.reason


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"{", -32700),
        (b"17", -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602),
    ],
)
async def test_what_is_no_message_is_a_bad_request(server: Served, raw: bytes, code: int) -> None:
    reply = await (await server.client()).post(raw)
    assert (reply.status, reply.code) == (400, code)


async def test_a_ping_is_answered_with_nothing(server: Served) -> None:
    reply = await (await server.client()).post(request("ping", id_="p"))
    assert (reply.status, reply.json) == (200, {"jsonrpc": "2.0", "id": "p", "result": {}})


# What wants no answer


@pytest.mark.parametrize(
    "message",
    [
        notification("notifications/initialized"),
        notification("notifications/cancelled", requestId={"a": []}),
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed", "params": [1]},
        {"jsonrpc": "2.0", "id": "q-1", "result": {}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "no"}},
    ],
)
async def test_notifications_and_responses_are_taken_with_202_and_nothing_else(server: Served, message: Any) -> None:
    reply = await (await server.client()).post(message)
    assert (reply.status, reply.body) == (202, b"")


@pytest.mark.parametrize(
    "message",
    [notification("notifications/initialized"), {"jsonrpc": "2.0", "id": "q-1", "result": {}}],
    ids=["notification", "response"],
)
async def test_what_wants_no_answer_needs_a_session_too(server: Served, message: Any) -> None:
    stranger = server.stranger()
    assert (await stranger.post(message, mcp_protocol_version=JUNE)).status == 400
    assert (await stranger.post(message, mcp_protocol_version=JUNE, mcp_session_id="made-up")).status == 404
    assert (await stranger.post(message, mcp_session_id="made-up")).status == 404
