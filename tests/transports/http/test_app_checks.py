"""The checks before an HTTP request becomes a call: their order, statuses, and headers against the body."""

import base64
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.transports.http.raw_requests import VERSION, lines, make_server, message, send
from tests.wires import Listening


async def test_a_right_request_is_served(server: Listening) -> None:
    response = await send(server, message(arguments={"text": "hello"}, id_="a"))
    assert response.status == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json()["id"] == "a"
    assert response.json()["result"]["content"][0]["text"] == "hello"


# The order of checks


RUNGS: list[tuple[str, int, int, str]] = [
    ("origin", 403, -32600, "origin 'http://evil.example' is not allowed"),
    ("verb", 405, -32600, "with POST"),
    ("accept", 406, -32600, "Accept header must list application/json and text/event-stream"),
    ("content-type", 415, -32600, "Content-Type must be application/json"),
    ("json", 400, -32700, "not valid JSON"),
    ("batch", 400, -32600, "one JSON-RPC message at a time"),
    ("meta", 400, -32602, "params._meta is missing"),
    ("version header", 400, -32020, "MCP-Protocol-Version is missing"),
    ("method header", 400, -32020, "Mcp-Method is missing"),
    ("name header", 400, -32020, "Mcp-Name is missing"),
    ("version", 400, -32022, "unsupported protocol version"),
    ("method", 404, -32601, "unknown method"),
    ("param header", 400, -32020, "Mcp-Param-Region is missing"),
    ("params", 400, -32602, "inputResponses must be an object"),
]


@pytest.mark.parametrize(("fault", "status", "code", "says"), RUNGS, ids=[rung[0] for rung in RUNGS])
async def test_checks_come_in_the_order_of_the_protocol(
    server: Listening, fault: str, status: int, code: int, says: str
) -> None:
    """A request is wrong in this way and in every way that is looked at later; only the first fault is told."""
    order = [rung[0] for rung in RUNGS]

    def wrong(name: str) -> bool:
        return order.index(name) >= order.index(fault)

    version = "v999" if wrong("version") else VERSION
    method = "no/such" if fault == "method" else "tools/call"
    one = message(method, version, name="place", arguments={"region": "north"}, inputResponses=7)
    if wrong("meta"):
        del one["params"]["_meta"]
    # What says nowhere which revision it speaks might be an older client's: there the header has to.
    said = {"batch": version, "meta": VERSION}.get(fault, None if wrong("version header") else version)
    body = b"{" if wrong("json") else json.dumps([one] if wrong("batch") else one).encode()
    headers = lines(
        method,
        origin="http://evil.example" if wrong("origin") else None,
        accept="text/html" if wrong("accept") else "*/*",
        content_type="text/plain" if wrong("content-type") else "application/json",
        mcp_protocol_version=said,
        mcp_method=None if wrong("method header") else method,
        mcp_name=None if wrong("name header") else "place",
        mcp_param_region=None if wrong("param header") else "north",
    )
    response = await send(server, body, headers, verb="PUT" if wrong("verb") else "POST")
    assert (response.status, response.code) == (status, code)
    assert says in response.message
    assert response.headers["content-type"] == "application/json"


async def test_a_version_that_differs_is_a_mismatch_before_it_is_unsupported(server: Listening) -> None:
    response = await send(server, message(version="v999"))
    assert (response.status, response.code) == (400, -32020)
    assert (
        "MCP-Protocol-Version is '2026-07-28', but the protocol version in params._meta is 'v999'" in response.message
    )


async def test_an_unsupported_version_is_told_which_ones_are_supported(server: Listening) -> None:
    response = await send(server, message(version="v999"), lines(mcp_protocol_version="v999"))
    assert response.json()["error"]["data"] == {
        "supported": [VERSION, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
        "requested": "v999",
    }


async def test_a_legacy_version_in_the_metadata_is_unsupported(server: Listening) -> None:
    response = await send(server, message(version="2025-11-25"), lines(mcp_protocol_version="2025-11-25"))
    assert (response.status, response.code) == (400, -32022)


@pytest.mark.parametrize("method", ["initialize", ""])
async def test_an_unknown_or_removed_method_is_not_found(server: Listening, method: str) -> None:
    response = await send(server, message(method, id_=7), lines(method))
    assert (response.status, response.code, response.json()["id"]) == (404, -32601, 7)


async def test_the_name_of_a_resource_is_its_uri(server: Listening) -> None:
    response = await send(server, message("resources/read", uri="x://a"), lines("resources/read", mcp_name="x://b"))
    assert response.code == -32020
    assert "Mcp-Name is 'x://b', but params.uri is 'x://a'" in response.message


# Methods, paths, origins and hosts


UNMARKED: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.mark.parametrize("body", [UNMARKED, [UNMARKED]], ids=["one", "batch"])
async def test_what_says_nowhere_which_revision_it_speaks_is_told_what_is_missing(server: Listening, body: Any) -> None:
    # protocol 27.1, the last row: no header, no metadata, and no session either
    response = await send(server, body, lines("tools/list", without="mcp-protocol-version"))
    assert (response.status, response.code) == (400, -32020)
    assert "the headers MCP-Protocol-Version and Mcp-Session-Id are missing" in response.message


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_get_and_delete_are_for_the_sessions_of_older_clients(server: Listening, verb: str) -> None:
    response = await send(server, b"", lines(without="mcp-protocol-version"), verb=verb)
    assert (response.status, response.code) == (400, -32600)
    assert ("a stream needs a session" if verb == "GET" else "Mcp-Session-Id is missing") in response.message
    assert "id" not in response.json()


@pytest.mark.parametrize("verb", ["GET", "DELETE", "PUT"])
async def test_only_post_is_taken_and_the_response_says_so(server: Listening, verb: str) -> None:
    response = await send(server, b"", verb=verb)
    assert response.status == 405
    assert response.headers["allow"] == "POST"
    assert "id" not in response.json()


@pytest.mark.parametrize("path", ["/", "/mcpx", "/mcp/x"])
async def test_another_path_is_not_found_and_told_where_messages_go(server: Listening, path: str) -> None:
    response = await send(server, message(), path=path)
    assert response.status == 404
    assert "MCP messages go to '/mcp'" in response.message
    assert "id" not in response.json()


@pytest.mark.parametrize("path", ["/mcp/", "/mcp?x=1", "/m%63p"])
async def test_the_path_may_end_in_a_slash_and_carry_a_query(server: Listening, path: str) -> None:
    assert (await send(server, message(), path=path)).status == 200


def test_a_path_that_is_none_is_refused_when_the_app_is_made() -> None:
    with pytest.raises(ValueError, match="streamable_http_path must start with '/'; got 'mcp'"):
        make_server().streamable_http_app(streamable_http_path="mcp")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost.evil.example"])
async def test_a_foreign_origin_is_refused_before_anything_is_read(server: Listening, origin: str) -> None:
    response = await send(server, message(), lines(origin=origin))
    assert response.status == 403
    assert (
        f"the origin {origin!r} is not allowed; see TransportSecuritySettings(allowed_origins=...)" in response.message
    )


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://[::1]:1"])
async def test_a_page_on_loopback_may_reach_a_server_on_loopback(server: Listening, origin: str) -> None:
    assert (await send(server, message(), lines(origin=f"{origin}  "))).status == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80"])
async def test_a_server_on_loopback_goes_by_no_other_name(server: Listening, host: str) -> None:
    response = await send(server, message(), lines(host=host))
    assert response.status == 403
    assert f"the host {host!r} is not allowed; see TransportSecuritySettings(allowed_hosts=...)" in response.message


# Accept and Content-Type


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (None, 200),
        ("text/event-stream,application/json", 200),
        ("application/json", 406),
        ("application/json, text/event-stream;q=0", 406),
        ("", 406),
    ],
)
async def test_accept_must_allow_both_kinds_of_answer(server: Listening, accept: str | None, status: int) -> None:
    assert (await send(server, message(), lines(accept=accept))).status == status


async def test_accept_may_be_written_in_two_lines(server: Listening) -> None:
    """RFC 9110, 5.3: a list over several lines is one list."""
    headers = [*lines(accept="application/json"), ("Accept", "text/event-stream")]
    assert (await send(server, message(), headers)).status == 200


@pytest.mark.parametrize(
    ("content_type", "status"),
    [('application/json ; Charset="UTF-8"', 200), ("application/json; charset=utf-16", 415), (None, 415)],
)
async def test_the_body_must_say_that_it_is_json(server: Listening, content_type: str | None, status: int) -> None:
    assert (await send(server, message(), lines(content_type=content_type))).status == status


# The headers that repeat the body


ROUTING = {"mcp-protocol-version": VERSION, "mcp-method": "tools/call", "mcp-name": "echo"}


@pytest.mark.parametrize(("name", "value"), ROUTING.items())
async def test_a_routing_header_may_be_spelled_in_any_case_with_space_around_it(
    server: Listening, name: str, value: str
) -> None:
    headers = [*lines(without=name), (name.swapcase(), f" \t {value} \t ")]
    assert (await send(server, message(), headers)).status == 200


@pytest.mark.parametrize(("name", "value"), ROUTING.items())
@pytest.mark.parametrize("other", ["same", "other"])
async def test_a_routing_header_sent_twice_is_refused(server: Listening, name: str, value: str, other: str) -> None:
    response = await send(server, message(), [*lines(), (name.title(), value if other == "same" else other)])
    assert (response.status, response.code) == (400, -32020)
    assert "occurs more than once" in response.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mcp-method", "Tools/Call"),
        ("mcp-method", ""),
        ("mcp-name", "Echo"),
        ("mcp-name", "=?base64?ZWNobw=?="),
        ("mcp-protocol-version", ""),
    ],
)
async def test_a_routing_header_that_differs_from_the_body_is_refused(server: Listening, name: str, value: str) -> None:
    response = await send(server, message(id_="x"), [*lines(without=name), (name, value)])
    assert (response.status, response.code, response.json()["id"]) == (400, -32020, "x")


async def test_a_name_may_travel_in_base64(server: Listening) -> None:
    assert (await send(server, message(), lines(mcp_name="=?base64?ZWNobw==?="))).status == 200


async def test_a_name_that_is_not_ascii_travels_in_base64(server: Listening) -> None:
    name = f"=?base64?{base64.b64encode('日本'.encode()).decode()}?="
    response = await send(server, message(name="日本"), lines(mcp_name=name))
    assert (response.status, response.code) == (400, -32602)
    assert "unknown tool '日本'" in response.message


@pytest.fixture(params=["h11", "httptools"])
async def server(request: pytest.FixtureRequest) -> AsyncGenerator[Listening]:
    async with Listening(make_server().streamable_http_app(), request.param) as listening:
        yield listening
