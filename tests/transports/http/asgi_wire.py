"""An ASGI connection in memory, held by a test."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Annotated, Any

from bespeak import Context, MCPServer, Resolve
from bespeak.transports.http.app import HttpApp
from tests.transports.http.callers import HEADERS, Answer, call, confirm, server_with


class Wire:
    """One request handed straight to an ASGI app: what it is sent is kept, and may be held up."""

    def __init__(self, message: dict[str, Any] | list[dict[str, Any]], **headers: str) -> None:
        name = {"Mcp-Name": message["params"]["name"]} if isinstance(message, dict) else {}
        given = {**HEADERS, **name, **headers}
        raw = [(key.lower().encode(), value.encode()) for key, value in given.items()]
        self.scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/mcp", "headers": raw}
        self.sent: list[MutableMapping[str, Any]] = []
        self.gone = asyncio.Event()
        self.reads = asyncio.Event()
        """Whether the client reads: while it does not, sending waits."""
        self.reads.set()
        self.watchers = 0
        self._body: bytes | None = json.dumps(message).encode()

    async def receive(self) -> MutableMapping[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        self.watchers += 1
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        await self.reads.wait()
        self.sent.append(message)

    async def through(self, app: HttpApp) -> None:
        await app(self.scope, self.receive, self.send)

    @property
    def answer(self) -> Answer:
        start, *bodies = self.sent
        assert start["type"] == "http.response.start"
        assert all(one["type"] == "http.response.body" for one in bodies)
        assert [one.get("more_body", False) for one in bodies] == [True] * (len(bodies) - 1) + [False]
        headers = {key.decode(): value.decode() for key, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(one["body"] for one in bodies))


def shop(body: Callable[[Context], Awaitable[str]]) -> MCPServer[Any]:
    """A server whose tool asks first."""

    async def buy(sure: Annotated[bool, Resolve(confirm, key="sure")], ctx: Context) -> str:
        return await body(ctx)

    return server_with(buy)


def yes_to(asked: dict[str, Any], *, progress: bool = False) -> dict[str, Any]:
    yes = {"sure": {"action": "accept", "content": {"value": True}}}
    return call("buy", progress=progress, inputResponses=yes, requestState=asked["requestState"])
