"""Attacks of an older server on a client: garbage, floods, streams that never end, answers that it does not take."""

import asyncio
import gc
import logging
import sys
from typing import Any

import pytest
from mcp_types import ElicitResult

from bespeak import Client
from bespeak.client import CallbackContext, Lost, StdioServerParameters
from bespeak.transports.http.asgi import Send
from tests.answering import accept, text
from tests.client.test_callbacks import list_roots, say_yes, write
from tests.client.test_pushed import OldServer, plain
from tests.client.test_session import FORM
from tests.transports.http.old_http import Got, OldHttp, client_of, event, for_ever, says, streams
from tests.waiting import eventually
from tests.wires import Listening

ELICIT = "elicitation/create"
ODD: list[Any] = [
    {"method": []},
    {"method": {}},
    {"method": None},
    {"method": 5},
    {"method": True},
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


@pytest.mark.parametrize("pushed", ODD, ids=[str(number) for number in range(len(ODD))])
async def test_whatever_is_pushed_is_replied_to(pushed: dict[str, Any]) -> None:
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        await asyncio.wait_for(server.ask(pushed), 1)
        return await plain(server, message)

    server = OldServer(tool=tool)
    callbacks: dict[str, Any] = {
        "elicitation_callback": say_yes,
        "sampling_callback": write,
        "list_roots_callback": list_roots,
    }
    async with Client(server, **callbacks) as client:
        calling = asyncio.create_task(client.call_tool("tool", read_timeout_seconds=1))
        await asyncio.wait({calling})
        calling.exception()
        assert len(server.replies) == 1
    gc.collect()
    assert not complaints


@pytest.mark.parametrize(
    "id_",
    [10**400, -(10**30), "x" * 100_000, "", "\0", "\N{GRINNING FACE}"],
    ids=["400 digits", "below zero", "long", "empty", "nul", "a face"],
)
async def test_an_id_comes_back_as_it_was_however_large(id_: Any) -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        assert (await asyncio.wait_for(server.ask({"method": "ping"}, id_), 1))["id"] == id_
        return await plain(server, message)

    async with Client(OldServer(tool=tool)) as client:
        assert text(await client.call_tool("tool", read_timeout_seconds=2)) == "done"


async def test_what_a_server_calls_its_messages_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        server.send({"id": ["x" * 100_000], "method": "ping"})
        server.send({"id": "x" * 100_000, "result": {}})
        return await plain(server, message)

    caplog.set_level(logging.DEBUG)
    async with Client(OldServer(tool=tool)) as client:
        await client.call_tool("tool")
    assert max(len(record.getMessage()) for record in caplog.records) < 10_000


# Floods


class Crowd:
    """People who never answer, and how many were asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, context: CallbackContext, params: Any) -> ElicitResult:
        self.asked += 1
        await asyncio.Event().wait()
        return accept()


async def test_a_flood_of_questions_does_not_open_a_dialog_for_each() -> None:
    crowd = Crowd()

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        for number in range(5000):
            server.send({"id": number, **FORM})
        for _ in range(20):
            await asyncio.sleep(0)
        return await plain(server, message)

    async with Client(OldServer(tool=tool), elicitation_callback=crowd) as client:
        await client.call_tool("tool")
    assert 0 < crowd.asked <= 1000


async def test_a_flood_of_pings_does_not_open_a_connection_for_each() -> None:
    at_once = most = 0

    async def said(got: Got, send: Send) -> None:
        nonlocal at_once, most
        at_once += got.what == "a reply"
        most = max(most, at_once)
        await asyncio.sleep(0.1)
        at_once -= got.what == "a reply"
        await says(202)(got, send)

    pings = b"".join(event({"jsonrpc": "2.0", "id": number, "method": "ping"}) for number in range(200))
    app = OldHttp(streams(pings, lambda: asyncio.sleep(0.4), response=True), said=said)
    async with client_of(app, mode="legacy") as client:
        await client.call_tool("tool")
    assert 0 < most <= 64


# Streams that never come to an end


async def counted(app: OldHttp, seconds: float) -> int:
    """How often a client comes back within some time."""
    async with client_of(app, mode="legacy") as client:
        calling = asyncio.create_task(client.call_tool("tool"))
        await asyncio.sleep(seconds)
        calling.cancel()
        await asyncio.wait({calling})
    return len(app.at("GET"))


def endless(retry: int) -> Any:
    """Streams that end at once, each of which says where to go on."""
    numbers = iter(range(1_000_000))

    async def handle(got: Got, send: Send) -> None:
        await streams(event(id_=f"e-{next(numbers)}", retry=retry))(got, send)

    return handle


async def test_a_call_s_stream_that_brings_nothing_but_ids_is_not_asked_for_again_and_again_at_once() -> None:
    handle = endless(0)
    assert await counted(OldHttp(handle, gets=[says(405), handle]), 0.4) < 20


async def test_a_standing_stream_that_brings_nothing_but_ids_is_not_asked_for_again_and_again_at_once() -> None:
    assert await counted(OldHttp(streams(for_ever), gets=[endless(0)]), 0.4) < 20


# Answers that do not arrive


@pytest.mark.parametrize("status", [500, 400, 404])
async def test_a_call_whose_answer_the_server_does_not_take_comes_to_an_end(status: int) -> None:
    async def said(got: Got, send: Send) -> None:
        await says(status if got.what == "a reply" else 202)(got, send)

    app = OldHttp(streams(event({"jsonrpc": "2.0", "id": "q", **FORM}), for_ever), said=said)
    async with client_of(app, mode="legacy", elicitation_callback=say_yes) as client:
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(client.call_tool("tool"), 1)


# Secrets


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_what_is_secret_in_a_url_is_not_logged_when_the_server_moves(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    inner = OldHttp(gets=[streams(for_ever)])

    async def app(scope: Any, receive: Any, send: Send) -> None:
        if scope["path"] == "/mcp":
            await says(307, b"", (b"location", b"/moved"))(Got("", "", {}, None), send)
        else:
            await inner(scope, receive, send)

    async with Listening(app) as listening:
        url = f"http://name:hunter2@127.0.0.1:{listening.port}/mcp?key=hunter2"
        async with Client(url, mode=mode) as client:
            await client.call_tool("tool")
    logged = "\n".join(
        record.getMessage() for record in caplog.records if record.name.startswith(("httpx2", "bespeak"))
    )
    assert logged
    assert "hunter2" not in logged


# An approval is for one question


SERVER = """
import json, os, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

count, waiting = 0, {}
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        info = {"name": "old", "version": "1"}
        send(id=message["id"], result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/call":
        name = message["params"]["name"]
        if name == "die":
            os._exit(1)
        count += 1
        waiting[f"q-{count}"] = message["id"]
        schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
        send(id=f"q-{count}", method="elicitation/create", params={"message": name, "requestedSchema": schema})
    elif method is None:
        said = [{"type": "text", "text": message.get("result", {}).get("action", "an error")}]
        send(id=waiting.pop(message["id"]), result={"content": said})
"""


async def test_an_answer_to_a_server_that_died_is_no_answer_to_the_one_started_after_it() -> None:
    later = asyncio.Event()
    asked: list[str] = []

    async def person(context: CallbackContext, params: Any) -> ElicitResult:
        asked.append(params.message)
        if params.message == "delete everything":
            return ElicitResult(action="decline")
        await later.wait()
        return accept(sure=True)

    server = StdioServerParameters(sys.executable, ["-S", "-E", "-c", SERVER])
    async with Client(server, mode="legacy", elicitation_callback=person) as client:
        harmless = [asyncio.create_task(client.call_tool("harmless")) for _ in range(2)]
        await eventually(lambda: len(asked) == 2)
        with pytest.raises(Lost):
            await client.call_tool("die")
        await asyncio.gather(*harmless, return_exceptions=True)
        deleting = asyncio.create_task(client.call_tool("delete everything"))
        await asyncio.wait({deleting}, timeout=0.3)
        later.set()
        assert text(await asyncio.wait_for(deleting, 2)) == "decline"


async def test_an_answer_for_a_session_that_is_gone_is_no_answer_in_the_next() -> None:
    later, gone = asyncio.Event(), asyncio.Event()
    asked: list[str] = []

    async def person(context: CallbackContext, params: Any) -> ElicitResult:
        asked.append(params.message)
        if params.message == "delete everything":
            return ElicitResult(action="decline")
        await later.wait()
        return accept(sure=True)

    def question(message: str) -> bytes:
        return event({"jsonrpc": "2.0", "id": 0, **FORM, "params": {**FORM["params"], "message": message}})

    async def new_session(got: Got, send: Send) -> None:
        await streams(question("delete everything"), lambda: eventually(lambda: app.at("a reply")), response=True)(
            got, send
        )

    # Two calls whose streams break off, and whose question came on the standing stream; then the session is not known.
    first = streams(gone.wait)
    both = lambda: eventually(lambda: len(app.at("tools/call")) == 2)  # noqa: E731 - said twice otherwise
    gets = [streams(both, question("harmless"), gone.wait), says(405)]
    app = OldHttp(first, first, says(404), new_session, gets=gets)
    async with client_of(app, mode="legacy", elicitation_callback=person) as client:
        harmless = [asyncio.create_task(client.call_tool("tool")) for _ in range(2)]
        await eventually(lambda: asked)
        gone.set()
        await asyncio.gather(*harmless, return_exceptions=True)
        deleting = asyncio.create_task(client.call_tool("tool"))
        await asyncio.wait({deleting}, timeout=0.2)
        later.set()
        assert text(await asyncio.wait_for(deleting, 5)) == "done"
    reply = app.at("a reply")[-1]
    assert (reply.headers["mcp-session-id"], reply.message["result"]["action"]) == ("s-2", "decline")


async def test_a_question_of_an_old_session_is_never_answered_in_the_new_one() -> None:
    """A stream of the old session may live on, at another instance of the server, and ask after the new handshake."""
    ask = asyncio.Event()

    async def person(context: CallbackContext, params: Any) -> ElicitResult:
        if params.message == "delete everything":
            await asyncio.Event().wait()
        return accept(sure=True)

    def question(message: str) -> bytes:
        return event({"jsonrpc": "2.0", "id": 0, **FORM, "params": {**FORM["params"], "message": message}})

    old = streams(ask.wait, question("harmless"), for_ever)
    app = OldHttp(old, says(404), streams(question("delete everything"), for_ever))
    async with client_of(app, mode="legacy", elicitation_callback=person) as client:
        calls = [asyncio.create_task(client.call_tool("tool"))]
        await eventually(lambda: len(app.at("tools/call")) == 1)
        calls.append(asyncio.create_task(client.call_tool("tool")))
        await eventually(lambda: len(app.at("tools/call")) == 3)
        ask.set()
        await asyncio.wait(calls, timeout=0.3, return_when=asyncio.FIRST_COMPLETED)
        for one in calls:
            one.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    assert not [one.message for one in app.at("a reply") if one.headers["mcp-session-id"] == "s-2"]
