"""An HTTP server that plays back a script, and the transport that asks it: what a client makes of odd servers."""

import socket
from collections.abc import Awaitable, Callable
from typing import Any

from bespeak.transports.http.asgi import JSON, ASGIApp, Receive, Scope, Send, read_body, respond
from bespeak.transports.http.client import HttpTransport
from bespeak.transports.interfaces import Outgoing
from tests.wires import Listening

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'


NOTE = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'


CALL = Outgoing(1, "tools/call", b'{"the":"message"}', {"Mcp-Method": "tools/call"})


def says(status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> ASGIApp:
    """A server that always answers so."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive, 10_000)
        await respond(send, status, body, *headers)

    return app


def always(app: ASGIApp) -> Callable[[str], ASGIApp]:
    return lambda path: app


class Seen:
    """A server that remembers the requests it gets, and answers each as the function says."""

    def __init__(self, app: Callable[[str], ASGIApp] | None = None) -> None:
        self._app = app or always(says(200, ANSWER, JSON))
        self.requests: list[tuple[str, list[tuple[bytes, bytes]], bytes]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "no lifespan here"
        body = await read_body(receive, 10_000)

        async def again() -> Any:
            return {"type": "http.request", "body": body}

        path = scope["path"] + ("?" + scope["query_string"].decode() if scope["query_string"] else "")
        self.requests.append((path, list(scope["headers"]), bytes(body or b"")))
        await self._app(scope["path"])(scope, again, send)

    def header(self, name: bytes, at: int = -1) -> list[bytes]:
        return [value for key, value in self.requests[at][1] if key == name]


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


EVENTS = (b"content-type", b"text/event-stream; charset=utf-8")


def event(message: bytes) -> bytes:
    return b"data: " + message + b"\n\n"


def streams(*pieces: bytes | Callable[[], Awaitable[Any]], headers: Any = (EVENTS,), then: Any = None) -> ASGIApp:
    """A server that sends these pieces, awaiting what can be awaited between them."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive, 10_000)
        await send({"type": "http.response.start", "status": 200, "headers": list(headers)})
        for piece in pieces:
            if isinstance(piece, bytes):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            else:
                await piece()
        if then is not None:
            raise then
        await send({"type": "http.response.body"})

    return app


async def ask(app: ASGIApp, notify: Callable[[bytes], None] = lambda data: None, **options: Any) -> bytes:
    async with Listening(app) as listening, HttpTransport(listening.url, **options) as transport:
        return await transport.exchange(CALL, notify)


LONG = event(b'{"jsonrpc":"2.0","id":1,"result":{"text":"' + b"x" * 400 + b'"}}')
