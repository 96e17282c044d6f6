"""The HTTP client: responses as JSON and as events, servers that behave oddly, and giving up."""

import asyncio
import gzip
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from bespeak import Client, MCPServer
from bespeak.client import HttpStatusError, Lost, streamable_http_client
from bespeak.transports.http import client as http_client
from bespeak.transports.http.asgi import JSON, ASGIApp, Receive, Scope, Send, read_body
from bespeak.transports.http.client import HttpTransport, NotConnected
from bespeak.transports.interfaces import Outgoing
from tests.transports.http.scripted_server import (
    ANSWER,
    CALL,
    EVENTS,
    LONG,
    NOTE,
    Seen,
    ask,
    closed_port,
    event,
    says,
    streams,
)
from tests.waiting import eventually
from tests.wires import Listening

UNKNOWN = "whether .* was carried out is not known"


@asynccontextmanager
async def talking(*answer: bytes, port: int = 0) -> AsyncGenerator[str]:
    """The URL of a server that reads a request, writes these bytes and closes the connection."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'"}')
        writer.write(b"".join(answer))
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", port)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


# Answers


async def test_a_request_is_one_post_with_the_headers_of_the_protocol_and_its_own() -> None:
    seen = Seen()
    assert await ask(seen, headers={"X-Team": "blue"}) == ANSWER
    assert seen.requests[0][2] == CALL.message
    assert seen.header(b"accept") == [b"application/json, text/event-stream"]
    assert seen.header(b"content-type") == [b"application/json"]
    assert seen.header(b"mcp-method") == [b"tools/call"]
    assert seen.header(b"x-team") == [b"blue"]


@pytest.mark.parametrize("name", ["Mcp-Method", "mcp-method", "accept", "Accept", "content-type"])
async def test_a_header_of_the_caller_s_never_makes_one_of_the_protocol_s_come_twice(name: str) -> None:
    seen = Seen()
    await ask(seen, headers={name: "application/json, text/event-stream"})
    assert len(seen.header(name.lower().encode())) == 1


@pytest.mark.parametrize("kind", [b"application/json", b"application/json; charset=utf-8", b"Application/JSON"])
async def test_a_json_answer_is_taken_as_it_is(kind: bytes) -> None:
    assert await ask(says(200, ANSWER, (b"content-type", kind))) == ANSWER


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize("ends", ["\n\n", "\r\n\r\n", "\r\r", "\r\n\n", "\n\r\n"])
async def test_a_stream_reads_the_same_however_it_is_cut_and_its_lines_end(ends: str, size: int) -> None:
    end, blank = (ends[:2], ends[2:]) if ends.startswith("\r\n") else (ends[:1], ends[1:])
    first = [": comment", "event: message", f"data: {NOTE.decode()}", ":", "retry: 5", "id: 7"]
    last = ['data: {"jsonrpc":"2.0",', 'data:"id":1,"result":{}}']
    raw = "".join([*(line + end for line in first), blank, *(line + end for line in last), blank]).encode()
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    got: list[bytes] = []
    answer = await ask(streams(*pieces), got.append)
    assert (got, answer.replace(b"\n", b"")) == ([NOTE], ANSWER)


async def test_what_is_no_message_for_this_request_is_passed_over_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = b'{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{}}'
    got: list[bytes] = []
    odd = [event(b"nonsense"), event(b"[1]"), event(asked), b"event: ping\ndata: {}\n\n", b":\n\n", event(ANSWER)]
    assert await ask(streams(*odd), got.append) == ANSWER
    assert got == []
    assert caplog.text.count("sent an event that is not a JSON object; ignoring it") == 2
    assert caplog.text.count("sent a request, which this revision does not allow") == 1


async def test_notifications_are_handed_over_as_they_come() -> None:
    got: asyncio.Queue[bytes] = asyncio.Queue()
    goes_on = asyncio.Event()
    call = asyncio.create_task(ask(streams(event(NOTE), goes_on.wait, event(ANSWER)), got.put_nowait))
    assert await asyncio.wait_for(got.get(), 5) == NOTE
    assert not call.done()
    goes_on.set()
    assert await call == ANSWER


@pytest.mark.parametrize("kind", ["json", "events"])
async def test_a_compressed_answer_is_read(kind: str) -> None:
    packed = (b"content-encoding", b"gzip")
    if kind == "json":
        assert await ask(says(200, gzip.compress(ANSWER), JSON, packed)) == ANSWER
    else:
        data = gzip.compress(event(NOTE) + event(ANSWER))
        assert await ask(streams(data[:20], data[20:], headers=[EVENTS, packed])) == ANSWER


async def test_what_cannot_be_decompressed_is_an_error() -> None:
    with pytest.raises(ConnectionError, match="/mcp sent a response that cannot be decoded"):
        await ask(says(200, b"no gzip at all", JSON, (b"content-encoding", b"gzip")))


# Too much


async def test_an_answer_may_be_as_large_as_the_limit_and_no_larger() -> None:
    assert await ask(says(200, ANSWER, JSON), limit=len(ANSWER)) == ANSWER
    with pytest.raises(ConnectionError, match=f"/mcp sent more than {len(ANSWER) - 1} bytes"):
        await ask(says(200, ANSWER, JSON), limit=len(ANSWER) - 1)


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([LONG[at : at + 50] for at in range(0, len(LONG), 50)], id="in many pieces"),
        pytest.param([b":" + b"x" * 400, *[b"x" * 400] * 10], id="a comment without end"),
    ],
)
async def test_an_event_longer_than_the_limit_is_refused(pieces: list[bytes]) -> None:
    with pytest.raises(ConnectionError, match="/mcp sent an event of more than 200 bytes"):
        await ask(streams(*pieces), limit=200)


# No answer


@pytest.mark.parametrize("pieces", [[event(NOTE)], [b"data: " + ANSWER]])
async def test_a_stream_that_ends_without_an_answer_leaves_open_what_was_done(pieces: list[bytes]) -> None:
    with pytest.raises(Lost, match=f"/mcp ended its stream before the response arrived; {UNKNOWN}"):
        await ask(streams(*pieces))


async def test_a_stream_that_breaks_off_leaves_open_what_was_done() -> None:
    with pytest.raises(Lost, match=f"the connection to http://.*/mcp broke before the response arrived; {UNKNOWN}"):
        await ask(streams(event(NOTE), then=RuntimeError("the server crashed")))


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"],
)
async def test_a_connection_closed_before_the_whole_response_leaves_open_what_was_done(answer: bytes) -> None:
    async with talking(answer) as url, HttpTransport(url) as transport:
        with pytest.raises(Lost, match="whether tools/call was carried out is not known"):
            await transport.exchange(CALL, lambda data: None)


@pytest.mark.long
async def test_nobody_listening_means_that_nothing_was_sent() -> None:
    async with HttpTransport(f"http://127.0.0.1:{closed_port()}/mcp") as transport:
        with pytest.raises(ConnectionError, match=r"cannot connect to http://127\.0\.0\.1:\d+/mcp: \w+") as caught:
            await transport.exchange(CALL, lambda data: None)
    assert not isinstance(caught.value, Lost)


@pytest.mark.long
async def test_a_server_that_speaks_http_is_not_reached_with_https() -> None:
    async with (
        Listening(MCPServer("shop").streamable_http_app()) as listening,
        HttpTransport(listening.url.replace("http:", "https:")) as transport,
    ):
        with pytest.raises(ConnectionError, match="; the server may speak http and not https"):
            await transport.exchange(CALL, lambda data: None)


async def test_a_server_that_is_just_being_restarted_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "CONNECT_PAUSES", (0.05,) * 60)
    attempts: list[NotConnected] = []
    attempt = HttpTransport._exchange  # pyright: ignore[reportPrivateUsage] - each attempt to connect

    async def noting(*args: Any) -> bytes:
        try:
            return await attempt(*args)
        except NotConnected as error:
            attempts.append(error)
            raise

    monkeypatch.setattr(HttpTransport, "_exchange", noting)
    port = closed_port()
    async with HttpTransport(f"http://127.0.0.1:{port}/mcp") as transport:
        call = asyncio.create_task(transport.exchange(CALL, lambda data: None))
        await eventually(lambda: attempts)
        async with talking(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + ANSWER, port=port):
            assert await asyncio.wait_for(call, 5) == ANSWER


async def test_a_header_that_cannot_be_sent_is_not_said_to_be_a_request_that_was() -> None:
    seen = Seen()
    with pytest.raises((ValueError, ConnectionError)) as caught:
        await ask(seen, headers={"X-Team": "blue\r\nX-Other: red"})
    assert seen.requests == []
    assert not isinstance(caught.value, Lost)


@pytest.mark.timing
@pytest.mark.long
async def test_a_server_that_says_nothing_for_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "SILENCE_SECONDS", 0.05)
    with pytest.raises(TimeoutError, match=r"http://.*/mcp went silent during tools/call"):
        await ask(streams(event(NOTE), lambda: asyncio.sleep(1)))


@pytest.mark.timing
@pytest.mark.long
async def test_comments_break_the_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "SILENCE_SECONDS", 1.0)
    pieces: list[Any] = [b":\r\n\r\n", lambda: asyncio.sleep(0.1)] * 12  # together longer than the silence
    assert await ask(streams(*pieces, event(ANSWER))) == ANSWER


@pytest.mark.parametrize("when", ["never opened", "closed"])
async def test_a_transport_that_is_not_open_says_so(when: str) -> None:
    transport = HttpTransport("http://127.0.0.1:1/mcp")
    if when == "closed":
        async with transport:
            pass
    with pytest.raises(RuntimeError, match="the transport is not open; use it through `async with Client"):
        await transport.exchange(CALL, lambda data: None)


# Statuses


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, r"HTTP status 401; pass auth= \(any httpx2\.Auth\) or an Authorization header to streamable_http_client"),
        (403, "HTTP status 403; check the server's allowed hosts and origins"),
        (404, r"HTTP status 404\. Is this the path of its MCP endpoint\?"),
        (500, "HTTP status 500$"),
        (202, r"HTTP status 202 \(nothing instead of JSON\)$"),
    ],
)
async def test_a_status_without_a_message_is_an_error_that_says_what_to_do(status: int, hint: str) -> None:
    with pytest.raises(HttpStatusError, match=f"http://.*/mcp answered with {hint}") as caught:
        await ask(says(status))
    assert caught.value.status == status
    assert not isinstance(caught.value, Lost)


async def test_a_page_of_html_is_not_quoted_and_a_line_of_text_is() -> None:
    with pytest.raises(HttpStatusError, match=r"HTTP status 502$"):
        await ask(says(502, b"<html><h1>Bad gateway</h1>", (b"content-type", b"text/html")))
    with pytest.raises(HttpStatusError, match=r"HTTP status 502 \(no \\x1b\[2J\\u202e\)$"):
        await ask(says(502, b"no \x1b[2J\xe2\x80\xae", (b"content-type", b"text/plain")))
    with pytest.raises(HttpStatusError, match=r"HTTP status 502 \(no upstream x+\)$") as caught:
        await ask(says(502, b"no\r\n  upstream " + b"x" * 999, (b"content-type", b"text/plain")))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("status", [401, 500])
async def test_a_json_rpc_error_is_the_answer_whatever_the_status(status: int) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}'
    assert await ask(says(status, body, JSON)) == body


@pytest.mark.parametrize("body", [b'{"error":{"message":"bad key"}}', b'{"error":"no"}', ANSWER])
async def test_json_that_is_no_json_rpc_error_does_not_hide_the_status(body: bytes) -> None:
    with pytest.raises(HttpStatusError, match="HTTP status 401"):
        await ask(says(401, body, JSON))


@pytest.mark.parametrize("kind", [b"text/html", b"application/octet-stream"])
async def test_an_answer_of_the_wrong_type_is_an_error_that_names_the_type(kind: bytes) -> None:
    with pytest.raises(ConnectionError, match=kind.decode()):
        await ask(says(200, b"<html>", (b"content-type", kind)))


# Giving up, and several at once


@pytest.mark.parametrize("answered", ["before it answers", "in the middle of its stream"])
async def test_giving_up_a_request_closes_its_connection(answered: str) -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "no lifespan here"
        await read_body(receive, 10_000)
        if answered != "before it answers":
            await send({"type": "http.response.start", "status": 200, "headers": [EVENTS]})
            await send({"type": "http.response.body", "body": event(NOTE), "more_body": True})
        arrived.set()
        if (await receive())["type"] == "http.disconnect":
            gone.set()

    async with Listening(app) as listening, HttpTransport(listening.url) as transport:
        call = asyncio.create_task(transport.exchange(CALL, lambda data: None))
        await arrived.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(gone.wait(), 5)


@pytest.mark.long
async def test_as_many_requests_as_there_are_travel_at_once() -> None:
    number = 130
    everybody = asyncio.Barrier(number)

    def app(path: str) -> ASGIApp:
        return streams(everybody.wait, event(ANSWER))

    async with Listening(Seen(app)) as listening, HttpTransport(listening.url) as transport:
        calls = [asyncio.create_task(transport.exchange(CALL, lambda data: None)) for _ in range(number)]
        done, waiting = await asyncio.wait(calls, timeout=30)
        for call in waiting:
            call.cancel()
        await asyncio.wait(calls)
        await everybody.abort()
    assert (len(done), len(waiting)) == (number, 0)


@pytest.mark.long
async def test_an_answer_that_is_packed_twice_is_not_unpacked_beyond_the_limit() -> None:
    packed = gzip.compress(gzip.compress(b"\0" * 80 * 1024 * 1024))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip, gzip\r\n"
    async with (
        talking(head, b"Content-Length: %d\r\n\r\n" % len(packed), packed) as url,
        HttpTransport(url) as transport,
    ):
        with pytest.raises(ConnectionError, match="sent more than"):
            await transport.exchange(CALL, lambda data: None)


async def test_a_server_that_knows_no_revision_at_all_is_said_to_serve_another_transport_perhaps() -> None:
    async def old(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with Listening(old) as listening:
        with pytest.raises(ConnectionError) as caught:
            await Client(listening.url).__aenter__()
    assert caught.value.__notes__ == [
        "the server may use HTTP+SSE, the transport of 2024-11-05, which this client does not support",
    ]


@pytest.mark.parametrize(
    ("own", "read"), [(httpx2.Timeout(5.0), http_client.SILENCE_SECONDS), (httpx2.Timeout(7.0), 7.0)]
)
async def test_a_client_of_the_caller_s_waits_as_long_as_a_server_may_be_silent(own: Any, read: float) -> None:
    seen: list[MutableMapping[str, Any]] = []

    async def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.extensions["timeout"])
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": {}})

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), timeout=own)
    async with client, streamable_http_client("http://example.com/mcp", http_client=client) as transport:
        await transport.exchange(Outgoing(1, "tools/list", b"{}", {}), lambda _: None)
    assert seen[0]["read"] == read
