"""An older HTTP client on the raw wire, and a server whose tools ask, wait and speak up."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Annotated, Any

from bespeak import Context, Elicit, MCPServer, Resolve
from bespeak.transports.http.app import HttpApp
from tests.wires import Listening, Parser

MARCH, JUNE, NOVEMBER, MODERN = "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
OLDER = ("2024-11-05", MARCH, JUNE, NOVEMBER)
ABLE: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
PATIENCE = 10.0
Json = dict[str, Any]


def request(method: str, params: Any = None, *, id_: Any = 1) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}


def call(tool: str, arguments: Json | None = None, *, id_: Any = 1, token: Any = None) -> Json:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return request("tools/call", {"name": tool, "arguments": arguments or {}, **meta}, id_=id_)


def modern(method: str, params: Json | None = None, *, id_: Any = 1, version: str = MODERN) -> Json:
    meta: Json = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    return request(method, {**(params or {}), "_meta": meta}, id_=id_)


def hello(version: Any = NOVEMBER, capabilities: Any = None, *, id_: Any = 0) -> Json:
    able = ABLE if capabilities is None else capabilities
    info = {"name": "an older client", "version": "1"}
    return request("initialize", {"protocolVersion": version, "capabilities": able, "clientInfo": info}, id_=id_)


def notification(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancelled(id_: Any) -> Json:
    return notification("notifications/cancelled", requestId=id_)


def accepted(id_: Any, value: Any = True) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "result": {"action": "accept", "content": {"value": value}}}


def text(message: Json) -> str:
    return message["result"]["content"][0]["text"]


async def until(attempt: Callable[[], Awaitable[bool]]) -> None:
    """Try again and again, until it succeeds."""
    async with asyncio.timeout(PATIENCE):
        while not await attempt():  # noqa: ASYNC110 - only the other end of the wire knows
            await asyncio.sleep(0.01)


@dataclass(frozen=True)
class Reply:
    """A whole response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> int:
        return self.json["error"]["code"]

    @property
    def reason(self) -> str:
        return self.json["error"]["message"]

    @property
    def text(self) -> str:
        return text(self.json)


@dataclass(frozen=True)
class Event:
    """One event of a stream; a comment has neither data nor anything else."""

    data: bytes | None = None
    id: str | None = None
    retry: str | None = None

    @property
    def json(self) -> Json:
        return json.loads(self.data or b"")


@dataclass
class Exchange:
    """One request on a connection of its own, which may be given up at any time."""

    port: int
    verb: str
    headers: Mapping[str, str]
    body: bytes
    path: str = "/mcp"
    address: str = "127.0.0.1"
    """Where it comes from."""
    status: int = 0
    said: dict[str, str] = field(default_factory=dict[str, str])
    comments: int = 0
    _buffer: bytes = b""

    async def __aenter__(self) -> "Exchange":
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(self.address, 0))
        self.send()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.leave()

    def send(self) -> None:
        given = {**self.headers, "Content-Length": str(len(self.body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.writer.write(f"{self.verb} {self.path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + self.body)

    def leave(self) -> None:
        self.writer.close()

    async def head(self) -> int:
        """The status; `said` are the headers."""
        async with asyncio.timeout(PATIENCE):
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = [line.partition(":") for line in lines[1:] if line]
        self.said = {name.lower(): value.strip() for name, _, value in pairs}
        self.status = int(lines[0].split()[1])
        return self.status

    async def whole(self) -> Reply:
        """All of it, when it has ended."""
        await self.head()
        async with asyncio.timeout(PATIENCE):
            if "content-length" in self.said:
                body = await self.reader.readexactly(int(self.said["content-length"]))
            elif "chunked" in self.said.get("transfer-encoding", ""):
                body = b""
                while chunk := await self._chunk():
                    body += chunk
            else:
                body = b""
        return Reply(self.status, self.said, body)

    async def _chunk(self) -> bytes:
        length = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(length + 2))[:-2]

    async def event(self) -> Event | None:
        """The next event, comments left out; `None` at the end of the stream."""
        if not self.status:
            assert await self.head() == 200, self.status
            assert self.said["content-type"] == "text/event-stream", self.said
        while True:
            while b"\r\n\r\n" not in self._buffer:
                async with asyncio.timeout(PATIENCE):
                    chunk = await self._chunk()
                if not chunk:
                    assert not self._buffer, f"the stream ends in the middle of {self._buffer!r}"
                    return None
                self._buffer += chunk
            raw, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            if raw.startswith(b":"):
                self.comments += 1
                continue
            parts = [line.partition(b":") for line in raw.split(b"\r\n")]
            fields = {name: value for name, _, value in parts}
            id_, retry = fields.get(b"id"), fields.get(b"retry")
            return Event(
                fields.get(b"data", b"").strip(),
                id_.decode().strip() if id_ is not None else None,
                retry.decode().strip() if retry is not None else None,
            )

    async def message(self) -> Json:
        """The next message; events without one are passed over."""
        while (event := await self.event()) is not None:
            if event.data:
                return event.json
        raise AssertionError("the stream has ended")

    async def rest(self) -> list[Json]:
        """All messages that are still to come."""
        found: list[Json] = []
        while (event := await self.event()) is not None:
            if event.data:
                found.append(event.json)
        return found


class Older:
    """A client of one older revision. Without a session it has not shaken hands."""

    def __init__(
        self, port: int, version: str | None = None, session: str | None = None, *, address: str = "127.0.0.1"
    ) -> None:
        self.port = port
        self.address = address
        self.version = version
        self.session = session

    def headers(self, **changed: str | None) -> dict[str, str]:
        """What it sends, some of it changed or left out; `mcp_session_id="x"` is `Mcp-Session-Id: x`."""
        named = self.version is not None and self.version >= JUNE and self.session is not None
        found: dict[str, str | None] = {
            "host": "127.0.0.1",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": self.version if named else None,
            "mcp-session-id": self.session,
            **{name.replace("_", "-"): value for name, value in changed.items()},
        }
        return {name: value for name, value in found.items() if value is not None}

    def open(self, body: Any = b"", *, verb: str = "POST", path: str = "/mcp", **headers: Any) -> Exchange:
        """A request whose response is read bit by bit."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Exchange(self.port, verb, self.headers(**headers), raw, path, self.address)

    async def post(self, body: Any, **headers: Any) -> Reply:
        async with self.open(body, **headers) as exchange:
            return await exchange.whole()

    async def initialize(self, version: str, capabilities: Any = None) -> Reply:
        reply = await self.post(hello(version, capabilities))
        assert reply.status == 200, reply
        self.session, self.version = reply.headers.get("mcp-session-id"), reply.json["result"]["protocolVersion"]
        assert (await self.post(notification("notifications/initialized"))).status == 202
        return reply

    def stand(self, **headers: Any) -> Exchange:
        """Ask for a standing stream, or, with `last_event_id`, for the rest of one that broke off."""
        given: dict[str, Any] = {"accept": "text/event-stream", "content_type": None, **headers}
        return self.open(verb="GET", **given)

    async def get(self, **headers: Any) -> Reply:
        """A GET that is turned away."""
        async with self.stand(**headers) as exchange:
            return await exchange.whole()

    async def delete(self, **headers: Any) -> Reply:
        async with self.open(verb="DELETE", **headers) as exchange:
            return await exchange.whole()

    async def asked(self, exchange: Exchange) -> Json:
        """The question that comes next on a stream."""
        message = await exchange.message()
        assert message["method"] == "elicitation/create", message
        return message


class Served:
    """A server that listens."""

    def __init__(self, app: HttpApp, port: int) -> None:
        self.app = app
        self.port = port

    @property
    def sessions(self) -> int:
        """How many there are."""
        return self.app._legacy.sessions  # pyright: ignore[reportPrivateUsage] - nobody else counts them

    @property
    def readers(self) -> int:
        """How many POSTs under way have a client that is still connected."""
        sessions = self.app._legacy._own_sessions.all()  # pyright: ignore[reportPrivateUsage] - nobody else knows
        return sum(stream.has_reader for session in sessions for stream in session.streams.values())

    def stranger(self, version: str | None = None, *, address: str = "127.0.0.1") -> Older:
        return Older(self.port, version, address=address)

    async def client(self, version: str = NOVEMBER, capabilities: Any = None, *, address: str = "127.0.0.1") -> Older:
        older = Older(self.port, address=address)
        await older.initialize(version, capabilities)
        return older


@asynccontextmanager
async def served(mcp: MCPServer[Any], parser: Parser = "httptools", **options: Any) -> AsyncGenerator[Served]:
    app = mcp.streamable_http_app(**options)
    async with Listening(app, parser) as listening:
        yield Served(app, listening.port)


async def really() -> Elicit[bool]:
    return Elicit("Really?", bool)


async def sure(answer: Annotated[bool, Resolve(really, key="really")]) -> Elicit[bool]:
    return Elicit(f"You said {answer}. Sure?", bool)


class Desk:
    """A server whose tools can be held up, and which remembers what became of them."""

    def __init__(self, **options: Any) -> None:
        self.log: list[str] = []
        self.reached = asyncio.Event()
        self.gate = asyncio.Event()
        self.mcp = mcp = MCPServer[Any]("desk", **options)

        async def till() -> AsyncGenerator[str]:
            self.log.append("opened")
            try:
                yield "till"
            finally:
                self.log.append("closed")

        async def counted(till: Annotated[str, Resolve(till, key="till")]) -> Elicit[bool]:
            return Elicit(f"Count the {till}?", bool)

        @mcp.tool()
        async def echo(text: str = "") -> str:
            return text

        @mcp.tool()
        async def approve(answer: Annotated[bool, Resolve(really, key="really")]) -> str:
            self.log.append(f"approved {answer}")
            return f"approved {answer}"

        @mcp.tool()
        async def approve_twice(
            first: Annotated[bool, Resolve(really, key="really")], second: Annotated[bool, Resolve(sure, key="sure")]
        ) -> str:
            return f"approved {first} and {second}"

        @mcp.tool()
        async def count(answer: Annotated[bool, Resolve(counted, key="counted")]) -> str:
            return f"counted {answer}"

        @mcp.tool()
        async def approve_and_hold(answer: Annotated[bool, Resolve(really, key="really")]) -> str:
            await self.through()
            return f"held {answer}"

        @mcp.tool()
        async def speak(ctx: Context, times: int = 3) -> str:
            for number in range(times):
                await ctx.report_progress(number + 1, times, f"step {number + 1}")
            await ctx.debug("a detail")
            await ctx.info("a fact", logger_name="desk")
            return "spoken"

        @mcp.tool()
        async def hold() -> str:
            await self.through()
            return "held"

        @mcp.tool()
        async def hold_and_speak(ctx: Context) -> str:
            await ctx.report_progress(1)
            await self.through()
            await ctx.report_progress(2)
            return "held"

        @mcp.tool()
        async def stubborn(ctx: Context) -> str:
            """Takes a cancellation and goes on."""
            try:
                await self.through()
            except asyncio.CancelledError:
                await ctx.report_progress(9)
            return "what cancellation?"

        @mcp.tool()
        async def insist(ctx: Context) -> str:
            """Takes a cancellation and asks all the same."""
            try:
                await self.through()
            except asyncio.CancelledError:
                await ctx.elicit("Still?", bool)
            return "insisted"

        @mcp.tool()
        async def broken() -> str:
            raise RuntimeError("something secret")

    async def through(self) -> None:
        self.log.append("began")
        self.reached.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.log.append("cancelled")
            raise
        self.log.append("ended")

    async def begun(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.reached.wait()
        self.reached.clear()


async def events(exchange: Exchange, count: int) -> list[str]:
    """The ids of the next events."""
    found = [await exchange.event() for _ in range(count)]
    return [event.id for event in found if event is not None and event.id is not None]
