"""A server of the legacy era within this process, and a person who answers slowly."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any

from mcp_types import (
    ElicitResult,
)

from bespeak.client import ClientRequestContext
from bespeak.transports.interfaces import Ask, Outgoing
from bespeak.transports.stdio.client_requests import ClientRequests
from tests.answering import accept

Reply = dict[str, Any]


Tool = Callable[["OldServer", dict[str, Any]], Awaitable[Any]]


def result_of(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


async def plain(server: "OldServer", message: dict[str, Any]) -> dict[str, Any]:
    return result_of("done")


class OldServer:
    """A transport to a server of the legacy era that exchanges lines, as over stdio, within this process.

    Its results come from functions of the server and the message, by method, or for calls by the name of the tool.
    """

    sends_headers = False

    def __init__(self, version: str = "2025-11-25", **ways: Tool) -> None:
        self.version = version
        self.capabilities: dict[str, Any] = {"tools": {}}
        self._ways = ways
        self._open: dict[Any, asyncio.Future[Reply]] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self.heard: list[dict[str, Any]] = []

    async def __aenter__(self) -> "OldServer":
        self._conversation = ClientRequests(self._write, 1_000_000)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._conversation.end(ConnectionError("the server was closed"))
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        return await self._conversation.exchange(request, notify, ask)

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        await self._conversation.say(message)

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        self._conversation.begin(notify, ask)

    async def _write(self, line: bytes) -> None:
        message = json.loads(line)
        self.heard.append(message)
        if "method" not in message:
            waiting = self._open.pop(message["id"], None)
            if waiting is not None:
                waiting.set_result(message)
        elif "id" in message:
            task = asyncio.create_task(self._serve(message))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _serve(self, message: dict[str, Any]) -> None:
        method = message["method"]
        way = self._ways.get(message["params"]["name"] if method == "tools/call" else method.replace("/", "_"))
        if way is not None:
            answered = await way(self, message)
        elif method == "initialize":
            info = {"name": "old", "version": "1"}
            answered = {"protocolVersion": self.version, "capabilities": self.capabilities, "serverInfo": info}
        else:
            answered = {"code": -32601, "message": f"no method {method}"}
        if answered is not None:
            self.send({"id": message["id"], "error" if "code" in answered else "result": answered})

    # What it says and hears

    def send(self, message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def write(self, line: str) -> None:
        self._conversation.feed(line.encode() + b"\n")

    async def ask(self, question: Mapping[str, Any], id_: Any = "q") -> Reply:
        """Send a question, and return the reply."""
        self._open[id_] = asyncio.get_running_loop().create_future()
        self.send({"id": id_, **question})
        return await self._open[id_]

    def note(self, method: str, **params: Any) -> None:
        self.send({"method": f"notifications/{method}", "params": params})

    @property
    def replies(self) -> list[Reply]:
        return [message for message in self.heard if "method" not in message]

    def told(self, method: str) -> list[dict[str, Any]]:
        return [message for message in self.heard if message.get("method") == method]


def asking_tool(*questions: Mapping[str, Any]) -> Tool:
    """A tool that asks these one after another, and returns the replies."""

    async def tool(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        replies = [await server.ask(question, f"q{number}") for number, question in enumerate(questions)]
        return result_of(json.dumps(replies))

    return tool


class Slow:
    """An elicitation callback that answers once `answer` is set."""

    def __init__(self) -> None:
        self.asked = 0
        self.cancelled = 0
        self.answer = asyncio.Event()

    async def __call__(self, context: ClientRequestContext, params: Any) -> ElicitResult:
        self.asked += 1
        try:
            await self.answer.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return accept(sure=True)
