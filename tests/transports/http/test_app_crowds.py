"""Crowds and nonsense: 200 connections at once, and thousands of odd requests of which none may break anything."""

import asyncio
import json
import random
from collections.abc import MutableMapping
from typing import Annotated, Any, cast

import pytest
from pydantic import BaseModel, Field

from bespeak import Context, Elicit, MCPServer, Resolve
from bespeak.transports.http.app import HttpApp
from tests.transports.http.callers import Caller, call, server_with
from tests.wires import Listening

pytestmark = pytest.mark.timing

VERSION = "2026-07-28"


# A crowd


@pytest.mark.parametrize("parser", ["h11", "httptools"])
@pytest.mark.long
async def test_200_connections_at_once_all_get_their_own_answer(parser: Any) -> None:
    waiting = 0
    all_there = asyncio.Event()

    async def meet(number: int, ctx: Context) -> int:
        nonlocal waiting
        waiting += 1
        if waiting == 200:
            all_there.set()
        await ctx.report_progress(1)
        await all_there.wait()
        return number

    async def one(port: int, number: int, room: asyncio.Semaphore) -> Any:
        caller = Caller(port, call("meet", arguments={"number": number}, progress=number % 2 == 0))
        async with room:  # the kernel's queue of new connections is short
            await caller.__aenter__()
        try:
            answer = await caller.answer()
        finally:
            caller.leave()
        return answer.status, answer.is_stream, answer.messages[-1]["result"]["structuredContent"]["result"]

    async with Listening(server_with(meet).streamable_http_app(), parser) as server:
        room = asyncio.Semaphore(50)
        answers = await asyncio.gather(*(one(server.port, number, room) for number in range(200)))
    assert answers == [(200, number % 2 == 0, number) for number in range(200)]


# Nonsense


class Book(BaseModel):
    title: str
    pages: int = Field(ge=1)


def make_app() -> HttpApp:
    mcp = MCPServer("Storm")

    async def confirm(title: str = "") -> Elicit[bool]:
        return Elicit(f"Really {title}?", bool)

    @mcp.tool()
    async def echo(value: Any = None, ctx: Context | None = None) -> Any:
        if ctx is not None:
            await ctx.report_progress(1)
            await ctx.info(value)
        return value

    @mcp.tool()
    async def shelve(book: Book, where: list[str] | None = None, height: float = 1.5) -> Book:
        await asyncio.sleep(0)
        return book

    @mcp.tool()
    async def place(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "") -> str:
        return region

    @mcp.tool()
    async def buy(sure: Annotated[bool, Resolve(confirm, key="sure")], title: str = "") -> str:
        return f"{title} {sure}"

    return mcp.streamable_http_app(max_request_body_size=100_000)


ARGUMENTS: dict[str, Any] = {
    "echo": {"value": [1, {"a": "b"}]},
    "shelve": {"book": {"title": "t", "pages": 3}, "where": ["a"], "height": 2.5},
    "place": {"region": "north"},
    "buy": {"title": "Dune"},
}
ANSWERS = {"sure": {"action": "accept", "content": {"value": True}}}
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    "io.modelcontextprotocol/logLevel": "debug",
    "progressToken": "p",
}
ODD_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    -(2**64),
    10**300,
    "",
    "\u0000",
    "日本",
    [],
    {},
    [[]],
    {"": {}},
    "a" * 2_000,
]
ODD_NUMBERS = [b"1e400", b"9" * 5_000, b"0.1e-400", b"-0", b"01", b"NaN"]
ODD_HEADERS = [
    (b"origin", b"null"),
    (b"content-length", b"9" * 30),
    (b"mcp-session-id", b""),
    (b"mcp-param-region", b"\xff"),
]


class Sender(random.Random):
    """Writes requests: each is right in most places, and odd in some."""

    oddity = 0.0

    def odd(self) -> bool:
        return self.random() < self.oddity

    def spoiled(self, value: Any) -> Any:
        """A copy of which some parts are odd, or missing."""
        if self.odd():
            return self.choice(ODD_VALUES)
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {name: self.spoiled(part) for name, part in members.items() if not self.odd()}
        return [self.spoiled(part) for part in cast("list[Any]", value)] if isinstance(value, list) else value

    def message(self, asked: list[dict[str, Any]]) -> Any:
        """A call of a tool, or the answer to what one asked, or something else."""
        if asked and self.random() < 0.3:
            params: dict[str, Any] = {**self.choice(asked), "inputResponses": ANSWERS}
        else:
            tool = self.choice(list(ARGUMENTS))
            params = {"name": tool, "arguments": ARGUMENTS[tool], "_meta": META}
        method = "tools/call" if self.random() < 0.8 else self.choice(["tools/list", "server/discover", "initialize"])
        one = self.spoiled({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
        return [one] if self.random() < self.oddity / 4 else one

    def body(self, message: Any) -> bytes:
        raw = json.dumps(message, ensure_ascii=self.random() < 0.5).encode()
        if self.random() < 0.05:
            raw = raw.replace(b"7", self.choice(ODD_NUMBERS))
        if not self.odd():
            return raw
        at = self.randrange(len(raw) + 1)
        return self.choice(
            [raw[:at], raw[:at] + self.randbytes(3) + raw[at:], b'{"a":' * 1_000 + raw, raw + b" " * 200_000]
        )

    def headers(self, message: Any) -> list[tuple[bytes, bytes]]:
        """Mostly what the message calls for."""
        params = members(members(message).get("params"))
        found = {
            "host": "localhost:8000",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": VERSION,
            "mcp-method": members(message).get("method"),
            "mcp-name": params.get("name"),
            "mcp-param-region": members(params.get("arguments")).get("region"),
        }
        lines = [(name.encode(), value.encode()) for name, value in found.items() if isinstance(value, str)]
        if self.odd():
            self.shuffle(lines)
            lines = lines[self.randrange(3) :]
        return [*lines, self.choice([*ODD_HEADERS, lines[0]])] if self.odd() else lines


def members(value: Any) -> dict[str, Any]:
    """The members of an object; none of anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


async def visit(app: HttpApp, sender: Sender, message: Any) -> tuple[bytes, list[Any]]:
    """Hand a request straight to the app. Returns its body, and the messages of a response that is known to be one."""
    raw = sender.body(message)
    cut = sender.randrange(len(raw) + 1)
    pieces = [raw[:cut], raw[cut:]]
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        if pieces:
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}
        return await asyncio.Event().wait() and {}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": sender.headers(message)}
    await app(scope, receive, send)
    start, *bodies = sent
    assert [one.get("more_body", False) for one in bodies] == [True] * (len(bodies) - 1) + [False]
    body, headers = b"".join(one["body"] for one in bodies), dict(start["headers"])
    assert start["status"] in (200, 202, 400, 403, 404, 406, 413, 415)
    if start["status"] == 202:
        assert body == b""
        return raw, []
    if headers[b"content-type"] == b"application/json":
        assert headers[b"content-length"] == b"%d" % len(body)
        return raw, [json.loads(body)]
    assert (start["status"], headers[b"content-type"]) == (200, b"text/event-stream")
    events = [part.removeprefix(b"event: message\r\ndata: ") for part in body.split(b"\r\n\r\n")[:-1]]
    return raw, [json.loads(event) for event in events]


def check(messages: list[Any], raw: bytes) -> None:
    """Whether these are notifications and one response, to this request, and no failure of the server."""
    *notes, response = messages
    for note in notes:
        assert note["jsonrpc"] == "2.0"
        assert note["method"] in ("notifications/progress", "notifications/message")
        assert "id" not in note
    assert response["jsonrpc"] == "2.0"
    assert ("result" in response) != ("error" in response)
    if "error" in response:
        error = response["error"]
        assert type(error["code"]) is int
        assert type(error["message"]) is str
        assert error["code"] != -32603, error
    else:
        assert response["result"]["resultType"] in ("complete", "input_required")
    if "id" in response:
        assert type(response["id"]) in (int, str)
        assert response["id"] == json.loads(raw)["id"]
    else:
        assert "error" in response


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.long
async def test_a_thousand_odd_requests_are_each_answered_and_break_nothing(seed: int) -> None:
    app, sender = make_app(), Sender(seed)
    asked: list[dict[str, Any]] = []
    served = 0
    async with asyncio.timeout(30):
        for number in range(1_000):
            sender.oddity = (0.0, 0.005, 0.01, 0.03, 0.2)[number % 5]
            raw, answers = await visit(app, sender, sender.message(asked))
            if not answers:
                continue
            check(answers, raw)
            result = answers[-1].get("result", {})
            served += bool(result)
            if "requestState" in result:
                asked.append({**json.loads(raw)["params"], "requestState": result["requestState"]})
    assert served > 300, "most requests are right enough, or nothing is tested"
    assert len(asked) > 50
