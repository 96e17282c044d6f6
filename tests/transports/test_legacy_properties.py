"""Whatever an older client sends, over HTTP or stdio, gets an answer in time, and never an internal error."""

import asyncio
import json
import os
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from bespeak import MCPServer
from bespeak.transports.http.app import HttpApp
from bespeak.transports.http.legacy.event_store import MemoryEventStore
from tests.transports.http.legacy.older_client import JUNE, MARCH, MODERN, NOVEMBER, OLDER, Desk, call, hello, request
from tests.transports.stdio.wire import Wire

SOAK = int(os.environ.get("BESPEAK_SOAK", "1"))
SECONDS = 10.0
Strategy = st.SearchStrategy[Any]
META = "io.modelcontextprotocol/protocolVersion"


def sometimes(count: int) -> settings:
    return settings(
        max_examples=count * SOAK,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


# Messages

ODD: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e300, 10**30, "", " ", "é\u2028😀", "x" * 2000, "q-1", "2.0"),
    *([], [None], [[], {}], {}, {"": None}, {"form": {}}, {"form": 1, "url": []}, {"tools": {"deep": [{}]}}),
    *({"action": "accept"}, {"action": "accept", "content": {"value": 5}}, {"action": 7}, {"code": -1}),
]
# Drawn from a list: building values from scratch takes hypothesis longer than the server takes to answer them.
anything: Strategy = st.sampled_from(ODD)
ids: Strategy = st.integers(0, 4) | st.sampled_from(["a", "q-1", ""]) | anything
tools: Strategy = st.sampled_from(["echo", "approve", "approve_twice", "count", "speak", "broken"]) | anything
versions: Strategy = st.sampled_from([*OLDER, MODERN, "garbage", ""])
metas: Strategy = (
    st.fixed_dictionaries({}, optional={"progressToken": anything, META: versions | anything, "x": anything}) | anything
)
capabilities: Strategy = st.fixed_dictionaries(
    {}, optional={"elicitation": anything, "sampling": anything, "roots": anything}
)
params: Strategy = st.fixed_dictionaries(
    {},
    optional={
        "_meta": metas,
        "name": tools,
        "arguments": st.fixed_dictionaries({}, optional={"text": anything, "times": st.integers(0, 3)}) | anything,
        "level": st.sampled_from(["debug", "error"]) | anything,
        "cursor": anything,
        "requestId": ids,
        "protocolVersion": versions | anything,
        "capabilities": capabilities | anything,
        "clientInfo": anything,
        "requestState": anything,
        "inputResponses": anything,
    },
)
methods: Strategy = st.sampled_from(
    [
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "tools/call",
        "tools/call",
        "logging/setLevel",
        "server/discover",
        "notifications/cancelled",
        "notifications/initialized",
    ]
)
calls: Strategy = st.builds(
    call,
    st.sampled_from(["echo", "approve", "approve_twice", "count", "speak", "broken"]),
    id_=st.integers(0, 4) | st.text(max_size=3),
    token=anything,
)
loose: Strategy = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0"] * 9 + ["1.0"])},
    optional={
        "id": ids,
        "method": methods | anything,
        "params": params | anything,
        "result": anything,
        "error": anything,
    },
)
messages: Strategy = calls | loose | st.builds(request, methods, params, id_=ids)
bodies: Strategy = messages | st.lists(messages | anything, max_size=4) | anything
answers: Strategy = st.sampled_from(
    [
        {"result": {"action": "accept", "content": {"value": True}}},
        {"result": {"action": "decline"}},
        {"error": {"code": -1, "message": "no"}},
    ]
) | st.fixed_dictionaries({}, optional={"result": anything, "error": anything})


def encode(message: Any) -> bytes:
    return json.dumps(message).encode()


# HTTP


class Direct:
    """A client of an app, without a socket between them, that answers whatever it is asked."""

    def __init__(self, app: HttpApp, answer: dict[str, Any]) -> None:
        self._app = app
        self._answer = answer
        self.session: str | None = None
        self.version = NOVEMBER

    async def send(self, verb: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """The whole response. A stream on which nothing more happens is left."""
        given = {
            "host": "127.0.0.1",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            **headers,
        }
        raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in given.items()]
        scope = {"type": "http", "method": verb, "path": "/mcp", "headers": raw}
        left, sent, status, said = asyncio.Event(), False, 0, b""

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": body}
            await left.wait()
            return {"type": "http.disconnect"}

        async def take(message: Any) -> None:
            nonlocal status, said
            if message["type"] == "http.response.start":
                status = message["status"]
                self.session = dict(message["headers"]).get(b"mcp-session-id", b"").decode() or self.session
            else:
                said += message["body"]
                for line in message["body"].split(b"\r\n"):
                    if line.startswith(b"data: "):
                        await self._told(json.loads(line[6:]))
                if verb == "GET":
                    left.set()

        async with asyncio.timeout(SECONDS):
            await self._app(scope, receive, take)
        return status, said

    async def _told(self, message: Any) -> None:
        if "method" in message and "id" in message:
            status, _ = await self.send(
                "POST", encode({"jsonrpc": "2.0", "id": message["id"], **self._answer}), self.headers({})
            )
            assert status in (202, 400), status  # an answer that is none at all is a bad request

    def headers(self, changed: dict[str, str | None]) -> dict[str, str]:
        found = {"mcp-protocol-version": self.version, "mcp-session-id": self.session, **changed}
        return {name: value for name, value in found.items() if value is not None}


@pytest.fixture(scope="module")
def mcp() -> MCPServer[Any]:
    return Desk(question_timeout=0.02).mcp


header_changes: Strategy = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": st.none() | versions,
        "mcp-session-id": st.none() | st.sampled_from(["made-up", ""]),
        "mcp-method": st.sampled_from(["tools/call", "tools/list"]),
        "last-event-id": st.sampled_from(["made-up", "x-1", ""]),
    },
)
verbs: Strategy = st.sampled_from(["POST"] * 12 + ["GET", "DELETE", "PUT"])


@pytest.mark.timing
@sometimes(120)
@given(
    version=st.sampled_from([MARCH, JUNE, NOVEMBER]),
    sent=st.lists(st.tuples(verbs, bodies, header_changes), min_size=1, max_size=5),
    answer=answers,
    kept=st.booleans(),
    option=st.sampled_from([None, None, None, "json_response", "stateless_http"]),
)
@pytest.mark.long
def test_over_http_everything_is_answered_and_nothing_is_an_internal_error(
    mcp: MCPServer[Any],
    version: str,
    sent: list[tuple[str, Any, dict[str, str | None]]],
    answer: dict[str, Any],
    kept: bool,
    option: str | None,
) -> None:
    async def run() -> None:
        options: Any = {option: True} if option else {}
        app = mcp.streamable_http_app(event_store=MemoryEventStore() if kept else None, **options)
        async with mcp.running():
            client = Direct(app, answer)
            client.version = version
            status, _ = await client.send("POST", encode(hello(version)), {})
            assert status == 200
            for verb, body, changed in sent:
                status, said = await client.send(verb, encode(body), client.headers(changed))
                event(f"{verb} {status}")
                assert 200 <= status < 500, (status, said)
                assert b"-32603" not in said
                assert status < 400 or b'"error"' in said, "a refusal says why"
            if client.session is not None:
                await client.send("DELETE", b"", client.headers({}))

    asyncio.run(run())


# stdio


@pytest.mark.timing
@sometimes(20)
@given(
    version=st.sampled_from([None, MARCH, NOVEMBER]),
    sent=st.lists(bodies, min_size=1, max_size=8),
    answer=answers,
)
@pytest.mark.long
def test_on_stdio_everything_is_answered_and_nothing_is_an_internal_error(
    mcp: MCPServer[Any], version: str | None, sent: list[Any], answer: dict[str, Any]
) -> None:
    async def run() -> None:
        async with Wire(mcp) as wire:
            if version is not None:
                await wire.ask(hello(version))
            wire.send(*(encode(body) + b"\n" for body in sent), request("ping", id_="the last"))
            last = False
            while not last:
                line = await wire.line()
                assert b"-32603" not in line
                message = json.loads(line)
                for one in cast("list[Any]", message if isinstance(message, list) else [message]):
                    if "method" in one and "id" in one:
                        wire.send({"jsonrpc": "2.0", "id": one["id"], **answer})
                    last = last or one.get("id") == "the last"

    asyncio.run(run())
