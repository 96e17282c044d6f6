"""What ends the calls of older HTTP clients: what is finished when they are cancelled, and what ends with the server."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from mcp_types import InputRequiredResult

from bespeak import Context, MCPServer, Resolve
from bespeak.protocol.messages import read_message
from tests.transports.http.legacy.older_client import (
    NOVEMBER,
    Desk,
    Json,
    accepted,
    call,
    cancelled,
    hello,
    really,
    served,
)
from tests.waiting import eventually

# What somebody approved of is finished


def by_hand(log: list[str], reached: asyncio.Event, gate: asyncio.Event) -> MCPServer[Any]:
    """A tool that is approved, then wants to go on a moment later, then does what it was approved for."""
    mcp = MCPServer[Any]("by hand")
    question: Any = {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Really?", "requestedSchema": {"type": "object", "properties": {}}},
    }

    @mcp.tool()
    async def pay(ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state is None:
            return InputRequiredResult.model_validate({"inputRequests": {"really": question}, "requestState": "asked"})
        if ctx.request_state == "asked":
            log.append("approved")
            return InputRequiredResult(request_state="approved")
        log.append("paying")
        reached.set()
        try:
            await gate.wait()
        except asyncio.CancelledError:
            log.append("cut short")
            raise
        log.append("paid")
        return "paid"

    return mcp


async def test_a_body_that_goes_on_later_is_finished_if_somebody_approved_of_it_before() -> None:
    log: list[str] = []
    reached, gate = asyncio.Event(), asyncio.Event()
    async with served(by_hand(log, reached, gate)) as server:
        older = await server.client()
        async with older.open(call("pay", id_="c")) as exchange:
            question = await older.asked(exchange)
            await older.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}})
            await asyncio.wait_for(reached.wait(), 5)
            await older.post(cancelled("c"))
            gate.set()
            await eventually(lambda: len(log) > 2)
    assert log == ["approved", "paying", "paid"]


@pytest.mark.parametrize("how", ["cancel", "delete"])
@pytest.mark.long
async def test_at_whatever_moment_a_call_is_cancelled_its_body_is_whole_and_its_cleanups_run(how: str) -> None:
    log: list[str] = []
    mcp = MCPServer[Any]("whole")

    async def till() -> AsyncGenerator[str]:
        log.append("opened")
        try:
            yield "till"
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    async def late() -> str:
        await asyncio.sleep(0)
        return "late"

    @mcp.tool()
    async def pay(
        till: Annotated[str, Resolve(till)], late: Annotated[str, Resolve(late)], ok: Annotated[bool, Resolve(really)]
    ) -> str:
        log.append("paying")
        for _ in range(5):
            await asyncio.sleep(0)
        log.append("paid")
        return "paid"

    peer_log: list[list[str]] = []
    for moments in range(-1, 30):  # turns of the event loop after the answer; -1 is before it
        log.clear()
        peer = mcp.peer()
        channel = Recording()
        await peer.answer(read(hello(NOVEMBER)), channel)
        task = asyncio.create_task(peer.answer(read(call("pay", id_="c")), channel))
        await eventually(lambda channel=channel: channel.pushed)
        if moments >= 0:
            peer.heard(read(accepted(channel.pushed[0]["id"])))
        for _ in range(moments):
            await asyncio.sleep(0)
        if how == "delete":
            peer.close("over")
        else:
            peer.heard(read(cancelled("c")))
        task.cancel()
        await asyncio.wait({task})
        await eventually(lambda: ("paying" in log) == ("paid" in log) and log.count("opened") == log.count("closed"))
        peer_log.append(list(log))
    assert ["opened", "paying", "paid", "closed"] in peer_log
    assert [] in peer_log


def read(message: Json) -> Any:
    return read_message(json.dumps(message).encode())


class Recording:
    """A channel that remembers."""

    has_reader = True

    def __init__(self) -> None:
        self.pushed: list[Json] = []

    def notify(self, message: bytes) -> Awaitable[None] | None:
        return None

    def push(self, message: bytes) -> None:
        self.pushed.append(json.loads(message))

    def pause(self) -> None:
        pass

    def when_gone(self, callback: Callable[[], object]) -> None:
        """There is no connection that could be gone."""


# The end of a server


@pytest.mark.parametrize("stateless", [False, True])
async def test_no_call_runs_on_when_the_lifespan_has_ended(stateless: bool) -> None:
    log: list[str] = []
    reached = asyncio.Event()

    @asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncGenerator[None]:
        yield
        log.append("lifespan over")

    mcp = MCPServer[Any]("lived", lifespan=lifespan)

    @mcp.tool()
    async def hold() -> str:
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            log.append("call over")
        return ""

    async with served(mcp, stateless_http=stateless) as server:
        older = server.stranger(NOVEMBER)
        if not stateless:
            await older.initialize(NOVEMBER)
        async with older.open(call("hold")):
            await asyncio.wait_for(reached.wait(), 5)
    await eventually(lambda: len(log) == 2)
    assert log == ["call over", "lifespan over"]


@pytest.mark.timing
async def test_an_open_question_does_not_keep_a_server_from_stopping() -> None:
    """Nobody can answer it any more: a server that stops takes no new connections."""
    loop = asyncio.get_running_loop()
    desk = Desk()
    async with served(desk.mcp) as server:
        older = await server.client()
        exchange = await older.open(call("count")).__aenter__()
        await older.asked(exchange)
        began = loop.time()
    exchange.leave()
    assert desk.log == ["opened", "closed"]
    assert loop.time() - began < 4.5, "a call that does not end is waited for 5 s"


# stdio
