"""The response to a modern request: JSON or an event stream, and what a disconnect ends."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Annotated, Any

import pytest

from bespeak import Context, Elicit, MCPError, MCPServer, Resolve
from bespeak.transports.http import event_streams, modern_responses
from tests.transports.http.callers import Answer, Body, Caller, call, post, server_with, soon
from tests.waiting import pass_time
from tests.wires import Listening, Parser

Serve = Callable[[MCPServer[Any]], Awaitable[int]]


@pytest.fixture(params=["h11", "httptools"])
async def serve(request: pytest.FixtureRequest) -> AsyncGenerator[Serve]:
    """`await serve(mcp)` is the port where it listens."""
    open_ones: list[Listening] = []
    parser: Parser = request.param

    async def listen(mcp: MCPServer[Any]) -> int:
        listening = await Listening(mcp.streamable_http_app(), parser).__aenter__()
        open_ones.append(listening)
        return listening.port

    yield listen
    for listening in open_ones:
        await listening.__aexit__()


# JSON, until there is more to say


async def test_an_answer_without_notifications_is_json(serve: Serve) -> None:
    async def waits() -> str:
        await asyncio.sleep(0)
        return "done"

    answer = await post(await serve(server_with(waits)), call("waits"))
    assert (answer.status, answer.headers["content-type"], answer.text) == (200, "application/json", "done")


async def counts(ctx: Context) -> str:
    for step in (1, 2, 3):
        await ctx.report_progress(step)
    return "counted"


async def test_the_first_notification_makes_it_an_event_stream(serve: Serve) -> None:
    answer = await post(await serve(server_with(counts)), call("counts", progress=True))
    assert (answer.status, answer.is_stream) == (200, True)
    *notes, last = answer.messages
    assert [note["params"] for note in notes] == [{"progressToken": "p", "progress": step} for step in (1, 2, 3)]
    assert (last["id"], last["result"]["content"][0]["text"]) == ("r", "counted")


async def test_a_client_that_wants_no_notifications_gets_json(serve: Serve) -> None:
    answer = await post(await serve(server_with(counts)), call("counts"))
    assert (answer.is_stream, answer.text) == (False, "counted")


async def test_an_event_stream_tells_proxies_to_pass_it_on_at_once_and_has_no_ids(serve: Serve) -> None:
    answer = await post(await serve(server_with(counts)), call("counts", progress=True))
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    assert b"\nid:" not in answer.body


async def test_a_notification_arrives_while_the_call_still_runs(serve: Serve) -> None:
    body = Body()

    async def slow(ctx: Context) -> str:
        return await body(ctx)

    async with Caller(await serve(server_with(slow)), call("slow", progress=True)) as caller:
        status, headers = await caller.head()
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        assert b'"progress":1' in await caller.chunk()
        body.go_on.set()
        assert b'"progress":2' in await caller.chunk()


@pytest.mark.timing
async def test_a_silent_call_becomes_an_event_stream_and_is_kept_alive(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "SILENCE_SECONDS", 0.02)
    monkeypatch.setattr(modern_responses, "SILENCE_SECONDS", 0.02)
    body = Body()

    async def slow() -> str:
        return await body()

    async with Caller(await serve(server_with(slow)), call("slow")) as caller:
        status, headers = await caller.head()
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        for _ in range(3):
            assert await caller.chunk() == b":\r\n\r\n"
        body.go_on.set()
        rest = b""
        while chunk := await caller.chunk():
            rest += chunk
        assert Answer(status, headers, rest).text == "the result"


# Statuses of errors


async def fails_early() -> str:
    await asyncio.sleep(0)
    raise MCPError(-32602, "not like this")


async def test_an_error_after_a_wait_still_has_its_status(serve: Serve) -> None:
    answer = await post(await serve(server_with(fails_early)), call("fails_early"))
    assert (answer.status, answer.is_stream) == (400, False)
    assert answer.messages[0]["error"] == {"code": -32602, "message": "not like this"}


@pytest.mark.parametrize(("code", "status"), [(-32601, 404), (7, 200)])
async def test_an_authors_error_has_the_status_of_its_code(serve: Serve, code: int, status: int) -> None:
    async def refuses() -> str:
        raise MCPError(code, "no")

    answer = await post(await serve(server_with(refuses)), call("refuses"))
    assert (answer.status, answer.messages[0]["error"]["code"]) == (status, code)


async def test_once_it_is_a_stream_an_error_is_an_event(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(modern_responses, "SILENCE_SECONDS", 0.01)

    async def fails_late() -> str:
        await pass_time(1, steps=4)  # longer than the silence
        raise MCPError(-32602, "too late for a status")

    answer = await post(await serve(server_with(fails_late)), call("fails_late"))
    assert (answer.status, answer.is_stream) == (200, True)
    assert answer.messages == [
        {"jsonrpc": "2.0", "id": "r", "error": {"code": -32602, "message": "too late for a status"}}
    ]


# Questions


async def test_questions_come_as_json_and_after_notifications_as_the_last_event(serve: Serve) -> None:
    async def asks_loudly(ctx: Context) -> Elicit[bool]:
        await ctx.report_progress(1)
        return Elicit("Really?", bool)

    async def loud(sure: Annotated[bool, Resolve(asks_loudly)]) -> str:
        return str(sure)

    port = await serve(server_with(loud))
    for progress in (False, True):
        answer = await post(port, call("loud", progress=progress))
        assert answer.is_stream is progress
        assert answer.messages[-1]["result"]["resultType"] == "input_required"


# Disconnects


@pytest.mark.parametrize("progress", [False, True], ids=["json", "stream"])
async def test_a_disconnect_cancels_a_waiting_body(serve: Serve, progress: bool) -> None:
    body = Body()

    async def slow(ctx: Context) -> str:
        return await body(ctx)

    async with Caller(await serve(server_with(slow)), call("slow", progress=progress)) as caller:
        await soon(body.began)
        caller.leave()
        await soon(body.ended)
    assert body.how == ["cancelled"]


async def test_a_disconnect_cancels_a_waiting_resolver_and_no_body_runs(serve: Serve) -> None:
    work = Body()
    ran: list[str] = []

    async def looks_up(ctx: Context) -> str:
        return await work(ctx)

    async def slow(found: Annotated[str, Resolve(looks_up)]) -> str:
        ran.append("body")
        return found

    async with Caller(await serve(server_with(slow)), call("slow")) as caller:
        await soon(work.began)
        caller.leave()
        await soon(work.ended)
    assert (work.how, ran) == (["cancelled"], [])


@pytest.mark.timing
async def test_a_disconnect_after_the_silence_cancels_too(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(modern_responses, "SILENCE_SECONDS", 0.01)
    body = Body()

    async def slow() -> str:
        return await body()

    async with Caller(await serve(server_with(slow)), call("slow")) as caller:
        await caller.head()
        caller.leave()
        await soon(body.ended)
    assert body.how == ["cancelled"]


async def test_a_disconnect_in_one_request_leaves_another_with_the_same_id_alone(serve: Serve) -> None:
    bodies = [Body(), Body()]

    async def slow(which: int) -> str:
        return await bodies[which]()

    port = await serve(server_with(slow))
    async with (
        Caller(port, call("slow", arguments={"which": 0})) as first,
        Caller(port, call("slow", arguments={"which": 1})) as second,
    ):
        await soon(bodies[0].began)
        await soon(bodies[1].began)
        first.leave()
        await soon(bodies[0].ended)
        bodies[1].go_on.set()
        assert (await second.answer()).text == "the result"
    assert [body.how for body in bodies] == [["cancelled"], ["finished"]]
