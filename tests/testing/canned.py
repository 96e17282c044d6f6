"""What the tests of live conversations share: servers without a wire, whose every answer is written down beforehand."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from bespeak.conversation.servers import Reached
from bespeak.testing.report.results import Result
from bespeak.testing.runner import Options, Runner
from bespeak.testing.suite.loader import load_suite
from bespeak.testing.suite.plan import items_of
from bespeak.transports.interfaces import Ask, Outgoing

Json = dict[str, Any]
MODERN, NOVEMBER, JUNE = "2026-07-28", "2025-11-25", "2025-06-18"
CACHED: Json = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
FOUND: Json = {
    **CACHED,
    "supportedVersions": [MODERN],
    "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "logging": {}},
}
TOKEN = "tok-4f1d-that-nobody-may-see"
STRING: Json = {"type": "string"}


def told(text: str = "ok", **more: Any) -> Json:
    """A result that asks nothing."""
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], **more}


def form(message: str = "Which one?", **fields: Json) -> Json:
    """A question with these fields; one text called `value` if there are none."""
    schema = {"type": "object", "properties": fields or {"value": STRING}}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def asking(*keys: str, state: str | None = TOKEN, **questions: Json) -> Json:
    """A round in the MCP shape."""
    return round_of({**{key: form() for key in keys}, **questions}, state)


def round_of(questions: Json, state: str | None = TOKEN) -> Json:
    """A round with questions of any keys."""
    result: Json = {"resultType": "input_required"}
    if questions:
        result["inputRequests"] = questions
    return result if state is None else {**result, "requestState": state}


def listing(*keys: str, state: str = TOKEN) -> Json:
    """A round in the compatibility dialect."""
    fields = [{"id": key, "kind": "string", "description": f"Which {key}?", "required": True} for key in keys]
    return {"inputRequests": fields, "requestState": state}


def error(message: str = "no", code: int = -32602) -> Json:
    return {"error": {"code": code, "message": message}}


def written(id_: Any, reply: Json | bytes) -> bytes:
    """A response: bytes as they are, an envelope's members with an id, anything else as a result."""
    if isinstance(reply, bytes):
        return reply
    members = reply if "error" in reply or "result" in reply else {"result": reply}
    return json.dumps({"jsonrpc": "2.0", "id": id_, **members}).encode()


class Canned:
    """A server at 2026-07-28. Each request gets the next reply; the last one is given again and again."""

    sends_headers = False

    def __init__(self, *replies: Json | bytes, notifications: Sequence[Json] = ()) -> None:
        self._replies = list(replies) or [told()]
        self._notifications = notifications
        self.stray: Callable[[bytes], None] = lambda _: None
        self.sent: list[Json] = []
        """The messages of all calls."""
        self.entered = self.left = 0
        self.tools: list[Json] = []
        """What it lists."""

    @property
    def params(self) -> list[Json]:
        """The params of all calls, without their `_meta`."""
        return [{key: value for key, value in sent["params"].items() if key != "_meta"} for sent in self.sent]

    async def __aenter__(self) -> "Canned":
        self.entered += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.left += 1

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        message = json.loads(request.message)
        if request.method == "server/discover":
            return written(message["id"], FOUND)
        if request.method == "tools/list":
            return written(message["id"], {**CACHED, "tools": self.tools})
        self.sent.append(message)
        for notification in self._notifications:
            notify(json.dumps({"jsonrpc": "2.0", **notification}).encode())
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        return await self.replied(written(message["id"], reply))

    async def replied(self, response: bytes) -> bytes:
        """What becomes of a response on its way."""
        return response

    async def say(self, message: bytes, headers: Any) -> None:
        """Nothing is said that a server of this revision would listen to."""

    async def begin(self, headers: Any, notify: Callable[[bytes], None], ask: Ask) -> None:
        raise AssertionError("at this revision there is no handshake")


class Silent(Canned):
    """A server that never answers a call."""

    async def replied(self, response: bytes) -> bytes:
        return await asyncio.Event().wait() and b""


class Gone(Canned):
    """A server whose connection breaks in mid-call."""

    async def replied(self, response: bytes) -> bytes:
        raise ConnectionError("the server has hung up")


class Pushing(Canned):
    """A server of an older revision: it pushes its questions, one after the other, and says what it was answered."""

    def __init__(self, *questions: Json, version: str = NOVEMBER, result: Json | None = None) -> None:
        super().__init__()
        self._questions = questions
        self._version = version
        self._result = result or {"content": [{"type": "text", "text": "ok"}]}
        self._answers: asyncio.Queue[Json] = asyncio.Queue()
        self._ids = itertools.count()
        self.answered: list[Json] = []
        """What came back for its questions: `result` or `error`."""

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        message = json.loads(request.message)
        if request.method == "server/discover":
            return written(message["id"], error("unknown method", -32601))
        if request.method == "initialize":
            info = {"name": "canned", "version": "1"}
            agreed: Json = {"protocolVersion": self._version, "capabilities": {"tools": {}}, "serverInfo": info}
            return written(message["id"], {"result": agreed})
        if request.method == "tools/list":
            return written(message["id"], {"tools": []})
        self.sent.append(message)
        for question in self._questions:
            assert ask is not None
            ask({"jsonrpc": "2.0", "id": f"q{next(self._ids)}", **question})
            self.answered.append(await self._answers.get())
        return written(message["id"], {"result": self._result})

    async def say(self, message: bytes, headers: Any) -> None:
        said = json.loads(message)
        if "method" not in said:
            self._answers.put_nowait({name: value for name, value in said.items() if name in ("result", "error")})

    async def begin(self, headers: Any, notify: Callable[[bytes], None], ask: Ask) -> None:
        """Everything it asks belongs to a call."""


# Suites


HEAD = "version: 1\nservers: {desk: {command: [desk], timeout: 5}}\n"
Hold = Callable[..., Awaitable[list[Result]]]


async def run(path: Path, options: Options | None = None) -> list[Result]:
    """All tests of a suite, one after the other."""
    runner = Runner(options)
    try:
        return [await runner.run(item) for item in items_of(load_suite(path))]
    finally:
        await runner.close()


@pytest.fixture
def hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hold:
    """`await hold(server, tests)` runs the tests of a suite, written in YAML, against a canned server."""

    async def held(server: Canned, tests: str, head: str = HEAD, options: Options | None = None) -> list[Result]:
        @asynccontextmanager
        async def reach(
            _server: Any, _folder: Path, _find: Any, stray: Callable[[bytes], None]
        ) -> AsyncGenerator[Reached]:
            server.stray = stray
            yield Reached(server)

        monkeypatch.setattr("bespeak.conversation.connection_pool.reach", reach)
        path = tmp_path / "desk.bespeak.yaml"
        path.write_text(f"{head}tests:\n{tests}", encoding="utf-8")
        return await run(path, options)

    return held


def messages(results: Sequence[Result]) -> list[str]:
    """What went wrong."""
    return [failure.message for result in results for failure in result.failures]


def rules(results: Sequence[Result]) -> list[str | None]:
    """Which rules were broken."""
    return [failure.rule for result in results for failure in result.failures]
