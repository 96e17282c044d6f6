"""Clients of older revisions, raw and over every wire, and people who take their time."""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Annotated, Any, cast

from mcp_types import ElicitRequestParams, ElicitResult
from pydantic import BaseModel, field_validator
from pydantic_core import from_json, to_json

from bespeak import Client, Elicit, MCPServer, Resolve
from bespeak.client import ClientRequestContext
from bespeak.transports.memory import MemoryTransport
from tests.answering import short
from tests.waiting import turns
from tests.wires import OverHttp, OverPipes

Sent = dict[str, Any]


MODERN, NOVEMBER, JUNE, MARCH, FIRST = "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"


EVERYTHING: Sent = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}}


SILENCE = None


def yes(**content: Any) -> Sent:
    return {"result": {"action": "accept", "content": content}}


NO: Sent = {"result": {"action": "decline"}}


def _copied(answer: Any) -> Any:
    return [*answer] if isinstance(answer, list) else answer


def _next(answer: Any) -> Any:
    return cast("list[Any]", answer).pop(0) if isinstance(answer, list) else answer


class Older:
    """A client of an older revision, one raw message at a time: it may answer what no decent client would.

    Answers go by the end of their keys, as members of the response; a list is used up one by one; `SILENCE` is none.
    """

    def __init__(
        self,
        mcp: MCPServer[Any],
        answers: Mapping[str, Any] | None = None,
        *,
        version: str = NOVEMBER,
        declares: Sent | None = None,
    ) -> None:
        self._transport = MemoryTransport(mcp)
        self._answers: Sent = {key: _copied(one) for key, one in (answers or {}).items()}
        self._version = version
        self._declares = EVERYTHING if declares is None else declares
        self._answering: set[asyncio.Task[Any]] = set()
        self._calls = 100
        self.hello: Sent = {}
        self.pushed: list[Sent] = []
        self.said: list[Sent] = []
        """Notifications."""

    async def __aenter__(self) -> "Older":
        await self._transport.__aenter__()
        params: Sent = {"protocolVersion": self._version, "capabilities": self._declares, "clientInfo": {"name": "raw"}}
        self.hello = (await self.send({"id": 1, "method": "initialize", "params": params}))["result"]
        await self.send({"method": "notifications/initialized"})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, error, traceback)

    async def send(self, message: Sent) -> Sent:
        raw = await self._transport.serve(to_json({"jsonrpc": "2.0", **message}), self)
        return {} if raw is None else from_json(raw)

    async def request(self, method: str, params: Sent | None = None) -> Sent:
        """The whole response."""
        self._calls += 1
        return await self.send({"id": self._calls, "method": method, "params": params or {}})

    async def call(self, name: str = "take", arguments: Sent | None = None, **more: Any) -> Sent:
        """The result of a tool."""
        response = await self.request("tools/call", {"name": name, "arguments": arguments or {}, **more})
        assert "result" in response, response
        return response["result"]

    async def failure(self, name: str = "take") -> str:
        """The text of a tool's error."""
        result = await self.call(name)
        assert result["isError"], result
        (block,) = result["content"]
        return block["text"]

    async def error(self, name: str = "take") -> Sent:
        """The JSON-RPC error that a call ends with."""
        response = await self.request("tools/call", {"name": name, "arguments": {}})
        assert "error" in response, response
        return response["error"]

    @property
    def asked(self) -> list[str]:
        return [short(one["params"]["_meta"]["bespeak/key"]) for one in self.pushed]

    @property
    def taken_back(self) -> list[Any]:
        """The ids of questions that were taken back."""
        return [one["params"]["requestId"] for one in self.said if one["method"] == "notifications/cancelled"]

    # The way back

    has_reader = True

    def notify(self, message: bytes) -> None:
        self.said.append(from_json(message))

    def push(self, message: bytes) -> None:
        read = from_json(message)
        if "id" not in read:
            self.said.append(read)
            return
        self.pushed.append(read)
        answer = _next(self._answers.get(self.asked[-1]))
        if answer is not SILENCE:
            task = asyncio.create_task(self.send({"id": read["id"], **answer}))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    def pause(self) -> None:
        raise AssertionError("there is no connection to let go of")

    def when_gone(self, callback: Callable[[], object]) -> None:
        """There is no connection that could be gone."""


class Thinking:
    """A person who takes as long as the test wants, and what is under way meanwhile."""

    def __init__(self, answer: ElicitResult) -> None:
        self.open: list[str] = []
        self.most = 0
        self.order: list[str] = []
        self.taken_back: list[str] = []
        self.done = asyncio.Event()
        self._answer = answer

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        key = short(context.key)
        self.open.append(key)
        self.order.append(key)
        self.most = max(self.most, len(self.open))
        try:
            await self.done.wait()
        except asyncio.CancelledError:
            self.taken_back.append(key)
            raise
        finally:
            self.open.remove(key)
        return self._answer


def over(wire: str, mcp: MCPServer[Any], **options: Any) -> Client:
    """A client of 2025-11-25, unless told otherwise, over a wire."""
    options.setdefault("mode", NOVEMBER)
    if wire == "memory":
        return Client(mcp, **options)
    return Client(OverPipes(mcp) if wire == "stdio" else OverHttp(mcp, "httptools"), **options)


WIRES = ["memory", "stdio", "http"]


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def _even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("an even number, please")
        return number


async def ask_even() -> Elicit[Even]:
    return Elicit("Which?", Even)


async def take_even(it: Annotated[Even, Resolve(ask_even)]) -> str:
    return f"{it.number}"


async def ask_second() -> Elicit[int]:
    return Elicit("And then?", int)


async def slow_first() -> Elicit[int]:
    await turns(50)
    return Elicit("First?", int)


async def asks_nothing() -> int | Elicit[int]:
    await turns(50)
    return 7
