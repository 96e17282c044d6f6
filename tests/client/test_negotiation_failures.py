"""What says nothing about a server's revision, and what does though it is no answer (protocol section 27.2)."""

import asyncio
import json
import socket
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from bespeak import Client, MCPError, StdioServerParameters
from bespeak.client import HttpStatusError, Lost, negotiation
from bespeak.transports.http import client as http_client
from bespeak.transports.http.asgi import JSON, Receive, Scope, Send, read_body
from tests.answering import text
from tests.client.test_negotiation import NOVEMBER, UNTYPED, WHY
from tests.client.test_session import DISCOVERED
from tests.transports.http.old_http import EVENTS, Got, OldHttp, answers, call, refuses, says, streams
from tests.wires import Listening

ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"not now"}}'
HTML = (b"content-type", b"text/html")
PLAIN = (b"content-type", b"text/plain")
SSE_NOTE = "perhaps it serves HTTP+SSE, the transport of 2024-11-05, which this client does not speak"


# Statuses


@pytest.mark.parametrize(
    "refusal",
    [
        says(400),
        says(400, b"Bad Request: no valid session id", PLAIN),
        says(400, b"<h1>no</h1>", HTML),
        says(400, b'{"detail":"no"}', JSON),
        says(400, b'{"error":"no"}', JSON),
        refuses(-32000, "Bad Request: Server not initialized", 400),
        refuses(-32600, "missing session id", 400),
        refuses(-32602, "bad params", 400),
        refuses(-32601, "no such method", 404),
        says(404),
        says(404, b"Not Found", PLAIN),
        says(405),
        says(405, b"[]", JSON),
        says(406),
        says(415),
        says(422, b'{"detail":[]}', JSON),
        says(202),
        says(200, b"ok", PLAIN),
        streams(b"event: message\ndata: " + ERROR + b"\n\n"),
    ],
)
async def test_a_refusal_of_what_was_asked_means_a_handshake(refusal: Any) -> None:
    app = OldHttp(discover=refusal)
    assert await call(app) == "done"
    assert app.methods[:2] == ["server/discover", "initialize"]


@pytest.mark.parametrize("body", [(b"",), (b"hush", PLAIN), (b"<h1>no</h1>", HTML), (ERROR, JSON)])
@pytest.mark.parametrize("status", [401, 403, 407, 408, 429, 500, 502, 503, 504])
async def test_who_asks_and_how_the_server_is_say_nothing_about_its_revision(status: int, body: Any) -> None:
    app = OldHttp(discover=says(status, *body))
    with pytest.raises((HttpStatusError, MCPError)):
        await call(app)
    assert app.methods == ["server/discover"]


@pytest.mark.parametrize(
    ("status", "hint"),
    [(401, "pass auth= .* or an Authorization header"), (403, "check the server's allowed hosts"), (503, "status 503")],
)
async def test_a_status_that_is_no_verdict_is_raised_as_it_is(status: int, hint: str) -> None:
    with pytest.raises(HttpStatusError, match=hint) as caught:
        await call(OldHttp(discover=says(status)))
    assert caught.value.status == status
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("status", [400, 404, 405])
async def test_a_server_that_refuses_the_handshake_too_may_speak_http_with_sse(status: int) -> None:
    app = OldHttp(discover=says(405), initialize=[says(status)])
    with pytest.raises(HttpStatusError, match=f"answered with HTTP status {status}") as caught:
        await call(app)
    perhaps, why = caught.value.__notes__
    assert why.startswith(WHY)
    assert "answered with HTTP status 405" in why
    assert perhaps == SSE_NOTE
    assert app.methods == ["server/discover", "initialize"]


@pytest.mark.parametrize("status", [401, 403, 500])
async def test_another_status_to_the_handshake_is_no_sign_of_http_with_sse(status: int) -> None:
    with pytest.raises(HttpStatusError) as caught:
        await call(OldHttp(discover=says(405), initialize=[says(status)]))
    assert len(caught.value.__notes__) == 1


async def test_a_suspect_whose_handshake_breaks_is_not_taken_for_modern() -> None:
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


async def test_a_port_where_nobody_listens_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "CONNECT_PAUSES", (0.0,))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectionError, match=f"cannot connect to http://127.0.0.1:{port}/mcp") as caught:
        async with Client(f"http://127.0.0.1:{port}/mcp"):
            pass
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("started", [False, True])
async def test_a_connection_that_breaks_is_no_verdict(started: bool) -> None:
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


async def test_a_slow_http_server_is_no_older_one() -> None:
    async def never(got: Got, send: Send) -> None:
        await asyncio.Event().wait()

    app = OldHttp(discover=never)
    with pytest.raises(TimeoutError, match="no answer to server/discover within"):
        await call(app, read_timeout_seconds=0.03)
    assert app.methods == ["server/discover"]


class Raising:
    """A transport that fails as it is told."""

    mirrors = False

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.methods: list[str] = []

    async def __aenter__(self) -> "Raising":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    async def exchange(self, request: Any, notify: Any, ask: Any = None) -> bytes:
        self.methods.append(request.method)
        raise self._error

    async def say(self, message: bytes, headers: Any) -> None:
        raise self._error

    async def begin(self, headers: Any, notify: Any, ask: Any) -> None:
        raise self._error


@pytest.mark.parametrize("error", [ConnectionError("nobody there"), OSError("nobody there")])
async def test_a_transport_that_fails_is_no_verdict(error: Exception) -> None:
    transport = Raising(error)
    with pytest.raises(type(error), match="nobody there"):
        async with Client(transport):
            pass
    assert transport.methods == ["server/discover"]


# Children


CHILD = r"""
import json, os, sys, time

where, how = sys.argv[1], sys.argv[2]
heard = open(where, "a", buffering=1)
life = sum('"start"' in line for line in open(where))
heard.write('"start"\n')
if how == "absent":
    sys.exit(3)
for raw in sys.stdin.buffer:
    message = json.loads(raw)
    heard.write(json.dumps(message) + "\n")
    method, id_ = message.get("method"), message.get("id")
    if id_ is None:
        continue
    result = None
    if method == "initialize":
        if how == "dies always":
            sys.exit(5)
        info = {"name": "old", "version": "1"}
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {}, "serverInfo": info}
    elif method == "server/discover":
        if how.startswith("dies"):
            sys.exit(4)
        if how == "mute":
            continue
        if how == "chatty":
            print("what is that?", flush=True)
        if how == "no id":
            id_ = None
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": str(life)}]}
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "what?"}}
    print(json.dumps({"jsonrpc": "2.0", "id": id_, **answer}), flush=True)
"""


class Older:
    """A child that speaks an older revision, after its fashion."""

    def __init__(self, folder: Path) -> None:
        self._script, self._heard = folder / "child.py", folder / "heard"
        self._script.write_text(CHILD)

    def parameters(self, how: str = "") -> StdioServerParameters:
        return StdioServerParameters(sys.executable, ["-S", str(self._script), str(self._heard), how])

    @property
    def heard(self) -> list[str]:
        """Methods of the requests its lives got, and their starts."""
        lines = [json.loads(line) for line in self._heard.read_text().splitlines()]
        return [one if one == "start" else one.get("method") for one in lines]


@pytest.fixture
def older(tmp_path: Path) -> Older:
    return Older(tmp_path)


@pytest.mark.parametrize("how", ["", "chatty", "no id"])
async def test_a_child_that_does_not_know_discovery_gets_a_handshake(older: Older, how: str) -> None:
    async with Client(older.parameters(how)) as client:
        assert client.protocol_version == NOVEMBER
        assert text(await client.call_tool("tool")) == "0"
    assert older.heard == ["start", "server/discover", "initialize", "notifications/initialized", "tools/call"]


async def test_a_child_that_does_not_answer_discovery_gets_a_handshake(
    older: Older, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(negotiation, "PROBE_SECONDS", 0.3)
    async with Client(older.parameters("mute")) as client:
        assert client.protocol_version == NOVEMBER
    assert older.heard.count("start") == 1
    assert [one for one in older.heard if one == "initialize"] == ["initialize"]


async def test_a_child_that_dies_of_the_discovery_is_started_again_for_a_handshake(
    older: Older, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(older.parameters("dies")) as client:
        assert client.protocol_version == NOVEMBER
        assert text(await client.call_tool("tool")) == str(older.heard.count("start") - 1)
    assert older.heard[-3:] == ["initialize", "notifications/initialized", "tools/call"]
    assert "exited with code 4; restarting it" in caplog.text


async def test_a_child_that_dies_of_the_handshake_too_is_given_up(older: Older) -> None:
    with pytest.raises(ConnectionError, match="exited with code 5") as caught:
        async with Client(older.parameters("dies always")):
            pass
    (why,) = caught.value.__notes__
    assert why.startswith(WHY)
    assert "exited with code 4" in why
    assert older.heard.count("initialize") == 1


async def test_a_child_that_cannot_even_start_is_given_up(older: Older) -> None:
    with pytest.raises(ConnectionError, match="exited with code 3"):
        async with Client(older.parameters("absent")):
            pass
    assert older.heard.count("start") <= 3


async def test_a_pinned_handshake_is_the_first_thing_a_child_hears(older: Older) -> None:
    async with Client(older.parameters("dies"), mode="2025-03-26") as client:
        assert client.protocol_version == "2025-03-26"
    assert older.heard == ["start", "initialize", "notifications/initialized"]
