"""A client's side of HTTP as it was (protocol section 25.3): sessions, the standing stream, going on with a broken one."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from bespeak import Client
from bespeak.client import HttpStatusError
from bespeak.transports.http import client as http_client
from bespeak.transports.http.asgi import JSON, Receive, Scope, Send, read_body, respond
from tests.answering import text
from tests.waiting import eventually
from tests.wires import Listening

NOVEMBER = "2025-11-25"
DONE: dict[str, Any] = {"content": [{"type": "text", "text": "done"}]}
EVENTS = (b"content-type", b"text/event-stream")


class Got(NamedTuple):
    """A request as it came."""

    http: str
    path: str
    headers: dict[str, str]
    message: Any

    @property
    def what(self) -> str:
        """The method of its message, or of HTTP."""
        return self.message.get("method", "a reply") if self.message else self.http


Handler = Callable[[Got, Send], Awaitable[None]]


def says(status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> Handler:
    """Answers so, whatever comes."""

    async def handle(got: Got, send: Send) -> None:
        await respond(send, status, body, *headers)

    return handle


def answers(result: dict[str, Any] = DONE, *headers: tuple[bytes, bytes]) -> Handler:
    """Answers a request with a result, as JSON."""

    async def handle(got: Got, send: Send) -> None:
        body = {"jsonrpc": "2.0", "id": got.message["id"], "result": result}
        await respond(send, 200, json.dumps(body).encode(), JSON, *headers)

    return handle


def refuses(code: int, message: str = "no", status: int = 200, data: Any = None) -> Handler:
    """Answers a request with an error."""

    async def handle(got: Got, send: Send) -> None:
        error = {"code": code, "message": message, **({"data": data} if data is not None else {})}
        await respond(
            send, status, json.dumps({"jsonrpc": "2.0", "id": got.message["id"], "error": error}).encode(), JSON
        )

    return handle


def event(message: Any = None, id_: str | None = None, retry: int | None = None) -> bytes:
    """One event; without a message, the empty one that a stream begins with."""
    head = (f"id: {id_}\n" if id_ is not None else "") + (f"retry: {retry}\n" if retry is not None else "")
    return f"{head}data: {json.dumps(message) if message is not None else ''}\n\n".encode()


def answer(id_: int, result: dict[str, Any] = DONE) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def note(data: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": data}}


async def for_ever() -> None:
    """As long as the client stays."""
    await asyncio.Event().wait()


def streams(*pieces: bytes | Callable[[], Awaitable[Any]], response: bool = False, breaks: bool = False) -> Handler:
    """Sends these pieces as a stream, awaiting what can be awaited, then perhaps the response; perhaps breaks off."""

    async def handle(got: Got, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [EVENTS]})
        for piece in pieces:
            if isinstance(piece, bytes):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            else:
                await piece()
        if response:
            last = event(answer(got.message["id"]))
            await send({"type": "http.response.body", "body": last, "more_body": True})
        if breaks:
            raise ConnectionAbortedError
        await send({"type": "http.response.body"})

    return handle


HELD = streams(for_ever)
"""A standing stream on which nothing comes."""


class OldHttp:
    """A server of an older revision: remembers what it gets, and answers as it is told, the last way again and again."""

    def __init__(self, *calls: Handler, **how: Any) -> None:
        self.version: str = how.pop("version", NOVEMBER)
        self.sessions: list[bytes] = how.pop("sessions", [b"s-1", b"s-2"])
        self.capabilities: dict[str, Any] = how.pop("capabilities", {"tools": {}})
        self._ways: dict[str, list[Handler]] = {
            "call": list(calls or (answers(),)),
            "GET": how.pop("gets", [says(405)]),
            "DELETE": [how.pop("delete", says(200))],
            "server/discover": [how.pop("discover", says(400, b"what?"))],
            "initialize": how.pop("initialize", [self._initialize]),
            "said": [how.pop("said", says(202))],
        }
        assert not how
        self.seen: list[Got] = []
        self.replies: asyncio.Queue[Any] = asyncio.Queue()

    def at(self, what: str) -> list[Got]:
        return [got for got in self.seen if got.what == what]

    @property
    def methods(self) -> list[str]:
        return [got.what for got in self.seen]

    async def _initialize(self, got: Got, send: Send) -> None:
        headers = [(b"mcp-session-id", self.sessions.pop(0))] if self.sessions else []
        info = {"name": "old", "version": "1"}
        result = {"protocolVersion": self.version, "capabilities": self.capabilities, "serverInfo": info}
        await answers(result, *headers)(got, send)

    def _way(self, got: Got) -> Handler:
        kind = got.what
        if kind not in self._ways:
            kind = "call" if got.message and "method" in got.message and "id" in got.message else "said"
        ways = self._ways[kind]
        return ways.pop(0) if len(ways) > 1 else ways[0]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "no lifespan here"
        body = await read_body(receive, 100_000)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        got = Got(scope["method"], scope["path"], headers, json.loads(body) if body else None)
        self.seen.append(got)
        if got.what == "a reply":
            self.replies.put_nowait(got.message)
        handling = asyncio.ensure_future(self._way(got)(got, send))
        leaving = asyncio.ensure_future(receive())
        await asyncio.wait({handling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if handling.done():
            handling.result()
        handling.cancel()


@asynccontextmanager
async def client_of(app: OldHttp, **options: Any) -> AsyncGenerator[Client]:
    async with Listening(app) as listening, Client(listening.url, **options) as client:
        yield client


async def call(app: OldHttp, **options: Any) -> str:
    """The text of the result of one call."""
    async with client_of(app, **options) as client:
        return text(await client.call_tool("tool"))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "RETRY_SECONDS", 0.01)


# What goes with a request


async def test_the_session_is_named_in_everything_after_initialize_and_in_nothing_before() -> None:
    app = OldHttp(streams(event({"jsonrpc": "2.0", "id": 7, "method": "ping"}), response=True), gets=[HELD])
    async with client_of(app, log_level="info") as client:
        await client.call_tool("tool")
        await eventually(lambda: app.at("a reply"))
    before = {"server/discover", "initialize"}
    assert {(got.what in before, got.headers.get("mcp-session-id")) for got in app.seen} == {
        (True, None),
        (False, "s-1"),
    }
    assert {"notifications/initialized", "GET", "tools/call", "a reply", "DELETE"} <= set(app.methods)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_the_version_header_goes_with_everything_after_initialize_from_june_2025_on(version: str) -> None:
    app = OldHttp(version=version, gets=[HELD])
    await call(app, mode="legacy")
    expected = version if version >= "2025-06-18" else None
    assert app.methods[0] == "initialize"
    assert "mcp-protocol-version" not in app.seen[0].headers
    assert {got.headers.get("mcp-protocol-version") for got in app.seen[1:]} == {expected}
    assert {"GET", "tools/call", "DELETE"} <= set(app.methods)


async def test_a_server_without_sessions_gets_no_session_and_no_delete() -> None:
    app = OldHttp(sessions=[])
    assert await call(app) == "done"
    assert not any("mcp-session-id" in got.headers for got in app.seen)
    assert not app.at("DELETE")


@pytest.mark.parametrize("session", [b"", b"two words", b"caf\xe9", b"\x7f", b"x" * 5000])
async def test_a_session_id_that_no_header_can_carry_is_an_error(session: bytes) -> None:
    app = OldHttp(sessions=[session])
    with pytest.raises(ConnectionError, match="/mcp sent a session id that a header cannot contain") as caught:
        await call(app)
    assert "words" not in str(caught.value)
    assert app.methods == ["server/discover", "initialize"]


async def test_every_kind_of_request_follows_a_move_on_the_same_server() -> None:
    app = OldHttp(gets=[HELD])

    async def moving(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/mcp":
            await read_body(receive, 100_000)
            await respond(send, 307, b"", (b"location", b"/new"))
        else:
            await app(scope, receive, send)

    async with Listening(moving) as listening, Client(listening.url) as client:
        assert text(await client.call_tool("tool")) == "done"
        await eventually(lambda: app.at("GET"))
    assert {got.path for got in app.seen} == {"/new"}
    assert {"initialize", "GET", "tools/call", "DELETE"} <= set(app.methods)


async def test_a_session_never_follows_a_move_to_another_server() -> None:
    other = OldHttp()
    async with Listening(other) as elsewhere:
        moved = says(307, b"", (b"location", elsewhere.url.encode()))
        with pytest.raises(HttpStatusError, match=r"it moved to http://127\.0\.0\.1.*; use that URL"):
            await call(OldHttp(moved, gets=[moved], delete=moved))
    assert other.seen == []


# The standing stream


@pytest.mark.parametrize("status", [400, 404, 405, 406, 501])
async def test_a_server_need_not_have_a_standing_stream(status: int) -> None:
    app = OldHttp(gets=[says(status)])
    async with client_of(app) as client:
        assert text(await client.call_tool("tool")) == "done"
        await asyncio.sleep(0.03)
    assert len(app.at("GET")) == 1


async def test_the_standing_stream_is_asked_for_as_events_after_the_handshake() -> None:
    app = OldHttp(gets=[HELD])
    await call(app)
    assert app.methods[:4] == ["server/discover", "initialize", "notifications/initialized", "GET"]
    assert app.at("GET")[0].headers["accept"] == "text/event-stream"
    assert "last-event-id" not in app.at("GET")[0].headers


async def test_what_is_said_on_the_standing_stream_is_heard() -> None:
    got: list[Any] = []

    async def hear(params: Any) -> None:
        got.append(params.data)

    app = OldHttp(gets=[streams(event(note("a")), event([note("b"), note("c")]), for_ever)])
    async with client_of(app, logging_callback=hear):
        await eventually(lambda: len(got) == 3)
    assert got == ["a", "b", "c"]


async def test_a_standing_stream_that_ends_is_gone_on_with_after_the_pause_the_server_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_client, "RETRY_SECONDS", 60.0)
    ended: list[float] = []

    async def ending() -> None:
        ended.append(time.monotonic())

    app = OldHttp(gets=[streams(event(id_="e-1", retry=80), event(note("a"), "e-2"), ending), HELD])
    async with client_of(app):
        await eventually(lambda: len(app.at("GET")) == 2)
        assert 0.06 < time.monotonic() - ended[0] < 3
    assert app.at("GET")[1].headers["last-event-id"] == "e-2"


async def test_a_standing_stream_that_breaks_off_is_gone_on_with() -> None:
    app = OldHttp(gets=[streams(event(note("a"), "e-1"), breaks=True), HELD])
    async with client_of(app):
        await eventually(lambda: len(app.at("GET")) == 2)
    assert app.at("GET")[1].headers["last-event-id"] == "e-1"


async def test_a_standing_stream_without_ids_is_opened_anew() -> None:
    app = OldHttp(gets=[streams(event(note("a"), retry=1)), HELD])
    async with client_of(app):
        await eventually(lambda: len(app.at("GET")) == 2)
    assert "last-event-id" not in app.at("GET")[1].headers


async def test_a_standing_stream_whose_place_is_forgotten_begins_anew() -> None:
    app = OldHttp(gets=[streams(event(id_="e-1", retry=1)), says(400), HELD])
    async with client_of(app):
        await eventually(lambda: len(app.at("GET")) == 3)
    assert [got.headers.get("last-event-id") for got in app.at("GET")] == [None, "e-1", None]


async def test_a_response_nobody_waits_for_on_the_standing_stream_costs_nothing_that_follows() -> None:
    got: list[Any] = []

    async def hear(params: Any) -> None:
        got.append(params.data)

    app = OldHttp(gets=[streams(event(answer(99)), event(note("after")), for_ever), HELD])
    async with client_of(app, logging_callback=hear):
        await eventually(lambda: got == ["after"], 2)
