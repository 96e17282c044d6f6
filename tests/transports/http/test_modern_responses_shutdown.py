"""Modern requests when the server stops: interrupted calls are told, claimed ones finish, new ones are refused."""

import asyncio
import socket
from collections.abc import MutableMapping
from typing import Any

import pytest
import uvicorn

from bespeak import Context
from bespeak.transports.http.app import HttpApp
from bespeak.transports.http.modern_responses import BROKEN_OFF
from tests.transports.http.asgi_wire import Wire, shop, yes_to
from tests.transports.http.callers import Answer, Body, Caller, call, server_with, soon
from tests.waiting import turns

STOPPING = {"code": -32603, "message": BROKEN_OFF}


@pytest.mark.parametrize("progress", [False, True], ids=["json", "stream"])
async def test_a_call_that_is_stopped_with_the_server_is_told_so(progress: bool) -> None:
    body = Body()

    async def slow(ctx: Context) -> str:
        return await body(ctx)

    wire = Wire(call("slow", progress=progress))
    serving = asyncio.create_task(wire.through(server_with(slow).streamable_http_app()))
    await soon(body.began)
    await turns(20)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert body.how == ["cancelled"]
    assert wire.answer.messages[-1] == {"jsonrpc": "2.0", "id": "r", "error": STOPPING}
    assert wire.answer.status == (200 if progress else 503)


async def test_a_response_that_has_begun_is_not_begun_again_when_the_server_stops() -> None:
    async def large() -> str:
        await asyncio.sleep(0)
        return "x" * 100_000

    wire = Wire(call("large"))
    begun = asyncio.Event()

    async def send(message: MutableMapping[str, Any]) -> None:
        wire.sent.append(message)
        begun.set()
        if message["type"] == "http.response.body":
            await wire.reads.wait()

    wire.reads.clear()
    app = server_with(large).streamable_http_app()
    serving = asyncio.ensure_future(app(wire.scope, wire.receive, send))
    await soon(begun)
    await turns(20)
    serving.cancel()
    await turns(20)
    wire.reads.set()
    await asyncio.wait({serving}, timeout=10)
    assert [one["type"] for one in wire.sent].count("http.response.start") == 1


async def test_a_stream_has_one_answer_though_the_server_stops_while_it_is_sent() -> None:
    async def counts(ctx: Context) -> str:
        await ctx.report_progress(1)
        await asyncio.sleep(0)
        return "counted"

    wire = Wire(call("counts", progress=True))
    wire.reads.clear()
    serving = asyncio.create_task(wire.through(server_with(counts).streamable_http_app()))
    await turns(20)
    serving.cancel()
    await turns(20)
    wire.reads.set()
    await asyncio.wait({serving}, timeout=10)
    assert [message["id"] for message in wire.answer.messages if "id" in message] == ["r"]


class Life:
    """An app's lifespan, run as an ASGI server does."""

    def __init__(self, app: HttpApp) -> None:
        self._messages: asyncio.Queue[str] = asyncio.Queue()
        self._replies: asyncio.Queue[str] = asyncio.Queue()
        self._task = asyncio.ensure_future(app({"type": "lifespan"}, self._receive, self._send))

    async def _receive(self) -> MutableMapping[str, Any]:
        return {"type": await self._messages.get()}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        self._replies.put_nowait(message["type"])

    async def hear(self, message: str) -> str:
        self._messages.put_nowait(message)
        return await self._replies.get()


async def round_trip(app: HttpApp, message: dict[str, Any]) -> Answer:
    wire = Wire(message)
    await wire.through(app)
    return wire.answer


async def test_shutdown_waits_for_claimed_calls_and_refuses_new_ones() -> None:
    body = Body()
    app = shop(body).streamable_http_app()
    life = Life(app)
    assert await life.hear("lifespan.startup") == "lifespan.startup.complete"
    asked = (await round_trip(app, call("buy"))).messages[0]["result"]
    wire = Wire(yes_to(asked))
    serving = asyncio.create_task(wire.through(app))
    await soon(body.began)
    serving.cancel()
    await asyncio.wait({serving})
    assert wire.answer.messages[0]["error"] == STOPPING
    stopping = asyncio.create_task(life.hear("lifespan.shutdown"))
    await turns(20)
    refused = await round_trip(app, call("buy"))
    assert (refused.status, refused.messages[0]["error"]["message"]) == (503, "the server is stopping")
    assert not stopping.done()
    body.go_on.set()
    assert await stopping == "lifespan.shutdown.complete"
    assert body.how == ["finished"]


class Announced(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


@pytest.mark.long
async def test_uvicorn_that_is_told_to_stop_answers_what_it_interrupts() -> None:
    body = Body()

    async def slow() -> str:
        return await body()

    config = uvicorn.Config(
        server_with(slow).streamable_http_app(), port=0, log_config=None, ws="none", timeout_graceful_shutdown=0
    )
    server = Announced(config)
    serving = asyncio.create_task(server.serve())
    await soon(server.listens)
    port: int = server.servers[0].sockets[0].getsockname()[1]
    async with Caller(port, call("slow")) as caller:
        await soon(body.began)
        server.should_exit = True
        answer = await caller.answer()
    await serving
    assert (answer.status, answer.messages[0]["error"]) == (503, STOPPING)
