"""Questions of an older server over HTTP: on the stream of a call, on the standing stream, and after it broke."""

import asyncio
import json
from typing import Any

import pytest

from bespeak.client import CallbackFailed, ClientRequestContext
from bespeak.transports.http.asgi import Send, respond
from tests.answering import text
from tests.client.older_server import Slow, result_of
from tests.client.sample_questions import FORM, say_yes
from tests.transports.http.old_http import EVENTS, Got, OldHttp, answers, client_of, event, for_ever, streams
from tests.waiting import eventually, turns

PUSHED = {"jsonrpc": "2.0", "id": "q", **FORM}


async def raises(context: ClientRequestContext, *params: Any) -> Any:
    raise ValueError("hush")


def asks(*, late: bool = False) -> OldHttp:
    """A call that asks on its own stream and returns the reply, perhaps before the reply is acknowledged."""

    async def handle(got: Got, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [EVENTS]})
        await send({"type": "http.response.body", "body": event(PUSHED), "more_body": True})
        reply = await replies.get()
        done = {"jsonrpc": "2.0", "id": got.message["id"], "result": result_of(json.dumps(reply))}
        await send({"type": "http.response.body", "body": event(done)})
        responded.set()

    replies: asyncio.Queue[Any] = asyncio.Queue()
    responded = asyncio.Event()

    async def said(got: Got, send: Send) -> None:
        if got.what == "a reply":
            replies.put_nowait(got.message)
            if late:
                await responded.wait()
                await turns(20)  # the client reads the response first
        await respond(send, 202, b"")

    return OldHttp(handle, said=said)


async def test_a_question_on_the_stream_of_a_call_is_answered_by_a_post() -> None:
    async with client_of(app := asks(), elicitation_callback=say_yes) as client:
        reply = json.loads(text(await client.call_tool("tool")))
    assert reply == {"jsonrpc": "2.0", "id": "q", "result": {"action": "accept", "content": {"sure": True}}}
    (post,) = app.at("a reply")
    assert (post.headers["mcp-session-id"], post.headers["mcp-protocol-version"]) == ("s-1", "2025-11-25")


@pytest.mark.parametrize("late", [False, True])
async def test_a_callback_that_fails_ends_the_call_however_fast_the_server_is(late: bool) -> None:
    async with client_of(asks(late=late), elicitation_callback=raises) as client:
        with pytest.raises(CallbackFailed, match="the callback raised ValueError"):
            await client.call_tool("tool")


async def test_a_ping_is_answered_though_its_request_ends_at_once() -> None:
    ping = event({"jsonrpc": "2.0", "id": "p", "method": "ping"})
    app = OldHttp(streams(ping, response=True))
    async with client_of(app) as client:
        for _ in range(10):
            await client.call_tool("tool")
        await eventually(lambda: len(app.at("a reply")) == 10)


async def test_a_question_on_the_standing_stream_is_answered_while_a_call_is_open() -> None:
    calling = asyncio.Event()

    async def called(got: Got, send: Send) -> None:
        calling.set()
        reply = await app.replies.get()
        await answers(result_of(json.dumps(reply["result"]["action"])))(got, send)

    app = OldHttp(called, gets=[streams(calling.wait, event(PUSHED), for_ever)])
    async with client_of(app, elicitation_callback=say_yes) as client:
        assert text(await client.call_tool("tool")) == '"accept"'


async def test_a_question_on_the_standing_stream_while_no_call_is_open_is_refused() -> None:
    asked = asyncio.Event()
    app = OldHttp(gets=[streams(asked.wait, event(PUSHED), for_ever)])
    async with client_of(app, elicitation_callback=say_yes):
        asked.set()
        reply = await asyncio.wait_for(app.replies.get(), 5)
    assert reply["error"]["code"] == -32602


async def test_a_question_taken_back_on_another_stream_is_taken_back() -> None:
    slow = Slow()
    take_back = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q"}}

    async def asked() -> None:
        await eventually(lambda: slow.asked)

    async def taken_back() -> None:
        await eventually(lambda: slow.cancelled)

    app = OldHttp(streams(event(PUSHED), taken_back, response=True), gets=[streams(asked, event(take_back), for_ever)])
    async with client_of(app, elicitation_callback=slow) as client:
        assert text(await client.call_tool("tool")) == "done"
    assert not app.at("a reply")


async def test_a_question_may_come_when_a_broken_stream_is_resumed() -> None:
    async def rest(got: Got, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [EVENTS]})
        await send({"type": "http.response.body", "body": event(PUSHED, "e-1"), "more_body": True})
        reply = await app.replies.get()
        done = {"jsonrpc": "2.0", "id": app.at("tools/call")[0].message["id"], "result": result_of(reply["id"])}
        await send({"type": "http.response.body", "body": event(done, "e-2")})

    async def none(got: Got, send: Send) -> None:
        await respond(send, 405, b"")

    app = OldHttp(streams(event(id_="e-0", retry=1)), gets=[none, rest])
    async with client_of(app, elicitation_callback=say_yes) as client:
        assert text(await client.call_tool("tool")) == "q"
