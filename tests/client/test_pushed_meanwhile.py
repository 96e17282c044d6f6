"""Questions that an older server pushes (protocol section 25.2): whose time they take, taken back, several calls, streams."""

import asyncio
import gc
import json
import time
from typing import Any

import pytest
from mcp_types import ElicitResult

from bespeak import Client
from bespeak.client import CallbackContext, CallbackFailed
from bespeak.transports.http.asgi import Send, respond
from tests.answering import accept, text
from tests.client.test_callbacks import ROOTS, SAMPLE, say_yes, write
from tests.client.test_pushed import OldServer, Slow, asking, plain, raises, result_of
from tests.client.test_session import FORM
from tests.transports.http.old_http import EVENTS, Got, OldHttp, answers, client_of, event, for_ever, streams
from tests.waiting import eventually

PUSHED = {"jsonrpc": "2.0", "id": "q", **FORM}


# Whose time it is


async def test_a_person_s_time_does_not_count_against_the_server_s() -> None:
    slow = Slow()
    async with Client(OldServer(tool=asking(FORM, FORM)), elicitation_callback=slow) as client:
        calling = asyncio.create_task(client.call_tool("tool", read_timeout_seconds=0.1))
        await eventually(lambda: slow.asked)
        await asyncio.sleep(0.15)
        assert not calling.done()
        slow.answer.set()
        await calling


async def test_the_time_of_a_server_that_says_nothing_after_an_answer_runs_out() -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> None:
        await server.ask(FORM)

    server = OldServer(tool=tool)
    async with Client(server, elicitation_callback=say_yes) as client:
        with pytest.raises(TimeoutError, match=r"no answer to tools/call within 0.05 s"):
            await asyncio.wait_for(client.call_tool("tool", read_timeout_seconds=0.05), 5)
        await eventually(lambda: server.told("notifications/cancelled"))
    assert len(server.replies) == 1


async def test_the_server_s_time_goes_on_where_it_was_when_a_question_came() -> None:
    """What was used up before a question is not given back after it."""
    loop = asyncio.get_running_loop()
    answered = 0.0

    async def tool(server: OldServer, message: dict[str, Any]) -> None:
        nonlocal answered
        await asyncio.sleep(0.3)
        await server.ask(FORM)
        answered = loop.time()

    async with Client(OldServer(tool=tool), elicitation_callback=say_yes) as client:
        with pytest.raises(TimeoutError):
            await client.call_tool("tool", read_timeout_seconds=0.5)
        assert 0 <= loop.time() - answered < 0.4


async def test_time_stands_still_until_the_last_of_several_open_questions_is_answered() -> None:
    slow = Slow()

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        open_ = asyncio.create_task(server.ask(FORM, "long"))
        await server.ask(SAMPLE, "short")
        await open_
        return await plain(server, message)

    async with Client(OldServer(tool=tool), elicitation_callback=slow, sampling_callback=write) as client:
        calling = asyncio.create_task(client.call_tool("tool", read_timeout_seconds=0.1))
        await eventually(lambda: slow.asked)
        await asyncio.sleep(0.15)
        assert not calling.done()
        slow.answer.set()
        assert text(await calling) == "done"


async def test_a_ping_gives_a_server_no_more_time() -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> None:
        for number in range(1000):
            await server.ask({"method": "ping"}, number)
            await asyncio.sleep(0.01)

    async with Client(OldServer(tool=tool)) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.call_tool("tool", read_timeout_seconds=0.1), 5)


@pytest.mark.parametrize("callback", [say_yes, raises])
@pytest.mark.parametrize("comes", ["before the clock is read", "as it strikes"])
async def test_a_question_that_comes_as_the_time_runs_out_troubles_nobody(callback: Any, comes: str) -> None:
    loop = asyncio.get_running_loop()
    complaints: list[Any] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))

    async def tool(server: OldServer, message: dict[str, Any]) -> None:
        def busy() -> None:
            time.sleep(0.08)
            if comes == "before the clock is read":
                server.send(PUSHED)

        loop.call_later(0.01, busy)
        if comes == "as it strikes":
            loop.call_later(0.02, server.send, PUSHED)

    async with Client(OldServer(tool=tool), elicitation_callback=callback) as client:
        with pytest.raises((TimeoutError, CallbackFailed)):
            await asyncio.wait_for(client.call_tool("tool", read_timeout_seconds=0.05), 5)
        await asyncio.sleep(0.01)
    gc.collect()
    assert complaints == []


async def test_a_call_that_is_cancelled_while_a_question_is_open_ends_at_once() -> None:
    slow = Slow()
    server = OldServer(tool=asking(FORM))
    async with Client(server, elicitation_callback=slow) as client:
        calling = asyncio.create_task(client.call_tool("tool"))
        await eventually(lambda: slow.asked)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(calling, 5)
        await eventually(lambda: server.told("notifications/cancelled"))


async def test_a_question_is_nobody_s_any_more_when_its_call_is_cancelled() -> None:
    slow = Slow()
    async with Client(OldServer(tool=asking(FORM)), elicitation_callback=slow) as client:
        calling = asyncio.create_task(client.call_tool("tool"))
        await eventually(lambda: slow.asked)
        calling.cancel()
        await eventually(lambda: slow.cancelled, 2)


async def test_a_question_is_nobody_s_any_more_when_its_call_is_answered_all_the_same() -> None:
    slow = Slow()

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        server.send(PUSHED)
        await eventually(lambda: slow.asked)
        return result_of("never mind")

    async with Client(OldServer(tool=tool), elicitation_callback=slow) as client:
        assert text(await client.call_tool("tool")) == "never mind"
        await eventually(lambda: slow.cancelled, 2)


# Taken back


async def test_a_question_that_is_taken_back_cancels_its_callback_and_gets_no_reply() -> None:
    slow = Slow()

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        server.send(PUSHED)
        await eventually(lambda: slow.asked)
        server.note("cancelled", requestId="q", reason="never mind")
        await eventually(lambda: slow.cancelled)
        return await plain(server, message)

    server = OldServer(tool=tool)
    async with Client(server, elicitation_callback=slow) as client:
        assert text(await client.call_tool("tool")) == "done"
    assert server.replies == []


async def test_time_goes_on_when_a_question_is_taken_back() -> None:
    slow = Slow()

    async def tool(server: OldServer, message: dict[str, Any]) -> None:
        server.send(PUSHED)
        await eventually(lambda: slow.asked)
        server.note("cancelled", requestId="q")

    async with Client(OldServer(tool=tool), elicitation_callback=slow) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.call_tool("tool", read_timeout_seconds=0.1), 5)


@pytest.mark.parametrize("params", [{"requestId": "other"}, {"requestId": [1]}, {"requestId": None}, {}])
async def test_what_takes_back_nothing_known_is_ignored(params: dict[str, Any]) -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        server.note("cancelled", **params)
        return result_of(json.dumps((await server.ask(FORM))["result"]["action"]))

    async with Client(OldServer(tool=tool), elicitation_callback=say_yes) as client:
        assert text(await client.call_tool("tool")) == '"accept"'


# What else comes


async def test_progress_and_logs_arrive_while_a_question_is_open() -> None:
    slow = Slow()
    got: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        got.append((progress, message))

    async def on_log(params: Any) -> None:
        got.append(params.data)

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        question = asyncio.create_task(server.ask(FORM))
        await eventually(lambda: slow.asked)
        server.note("progress", progressToken=message["params"]["_meta"]["progressToken"], progress=1, message="half")
        server.note("message", level="info", data="waiting")
        await eventually(lambda: len(got) == 2)
        slow.answer.set()
        await question
        return await plain(server, message)

    async with Client(OldServer(tool=tool), elicitation_callback=slow, logging_callback=on_log) as client:
        assert text(await client.call_tool("tool", progress_callback=on_progress)) == "done"
    assert got == [(1, "half"), "waiting"]


async def test_a_callback_may_use_the_session_it_answers_for() -> None:
    async def look_up(context: CallbackContext, params: Any) -> ElicitResult:
        result = await context.session.call_tool("plain")
        return accept(sure=text(result) == "done")

    async with Client(OldServer(tool=asking(FORM), plain=plain), elicitation_callback=look_up) as client:
        (reply,) = json.loads(text(await client.call_tool("tool")))
    assert reply["result"]["content"] == {"sure": True}


# Several calls at once, and none


@pytest.mark.parametrize("question", [FORM, SAMPLE, ROOTS])
async def test_a_question_while_no_request_is_under_way_is_refused(question: dict[str, Any]) -> None:
    server = OldServer()
    slow = Slow()
    async with Client(server, elicitation_callback=slow):
        reply = await asyncio.wait_for(server.ask(question), 5)
    assert reply["error"] == {"code": -32602, "message": "a question belongs to a request, and none is under way"}
    assert slow.asked == 0


async def test_a_ping_while_no_request_is_under_way_is_answered() -> None:
    server = OldServer()
    async with Client(server):
        reply = await asyncio.wait_for(server.ask({"method": "ping"}), 5)
    assert reply == {"jsonrpc": "2.0", "id": "q", "result": {}}


async def test_a_ping_before_the_answer_to_initialize_is_answered() -> None:
    async def initialize(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        assert (await server.ask({"method": "ping"}))["result"] == {}
        info = {"name": "old", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}

    async with Client(OldServer(initialize=initialize)) as client:
        assert client.protocol_version == "2025-06-18"


async def test_calls_at_the_same_time_each_get_the_answers_to_their_questions() -> None:
    async def echo(context: CallbackContext, params: Any) -> ElicitResult:
        await asyncio.sleep(0.01)
        return accept(value=params.message)

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"value": {"type": "string"}}}
        said = message["params"]["arguments"]["text"]
        question = {"method": "elicitation/create", "params": {"message": said, "requestedSchema": schema}}
        reply = await server.ask(question, f"q-{said}")
        return result_of(reply["result"]["content"]["value"])

    async with Client(OldServer(tool=tool), elicitation_callback=echo) as client:
        results = await asyncio.gather(*(client.call_tool("tool", {"text": f"{at}"}) for at in range(20)))
    assert [text(one) for one in results] == [f"{at}" for at in range(20)]


async def test_no_call_runs_out_of_time_while_a_question_is_open_that_may_be_its_own() -> None:
    slow = Slow()
    async with Client(OldServer(tool=asking(FORM)), elicitation_callback=slow) as client:
        calls = [asyncio.create_task(client.call_tool("tool", read_timeout_seconds=0.1)) for _ in range(2)]
        await eventually(lambda: slow.asked)  # the other's has the same id, and is passed over
        await asyncio.sleep(0.15)
        assert not any(one.done() for one in calls)
        for one in calls:
            one.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


# Over HTTP


def asks(*, late: bool = False) -> OldHttp:
    """A call that asks on its own stream and tells what was replied, perhaps before that is acknowledged."""

    async def handle(got: Got, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [EVENTS]})
        await send({"type": "http.response.body", "body": event(PUSHED), "more_body": True})
        reply = await replies.get()
        done = {"jsonrpc": "2.0", "id": got.message["id"], "result": result_of(json.dumps(reply))}
        await send({"type": "http.response.body", "body": event(done)})

    replies: asyncio.Queue[Any] = asyncio.Queue()

    async def said(got: Got, send: Send) -> None:
        if got.what == "a reply":
            replies.put_nowait(got.message)
            await asyncio.sleep(0.05 if late else 0)
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
        await eventually(lambda: len(app.at("a reply")) == 10, 2)


async def test_a_question_on_the_standing_stream_is_answered_while_a_call_is_under_way() -> None:
    calling = asyncio.Event()

    async def called(got: Got, send: Send) -> None:
        calling.set()
        reply = await app.replies.get()
        await answers(result_of(json.dumps(reply["result"]["action"])))(got, send)

    app = OldHttp(called, gets=[streams(calling.wait, event(PUSHED), for_ever)])
    async with client_of(app, elicitation_callback=say_yes) as client:
        assert text(await client.call_tool("tool")) == '"accept"'


async def test_a_question_on_the_standing_stream_while_no_call_is_under_way_is_refused() -> None:
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


async def test_a_question_may_come_when_a_broken_stream_is_gone_on_with() -> None:
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
