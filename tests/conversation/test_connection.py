"""One live connection: raw envelopes, what each leg carries, notifications, and what is out of place.

testing.md section 1 (the rules of a retry, a reading of its own) and protocol sections 2 to 6 and 22.
"""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.connection import Connection, Received
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question
from bespeak.transports.http.asgi import ASGIApp, Receive, Scope, Send, read_body, respond
from bespeak.transports.http.client import HttpTransport
from bespeak.transports.interfaces import Ask, Outgoing, Transport
from bespeak.transports.stdio.client import StdioServerParameters, StdioTransport
from tests.testing.canned import FOUND, MODERN, Canned, Json, Pushing, Silent, asking, told, written
from tests.wires import Listening

CALL: Json = {"name": "forecast", "arguments": {"day": "today"}}


async def nobody(question: Question) -> Any:
    raise AssertionError(f"nobody should be asked {question.key!r}")


def connected(transport: Transport, mode: str = "auto", declared: Json | None = None) -> Connection:
    return Connection(transport, mode, EVERYTHING if declared is None else declared, 5)


async def called(server: Canned, mode: str = "auto") -> Received:
    async with connected(server, mode) as connection:
        return await connection.send("tools/call", CALL, nobody)


async def heard(connection: Connection) -> list[Finding]:
    """All that is found out about one call, whether it is answered or not."""
    found: list[Finding] = []
    with suppress(TimeoutError):
        found += (await connection.send("tools/call", CALL, nobody)).findings
    return found + connection.astray()


async def broken(connection: Connection) -> list[str]:
    """The rules that are broken in one call."""
    return [finding.rule for finding in await heard(connection)]


# What is sent


async def test_every_request_says_the_revision_and_what_is_declared() -> None:
    server = Canned(asking("city"), told())
    async with connected(server, declared={"elicitation": {"form": {}}}) as connection:
        await connection.send("tools/call", CALL, nobody)
        await connection.send("tools/call", {**CALL, "requestState": "s", "inputResponses": {}}, nobody)
    for sent in server.sent:
        meta = sent["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == MODERN
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {"elicitation": {"form": {}}}
    assert {**server.sent[1]["params"], "_meta": 0} == {**CALL, "requestState": "s", "inputResponses": {}, "_meta": 0}


class Mirroring(Canned):
    """A server over HTTP whose tools want an argument repeated in a header; each is on a page of its own."""

    sends_headers = True

    def __init__(self) -> None:
        super().__init__()
        self.headers: list[Json] = []

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        if request.method != "tools/list":
            if request.method == "tools/call":
                self.headers.append(dict(request.headers))
            return await super().exchange(request, notify, ask)
        message = json.loads(request.message)
        schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
        first = "cursor" not in message["params"]
        tools = [{"name": "first" if first else "second", "inputSchema": schema}]
        cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        page = {**cached, "tools": tools, **({"nextCursor": "2"} if first else {})}
        return written(message["id"], page)


@pytest.mark.parametrize("tool", ["first", "second"])
async def test_every_leg_repeats_in_headers_what_a_tool_wants_repeated(tool: str) -> None:
    server = Mirroring()
    params: Json = {"name": tool, "arguments": {"region": "eu"}}
    async with connected(server) as connection:
        await connection.send("tools/call", params, nobody)
        await connection.send("tools/call", {**params, "requestState": "s"}, nobody)
    for headers in server.headers:
        assert headers["Mcp-Method"] == "tools/call"
        assert headers["Mcp-Name"] == tool
        assert headers["Mcp-Param-Region"] == "eu"


# What comes back


async def test_a_response_is_handed_out_as_it_came() -> None:
    result: Json = {"resultType": "nobody knows", "inputRequests": [None], "requestState": 5, "more": {"x": [1]}}
    received = await called(Canned(result))
    assert received.envelope["result"] == result
    assert received.findings == []


# Notifications


async def test_notifications_come_with_their_request_in_their_order() -> None:
    logs = [{"method": "notifications/message", "params": {"level": "info", "data": number}} for number in range(3)]
    server = Canned(notifications=logs)
    async with connected(server) as connection:
        first = await connection.send("tools/call", CALL, nobody)
        second = await connection.send("tools/call", CALL, nobody)
    assert first.notifications == second.notifications == logs


async def test_a_notification_is_kept_without_the_requests_own_token() -> None:
    params = {"progressToken": 2, "progress": 1, "total": 2, "_meta": {"x": 1}}
    received = await called(Canned(notifications=[{"method": "notifications/progress", "params": params}]))
    assert received.notifications == [{"method": "notifications/progress", "params": {"progress": 1, "total": 2}}]


@pytest.mark.parametrize("params", [[1], "x", {"progressToken": 2}, {"progressToken": [], "progress": {}}])
async def test_a_malformed_notification_is_kept_as_it_is_and_does_no_harm(
    params: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "bespeak.client")
    received = await called(Canned(notifications=[{"method": "notifications/progress", "params": params}]))
    assert received.envelope["result"] == told()
    assert [one["method"] for one in received.notifications] == ["notifications/progress"]


# What is out of place


class Later:
    """Hands what is out of place to a connection that is made after its transport."""

    connection: Connection

    def __call__(self, line: bytes) -> None:
        self.connection.stray(line)


class Straying(Canned):
    """A server that writes lines of its own: when it starts, and with each answer to a call."""

    def __init__(self, first: bytes = b"", then: bytes = b"") -> None:
        super().__init__()
        self._first, self._then = first, then

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        line = self._first if request.method == "server/discover" else self._then
        if line:
            self.stray(line)
        return await super().exchange(request, notify, ask)


@pytest.mark.parametrize(
    ("line", "rule", "text"),
    [
        (b"opening the drawer", "stdout", 'the server wrote "opening the drawer", which is not a message'),
        (b'{"hello": 1}', "stdout", 'the server wrote "{\\"hello\\": 1}", which is not a message'),
        (b"[" * 1_000_000, "stdout", 'the server wrote "[[['),
        (b"\x1b[31m\xff", "stdout", 'the server wrote "\\u001b[31m'),
        (
            b'{"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {}}',
            "pushed",
            'the server sent the request "elicitation/create"',
        ),
        (b'{"id": 7, "method": ["roots/list"]}', "pushed", 'the server sent the request ["roots/list"]'),
    ],
)
async def test_what_a_server_should_not_have_written_is_found(line: bytes, rule: str, text: str) -> None:
    server = Straying(then=line)
    connection = connected(server)
    server.stray = connection.stray
    async with connection:
        (finding,) = await heard(connection)
    assert finding.rule == rule
    assert finding.text.startswith(text)
    assert len(finding.text) < 200_000  # whoever shows it cuts it further


async def test_what_was_written_before_the_first_request_is_found_with_it() -> None:
    server = Straying(first=b"Server started")
    connection = connected(server)
    server.stray = connection.stray
    async with connection:
        assert await broken(connection) == ["stdout"]
        assert await broken(connection) == []


# Over stdio


STDIO = """
import json, sys
FOUND = %r
for line in sys.stdin:
    message = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": FOUND}
    if message["method"] == "tools/call":
        answer["result"] = {"resultType": "complete", "content": []}
        %s
    if "id" in message:
        print(json.dumps(answer), flush=True)
"""


@asynccontextmanager
async def over_stdio(tmp_path: Path, change: str) -> AsyncGenerator[Connection]:
    """A connection to a program that does something of its own before it answers a call."""
    program = tmp_path / "server.py"
    program.write_text(STDIO % (FOUND, change))
    stray = Later()
    transport = StdioTransport(StdioServerParameters(sys.executable, ["-S", str(program)]), stray=stray)
    async with connected(transport, MODERN) as stray.connection:
        yield stray.connection


@pytest.mark.timing
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("print('opening the drawer')", "stdout"),
        ('print(\'{"jsonrpc": "2.0", "id": 9, "method": "roots/list"}\')', "pushed"),
        ("answer = [answer]", "envelope"),
        ("answer.pop('id'); message['id'] = 0", "envelope"),
    ],
    ids=["a line", "a request", "an array of one", "no id"],
)
async def test_what_does_not_belong_on_stdio_is_found_and_the_call_goes_on(
    tmp_path: Path, change: str, rule: str
) -> None:
    async with over_stdio(tmp_path, change) as connection:
        assert await broken(connection) == [rule]


@pytest.mark.timing
@pytest.mark.parametrize("change", ["answer['id'] = str(answer['id'])", "answer['id'] += 100"], ids=["text", "other"])
@pytest.mark.long
async def test_a_wrong_id_over_stdio_is_found_even_without_a_response(tmp_path: Path, change: str) -> None:
    async with over_stdio(tmp_path, change) as connection:
        connection.timeout = 2  # no response ever fits, so this is also how long the test takes
        assert await broken(connection) == ["envelope"]


# Over HTTP


def streaming(*events: bytes) -> ASGIApp:
    """A server over HTTP that sends these events before it answers a call."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        message = json.loads(await read_body(receive, 100_000) or b"{}")
        if message["method"] != "tools/call":
            kind = (b"content-type", b"application/json")
            await respond(send, 200, written(message["id"], {**FOUND, "tools": list[Json]()}), kind)
            return
        sent = b"".join(b"data: " + event + b"\n\n" for event in (*events, written(message["id"], told())))
        await respond(send, 200, sent, (b"content-type", b"text/event-stream"))

    return app


@pytest.mark.parametrize(
    ("event", "kept"),
    [(b'{"jsonrpc": "2.0", "id": 9, "method": "sampling/createMessage"}', "stdout"), (b"hello", "pushed")],
    ids=["a request", "no message"],
)
async def test_what_does_not_belong_in_an_event_stream_is_found_by_its_own_rule(event: bytes, kept: str) -> None:
    note = {"method": "notifications/message", "params": {"level": "info", "data": "working"}}
    async with Listening(streaming(json.dumps({"jsonrpc": "2.0", **note}).encode(), event)) as listening:
        stray = Later()
        async with connected(HttpTransport(listening.url, stray=stray)) as stray.connection:
            received = await stray.connection.send("tools/call", CALL, nobody)
            (finding,) = [*received.findings, *stray.connection.astray()]
    assert received.envelope["result"] == told()
    assert received.notifications == [note]
    assert finding.rule not in ("stdout", kept)  # over HTTP there is no standard output


# Beginning and end


async def test_a_connection_that_cannot_be_made_is_closed() -> None:
    server = Pushing(version="1999-01-01")
    with pytest.raises(ConnectionError, match="chose the protocol version '1999-01-01'"):
        await connected(server).__aenter__()
    assert (server.entered, server.left) == (1, 1)


async def test_a_late_response_to_a_request_that_was_given_up_is_no_fault() -> None:
    server = Silent()
    connection = connected(server)
    server.stray = connection.stray
    async with connection:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await connection.send("tools/call", CALL, nobody)
        late = b'{"jsonrpc": "2.0", "id": 2, "result": {}}'
        server.stray(late)
        assert connection.astray() == []
        server.stray(late)
        assert [one.rule for one in connection.astray()] == ["after-final"]


# Floods


async def test_of_a_flood_of_lines_and_notifications_only_the_beginning_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bespeak.conversation.connection.MOST_NOTED", 3)
    log = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}
    async with connected(Canned(notifications=[log] * 10)) as connection:
        for _ in range(10):
            connection.stray(b"nonsense")
        assert len((await connection.send("tools/call", CALL, nobody)).notifications) == 3
        assert [one.rule for one in connection.astray()] == ["stdout"] * 3


async def test_of_a_flood_of_late_messages_only_the_beginning_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.conversation.live_checks.MOST_LATE", 2)
    async with connected(Canned()) as connection:
        for _ in range(5):
            connection.stray(b'{"jsonrpc": "2.0", "id": 77, "result": {}}')
        assert [one.rule for one in connection.astray()] == ["envelope"] * 2
