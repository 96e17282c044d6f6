"""The HTTP client of an older server (protocol section 25.3): sessions, redirects and the standing stream."""

import asyncio
import time
from contextlib import nullcontext
from typing import Any

import httpx2
import pytest

from bespeak import Client
from bespeak.client import HttpStatusError, Lost, streamable_http_client
from bespeak.transports.http import client as http_client
from bespeak.transports.http.asgi import Receive, Scope, Send, read_body, respond
from tests.answering import text
from tests.transports.http.old_http import HELD, OldHttp, answer, call, client_of, event, for_ever, note, says, streams
from tests.waiting import eventually
from tests.wires import Listening


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


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18"])
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


@pytest.mark.parametrize("session", [b"", b"two words", b"caf\xe9"])
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


@pytest.mark.parametrize("status", [400, 405])
async def test_a_server_need_not_have_a_standing_stream(status: int) -> None:
    app = OldHttp(gets=[says(status)])
    async with client_of(app) as client:
        assert text(await client.call_tool("tool")) == "done"
        standing = [task for task in asyncio.all_tasks() if task.get_name() == "bespeak standing stream"]
        await asyncio.wait(standing, timeout=5) if standing else None
    assert len(app.at("GET")) == 1


async def test_what_is_said_on_the_standing_stream_is_heard() -> None:
    got: list[Any] = []

    async def hear(params: Any) -> None:
        got.append(params.data)

    app = OldHttp(gets=[streams(event(note("a")), event([note("b"), note("c")]), for_ever)])
    async with client_of(app, logging_callback=hear):
        await eventually(lambda: len(got) == 3)
    assert got == ["a", "b", "c"]


@pytest.mark.timing
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
        assert 0.06 < time.monotonic() - ended[0] < 30
    assert app.at("GET")[1].headers["last-event-id"] == "e-2"


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
        await eventually(lambda: got == ["after"])


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_message_whose_connection_breaks_is_sent_once_more(failures: int) -> None:
    seen: list[bytes] = []

    async def take(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.content)
        if len(seen) <= failures:
            raise httpx2.ReadError("reset")
        return httpx2.Response(202)

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(take))
    async with client, streamable_http_client("http://example.com/mcp", http_client=client) as transport:
        with nullcontext() if failures == 1 else pytest.raises(Lost, match=r"the connection to http://.*/mcp broke"):
            await transport.say(b"an answer", {})
    assert seen == [b"an answer"] * 2
