"""Responses to older HTTP clients (protocol 25.2, 25.3): JSON or a stream, questions on it, and what ends a call."""

import asyncio
import gc
import weakref
from typing import Any

import pytest

from bespeak.transports.http import event_streams
from bespeak.transports.http.legacy import endpoint, post_streams
from bespeak.transports.http.legacy.post_streams import PostStream
from tests.transports.http.legacy.older_client import (
    NOVEMBER,
    Desk,
    Older,
    accepted,
    call,
    cancelled,
    served,
    text,
    until,
)
from tests.waiting import eventually, pass_time

PARSERS = pytest.mark.parametrize("parser", ["h11", "httptools"])


@pytest.fixture
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (event_streams, post_streams):
        monkeypatch.setattr(module, "SILENCE_SECONDS", 0.02)


# What kind of response


@PARSERS
async def test_a_call_that_asks_nothing_is_answered_as_json(parser: Any) -> None:
    async with served(Desk().mcp, parser) as server:
        reply = await (await server.client()).post(call("echo", {"text": "hi"}, id_="a"))
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert (reply.json["id"], reply.text) == ("a", "hi")


@PARSERS
async def test_a_question_makes_it_a_stream_and_the_answer_comes_by_another_post(parser: Any) -> None:
    async with served(Desk().mcp, parser) as server:
        older = await server.client()
        async with older.open(call("approve", id_="a")) as exchange:
            question = await older.asked(exchange)
            assert exchange.said["x-accel-buffering"] == "no"
            assert exchange.said["cache-control"] == "no-cache, no-transform"
            reply = await older.post(accepted(question["id"]))
            assert (reply.status, reply.body) == (202, b"")
            (response,) = await exchange.rest()
    assert response["id"] == "a"
    assert text(response) == "approved True"


async def test_a_response_that_was_sent_is_not_kept_until_the_next_garbage_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[weakref.ref[PostStream]] = []

    def stream(*args: Any, **options: Any) -> PostStream:
        found = PostStream(*args, **options)
        opened.append(weakref.ref(found))
        return found

    async with served(Desk().mcp) as server:
        older = await server.client()
        monkeypatch.setattr(endpoint, "PostStream", stream)
        gc.disable()
        try:
            assert (await older.post(call("echo", {"text": "hi"}))).text == "hi"
            await eventually(lambda: opened[0]() is None)
        finally:
            gc.enable()


async def test_progress_and_logs_come_on_the_calls_stream_before_its_response() -> None:
    async with served(Desk().mcp) as server:
        older = await server.client()
        async with older.stand() as standing, older.open(call("speak", token="p")) as exchange:
            messages = await exchange.rest()
            await older.delete()
            assert await standing.rest() == [], "one message goes to exactly one stream"
    progress, logs, response = messages[:3], messages[3:-1], messages[-1]
    assert [one["params"]["progress"] for one in progress] == [1, 2, 3]
    assert {one["params"]["progressToken"] for one in progress} == {"p"}
    assert [one["params"] for one in logs] == [{"level": "info", "logger": "desk", "data": "a fact"}]
    assert text(response) == "spoken"


@pytest.mark.usefixtures("short_silence")
async def test_a_call_that_takes_long_becomes_a_stream_that_is_kept_alive() -> None:
    desk = Desk()
    async with served(desk.mcp) as server:
        older = await server.client()
        async with older.open(call("hold")) as exchange:
            assert await exchange.head() == 200
            assert exchange.said["content-type"] == "text/event-stream"
            await pass_time(1, steps=5)
            desk.gate.set()
            assert text(await exchange.message()) == "held"
            assert exchange.comments >= 2


@pytest.mark.usefixtures("short_silence")
async def test_a_stream_is_kept_alive_while_a_person_thinks_and_while_nothing_happens() -> None:
    async with served(Desk().mcp) as server:
        older = await server.client()
        async with older.open(call("approve")) as asked, older.stand() as standing:
            question = await older.asked(asked)
            await pass_time(1, steps=5)
            await older.post(accepted(question["id"]))
            assert text(await asked.message()) == "approved True"
            assert asked.comments >= 1
            await older.delete()
            await standing.rest()
            assert standing.comments >= 2


# What ends a call, and what does not


@PARSERS
async def test_a_lost_connection_is_no_cancellation(parser: Any) -> None:
    desk = Desk()
    async with served(desk.mcp, parser) as server:
        older = await server.client()
        for tool in ("hold", "hold_and_speak"):
            async with older.open(call(tool, id_=tool, token="p")):
                await desk.begun()
        await eventually(lambda: server.readers == 0)
        assert desk.log == ["began", "began"]
        desk.gate.set()
        await eventually(lambda: desk.log == ["began", "began", "ended", "ended"])


async def test_a_cancelled_request_gets_no_response() -> None:
    desk = Desk()
    async with served(desk.mcp) as server:
        older = await server.client()
        async with older.open(call("hold", id_="c")) as plain:
            await desk.begun()
            assert (await older.post(cancelled("c"))).status == 202
            reply = await plain.whole()
            assert (reply.status < 300, reply.body) == (True, b"")
        async with older.open(call("hold_and_speak", id_="c", token="p")) as stream:
            await stream.message()
            await older.post(cancelled("c"))
            assert await stream.rest() == []
    assert desk.log == ["began", "cancelled"] * 2


async def test_cancelling_takes_back_the_open_question_and_runs_the_cleanups() -> None:
    desk = Desk()
    async with served(desk.mcp) as server:
        older = await server.client()
        async with older.open(call("count", id_="c")) as exchange:
            question = await older.asked(exchange)
            await older.post(cancelled("c"))
            (taken_back,) = await exchange.rest()
            assert taken_back["method"] == "notifications/cancelled"
            assert taken_back["params"]["requestId"] == question["id"]
        assert desk.log == ["opened", "closed"]
        assert (await older.post(accepted(question["id"]))).status == 202, "too late, and no harm"


async def test_what_somebody_approved_of_is_finished_though_it_is_cancelled() -> None:
    desk = Desk()
    async with served(desk.mcp) as server:
        older = await server.client()
        async with older.open(call("approve_and_hold", id_="c")) as exchange:
            await older.post(accepted((await older.asked(exchange))["id"]))
            await desk.begun()
            await older.post(cancelled("c"))
            assert await exchange.rest() == []
            desk.gate.set()
            await eventually(lambda: desk.log == ["began", "ended"])


async def test_an_answer_counts_though_the_stream_of_its_question_is_cut() -> None:
    desk = Desk()
    async with served(desk.mcp) as server:
        older = await server.client()
        async with older.open(call("approve")) as exchange:
            question = await older.asked(exchange)
        await eventually(lambda: server.readers == 0)
        assert (await older.post(accepted(question["id"]))).status == 202
        await eventually(lambda: desk.log == ["approved True"])


async def test_a_question_that_finds_the_stream_cut_ends_the_call() -> None:
    desk = Desk()
    async with served(desk.mcp, max_sessions=1) as server:
        older = await server.client()
        async with older.open(call("approve_twice", id_="c")) as exchange:
            question = await older.asked(exchange)
        await eventually(lambda: server.readers == 0)
        await older.post(accepted(question["id"]))

        async def free() -> bool:
            return "result" in (await older.post(call("echo", id_="c"))).json

        await until(free)


# Standing streams


async def test_a_session_may_have_four_standing_streams_and_no_more() -> None:
    async with served(Desk().mcp) as server:
        older, other = await server.client(), await server.client()
        streams = [older.stand() for _ in range(4)]
        for stream in streams:
            await stream.__aenter__()
            assert await stream.head() == 200
            assert stream.said["content-type"] == "text/event-stream"
        reply = await older.get()
        assert (reply.status, reply.code) == (409, -32600)
        assert "this session already has 4 standing streams, which is the limit" in reply.reason
        async with other.stand() as another:
            assert await another.head() == 200
        streams[0].leave()

        async def free() -> bool:
            async with older.stand() as stream:
                return await stream.head() == 200

        await until(free)
        for stream in streams:
            stream.leave()


@pytest.mark.timing
async def test_a_standing_stream_does_not_keep_a_server_from_stopping() -> None:
    loop = asyncio.get_running_loop()
    async with served(Desk().mcp) as server:
        standing = (await server.client()).stand()
        await standing.__aenter__()
        assert await standing.head() == 200
        began = loop.time()
    assert loop.time() - began < 4.5, "a stream that does not end is waited for 5 s"
    assert await standing.rest() == [], "it is ended, not cut"
    standing.leave()


async def test_a_get_without_a_session_says_that_http_sse_is_not_served() -> None:
    async with served(Desk().mcp) as server:
        reply = await server.stranger().get()
        assert (reply.status, reply.code) == (400, -32600)
        assert "HTTP+SSE transport of 2024-11-05 is not supported" in reply.reason
        assert "a POST of initialize to this URL" in reply.reason
        async with server.stranger().open(verb="GET", path="/sse", accept="text/event-stream") as exchange:
            elsewhere = await exchange.whole()
        assert elsewhere.status == 404
        assert "The HTTP+SSE transport of 2024-11-05 is not supported" in elsewhere.reason
        assert "MCP messages go to '/mcp'" in elsewhere.reason


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream;q=0"])
async def test_a_standing_stream_goes_only_to_who_accepts_streams(accept: str) -> None:
    async with served(Desk().mcp) as server:
        reply = await (await server.client()).get(accept=accept)
    assert reply.status == 406
    assert "must list text/event-stream" in reply.reason


# Where nothing can be asked


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            {"json_response": True},
            "with json_response=True there is no stream on which to ask a client of an older revision",
        ),
        ({"stateless_http": True}, "over HTTP without sessions (stateless_http=True"),
    ],
    ids=["json only", "stateless"],
)
async def test_where_nobody_can_be_asked_the_error_says_why(options: dict[str, Any], why: str) -> None:
    async with served(Desk().mcp, **options) as server:
        older = await server.client() if "json_response" in options else Older(server.port, NOVEMBER)
        reply = await older.post(call("approve"), mcp_protocol_version=NOVEMBER)
        assert (reply.status, reply.code) == (200, -32021)
        assert why in reply.reason
        assert (await older.post(call("echo", {"text": "hi"}), mcp_protocol_version=NOVEMBER)).text == "hi"


async def test_with_json_only_notifications_are_left_out_and_streams_need_not_be_accepted() -> None:
    async with served(Desk().mcp, json_response=True) as server:
        reply = await (await server.client()).post(call("speak", token="p"), accept="application/json")
    assert (reply.headers["content-type"], reply.text) == ("application/json", "spoken")
