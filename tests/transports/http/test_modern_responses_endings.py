"""What ends a modern request and what does not: claimed calls, clients that do not read, `json_response`."""

import asyncio
from collections.abc import MutableMapping
from typing import Annotated, Any

import pytest

from bespeak import Context, Resolve
from bespeak.aio import outbox
from bespeak.transports.http import event_streams, modern_responses
from tests.transports.http.asgi_wire import Wire, shop, yes_to
from tests.transports.http.callers import Body, Caller, call, confirm, post, server_with, soon
from tests.waiting import eventually, pass_time, turns
from tests.wires import Listening


async def approved(port: int, *, progress: bool = False) -> dict[str, Any]:
    """The request that carries a person's yes."""
    asked = (await post(port, call("buy"))).messages[0]["result"]
    return yes_to(asked, progress=progress)


# Calls that are claimed, and calls that nobody watches


@pytest.mark.parametrize("parser", ["h11", "httptools"])
@pytest.mark.parametrize("progress", [False, True], ids=["json", "stream"])
async def test_a_disconnect_never_ends_a_claimed_call_and_its_result_is_kept(parser: Any, progress: bool) -> None:
    body = Body()
    async with Listening(shop(body).streamable_http_app(), parser) as server:
        request = await approved(server.port, progress=progress)
        async with Caller(server.port, request) as caller:
            await soon(body.began)
            caller.leave()
        await eventually(lambda: len(server.connections) == 0)
        assert not body.ended.is_set()
        body.go_on.set()
        await soon(body.ended)
        again = await post(server.port, request)
    assert again.text == "the result"
    assert body.how == ["finished"]


async def test_however_soon_a_client_goes_an_approval_is_spent_once_and_its_body_finishes() -> None:
    begun, ended = 0, 0

    async def body(ctx: Context) -> str:
        nonlocal begun, ended
        begun += 1
        await turns(8)
        ended += 1
        return "the result"

    async with Listening(shop(body).streamable_http_app(), "httptools") as server:
        for moment in range(24):
            request = await approved(server.port)
            async with Caller(server.port, request) as caller:
                await turns(moment)  # the moment is what varies
                caller.writer.transport.abort()
            assert (await post(server.port, request)).text == "the result"
    assert begun == ended == 24


async def test_the_same_request_again_waits_for_a_claimed_call_that_runs() -> None:
    body = Body()
    async with Listening(shop(body).streamable_http_app()) as server:
        request = await approved(server.port)
        async with Caller(server.port, request) as first:
            await soon(body.began)
            first.leave()
        async with Caller(server.port, request) as second:
            await eventually(lambda: len(server.connections) == 1)
            body.go_on.set()
            assert (await second.answer()).text == "the result"
    assert body.how == ["finished"]


async def test_a_disconnect_ends_a_retry_that_is_not_claimed_yet() -> None:
    allowed = Body()
    ran: list[str] = []

    async def may(ctx: Context) -> bool:
        if ctx.round == 2:
            await allowed()
        return True

    async def buy(
        ok: Annotated[bool, Resolve(may, guard=True)], sure: Annotated[bool, Resolve(confirm, key="sure")]
    ) -> str:
        ran.append("body")
        return "bought"

    async with Listening(server_with(buy).streamable_http_app()) as server:
        request = await approved(server.port)
        async with Caller(server.port, request) as caller:
            await soon(allowed.began)
            caller.leave()
            await soon(allowed.ended)
        assert (allowed.how, ran) == (["cancelled"], [])
        allowed.go_on.set()
        assert (await post(server.port, request)).text == "bought"


async def test_a_call_that_never_waits_is_watched_by_nobody() -> None:
    async def quick() -> str:
        return "quick"

    wire = Wire(call("quick"))
    wire.gone.set()
    await wire.through(server_with(quick).streamable_http_app())
    assert (wire.watchers, wire.answer.text) == (0, "quick")


async def test_a_call_is_watched_from_its_first_wait_and_no_longer_than_it_takes() -> None:
    body = Body()

    async def slow() -> str:
        return await body()

    wire = Wire(call("slow"))
    serving = asyncio.create_task(wire.through(server_with(slow).streamable_http_app()))
    await soon(body.began)
    await eventually(lambda: wire.watchers == 1)
    body.go_on.set()
    await serving
    await turns(20)
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("bespeak")]


@pytest.mark.parametrize("progress", [False, True], ids=["json", "stream"])
async def test_a_client_that_went_away_is_sent_nothing_more(progress: bool) -> None:
    body = Body()

    async def slow(ctx: Context) -> str:
        return await body(ctx)

    wire = Wire(call("slow", progress=progress))
    serving = asyncio.create_task(wire.through(server_with(slow).streamable_http_app()))
    await soon(body.began)
    await turns(20)
    before = len(wire.sent)
    wire.gone.set()
    await serving
    await turns(20)
    # Nothing reaches it; an empty response is there for what lies between, unless one had begun.
    assert [one.get("status") for one in wire.sent[before:]] == ([] if progress else [499, None])
    assert b"".join(one.get("body", b"") for one in wire.sent[before:]) == b""
    assert serving.cancelling() == 0


async def test_only_a_disconnect_is_taken_for_one() -> None:
    body = Body()

    async def slow() -> str:
        return await body()

    class Repeating(Wire):
        async def receive(self) -> MutableMapping[str, Any]:
            if self.watchers:
                return await super().receive()
            message = await super().receive() if self.first else {"type": "http.request", "body": b""}
            self.first, self.watchers = False, self.watchers + (not self.first)
            return message

        first = True

    wire = Repeating(call("slow"))
    serving = asyncio.create_task(wire.through(server_with(slow).streamable_http_app()))
    await soon(body.began)
    await eventually(lambda: wire.watchers == 2)
    body.go_on.set()
    await serving
    assert wire.answer.text == "the result"


async def test_nothing_is_said_after_the_answer() -> None:
    late: list[asyncio.Task[None]] = []
    answered = asyncio.Event()

    async def leaves_work_behind(ctx: Context) -> str:
        async def later() -> None:
            await answered.wait()
            await ctx.report_progress(2)

        late.append(asyncio.create_task(later()))
        await ctx.report_progress(1)
        return "answered"

    wire = Wire(call("leaves_work_behind", progress=True))
    await wire.through(server_with(leaves_work_behind).streamable_http_app())
    answered.set()
    await late[0]
    assert [list(message)[1] for message in wire.answer.messages] == ["method", "id"]


# Readers who do not read


@pytest.mark.timing
async def test_a_client_that_reads_nothing_neither_stops_the_call_nor_eats_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outbox, "UNREAD_BYTES", 10_000)
    monkeypatch.setattr(outbox, "PATIENCE_SECONDS", 0.02)
    done = asyncio.Event()

    async def chatters(ctx: Context) -> str:
        for step in range(2_000):
            await ctx.report_progress(step, message="x" * 1_000)
        done.set()
        return "at last"

    wire = Wire(call("chatters", progress=True))
    wire.reads.clear()
    serving = asyncio.create_task(wire.through(server_with(chatters).streamable_http_app()))
    await soon(done)
    assert "The client is not reading. Notifications to it are dropped until it does." in caplog.text
    wire.reads.set()
    await serving
    assert len(wire.answer.body) < 30_000
    assert wire.answer.text == "at last"


@pytest.mark.timing
@pytest.mark.parametrize("parser", ["h11", "httptools"])
async def test_a_call_ends_though_nobody_reads_from_its_socket(parser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "PATIENCE_SECONDS", 0.02)
    done = asyncio.Event()

    async def chatters(ctx: Context) -> str:
        for step in range(300):
            await ctx.report_progress(step, message="x" * 100_000)
        done.set()
        return "at last"

    async with Listening(server_with(chatters).streamable_http_app(), parser) as server:
        async with Caller(server.port, call("chatters", progress=True)) as caller:
            assert isinstance(caller.writer.transport, asyncio.Transport)
            caller.writer.transport.pause_reading()
            await soon(done)
        async with Caller(server.port, call("chatters")) as caller:
            assert (await caller.answer()).text == "at last"


# json_response=True


async def test_an_app_that_answers_in_json_only_drops_notifications_and_wants_no_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_streams, "SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(modern_responses, "SILENCE_SECONDS", 0.01)
    body = Body()

    async def slow(ctx: Context) -> str:
        return await body(ctx)

    app = server_with(slow).streamable_http_app(json_response=True)
    wire = Wire(call("slow", progress=True), Accept="application/json")
    serving = asyncio.create_task(wire.through(app))
    await soon(body.began)
    await pass_time(1, steps=4)
    assert wire.sent == []
    body.go_on.set()
    await serving
    assert (wire.answer.status, wire.answer.is_stream, wire.answer.text) == (200, False, "the result")


async def test_an_app_that_answers_in_json_only_still_cancels_on_disconnect() -> None:
    body = Body()

    async def slow(ctx: Context) -> str:
        return await body(ctx)

    wire = Wire(call("slow", progress=True))
    serving = asyncio.create_task(wire.through(server_with(slow).streamable_http_app(json_response=True)))
    await soon(body.began)
    await turns(20)
    wire.gone.set()
    await serving
    assert (body.how, wire.answer.status) == (["cancelled"], 499)


async def test_an_app_that_answers_in_json_only_refuses_who_takes_none() -> None:
    wire = Wire(call("nobody"), Accept="text/event-stream")
    await wire.through(server_with().streamable_http_app(json_response=True))
    assert wire.answer.status == 406


async def test_a_cancellation_of_somebody_else_s_is_not_taken_for_the_client_s() -> None:
    cleaning = asyncio.Event()
    go_on = asyncio.Event()

    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await go_on.wait()
        return "never"

    wire = Wire(call("slow"))
    serving = asyncio.create_task(wire.through(server_with(slow).streamable_http_app()))
    await eventually(lambda: wire.watchers)
    wire.gone.set()
    await asyncio.wait_for(cleaning.wait(), 5)
    serving.cancel()
    await asyncio.wait({serving}, timeout=5)
    assert serving.cancelled()


async def test_a_body_that_takes_its_cancellation_and_goes_on_leaves_none_behind() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "all the same"
        return "never"

    wire = Wire(call("stubborn"))
    serving = asyncio.create_task(wire.through(server_with(stubborn).streamable_http_app()))
    await eventually(lambda: wire.watchers)
    wire.gone.set()
    await asyncio.wait_for(serving, 5)
    assert serving.cancelling() == 0
    assert wire.answer.status == 499
