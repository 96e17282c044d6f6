"""Crowds and nonsense: 500 connections at once, and thousands of odd requests of which none may break anything."""

import asyncio
import base64
import json
import random
from collections.abc import AsyncGenerator, MutableMapping
from typing import Annotated, Any, cast

import pytest
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from pydantic import BaseModel, Field

from bespeak import Context, Elicit, MCPServer, Resolve
from bespeak.transports.http.app import HttpApp
from tests.transports.http.callers import Caller, call, server_with
from tests.wires import Listening

VERSION = "2026-07-28"


# A crowd


@pytest.mark.parametrize("parser", ["h11", "httptools"])
async def test_500_connections_at_once_all_get_their_own_answer(parser: Any) -> None:
    waiting = 0
    all_there = asyncio.Event()

    async def meet(number: int, ctx: Context) -> int:
        nonlocal waiting
        waiting += 1
        if waiting == 500:
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
        answers = await asyncio.gather(*(one(server.port, number, room) for number in range(500)))
    assert answers == [(200, number % 2 == 0, number) for number in range(500)]


# Nonsense


class Book(BaseModel):
    title: str
    pages: int = Field(ge=1)


def make_app() -> HttpApp:
    mcp = MCPServer("Storm")

    async def confirm(title: str = "") -> Elicit[bool]:
        return Elicit(f"Really {title}?", bool)

    async def session() -> AsyncGenerator[str]:
        yield "session"

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
    async def place(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
        count: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Count"})] = 0,
    ) -> str:
        return region * min(max(count, 0), 3)

    @mcp.tool()
    async def buy(sure: Annotated[bool, Resolve(confirm, key="sure")], title: str = "") -> str:
        return f"{title} {sure}"

    @mcp.tool()
    async def use(opened: Annotated[str, Resolve(session)], value: Any = None) -> str:
        return opened

    @mcp.tool()
    async def by_hand(ctx: Context) -> str | InputRequiredResult:
        if ctx.input_responses:
            return f"{ctx.request_state} {len(ctx.input_responses)}"
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        question = ElicitRequest(params=ElicitRequestFormParams(message="Well?", requested_schema=schema))
        return InputRequiredResult(input_requests={"well": question}, request_state="half")

    return mcp.streamable_http_app(max_request_body_size=100_000)


TOOLS = ["echo", "shelve", "place", "buy", "use", "by_hand"]
ODD_VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1.5,
        1e308,
        2**53,
        -(2**64),
        10**300,
        "",
        "x",
        "\u0000",
        "\u2028",
        "日本",
        "=?base64??=",
    ),
    *([], {}, [[]], {"": {}}, {"_meta": {}}, {"$ref": "#"}, ["tools/call"], "a" * 2_000, {"action": "accept"}),
]
ODD_NUMBERS = [b"1e400", b"-1e400", b"9" * 4_000, b"9" * 5_000, b"0.1e-400", b"-0", b"1E5", b"01", b"NaN"]


def members(value: Any) -> dict[str, Any]:
    """What an object holds; nothing if it is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class Sender(random.Random):
    """Writes requests: each is right in most places, and odd in some."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.asked: list[dict[str, Any]] = []
        """The params of requests that were answered by a question, with the state that came with it."""
        self.oddity = 0.0

    def odd(self) -> bool:
        return self.random() < self.oddity

    def value(self, depth: int = 0) -> Any:
        if depth > 3 or self.random() < 0.6:
            return self.choice(ODD_VALUES)
        if self.random() < 0.5:
            return [self.value(depth + 1) for _ in range(self.randrange(4))]
        return {str(self.choice(ODD_VALUES))[:50]: self.value(depth + 1) for _ in range(self.randrange(4))}

    def either(self, right: Any) -> Any:
        return self.value() if self.odd() else right

    def some(self, **members: Any) -> dict[str, Any]:
        """An object that may lack members, or have more than it should."""
        kept = {name: value for name, value in members.items() if not self.odd()}
        return {**kept, "more": self.value()} if self.odd() else kept

    def arguments(self, tool: str) -> Any:
        right: dict[str, Any] = {
            "echo": {"value": self.value()},
            "shelve": {"book": self.some(title="t", pages=self.either(3)), "where": self.either(["a"])},
            "place": {"region": self.either("north"), "count": self.either(2)},
            "buy": {"title": self.either("Dune")},
        }.get(tool, {})
        return self.either(right)

    def answers(self) -> Any:
        answer = self.some(
            action=self.choice(["accept", "decline", "cancel", "x"]), content=self.either({"value": True})
        )
        return self.either({"sure": self.either(answer), "well": self.either(answer)})

    def tool_params(self) -> dict[str, Any]:
        """What a tool is called with: odd more often than what is around it, so that it is looked at."""
        around, self.oddity = self.oddity, max(self.oddity, self.choice([0.0, 0.1, 0.3]))
        if self.asked and self.random() < 0.4:  # go on with a call that asked
            params = self.choice(self.asked)
            params = {**params, "inputResponses": self.answers(), "requestState": self.state(params["requestState"])}
        else:
            tool = self.choice(TOOLS)
            params = {"name": tool, **self.some(arguments=self.arguments(tool))}
            if self.odd():
                params |= {"inputResponses": self.answers(), "requestState": self.either("v1.k.x")}
        self.oddity = around
        return params

    def state(self, known: str) -> Any:
        if self.odd():
            place = self.randrange(len(known))
            known = known[:place] + self.choice("Aé.=-\u0000") + known[place + 1 :]
        return self.either(known)

    def message(self) -> Any:
        method = self.choice(["tools/call"] * 10 + ["tools/list", "server/discover", "initialize", "prompts/get"])
        meta = self.some(
            **{
                "io.modelcontextprotocol/protocolVersion": self.either(VERSION),
                "io.modelcontextprotocol/clientCapabilities": self.either({"elicitation": self.either({})}),
                "io.modelcontextprotocol/clientInfo": self.value(),
            }
        )
        if self.random() < 0.3:
            meta["progressToken"] = self.either("p")
            meta["io.modelcontextprotocol/logLevel"] = self.either("debug")
        params: dict[str, Any] = {"_meta": self.either(meta)}
        if method == "tools/call":
            params = {**self.tool_params(), **params}
        elif self.random() < 0.3:
            params["cursor"] = self.value()
        one = self.some(jsonrpc=self.either("2.0"), id=self.either(7), method=self.either(method), params=params)
        return [one] if self.random() < self.oddity / 4 else one

    def body(self, message: Any) -> bytes:
        raw = json.dumps(message, ensure_ascii=self.random() < 0.5).encode()
        if self.random() < 0.05:
            raw = raw.replace(b"7", self.choice(ODD_NUMBERS))
        if not self.odd():
            return raw
        place, kind = self.randrange(len(raw) + 1), self.randrange(6)
        if kind == 0:
            return raw[:place]
        if kind == 1:
            return raw[:place] + self.randbytes(self.randrange(1, 5)) + raw[place:]
        if kind == 2:
            return raw[:place] + raw[place + self.randrange(1, 20) :]
        if kind == 3:
            return b'{"a":' * self.choice([10, 1_000]) + raw
        if kind == 4:
            return self.randbytes(self.randrange(200))
        return raw + b" " * self.choice([1, 200_000])

    def headers(self, message: Any) -> list[tuple[bytes, bytes]]:
        """Mostly what the message calls for."""
        asked = members(message)
        given = members(asked.get("params"))
        arguments = members(given.get("arguments"))
        found = {
            "host": "localhost:8000",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": VERSION,
            "mcp-method": asked.get("method"),
            "mcp-name": given.get("name"),
        }
        found |= {f"mcp-param-{name}": str(arguments[name]) for name in ("region", "count") if name in arguments}
        lines = [(name.encode(), self.header(value)) for name, value in found.items() if isinstance(value, str)]
        if self.odd():
            self.shuffle(lines)
            lines = lines[self.randrange(3) :]
        if self.odd():
            name, value = self.choice(lines)
            lines.append((name, self.choice([value, b"", self.randbytes(6)])))
        if self.odd():
            name = self.choice([b"origin", b"content-length", b"mcp-session-id", b"mcp-param-region"])
            lines.append((name, self.choice([b"", b"null", b"9" * 30, b"-1", b"http://localhost", self.randbytes(8)])))
        return lines

    def header(self, value: str) -> bytes:
        plain = value.isascii() and value.isprintable() and value == value.strip()
        raw = value.encode() if plain else f"=?base64?{base64.b64encode(value.encode()).decode()}?=".encode()
        if not self.odd():
            return raw
        return self.choice([b" " + raw + b"\t ", raw.upper(), raw[1:], b"=?base64?" + raw + b"?=", self.randbytes(4)])


class Visit:
    """One request handed straight to the app, its body in pieces."""

    def __init__(self, sender: Sender, message: Any) -> None:
        self.raw = sender.body(message)
        cut = sender.randrange(len(self.raw) + 1) if sender.random() < 0.2 else len(self.raw)
        self._pieces = [self.raw[:cut], self.raw[cut:]] if cut < len(self.raw) else [self.raw]
        self.leaves = sender.random() < 0.03
        self._gone = asyncio.Event()
        self.sent: list[MutableMapping[str, Any]] = []
        self.scope = {
            "type": "http",
            "method": "GET" if sender.odd() and sender.random() < 0.1 else "POST",
            "path": "/other" if sender.odd() and sender.random() < 0.1 else "/mcp",
            "root_path": "",
            "query_string": b"",
            "headers": sender.headers(message),
        }

    async def receive(self) -> MutableMapping[str, Any]:
        if self.leaves and len(self._pieces) < 2:
            return {"type": "http.disconnect"}
        if self._pieces:
            return {"type": "http.request", "body": self._pieces.pop(0), "more_body": bool(self._pieces)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.append(message)

    def answers(self) -> list[Any]:
        """The messages that came back, once the response is known to be one."""
        start, *bodies = self.sent
        assert start["type"] == "http.response.start"
        assert [one["type"] for one in bodies] == ["http.response.body"] * len(bodies)
        assert [one.get("more_body", False) for one in bodies] == [True] * (len(bodies) - 1) + [False]
        body, headers = b"".join(one["body"] for one in bodies), dict(start["headers"])
        assert start["status"] in (200, 202, 400, 403, 404, 405, 406, 413, 415)
        if start["status"] == 202:
            assert body == b""
            return []
        if headers[b"content-type"] == b"application/json":
            assert headers[b"content-length"] == b"%d" % len(body)
            return [json.loads(body)]
        assert (start["status"], headers[b"content-type"]) == (200, b"text/event-stream")
        events = [part.removeprefix(b"event: message\r\ndata: ") for part in body.split(b"\r\n\r\n")[:-1]]
        return [json.loads(event) for event in events]


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
async def test_a_thousand_odd_requests_are_each_answered_and_break_nothing(seed: int) -> None:
    app, sender = make_app(), Sender(seed)
    served = 0
    async with asyncio.timeout(30):
        for number in range(1_000):
            sender.oddity = (0.0, 0.005, 0.01, 0.03, 0.2)[number % 5]
            message = sender.message()
            visit = Visit(sender, message)
            await app(visit.scope, visit.receive, visit.send)
            if not visit.sent:
                assert visit.leaves, visit.raw[:500]
                continue
            answers = visit.answers()
            if not answers:
                continue
            check(answers, visit.raw)
            result = answers[-1].get("result", {})
            served += bool(result)
            if "requestState" in result:
                params = json.loads(visit.raw)["params"]
                sender.asked.append({**params, "requestState": result["requestState"]})
    assert served > 300, "most requests are right enough, or nothing is tested"
    assert len(sender.asked) > 50
