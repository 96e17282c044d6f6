"""Failures that say nothing about a server's version, and others that do (protocol section 27.2)."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from bespeak import Client, MCPError
from bespeak.client import HttpStatusError, Lost, negotiation
from bespeak.transports.http import client as http_client
from bespeak.transports.http.asgi import JSON, Receive, Scope, Send, read_body
from tests.answering import text
from tests.client.negotiating import NOVEMBER, UNTYPED, WHY
from tests.client.older_child import OlderChild
from tests.client.scripted_transport import (
    COMPLETE,
    DISCOVERED,
    Stdio,
)
from tests.transports.http.old_http import EVENTS, Got, OldHttp, answers, call, refuses, says, streams
from tests.waiting import pass_time
from tests.wires import Listening

ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"not now"}}'


HTML = (b"content-type", b"text/html")


PLAIN = (b"content-type", b"text/plain")


SSE_NOTE = "the server may use HTTP+SSE, the transport of 2024-11-05, which this client does not support"


# Statuses


@pytest.mark.parametrize(
    "refusal",
    [
        says(400, b"Bad Request: no valid session id", PLAIN),
        says(400, b'{"detail":"no"}', JSON),
        refuses(-32000, "Bad Request: Server not initialized", 400),
        refuses(-32601, "no such method", 404),
        says(404),
        says(405, b"[]", JSON),
        says(406),
        says(415),
        says(422, b'{"detail":[]}', JSON),
        says(202),
        says(200, b"ok", PLAIN),
        streams(b"event: message\ndata: " + ERROR + b"\n\n"),
    ],
)
async def test_a_refusal_of_the_request_means_a_handshake(refusal: Any) -> None:
    app = OldHttp(discover=refusal)
    assert await call(app) == "done"
    assert app.methods[:2] == ["server/discover", "initialize"]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        *((status, (b"",)) for status in (401, 403, 407, 408, 429, 500, 502, 503, 504)),
        *((500, body) for body in ((b"hush", PLAIN), (b"<h1>no</h1>", HTML), (ERROR, JSON))),
    ],
)
async def test_a_refused_client_and_a_failing_server_say_nothing_about_the_version(status: int, body: Any) -> None:
    app = OldHttp(discover=says(status, *body))
    with pytest.raises((HttpStatusError, MCPError)):
        await call(app)
    assert app.methods == ["server/discover"]


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "pass auth= .* or an Authorization header"),
        (403, "check the server.s allowed hosts and origins"),
        (503, "status 503"),
    ],
)
async def test_an_http_status_that_does_not_suggest_an_older_server_is_raised_unchanged(status: int, hint: str) -> None:
    with pytest.raises(HttpStatusError, match=hint) as caught:
        await call(OldHttp(discover=says(status)))
    assert caught.value.status == status
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("status", [400, 404, 405])
async def test_a_server_that_refuses_the_handshake_too_may_use_http_with_sse(status: int) -> None:
    app = OldHttp(discover=says(405), initialize=[says(status)])
    with pytest.raises(HttpStatusError, match=f"answered with HTTP status {status}") as caught:
        await call(app)
    sse, *why = caught.value.__notes__
    assert sse == SSE_NOTE
    assert len(why) == (status != 405)  # which would say the same again
    assert all(one.startswith(WHY) and "answered with HTTP status 405" in one for one in why)
    assert app.methods == ["server/discover", "initialize"]


async def test_a_path_that_is_not_there_does_not_suggest_http_with_sse() -> None:
    missing = says(404, b'{"detail":"Not Found"}', JSON)
    with pytest.raises(HttpStatusError, match="Is this the path of its MCP endpoint") as caught:
        await call(OldHttp(discover=missing, initialize=[missing]))
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(("again", "notes"), [("no such method, sorry", 0), ("no such", 1)])
async def test_only_an_equal_error_says_the_same_again(again: str, notes: int) -> None:
    app = OldHttp(discover=refuses(-32601, "no such method, sorry", 200), initialize=[refuses(-32601, again, 200)])
    with pytest.raises(MCPError, match=again) as caught:
        await call(app)
    why = getattr(caught.value, "__notes__", [])
    assert why == [f"{WHY}no such method, sorry (-32601)"] * notes


@pytest.mark.parametrize("status", [401, 403, 500])
async def test_another_status_to_the_handshake_does_not_suggest_http_with_sse(status: int) -> None:
    with pytest.raises(HttpStatusError) as caught:
        await call(OldHttp(discover=says(405), initialize=[says(status)]))
    assert len(caught.value.__notes__) == 1


async def test_a_doubtful_server_whose_handshake_breaks_is_not_taken_for_modern() -> None:
    app = OldHttp(discover=answers(UNTYPED), initialize=[says(503)])
    with pytest.raises(HttpStatusError, match="status 503"):
        await call(app)


async def test_a_discovery_in_a_stream_is_read() -> None:
    async def discover(got: Got, send: Send) -> None:
        message = {"jsonrpc": "2.0", "id": got.message["id"], "result": DISCOVERED}
        await streams(b"data: " + json.dumps(message).encode() + b"\n\n")(got, send)

    app = OldHttp(discover=discover)
    async with Listening(app) as listening, Client(listening.url) as client:
        assert client.protocol_version == "2026-07-28"
    assert app.methods == ["server/discover"]


# Networks


async def test_a_port_where_nobody_listens_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "CONNECT_PAUSES", (0.0,))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectionError, match=f"cannot connect to http://127.0.0.1:{port}/mcp") as caught:
        async with Client(f"http://127.0.0.1:{port}/mcp"):
            pass
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("started", [False, True])
async def test_a_connection_that_breaks_says_nothing(started: bool) -> None:
    methods: list[str] = []

    async def breaking(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "no lifespan here"
        methods.append(json.loads(await read_body(receive, 10_000) or b"")["method"])
        headers = [EVENTS] if started else [JSON, (b"content-length", b"100")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
        raise ConnectionAbortedError

    async with Listening(breaking) as listening:
        with pytest.raises(Lost, match=r"the connection to .*/mcp broke"):
            async with Client(listening.url):
                pass
    assert set(methods) == {"server/discover"}


async def test_a_slow_http_server_is_not_taken_for_an_older_one() -> None:
    async def never(got: Got, send: Send) -> None:
        await pass_time(60)
        await asyncio.Event().wait()

    app = OldHttp(discover=never)
    with pytest.raises(TimeoutError, match="no answer to server/discover within 30 s"):
        await call(app, read_timeout_seconds=30)
    assert app.methods == ["server/discover"]


@pytest.mark.parametrize("error", [ConnectionError("nobody there"), OSError("nobody there")])
async def test_a_transport_that_fails_says_nothing(error: Exception) -> None:
    def fail(request: Any, notify: Any) -> Any:
        raise error

    transport = Stdio(COMPLETE, discovered=fail)
    with pytest.raises(type(error), match="nobody there"):
        async with Client(transport):
            pass
    assert transport.methods == ["server/discover"]


# Child processes


@pytest.fixture
def child(tmp_path: Path) -> OlderChild:
    return OlderChild(tmp_path)


@pytest.mark.timing
@pytest.mark.parametrize("how", ["", "chatty", "no id"])
async def test_a_child_that_does_not_know_discovery_gets_a_handshake(child: OlderChild, how: str) -> None:
    async with Client(child.parameters(how)) as client:
        assert client.protocol_version == NOVEMBER
        assert text(await client.call_tool("life")) == "0"
    assert child.heard == ["start", "server/discover", "initialize", "notifications/initialized", "tools/call"]


@pytest.mark.timing
@pytest.mark.long
async def test_a_child_that_does_not_answer_discovery_gets_a_handshake(
    child: OlderChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(negotiation, "PROBE_SECONDS", 0.3)
    async with Client(child.parameters("mute")) as client:
        assert client.protocol_version == NOVEMBER
    assert child.heard.count("start") == 1
    assert [one for one in child.heard if one == "initialize"] == ["initialize"]


@pytest.mark.timing
async def test_a_child_that_dies_of_the_discovery_is_started_again_for_a_handshake(
    child: OlderChild, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(child.parameters("dies")) as client:
        assert client.protocol_version == NOVEMBER
        assert text(await client.call_tool("life")) == str(child.heard.count("start") - 1)
    assert child.heard[-3:] == ["initialize", "notifications/initialized", "tools/call"]
    assert "exited with code 4; restarting it" in caplog.text


@pytest.mark.timing
async def test_a_child_that_dies_of_the_handshake_too_is_given_up(child: OlderChild) -> None:
    with pytest.raises(ConnectionError, match="exited with code 5") as caught:
        async with Client(child.parameters("dies always")):
            pass
    (why,) = caught.value.__notes__
    assert why.startswith(WHY)
    assert "exited with code 4" in why
    assert child.heard.count("initialize") == 1


@pytest.mark.timing
async def test_a_child_that_cannot_even_start_is_given_up(child: OlderChild) -> None:
    with pytest.raises(ConnectionError, match="exited with code 3"):
        async with Client(child.parameters("absent")):
            pass
    assert child.heard.count("start") <= 3


@pytest.mark.timing
async def test_a_pinned_handshake_is_the_first_thing_a_child_hears(child: OlderChild) -> None:
    async with Client(child.parameters("dies"), mode="2025-03-26") as client:
        assert client.protocol_version == "2025-03-26"
    assert child.heard == ["start", "initialize", "notifications/initialized"]
