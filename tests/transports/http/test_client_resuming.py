"""The HTTP client of an older server (protocol section 25.3): resumed streams, lost sessions, cancellation."""

import asyncio
import logging
import time
from typing import Any

import pytest

from bespeak import Client, MCPError
from bespeak.client import HttpStatusError, Lost
from bespeak.transports.http import client as http_client
from bespeak.transports.http.asgi import JSON, Send
from bespeak.transports.http.client import HttpTransport
from tests.answering import text
from tests.transports.http.old_http import (
    HELD,
    Got,
    OldHttp,
    answer,
    answers,
    call,
    client_of,
    event,
    for_ever,
    note,
    refuses,
    says,
    streams,
)
from tests.waiting import eventually, pass_time, turns
from tests.wires import Listening

pytestmark = pytest.mark.timing

UNKNOWN = "whether tools/call was carried out is not known"
CALL_ID = 3
"""The id of the first call after the probe and the handshake."""
RESPONSE = event(answer(CALL_ID), "last")
NONE = says(405)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "RETRY_SECONDS", 0.01)


def resuming(*gets: Any, first: Any = None) -> OldHttp:
    """A server whose stream for a call ends early, and what its answers to GET are after the first, which opens none."""
    return OldHttp(first or streams(event(id_="e-0", retry=1)), gets=[NONE, *gets])


# Going on with a stream


async def test_a_stream_that_ends_without_the_response_is_gone_on_with_after_the_pause_the_server_wants() -> None:
    ended: list[float] = []
    resumed: list[float] = []

    async def ending() -> None:
        ended.append(time.monotonic())

    async def resume(got: Got, send: Send) -> None:
        resumed.append(time.monotonic())
        await streams(RESPONSE)(got, send)

    app = resuming(resume, first=streams(event(id_="e-0", retry=100), ending))
    assert await call(app) == "done"
    assert 0.08 < resumed[0] - ended[0] < 3
    headers = app.at("GET")[1].headers
    assert (headers["last-event-id"], headers["mcp-session-id"]) == ("e-0", "s-1")
    assert (headers["mcp-protocol-version"], headers["accept"]) == ("2025-11-25", "text/event-stream")
    assert len(app.at("tools/call")) == 1


@pytest.mark.long
async def test_a_stream_is_gone_on_with_as_often_as_it_brings_something() -> None:
    parts = [streams(event(note(f"n{number}"), f"e-{number}")) for number in range(1, 9)]
    got: list[Any] = []

    async def hear(params: Any) -> None:
        got.append(params.data)

    app = resuming(*parts, streams(RESPONSE))
    assert await call(app, logging_callback=hear) == "done"
    assert got == [f"n{number}" for number in range(1, 9)]
    assert [one.headers["last-event-id"] for one in app.at("GET")[1:]] == [f"e-{number}" for number in range(9)]


async def test_a_connection_that_breaks_after_an_id_is_gone_on_with() -> None:
    app = resuming(streams(RESPONSE), first=streams(event(id_="e-0", retry=1), breaks=True))
    assert await call(app) == "done"
    assert app.at("GET")[1].headers["last-event-id"] == "e-0"


async def test_half_an_event_at_the_break_is_not_joined_to_what_comes_after() -> None:
    half = b'id: e-9\ndata: {"jsonrpc": "2.0",'
    app = resuming(streams(RESPONSE), first=streams(event(id_="e-0", retry=1), half))
    assert await call(app) == "done"
    assert app.at("GET")[1].headers["last-event-id"] == "e-0"


@pytest.mark.long
async def test_a_stream_that_brings_nothing_any_more_is_given_up() -> None:
    app = resuming(streams())
    with pytest.raises(Lost, match=f"/mcp ended its stream before the response arrived; {UNKNOWN}"):
        await asyncio.wait_for(call(app), 5)
    assert 2 <= len(app.at("GET")[1:]) <= 10
    assert len(app.at("tools/call")) == 1


@pytest.mark.parametrize("status", [400, 503])
async def test_a_server_that_does_not_know_the_rest_loses_the_call(status: int) -> None:
    app = resuming(says(status))
    with pytest.raises(Lost, match=f"sent status {status} when asked for the rest.*{UNKNOWN}"):
        await call(app)
    assert len(app.at("tools/call")) == 1


@pytest.mark.parametrize("breaks", [False, True])
async def test_a_stream_without_ids_cannot_be_gone_on_with(breaks: bool) -> None:
    app = OldHttp(streams(event(note("a"), retry=1), breaks=breaks))
    with pytest.raises(Lost, match=UNKNOWN):
        await call(app)
    assert len(app.at("GET")) == 1


async def test_an_empty_id_means_that_there_is_none_any_more() -> None:
    app = OldHttp(streams(event(id_="e-0", retry=1), event(note("a"), "")))
    with pytest.raises(Lost, match=UNKNOWN):
        await call(app)
    assert len(app.at("GET")) == 1


async def test_an_id_beyond_ascii_comes_back_as_it_was() -> None:
    app = resuming(streams(RESPONSE), first=streams(event(id_="\u00e9", retry=1)))
    assert await call(app) == "done"
    assert app.at("GET")[1].headers["last-event-id"] == "\u00e9"


async def test_an_id_that_no_header_can_carry_loses_the_call() -> None:
    app = resuming(streams(RESPONSE), first=streams(event(id_="e-0 ", retry=1)))
    with pytest.raises(Lost, match=UNKNOWN):
        await call(app)


async def test_a_request_that_only_reads_is_sent_again_when_its_stream_is_lost() -> None:
    app = OldHttp(streams(event(note("a"))), answers({"tools": []}))
    async with client_of(app) as client:
        assert (await client.list_tools()).tools == []
    assert len(app.at("tools/list")) == 2


async def test_a_request_that_only_reads_is_sent_again_though_the_session_is_gone_with_its_stream() -> None:
    app = OldHttp(streams(event(note("a"))), says(404), answers({"tools": []}))
    async with client_of(app) as client:
        assert (await client.list_tools()).tools == []
    assert [got.headers["mcp-session-id"] for got in app.at("tools/list")] == ["s-1", "s-1", "s-2"]


async def test_several_messages_in_one_event_are_taken_one_by_one() -> None:
    got: list[Any] = []

    async def hear(params: Any) -> None:
        got.append(params.data)

    ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
    app = OldHttp(streams(event([note("a"), ping, note("b"), answer(CALL_ID)])), version="2025-03-26")
    async with client_of(app, logging_callback=hear) as client:
        assert text(await client.call_tool("tool")) == "done"
        await eventually(lambda: app.at("a reply"))
    assert got == ["a", "b"]
    assert app.at("a reply")[0].message == {"jsonrpc": "2.0", "id": "p", "result": {}}


# A session that is gone


async def test_a_404_within_a_session_makes_a_new_handshake_and_sends_the_request_again() -> None:
    app = OldHttp(answers(), says(404), answers())
    async with client_of(app) as client:
        await client.call_tool("first")
        assert text(await client.call_tool("second")) == "done"
    shakes = app.at("initialize")
    assert [got.headers.get("mcp-session-id") for got in shakes] == [None, None]
    assert [got.message["params"]["protocolVersion"] for got in shakes] == ["2025-11-25", "2025-11-25"]
    calls = [(got.message["params"]["name"], got.headers["mcp-session-id"]) for got in app.at("tools/call")]
    assert calls == [("first", "s-1"), ("second", "s-1"), ("second", "s-2")]
    assert [got.headers["mcp-session-id"] for got in app.at("notifications/initialized")] == ["s-1", "s-2"]
    assert [got.headers["mcp-session-id"] for got in app.at("DELETE")] == ["s-2"]


async def test_a_request_is_sent_again_only_once_when_the_session_is_gone_again() -> None:
    app = OldHttp(says(404), sessions=[b"s-1", b"s-2", b"s-3"])
    with pytest.raises(ConnectionError, match="/mcp no longer knows this session"):
        await call(app)
    assert (len(app.at("tools/call")), len(app.at("initialize"))) == (2, 2)


async def test_requests_that_find_the_session_gone_at_the_same_time_make_one_handshake() -> None:
    app = OldHttp(*[says(404)] * 3, answers())
    async with client_of(app) as client:
        results = await asyncio.gather(*(client.call_tool("tool") for _ in range(3)))
    assert [text(one) for one in results] == ["done"] * 3
    assert len(app.at("initialize")) == 2


async def test_a_new_session_has_a_new_standing_stream() -> None:
    app = OldHttp(says(404), answers(), gets=[HELD])
    await call(app)
    assert [got.headers["mcp-session-id"] for got in app.at("GET")] == ["s-1", "s-2"]


@pytest.mark.parametrize("body", [(b"",), (b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}', JSON)])
async def test_a_handshake_whose_end_is_refused_comes_to_nothing(body: Any) -> None:
    with pytest.raises((HttpStatusError, MCPError)):
        await call(OldHttp(said=says(400, *body)))


async def test_a_new_handshake_that_agrees_on_another_revision_is_refused() -> None:
    app = OldHttp(says(404))
    async with client_of(app) as client:
        app.version = "2025-06-18"
        with pytest.raises(
            ConnectionError, match="chose the protocol version '2025-06-18', but this client supports 2025-11-25"
        ):
            await client.call_tool("tool")


async def test_a_404_without_a_session_is_an_error_like_any_other() -> None:
    app = OldHttp(says(404), sessions=[])
    with pytest.raises(HttpStatusError, match=r"status 404\. Is this the path of its MCP endpoint\?"):
        await call(app)
    assert len(app.at("initialize")) == 1


# Giving up, and the end


async def test_a_call_that_is_cancelled_is_said_to_be_cancelled() -> None:
    app = OldHttp(streams(event(id_="e-0"), for_ever))
    async with client_of(app) as client:
        calling = asyncio.create_task(client.call_tool("tool"))
        await eventually(lambda: app.at("tools/call"))
        calling.cancel()
        await asyncio.wait({calling})
        await eventually(lambda: app.at("notifications/cancelled"))
    (cancelled,) = app.at("notifications/cancelled")
    assert cancelled.message["params"]["requestId"] == app.at("tools/call")[0].message["id"]
    assert cancelled.headers["mcp-session-id"] == "s-1"


async def test_a_call_that_takes_too_long_is_said_to_be_cancelled() -> None:
    app = OldHttp(streams(for_ever))
    async with client_of(app) as client:
        calling = asyncio.create_task(client.call_tool("tool", read_timeout_seconds=5))
        await eventually(lambda: app.at("tools/call"))
        await pass_time(10)
        with pytest.raises(TimeoutError, match=r"no answer to tools/call within 5 s"):
            await calling
    assert len(app.at("notifications/cancelled")) == 1


async def test_a_call_cancelled_between_two_parts_of_its_stream_is_said_to_be_cancelled() -> None:
    app = resuming(NONE, first=streams(event(id_="e-0", retry=60_000)))
    async with client_of(app) as client:
        calling = asyncio.create_task(client.call_tool("tool", read_timeout_seconds=5))
        await eventually(lambda: app.at("tools/call"))
        await turns(50)  # the first part of the stream has ended
        await pass_time(10)
        with pytest.raises(TimeoutError):
            await calling
    assert len(app.at("notifications/cancelled")) == 1
    assert len(app.at("GET")) == 1


async def test_initialize_is_never_cancelled() -> None:
    app = OldHttp(initialize=[streams(for_ever)])
    calling = asyncio.create_task(call(app, mode="legacy"))
    await eventually(lambda: app.at("initialize"))
    calling.cancel()
    await asyncio.wait({calling})  # the client has closed its transport, which waits for what is still to be sent
    assert app.methods == ["initialize"]


@pytest.mark.parametrize("status", [204, 500])
async def test_the_session_is_ended_whatever_the_server_says_to_that(status: int) -> None:
    app = OldHttp(delete=says(status))
    assert await call(app) == "done"
    assert [got.headers["mcp-session-id"] for got in app.at("DELETE")] == ["s-1"]
    assert app.methods[-1] == "DELETE"


async def test_a_server_that_does_not_answer_the_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(got: Got, send: Send) -> None:
        await for_ever()

    monkeypatch.setattr(http_client, "PARTING_SECONDS", 0.03)
    assert await asyncio.wait_for(call(OldHttp(delete=never)), 5) == "done"


# Secrets


@pytest.mark.parametrize(
    "app",
    [
        lambda: OldHttp(says(500, b"oops")),
        lambda: OldHttp(says(404)),
        lambda: resuming(says(400)),
        lambda: OldHttp(streams(breaks=True)),
    ],
)
async def test_nothing_secret_gets_into_an_error_or_a_log(app: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "bespeak")
    caplog.set_level(logging.DEBUG, "httpx2")
    server = app()
    server.sessions[:] = [b"hush-session", b"hush-session-2"]
    async with Listening(server) as listening:
        url = listening.url.replace("//", "//user:hush-password@") + "?key=hush-key"
        transport = HttpTransport(url, headers={"X-Key": "hush-header"})
        with pytest.raises(ConnectionError) as caught:
            async with Client(transport) as client:
                await client.call_tool("tool")
    chain: list[BaseException] = [caught.value]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(inner)
    told = " ".join([*(repr(one) for one in chain), *(str(getattr(one, "__notes__", "")) for one in chain)])
    assert "hush" not in told
    assert "hush" not in caplog.text


async def test_an_error_in_a_call_is_the_server_s_and_ends_no_session() -> None:
    app = OldHttp(refuses(-32602, "unknown tool", 200))
    with pytest.raises(MCPError, match="unknown tool"):
        await call(app)
    assert len(app.at("initialize")) == 1


async def test_a_connection_that_breaks_while_it_is_gone_on_with_is_gone_on_with_again() -> None:
    app = resuming(streams(event(note("a"), "e-1"), breaks=True), streams(RESPONSE))
    assert await call(app) == "done"
    assert [one.headers["last-event-id"] for one in app.at("GET")[1:]] == ["e-0", "e-1"]
