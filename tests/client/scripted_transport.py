"""Transports that answer from a script, over which a client is tested without a server."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from bespeak.client import Lost
from bespeak.transports.interfaces import Ask, Outgoing

COMPLETE: dict[str, Any] = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}


DISCOVERED: dict[str, Any] = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}


def asking(questions: dict[str, Any] | None = None, state: str | None = None) -> dict[str, Any]:
    """An `input_required` result."""
    result: dict[str, Any] = {"resultType": "input_required"}
    if questions is not None:
        result["inputRequests"] = questions
    if state is not None:
        result["requestState"] = state
    return result


class Fake:
    """A transport that answers from a script, the last reply again and again.

    A reply is a result, raw bytes, or a function of the request (and of the `notify` it may use) that gives one.
    """

    sends_headers = False

    def __init__(self, *replies: Any, discovered: Any = DISCOVERED) -> None:
        self._replies = list(replies)
        self._discovered = discovered
        self.requests: list[dict[str, Any]] = []
        """All requests but `server/discover`."""
        self.said: list[dict[str, Any]] = []
        """The messages that expect no response."""
        self.entered = 0

    async def __aenter__(self) -> "Fake":
        self.entered += 1
        return self

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.entered -= 1

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        message = json.loads(request.message)
        if request.method == "server/discover":
            reply = self._discovered
        else:
            self.requests.append(message)
            reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if callable(reply):
            reply = reply(message, notify)
            if inspect.isawaitable(reply):
                reply = await reply
        if isinstance(reply, bytes):
            return reply
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": reply}).encode()

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        self.said.append(json.loads(message))

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        """Nothing comes but with a request."""

    @property
    def params(self) -> list[dict[str, Any]]:
        return [request["params"] for request in self.requests]


class Wire(Fake):
    """A scripted transport whose requests travel with headers, which it remembers."""

    sends_headers = True

    def __init__(self, *replies: Any, **options: Any) -> None:
        super().__init__(*replies, **options)
        self.sent: list[Outgoing] = []

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        self.sent.append(request)
        return await super().exchange(request, notify, ask)

    @property
    def calls(self) -> list[Outgoing]:
        return [request for request in self.sent if request.method == "tools/call"]

    @property
    def methods(self) -> list[str]:
        return [request.method for request in self.sent]


class Stdio(Wire):
    """The same without headers."""

    sends_headers = False


def fails(error: dict[str, Any]) -> Any:
    def fail(request: Any, notify: Any) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()

    return fail


def lost(request: Any, notify: Any) -> Any:
    raise Lost("the request", "the connection broke")


def tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def listing(*tools: dict[str, Any], more: str | None = None) -> dict[str, Any]:
    page = {"resultType": "complete", "tools": list(tools), "ttlMs": 0, "cacheScope": "private"}
    return {**page, "nextCursor": more} if more else page


REGION = tool("buy", region={"type": "string", "x-mcp-header": "Region"})
