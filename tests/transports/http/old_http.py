"""A scripted HTTP server of an older revision, as a client meets it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from bespeak import Client
from bespeak.transports.http.asgi import JSON, Receive, Scope, Send, read_body, respond
from tests.answering import text
from tests.wires import Listening

NOVEMBER = "2025-11-25"


DONE: dict[str, Any] = {"content": [{"type": "text", "text": "done"}]}


EVENTS = (b"content-type", b"text/event-stream")


class Got(NamedTuple):
    """A request as it came."""

    http: str
    path: str
    headers: dict[str, str]
    message: Any

    @property
    def what(self) -> str:
        """The method of its message, or of HTTP."""
        return self.message.get("method", "a reply") if self.message else self.http


Handler = Callable[[Got, Send], Awaitable[None]]


def says(status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> Handler:
    """Answers so, whatever comes."""

    async def handle(got: Got, send: Send) -> None:
        await respond(send, status, body, *headers)

    return handle


def answers(result: dict[str, Any] = DONE, *headers: tuple[bytes, bytes]) -> Handler:
    """Answers a request with a result, as JSON."""

    async def handle(got: Got, send: Send) -> None:
        body = {"jsonrpc": "2.0", "id": got.message["id"], "result": result}
        await respond(send, 200, json.dumps(body).encode(), JSON, *headers)

    return handle


def refuses(code: int, message: str = "no", status: int = 200, data: Any = None) -> Handler:
    """Answers a request with an error."""

    async def handle(got: Got, send: Send) -> None:
        error = {"code": code, "message": message, **({"data": data} if data is not None else {})}
        await respond(
            send, status, json.dumps({"jsonrpc": "2.0", "id": got.message["id"], "error": error}).encode(), JSON
        )

    return handle


def event(message: Any = None, id_: str | None = None, retry: int | None = None) -> bytes:
    """One event; without a message, the empty one that a stream begins with."""
    head = (f"id: {id_}\n" if id_ is not None else "") + (f"retry: {retry}\n" if retry is not None else "")
    return f"{head}data: {json.dumps(message) if message is not None else ''}\n\n".encode()


def answer(id_: int, result: dict[str, Any] = DONE) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


async def for_ever() -> None:
    """As long as the client stays."""
    await asyncio.Event().wait()


def streams(*pieces: bytes | Callable[[], Awaitable[Any]], response: bool = False, breaks: bool = False) -> Handler:
    """Sends these pieces as a stream, awaiting what can be awaited, then perhaps the response; perhaps breaks off."""

    async def handle(got: Got, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [EVENTS]})
        for piece in pieces:
            if isinstance(piece, bytes):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            else:
                await piece()
        if response:
            last = event(answer(got.message["id"]))
            await send({"type": "http.response.body", "body": last, "more_body": True})
        if breaks:
            raise ConnectionAbortedError
        await send({"type": "http.response.body"})

    return handle


class OldHttp:
    """A server of an older revision: remembers what it gets, and answers as it is told, the last way again and again."""

    def __init__(self, *calls: Handler, **how: Any) -> None:
        self.version: str = how.pop("version", NOVEMBER)
        self.sessions: list[bytes] = how.pop("sessions", [b"s-1", b"s-2"])
        self.capabilities: dict[str, Any] = how.pop("capabilities", {"tools": {}})
        self._ways: dict[str, list[Handler]] = {
            "call": list(calls or (answers(),)),
            "GET": how.pop("gets", [says(405)]),
            "DELETE": [how.pop("delete", says(200))],
            "server/discover": [how.pop("discover", says(400, b"what?"))],
            "initialize": how.pop("initialize", [self._initialize]),
            "said": [how.pop("said", says(202))],
        }
        assert not how
        self.seen: list[Got] = []
        self.replies: asyncio.Queue[Any] = asyncio.Queue()

    def at(self, what: str) -> list[Got]:
        return [got for got in self.seen if got.what == what]

    @property
    def methods(self) -> list[str]:
        return [got.what for got in self.seen]

    async def _initialize(self, got: Got, send: Send) -> None:
        headers = [(b"mcp-session-id", self.sessions.pop(0))] if self.sessions else []
        info = {"name": "old", "version": "1"}
        result = {"protocolVersion": self.version, "capabilities": self.capabilities, "serverInfo": info}
        await answers(result, *headers)(got, send)

    def _way(self, got: Got) -> Handler:
        kind = got.what
        if kind not in self._ways:
            kind = "call" if got.message and "method" in got.message and "id" in got.message else "said"
        ways = self._ways[kind]
        return ways.pop(0) if len(ways) > 1 else ways[0]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "no lifespan here"
        body = await read_body(receive, 100_000)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        got = Got(scope["method"], scope["path"], headers, json.loads(body) if body else None)
        self.seen.append(got)
        if got.what == "a reply":
            self.replies.put_nowait(got.message)
        handling = asyncio.ensure_future(self._way(got)(got, send))
        leaving = asyncio.ensure_future(receive())
        await asyncio.wait({handling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if handling.done():
            handling.result()
        handling.cancel()


@asynccontextmanager
async def client_of(app: OldHttp, **options: Any) -> AsyncGenerator[Client]:
    async with Listening(app) as listening, Client(listening.url, **options) as client:
        yield client


async def call(app: OldHttp, **options: Any) -> str:
    """The text of the result of one call."""
    async with client_of(app, **options) as client:
        return text(await client.call_tool("tool"))


def note(data: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": data}}


HELD = streams(for_ever)
"""A standing stream on which nothing comes."""
