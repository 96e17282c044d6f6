"""The body of an HTTP request: one JSON-RPC message, in time, within limits; and `Mcp-Param-*` against it."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.transports.http.raw_requests import VERSION, Lines, Response, answer, lines, make_server, message, send
from tests.waiting import eventually
from tests.wires import Listening, Parser

LIMIT = 4 * 1024 * 1024


@pytest.fixture(params=["h11", "httptools"])
async def server(request: pytest.FixtureRequest) -> AsyncGenerator[Listening]:
    async with Listening(make_server().streamable_http_app(), request.param) as listening:
        yield listening


async def test_a_refusal_before_the_message_is_read_carries_no_id(server: Listening) -> None:
    response = await send(server, message(), lines(accept="text/html"))
    assert response.json().keys() == {"jsonrpc", "error"}


# One message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"jsonrpc": "2.0", "method": "\xc3\x28"}',
        b'{"jsonrpc": "2.0", "method": "\\ud800"}',
        b"[" * 100_000,
        b'{"id": ' + b"9" * 5_000 + b"}",
    ],
    ids=lambda body: repr(body[:24]),
)
async def test_what_is_not_json_in_utf_8_is_a_parse_error(server: Listening, body: bytes) -> None:
    response = await send(server, body)
    assert (response.status, response.code) == (400, -32700)
    assert "not valid JSON" in response.message
    assert "id" not in response.json()


@pytest.mark.parametrize("body", [[], [message()], 7])
async def test_a_batch_or_no_object_is_an_invalid_request(server: Listening, body: Any) -> None:
    response = await send(server, body)
    assert (response.status, response.code) == (400, -32600)
    assert "one JSON-RPC message at a time: the body must be an object" in response.message
    assert "id" not in response.json()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"jsonrpc": "1.0"}, '"jsonrpc": "2.0"'),
        ({"method": None}, "the message has no method"),
        ({"method": 7}, "the message has no method"),
    ],
)
async def test_a_wrong_envelope_is_an_invalid_request_under_its_id(
    server: Listening, change: dict[str, Any], says: str
) -> None:
    response = await send(server, {**message(id_="me"), **change})
    assert (response.status, response.code, response.json()["id"]) == (400, -32600, "me")
    assert says in response.message


@pytest.mark.parametrize("id_", [None, True, 1.5])
async def test_an_id_of_another_kind_is_refused_and_not_repeated(server: Listening, id_: Any) -> None:
    response = await send(server, message(id_=id_))
    assert (response.status, response.code) == (400, -32600)
    assert "the id must be a string or an integer" in response.message
    assert "id" not in response.json()


@pytest.mark.parametrize("id_", [0, "", 10**400, "日本\u0000\n"], ids=lambda id_: str(id_)[:12])
async def test_every_id_comes_back_as_it_was_sent(server: Listening, id_: Any) -> None:
    response = await send(server, message(id_=id_))
    found = response.json()["id"]
    assert (response.status, found, type(found)) == (200, id_, type(id_))


@pytest.mark.parametrize("params", [None, []])
async def test_params_that_are_no_object_are_invalid(server: Listening, params: Any) -> None:
    response = await send(server, {**message(id_=3), "params": params})
    assert (response.status, response.code, response.json()["id"]) == (400, -32602, 3)
    assert "params must be an object" in response.message


META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize(
    ("meta", "says"),
    [
        (None, "params._meta is missing"),
        ({}, "must contain io.modelcontextprotocol/protocolVersion, a string"),
        ({"io.modelcontextprotocol/protocolVersion": VERSION}, "io.modelcontextprotocol/clientCapabilities, an object"),
        (
            {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": True}},
            "elicitation must be an object",
        ),
        ({**META, "progressToken": 1.5}, "progressToken must be a string or an integer"),
    ],
)
async def test_malformed_metadata_is_invalid_whatever_the_headers_say(server: Listening, meta: Any, says: str) -> None:
    one = message(id_=3)
    one["params"]["_meta"] = meta
    response = await send(server, one)
    assert (response.status, response.code, response.json()["id"]) == (400, -32602, 3)
    assert says in response.message


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"name": "nobody"}, "unknown tool 'nobody'"),
        ({"name": 7}, "params.name must be the name of a tool"),
        ({"arguments": [1]}, "params.arguments must be an object"),
        ({"inputResponses": {"a": 1}}, "inputResponses['a'] must be an object"),
        ({"requestState": 7}, "invalid or expired requestState"),
    ],
)
async def test_wrong_params_are_invalid_with_status_400(server: Listening, params: dict[str, Any], says: str) -> None:
    one = message(**params)
    name = one["params"]["name"]
    response = await send(server, one, lines(mcp_name=name if isinstance(name, str) else None))
    assert (response.status, response.code) == (400, -32602)
    assert says in response.message


async def test_bad_arguments_are_a_result_that_the_model_can_read(server: Listening) -> None:
    response = await send(server, message(arguments={"text": 7}))
    assert (response.status, response.json()["result"]["isError"]) == (200, True)


async def test_deep_arguments_are_served_as_deep_as_they_can_be_read(server: Listening) -> None:
    deep: Any = 1
    for _ in range(190):
        deep = [deep]
    assert (await send(server, message(arguments={"text": "x", "more": deep}))).status == 200


# Notifications


@pytest.mark.parametrize("method", ["notifications/initialized", "tools/call"])
async def test_a_notification_is_accepted_and_dropped(server: Listening, method: str) -> None:
    body = {"jsonrpc": "2.0", "method": method, "params": {"requestId": 1}}
    response = await send(server, body, lines(mcp_method=None, mcp_name=None, mcp_protocol_version=None))
    assert (response.status, response.body) == (202, b"")


# Limits


async def open_request(server: Listening, headers: Lines, first: bytes = b"") -> tuple[asyncio.StreamReader, Any]:
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + first)
    return reader, writer


async def begin(server: Listening, headers: Lines, first: bytes = b"") -> Response:
    """The answer to a request whose body is not at its end."""
    reader, writer = await open_request(server, headers, first)
    try:
        return await answer(reader)
    finally:
        writer.close()


async def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(server: Listening) -> None:
    response = await begin(server, lines(content_length=str(5 * 1024 * 1024)))
    assert (response.status, response.code) == (413, -32600)
    assert f"the body is larger than {LIMIT} bytes, the most this server accepts" in response.message


async def test_a_client_that_waits_to_be_told_to_go_on_hears_that_the_body_is_too_large(server: Listening) -> None:
    response = await begin(server, lines(content_length=str(5 * 1024 * 1024), expect="100-continue"))
    assert response.status == 413


async def test_a_body_that_does_not_say_its_length_is_refused_when_it_is_too_large(server: Listening) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    response = await begin(server, lines(transfer_encoding="chunked"), chunk * (LIMIT // 0x10000) + b"1\r\nx\r\n")
    assert response.status == 413
    assert "larger than 4194304 bytes" in response.message


@pytest.mark.long
async def test_the_rest_of_a_body_that_is_too_large_is_not_read(server: Listening) -> None:
    reader, writer = await open_request(server, lines(content_length=str(10**9)))
    assert b" 413 " in await reader.readline()
    writer.write(b"x" * 64_000_000)
    with pytest.raises(OSError, match=r"(?i)reset|broken pipe|lost"):
        await writer.drain()
    writer.close()


@pytest.mark.parametrize(("spare", "status"), [(0, 200), (1, 413)])
@pytest.mark.parametrize("chunked", [False, True])
async def test_the_limit_is_exact_and_may_be_set(spare: int, status: int, chunked: bool) -> None:
    raw = json.dumps(message()).encode()
    app = make_server().streamable_http_app(max_request_body_size=len(raw) - spare)
    async with Listening(app) as server:
        if chunked:
            body = b"5\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (raw[:5], len(raw) - 5, raw[5:])
            response = await begin(server, lines(transfer_encoding="chunked"), body)
        else:
            response = await send(server, raw)
    assert response.status == status


@pytest.mark.timing
@pytest.mark.parametrize("parser", ["h11", "httptools"])
async def test_a_body_that_trickles_is_not_waited_for_forever(parser: Parser) -> None:
    app = make_server().streamable_http_app(request_body_timeout=0.05)
    async with Listening(app, parser) as server:
        reader, writer = await open_request(server, lines(content_length="1000"))
        dripping = asyncio.create_task(drip(writer))
        response = await answer(reader)
        dripping.cancel()
        writer.close()
    assert (response.status, response.code) == (408, -32600)
    assert "the body did not arrive within 0.05 s" in response.message


async def drip(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b" ")
        await asyncio.sleep(0.01)


async def test_a_client_that_leaves_before_the_end_of_its_body_is_no_error(
    server: Listening, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        _, writer = await open_request(server, lines(content_length="1000"), b"{")
        await eventually(lambda: len(server.connections) == 1)
        writer.close()
        await eventually(lambda: len(server.connections) == 0)
        assert (await send(server, message())).status == 200
    assert caplog.messages == []


# Arguments that headers repeat


async def place(server: Listening, arguments: dict[str, Any], headers: Lines) -> Response:
    given = [(f"Mcp-Param-{name}", value) for name, value in headers]
    return await send(server, message(name="place", arguments=arguments), [*lines(name="place"), *given])


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "north"}, [("REGION", "  north\t")]),
        ({"region": "日本語"}, [("Region", "=?base64?5pel5pys6Kqe?=")]),
        ({"count": 42}, [("Count", "42.0")]),
        ({"fast": True}, [("Fast", "true")]),
        ({}, []),
    ],
)
async def test_an_argument_that_its_header_repeats_is_taken(
    server: Listening, arguments: dict[str, Any], headers: Lines
) -> None:
    response = await place(server, arguments, headers)
    assert (response.status, response.json()["result"].get("isError", False)) == (200, False)


@pytest.mark.parametrize(
    ("arguments", "headers", "says"),
    [
        ({"region": "north"}, [], "the header Mcp-Param-Region is missing; it repeats the argument 'region'"),
        ({"region": "north"}, [("Region", "North")], "Mcp-Param-Region differs from the argument 'region'"),
        ({"region": "north"}, [("Region", "north"), ("Region", "north")], "Mcp-Param-Region occurs more than once"),
        ({"region": "north"}, [("Region", "=?base64?bm9ydGg?=")], "does not contain valid Base64 of UTF-8 text"),
        ({}, [("Region", "north")], "is present, but the argument 'region', which it repeats, is missing"),
        ({"count": 42}, [("Count", "43")], "differs"),
    ],
)
async def test_an_argument_that_its_header_does_not_repeat_is_refused(
    server: Listening, arguments: dict[str, Any], headers: Lines, says: str
) -> None:
    response = await place(server, arguments, headers)
    assert (response.status, response.code, response.json()["id"]) == (400, -32020, 1)
    assert says in response.message


async def test_an_argument_of_a_kind_no_header_can_carry_is_a_wrong_argument(server: Listening) -> None:
    response = await place(server, {"region": ["north"]}, [])
    assert (response.status, response.json()["result"]["isError"]) == (200, True)


async def test_a_response_is_no_request(server: Listening) -> None:
    response = await send(server, {"jsonrpc": "2.0", "id": 1, "result": {}})
    assert (response.status, response.code) == (400, -32600)
