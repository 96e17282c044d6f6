"""Calls of older clients that never wait take a shorter way, with the same response as on the general one."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import InputRequiredResult

from bespeak import MCPServer
from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import LegacyRequest
from bespeak.server import RequestEnd, RequestInfo, call_log, straight_calls
from bespeak.server.straight_calls import StraightCalls
from bespeak.transports.http.legacy.event_store import MemoryEventStore
from bespeak.transports.interfaces import WrittenResponse
from tests.server.straight_shop import FORM, Sent, length, post, shop

NOVEMBER = "2025-11-25"
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", NOVEMBER]


@pytest.fixture(autouse=True)
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another test may have loaded OpenTelemetry, and then every call is followed."""
    monkeypatch.setattr(straight_calls, "is_tracing", lambda: False)


class Session:
    """An older client of a server, on the raw wire."""

    def __init__(self, mcp: MCPServer[Any], version: str = NOVEMBER, **options: Any) -> None:
        self._app = mcp.streamable_http_app(**options)
        self.version = version
        self.more: list[tuple[bytes, bytes]] = []
        self._id: list[tuple[bytes, bytes]] = []
        self.short: list[bool] = []
        """For each call that might have taken the shorter way, whether it took it to its end."""

    async def begin(self) -> "Session":
        params: Any = {
            "protocolVersion": self.version,
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        }
        _, headers, _ = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self._id = [one for one in headers if one[0] == b"mcp-session-id"]
        return self

    async def post(self, message: Any) -> Sent:
        headers = [
            (b"host", b"127.0.0.1:8000"),
            (b"accept", b"application/json, text/event-stream"),
            (b"content-type", b"application/json"),
            *self._id,
            *self.more,
        ]
        if self.version >= "2025-06-18" and self._id:
            headers.append((b"mcp-protocol-version", self.version.encode()))
        return await post(self._app, message, headers)

    async def call(self, message: Any, *, shorter: bool = True) -> Sent:
        older = StraightCalls.older

        def noted(self_: StraightCalls, request: LegacyRequest, version: str, headers: Headers) -> Any:
            work = older(self_, request, version, headers) if shorter else None
            if work is None:
                self.short.append(False)
                return None

            async def run() -> Any:
                response = await work
                self.short.append(isinstance(response, WrittenResponse))
                return response

            return run()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StraightCalls, "older", noted)
            return await self.post(message)


def called(name: str = "echo", **more: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": {"text": "hello"}, **more}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


async def both_ways(mcp: MCPServer[Any], message: Any, version: str = NOVEMBER, **options: Any) -> tuple[Sent, bool]:
    """Return the response, which is the same on both ways, and whether the shorter way was taken."""
    session = await Session(mcp, version, **options).begin()
    first = await session.call(message)
    taken = session.short[-1:] == [True]
    assert await session.call(message, shorter=False) == first
    return first, taken


AT_ONCE = ["echo", "counted", "optional", "crashes", "refuses", "breaks_off", "unsendable", "unsendable_text", "Bücher"]
WAITING = ["waits", "in_a_thread", "approved", "rounds", "identified", "repeated"]


@pytest.mark.parametrize("version", REVISIONS)
@pytest.mark.parametrize("name", AT_ONCE)
async def test_an_older_call_that_never_waits_goes_the_shorter_way(name: str, version: str) -> None:
    sent, short = await both_ways(shop(), called(name), version)
    assert short
    assert sent[0] == 200
    assert json.loads(sent[2])["id"] == 7


@pytest.mark.parametrize("name", WAITING)
async def test_an_older_call_that_may_wait_goes_the_general_way(name: str) -> None:
    _, short = await both_ways(shop(), called(name))
    assert not short


@given(
    name=st.sampled_from([*AT_ONCE, *WAITING, "unknown", 7, None]),
    arguments=st.sampled_from([{"text": "x"}, {"text": 7}, {}, {"text": "x", "more": 1}, [], None, "text"]),
    more=st.sampled_from([{}, {"_meta": {}}, {"_meta": {"progressToken": "p"}}, {"_meta": 7}, {"requestState": "x"}]),
    version=st.sampled_from(REVISIONS),
)
async def test_older_requests_of_any_kind_get_the_same_response(
    name: Any, arguments: Any, more: dict[str, Any], version: str
) -> None:
    await both_ways(shop(), called(name, arguments=arguments, **more), version)


async def test_a_tool_that_asks_by_hand_though_it_does_not_say_so_goes_on_on_the_general_way() -> None:
    mcp, runs = MCPServer[Any]("shop"), list[int]()

    @mcp.tool()
    async def asks(text: str) -> str:
        runs.append(1)
        return InputRequiredResult(input_requests={"sure": FORM})  # pyright: ignore[reportReturnType]  # the mistake

    session = await Session(mcp).begin()
    first = await session.call(called("asks"))
    assert json.loads(first[2])["error"]["code"] == -32021
    assert (session.short, len(runs)) == ([False], 1)
    assert await session.call(called("asks")) == first
    assert len(runs) == 2


async def test_without_sessions_an_older_call_goes_the_general_way() -> None:
    sent, short = await both_ways(shop(), called(), stateless_http=True)
    assert not short
    assert sent[0] == 200


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ((b"mcp-protocol-version", b"2025-06-18"), 400),
        ((b"mcp-session-id", b"another"), 400),
        ((b"accept", b"text/html"), 200),
    ],
)
async def test_repeated_headers_take_the_general_way(more: tuple[bytes, bytes], status: int) -> None:
    session = await Session(shop()).begin()
    session.more = [more]
    assert (await session.call(called()))[0] == status
    assert session.short == []


@pytest.mark.parametrize(("version", "status"), [("2099-01-01", 400), ("2025-06-18", 200)])
async def test_the_version_of_each_older_request_is_checked(version: str, status: int) -> None:
    session = await Session(shop()).begin()
    session.version = version
    assert (await session.call(called()))[0] == status


async def test_where_events_are_kept_every_older_response_is_kept_too() -> None:
    session = await Session(shop(), event_store=MemoryEventStore()).begin()
    _, headers, body = await session.call(called())
    assert session.short == []
    assert dict(headers)[b"content-type"] == b"text/event-stream"
    assert b"id: " in body


async def test_an_id_that_is_under_way_is_refused_on_both_ways() -> None:
    mcp, reached, gate = shop(), asyncio.Event(), asyncio.Event()

    @mcp.tool()
    async def holds() -> None:
        reached.set()
        await gate.wait()

    session = await Session(mcp).begin()
    holding = asyncio.create_task(session.call(called("holds", arguments={})))
    await reached.wait()
    _, _, body = await session.call(called())
    assert json.loads(body)["error"]["message"] == "a request with this id is still under way"
    gate.set()
    await holding


async def test_older_batches_go_the_general_way() -> None:
    session = await Session(shop(), "2025-03-26").begin()
    _, _, body = await session.call([called()])
    assert json.loads(body)[0]["id"] == 7
    assert session.short == []


async def test_hooks_see_older_calls() -> None:
    mcp, seen = shop(), list[str]()

    @mcp.on_request
    async def noted(info: RequestInfo, proceed: Callable[[], Awaitable[RequestEnd]]) -> RequestEnd:
        seen.append(info.method)
        return await proceed()

    _, short = await both_ways(mcp, called())
    assert not short
    assert seen == ["tools/call", "tools/call"]


async def test_an_override_is_honoured_for_older_clients() -> None:
    mcp = shop()
    with mcp.override(length, value=50):
        sent, _ = await both_ways(mcp, called("counted"))
    assert json.loads(sent[2])["result"]["structuredContent"]["n"] == 100


@pytest.mark.parametrize("name", ["crashes", "refuses", "breaks_off"])
async def test_failed_older_calls_are_logged_as_on_the_general_way(caplog: pytest.LogCaptureFixture, name: str) -> None:
    caplog.set_level(logging.INFO, "bespeak.calls")
    await both_ways(shop(), called(name))
    lines = [record.getMessage().partition(",")[0] for record in caplog.records if record.name == "bespeak.calls"]
    assert lines == [name, name]


async def test_slow_older_calls_are_logged_as_on_the_general_way(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (straight_calls, call_log):
        monkeypatch.setattr(module, "SLOW_SECONDS", -1.0)
    caplog.set_level(logging.INFO, "bespeak.calls")
    await both_ways(shop(), called())
    lines = [record.getMessage().rpartition(", ")[0] for record in caplog.records if record.name == "bespeak.calls"]
    assert lines == ["echo, round 1: done"] * 2
