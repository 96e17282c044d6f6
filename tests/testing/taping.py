"""What the tests of cassettes and snapshots share: a server whose every word is scripted, and suites written on the spot."""

import json
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from bespeak.conversation.servers import Reached
from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.report.results import Failure, Kind, Result
from bespeak.testing.runner import Options, Runner
from bespeak.testing.suite.loader import load_suite
from bespeak.testing.suite.plan import items_of
from bespeak.transports.interfaces import Ask, Outgoing

Json = dict[str, Any]
MODERN, LEGACY = "2026-07-28", "2025-11-25"
VERSION = "8.77.6"
"""The server's: it must not turn up in a cassette."""


def form(message: str, **fields: Any) -> Json:
    """A question in the MCP shape; without fields it has one of type string, which is called `value`."""
    schema = {"type": "object", "properties": fields or {"value": {"type": "string"}}}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def text(said: str, **more: Any) -> Json:
    return {"resultType": "complete", "content": [{"type": "text", "text": said}], **more}


CITY = {"city": form("Which city?")}
UNITS = {"units": form("Which units?")}
SUNNY = text("Sunny.")


@dataclass(slots=True)
class Trip:
    """A server that asks in rounds, each with a new token of any length, and then says its result.

    It takes back only the token it handed out last, so who sends an older one is refused.
    """

    rounds: Sequence[Any] = (CITY, UNITS)
    """The `inputRequests` of each round; `None` for a round that hands out a state and asks nothing."""
    result: Json = field(default_factory=lambda: dict(SUNNY))
    with_state: bool = True
    notes: Sequence[Sequence[Json]] = ()
    """The notifications that come with each request."""
    resulting: Mapping[str, Any] = field(default_factory=lambda: {"resultType": "input_required"})
    tokens: list[str] = field(default_factory=list[str])
    """All that were handed out."""
    received: list[Json] = field(default_factory=list[Json])
    """The params of all calls, without their `_meta`."""
    error: Json | None = None
    """What the call ends with instead of its result."""
    always: str | None = None
    """One token that is handed out every time, instead of new ones."""
    quotes: bool = False
    """Whether what it says of a state that it does not know has that state in it."""
    _request: int = 0
    """How many requests this call has had before the one under way."""

    def reply(self, params: Json) -> Json:
        self.received.append(params)
        began = "requestState" not in params and "inputResponses" not in params
        self._request = 0 if began else self._request + 1
        if not began and self.with_state and params.get("requestState") != self.tokens[-1]:
            unknown = f" {params.get('requestState')!r}" if self.quotes else ""
            return {"error": {"code": -32602, "message": f"invalid requestState{unknown}"}}
        if self._request >= len(self.rounds):
            return {"result": self.result} if self.error is None else {"error": self.error}
        asked: Json = dict(self.resulting)
        if self.rounds[self._request] is not None:
            asked["inputRequests"] = self.rounds[self._request]
        if self.with_state:
            self.tokens.append(self.always or secrets.token_urlsafe(20 + secrets.randbelow(40)))
            asked["requestState"] = self.tokens[-1]
        return {"result": asked}

    def notified(self) -> Sequence[Json]:
        return self.notes[self._request] if self._request < len(self.notes) else ()


class Wire:
    """Carries requests to a scripted server, as bytes. It is a transport."""

    sends_headers = False

    def __init__(self, server: Trip) -> None:
        self._server = server

    async def __aenter__(self) -> "Wire":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        message: Json = json.loads(request.message)
        info = {"io.modelcontextprotocol/serverInfo": {"name": "trip", "version": VERSION}}
        if request.method == "server/discover":
            came: Json = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "supportedVersions": [MODERN]}
            reply: Json = {"result": {**came, "capabilities": {"tools": {}, "logging": {}}}}
        elif request.method == "tools/list":
            reply = {"result": {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": []}}
        else:
            params = {name: value for name, value in message["params"].items() if name != "_meta"}
            reply = self._server.reply(params)
            for note in self._server.notified():
                notify(json.dumps({"jsonrpc": "2.0", **note}).encode())
        if isinstance(reply.get("result"), dict):
            reply["result"] = {"_meta": info, **reply["result"]}
        return json.dumps({"jsonrpc": "2.0", "id": request.id, **reply}).encode()

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        pass

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        pass


class Desk:
    """A folder with a suite, its cassettes, and a scripted server that can be exchanged for another."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.tapes = folder / "tapes"
        self.server = Trip()
        self.connections = 0

        @asynccontextmanager
        async def reach(*_: object) -> AsyncGenerator[Reached]:
            self.connections += 1
            yield Reached(Wire(self.server))

        monkeypatch.setattr("bespeak.conversation.connection_pool.reach", reach)

    def suite(self, *tests: Json, name: str = "trip", **more: Any) -> Path:
        """Write a suite whose tests are replayed from cassettes."""
        return write_suite(self.folder, *tests, name=name, **more)

    async def run(self, *tests: Json, record: str = "none", verify: bool = False, **more: Any) -> Result:
        """Run a suite; the result of its last test."""
        return (await run_suite(self.suite(*tests, **more), record=record, verify=verify))[-1]

    async def recorded(self, *tests: Json, **more: Any) -> bytes:
        """The bytes of the only cassette, once a suite was recorded."""
        result = await self.run(*tests, record="rewrite", **more)
        assert result.passed, result.failures
        return self.tape.read_bytes()

    @property
    def tape(self) -> Path:
        (only,) = self.tapes.iterdir()
        return only

    @property
    def cassette(self) -> Json:
        """What is in the only cassette."""
        return json.loads(self.tape.read_bytes())

    def alter(self, change: Callable[[Json], Any]) -> None:
        """Change the only cassette by hand."""
        cassette = self.cassette
        change(cassette)
        self.tape.write_text(json.dumps(cassette), encoding="utf-8")


def write_suite(folder: Path, *tests: Json, name: str = "trip", **more: Any) -> Path:
    """A suite whose tests are replayed from cassettes beside it."""
    folder.mkdir(exist_ok=True)
    servers = {"trip": {"command": ["no-such-command"], "protocol": MODERN}}
    model = {"version": 1, "servers": servers, "cassettes": "tapes", "tests": list(tests), **more}
    path = folder / f"{name}.bespeak.yaml"
    path.write_text(json.dumps(model), encoding="utf-8")  # JSON is YAML
    return path


AGAIN = """
import asyncio, pathlib, sys
from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.report.results import Failure, Kind, Result
from bespeak.testing.suite.loader import load_suite
from bespeak.testing.suite.plan import items_of
from bespeak.testing.runner import Options, Runner

async def main():
    suite, mode, titles, times = pathlib.Path(sys.argv[1]), RecordMode(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    items = [item for item in items_of(load_suite(suite)) if item.title.startswith(titles)] * times
    runner = Runner(Options(record=mode))
    failures = [failure for item in items for failure in (await runner.run(item)).failures]
    await runner.close()
    assert not failures, failures

asyncio.run(main())
"""
"""A program that runs tests of a suite: SUITE MODE TITLES TIMES."""


def without_cassettes(suite: Path) -> Path:
    """A suite that talks to its server."""
    model: Json = json.loads(suite.read_bytes())
    del model["cassettes"]
    suite.write_text(json.dumps(model), encoding="utf-8")
    return suite


def named(tests: Mapping[str, Json]) -> list[Json]:
    """Tests by their names, as a suite lists them."""
    return [{"name": name, **test} for name, test in tests.items()]


async def run_suite(
    suite: Path,
    *,
    record: str = "none",
    verify: bool = False,
    cassettes: Path | None = None,
    start: Path | None = None,
    titles: str = "",
) -> list[Result]:
    """Run the tests of a suite whose titles begin so, one after the other."""
    options = Options(record=RecordMode(record), verify=verify, cassettes=cassettes, start=start or suite.parent)
    runner = Runner(options)
    try:
        items = [item for item in items_of(load_suite(suite)) if item.title.startswith(titles)]
        return [await runner.run(item) for item in items]
    finally:
        await runner.close()


def trip(**more: Any) -> Json:
    """A test that answers both questions of a trip."""
    return {
        "name": "a trip",
        "tool": "forecast",
        "arguments": {"loc": "SFO"},
        "inputResponses": {"city": "Lisbon", "units": "C"},
        **more,
    }


def anyhow(**more: Any) -> Json:
    """A test that answers whatever is asked, and expects nothing."""
    return trip(inputResponses=[{"otherwise": "Lisbon"}], **more)


def only(result: Result) -> Failure:
    """The only failure of a test."""
    (failure,) = result.failures
    return failure


def stale(result: Result) -> Failure:
    """The only failure, which is about the cassette."""
    failure = only(result)
    assert failure.kind is Kind.CASSETTE, failure
    return failure
