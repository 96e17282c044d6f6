"""A server with its page in this process, and somebody who uses the page as its scripts do."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from bespeak import MCPServer
from bespeak.dev.dev_app import DevApp
from bespeak.dev.page_api import Drawing, PageApi, Shown
from bespeak.dev.page_gate import PREFIX, PageGate
from bespeak.transports.http.asgi import ASGIApp, Receive, Scope, Send
from tests.wires import Listening

TOKEN = "the-token-of-this-test"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
GRAPH = Drawing("tool", "buy", "at most 2 rounds", "buy\n└─ sure <- confirm", lambda: "<svg xmlns='a'/>")


class _WithPage:
    """The app of `bespeak dev`, on a port that is known only when it listens."""

    def __init__(self, served: ASGIApp) -> None:
        self._served = served
        self.app: ASGIApp = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    def listens(self, port: int) -> None:
        shown = Shown("server.py", "started-1", f"http://127.0.0.1:{port}/mcp", "shop", [GRAPH])
        self.app = DevApp(self._served, PageGate(TOKEN, port), PageApi(shown))


class Reader:
    """The events of one call, as they arrive."""

    def __init__(self, page: "Page", response: httpx2.Response) -> None:
        self._page = page
        self._lines = response.aiter_lines()
        self.seen: list[dict[str, Any]] = []
        self.id = ""

    async def until(self, kind: str) -> dict[str, Any]:
        """Return the next event of a kind. All events before it are kept in `seen`."""
        async for line in self._lines:
            event = json.loads(line)
            self.seen.append(event)
            if event["type"] == "call":
                self.id = event["id"]
            if event["type"] == kind:
                return event
        raise AssertionError(f"there was no {kind!r} event, but {[one['type'] for one in self.seen]}")

    async def end(self) -> None:
        async for line in self._lines:
            self.seen.append(json.loads(line))

    async def answer(self, *answers: Any) -> httpx2.Response:
        """Answer the open round: one answer for each question, in order, as a suite writes them."""
        questions = next(one for one in reversed(self.seen) if one["type"] == "questions")["questions"]
        keyed = {question["key"]: answer for question, answer in zip(questions, answers, strict=False)}
        return await self._page.post(f"api/call/{self.id}/answers", {"answers": keyed})

    async def stop(self) -> httpx2.Response:
        return await self._page.post(f"api/call/{self.id}/stop", {})

    def wire(self) -> list[str]:
        return [f"{one['way']} {one['kind']}: {one['title']}" for one in self.seen if one["type"] == "wire"]


class Page:
    """Somebody at the page."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http

    async def get(self, path: str) -> httpx2.Response:
        return await self.http.get(path)

    async def post(self, path: str, value: Any) -> httpx2.Response:
        return await self.http.post(path, json=value)

    @asynccontextmanager
    async def call(
        self, name: str, arguments: dict[str, Any] | None = None, era: str = MODERN, **more: Any
    ) -> AsyncGenerator[Reader]:
        params = {"name": name, "arguments": arguments or {}}
        async with self.request("tools/call", params, era, **more) as reader:
            yield reader

    @asynccontextmanager
    async def request(
        self, method: str, params: dict[str, Any], era: str = MODERN, **more: Any
    ) -> AsyncGenerator[Reader]:
        body = {"era": era, "method": method, "params": params, **more}
        async with self.http.stream("POST", "api/call", json=body) as response:
            assert response.status_code == 200, await response.aread()
            yield Reader(self, response)


@asynccontextmanager
async def page_of(mcp: MCPServer[Any]) -> AsyncGenerator[Page]:
    """Serve a server and its page, and open the page."""
    async with listening(mcp.streamable_http_app()) as (port, _):
        base = f"http://127.0.0.1:{port}{PREFIX}{TOKEN}/"
        async with httpx2.AsyncClient(base_url=base, timeout=30, trust_env=False) as http:
            yield Page(http)


@asynccontextmanager
async def listening(served: ASGIApp) -> AsyncGenerator[tuple[int, Callable[[], Sequence[Any]]]]:
    """Serve an app and a page beside it. Yields the port, and a function that returns the open connections."""
    app = _WithPage(served)
    async with Listening(app) as server:
        app.listens(server.port)
        yield server.port, lambda: server.open
