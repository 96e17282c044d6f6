"""Attacks of an older server on a client: garbage, floods, streams that never end, answers it does not accept."""

import asyncio
import gc
import logging
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult

from bespeak import Client
from bespeak.client import ClientRequestContext, Lost
from bespeak.transports.http.asgi import Send
from tests.answering import accept, text
from tests.client.older_child import OlderChild
from tests.client.older_server import OldServer, plain
from tests.client.sample_questions import FORM, list_roots, say_yes, write
from tests.transports.http.old_http import (
    Got,
    OldHttp,
    client_of,
    event,
    for_ever,
    says,
    streams,
)
from tests.waiting import eventually, turns

ELICIT = "elicitation/create"


ODD: list[Any] = [
    {"method": []},
    {"method": None},
    {"method": ELICIT, "params": None},
    {"method": ELICIT, "params": []},
    {"method": ELICIT, "params": {"_meta": 5, "message": "m", "requestedSchema": {"type": "object", "properties": {}}}},
    {"method": ELICIT, "params": {"mode": []}},
    {"method": ELICIT, "params": {"message": "m", "requestedSchema": {"type": "object", "properties": []}}},
    {"method": ELICIT, "params": {"message": "m", "requestedSchema": {"type": "object", "properties": {"value": 5}}}},
    {"method": ELICIT, "params": {"message": "m", "requestedSchema": {"properties": {"value": {"type": ["x"]}}}}},
    {
        "method": ELICIT,
        "params": {
            "message": "m",
            "requestedSchema": {"type": "object", "properties": {"value": {"type": "boolean", "enum": 5}}},
        },
    },
    {
        "method": ELICIT,
        "params": {
            "message": "m",
            "requestedSchema": {"type": "object", "properties": {"value": {"type": {}}}, "required": 5},
        },
    },
    {"method": "sampling/createMessage", "params": {"includeContext": [], "messages": 5}},
    {"method": "sampling/createMessage", "params": {"tools": 5, "messages": [], "maxTokens": 1e300}},
    {"method": "roots/list", "params": {"_meta": {"bespeak/key": []}}},
    {"method": "roots/list", "params": {"_meta": {"bespeak/key": "x" * 100_000}}},
]


@pytest.mark.parametrize(
    "pushed",
    [
        pytest.param(one, id=str(number), marks=[pytest.mark.long] if number % 4 else [])
        for number, one in enumerate(ODD)
    ],
)
async def test_any_request_of_a_server_gets_a_response(pushed: dict[str, Any]) -> None:
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        await asyncio.wait_for(server.ask(pushed), 20)
        return await plain(server, message)

    server = OldServer(tool=tool)
    callbacks: dict[str, Any] = {
        "elicitation_callback": say_yes,
        "sampling_callback": write,
        "list_roots_callback": list_roots,
    }
    async with Client(server, **callbacks) as client:
        calling = asyncio.create_task(client.call_tool("tool", read_timeout_seconds=20))
        await asyncio.wait({calling})
        calling.exception()
        assert len(server.replies) == 1
    gc.collect()
    assert not complaints


async def test_long_ids_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        server.send({"id": ["x" * 100_000], "method": "ping"})
        server.send({"id": "x" * 100_000, "result": {}})
        return await plain(server, message)

    caplog.set_level(logging.DEBUG)
    async with Client(OldServer(tool=tool)) as client:
        await client.call_tool("tool")
    assert max(len(record.getMessage()) for record in caplog.records) < 10_000


async def test_a_flood_of_pings_does_not_open_a_connection_for_each() -> None:
    at_once = most = done = 0

    async def said(got: Got, send: Send) -> None:
        nonlocal at_once, most, done
        at_once += got.what == "a reply"
        most = max(most, at_once)
        await turns()
        at_once -= got.what == "a reply"
        done += 1
        await says(202)(got, send)

    pings = b"".join(event({"jsonrpc": "2.0", "id": number, "method": "ping"}) for number in range(200))
    app = OldHttp(streams(pings, lambda: eventually(lambda: done > 50), response=True), said=said)
    async with client_of(app, mode="legacy") as client:
        await client.call_tool("tool")
    assert 0 < most <= 8


# Streams that never end


def endless(retry: int) -> Any:
    """Streams that end at once, each of which says where to resume."""
    numbers = iter(range(1_000_000))

    async def handle(got: Got, send: Send) -> None:
        await streams(event(id_=f"e-{next(numbers)}", retry=retry))(got, send)

    return handle


@pytest.mark.timing
@pytest.mark.parametrize("stream", ["of a call", "standing"])
@pytest.mark.long
async def test_a_stream_that_brings_nothing_but_ids_is_not_resumed_again_and_again_at_once(stream: str) -> None:
    handle = endless(0)
    app = (
        OldHttp(handle, gets=[says(405), handle])
        if stream == "of a call"
        else OldHttp(streams(for_ever), gets=[handle])
    )
    async with client_of(app, mode="legacy") as client:
        calling = asyncio.create_task(client.call_tool("tool"))
        # That it does not come again cannot be waited for otherwise. On a slow machine this proves less, but passes.
        await asyncio.wait({calling}, timeout=0.4)
        calling.cancel()
        await asyncio.wait({calling})
    assert len(app.at("GET")) < 20


# Answers that do not arrive


@pytest.mark.parametrize("status", [500, 404])
async def test_a_call_ends_if_the_server_does_not_accept_the_answer(status: int) -> None:
    async def said(got: Got, send: Send) -> None:
        await says(status if got.what == "a reply" else 202)(got, send)

    app = OldHttp(streams(event({"jsonrpc": "2.0", "id": "q", **FORM}), for_ever), said=said)
    async with client_of(app, mode="legacy", elicitation_callback=say_yes) as client:
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(client.call_tool("tool"), 20)


# An approval is for one question


class Deleting:
    """A person who approves what is harmless, but only later, and declines to delete everything."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.later = asyncio.Event()

    async def __call__(self, context: ClientRequestContext, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        if params.message == "delete everything":
            return ElicitResult(action="decline")
        await self.later.wait()
        return accept(sure=True)


def question(message: str) -> bytes:
    return event({"jsonrpc": "2.0", "id": 0, **FORM, "params": {**FORM["params"], "message": message}})


@pytest.mark.timing
async def test_an_answer_to_a_server_that_died_is_not_an_answer_to_the_one_started_after_it(tmp_path: Path) -> None:
    person = Deleting()
    async with Client(OlderChild(tmp_path).parameters(), mode="legacy", elicitation_callback=person) as client:
        harmless = [asyncio.create_task(client.call_tool("harmless")) for _ in range(2)]
        await eventually(lambda: len(person.asked) == 2)
        with pytest.raises(Lost):
            await client.call_tool("die")
        await asyncio.gather(*harmless, return_exceptions=True)
        deleting = asyncio.create_task(client.call_tool("delete everything"))
        await eventually(lambda: len(person.asked) == 3)
        person.later.set()
        assert text(await asyncio.wait_for(deleting, 5)) == "decline"


async def test_an_answer_for_a_session_that_is_gone_is_not_an_answer_in_the_next() -> None:
    person, gone = Deleting(), asyncio.Event()

    async def new_session(got: Got, send: Send) -> None:
        replied = streams(question("delete everything"), lambda: eventually(lambda: app.at("a reply")), response=True)
        await replied(got, send)

    async def both() -> None:
        await eventually(lambda: len(app.at("tools/call")) == 2)

    # Two calls whose streams break off, and whose question came on the standing stream; then the session is not known.
    first = streams(gone.wait)
    gets = [streams(both, question("harmless"), gone.wait), says(405)]
    app = OldHttp(first, first, says(404), new_session, gets=gets)
    async with client_of(app, mode="legacy", elicitation_callback=person) as client:
        harmless = [asyncio.create_task(client.call_tool("tool")) for _ in range(2)]
        await eventually(lambda: person.asked)
        gone.set()
        await asyncio.gather(*harmless, return_exceptions=True)
        deleting = asyncio.create_task(client.call_tool("tool"))
        await eventually(lambda: len(person.asked) == 2)
        person.later.set()
        assert text(await asyncio.wait_for(deleting, 5)) == "done"
    reply = app.at("a reply")[-1]
    assert (reply.headers["mcp-session-id"], reply.message["result"]["action"]) == ("s-2", "decline")


async def test_a_question_of_an_old_session_is_never_answered_in_the_new_one() -> None:
    """A stream of the old session may live on, at another instance of the server, and ask after the new handshake."""
    ask = asyncio.Event()

    async def person(context: ClientRequestContext, params: Any) -> ElicitResult:
        if params.message == "delete everything":
            await asyncio.Event().wait()
        return accept(sure=True)

    old = streams(ask.wait, question("harmless"), for_ever)
    app = OldHttp(old, says(404), streams(question("delete everything"), for_ever))
    async with client_of(app, mode="legacy", elicitation_callback=person) as client:
        calls = [asyncio.create_task(client.call_tool("tool"))]
        await eventually(lambda: len(app.at("tools/call")) == 1)
        calls.append(asyncio.create_task(client.call_tool("tool")))
        await eventually(lambda: len(app.at("tools/call")) == 3)
        ask.set()
        with pytest.raises(Lost, match="the server has forgotten this session and sent a question"):
            await asyncio.wait_for(calls[0], 5)
        calls[1].cancel()
        await asyncio.wait(calls)
    assert not [one.message for one in app.at("a reply") if one.headers["mcp-session-id"] == "s-2"]
