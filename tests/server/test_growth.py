"""What a request costs does not grow with what is registered and who is there. Lines of our own code are counted, not time."""

import asyncio
import gc
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

import bespeak
from bespeak import MCPServer
from bespeak.transports.http.app import HttpApp

OURS = str(Path(bespeak.__file__).parent)
FEW, MANY = 2, 40
META: dict[str, Any] = {PROTOCOL_VERSION_META_KEY: "2026-07-28", CLIENT_CAPABILITIES_META_KEY: {}}
HELLO: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}}


class Steps:
    """The lines of this package that have run, each as often as it has: a loop's lines count in every turn, whatever its form."""

    count = 0

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        self.count += 1
        return self.trace


@contextmanager
def counted() -> Generator[Steps]:
    steps, before = Steps(), sys.gettrace()
    gc.disable()
    sys.settrace(steps.trace)
    try:
        yield steps
    finally:
        sys.settrace(before)
        gc.enable()


async def nothing() -> str:
    return ""


async def spoken(word: str) -> str:
    return word


def shop(count: int) -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop")
    for number in range(count):
        add(mcp, number)
    return mcp


def add(mcp: MCPServer[Any], number: int) -> None:
    mcp.add_tool(nothing, name=f"n{number}")
    mcp.prompt(name=f"n{number}")(spoken)
    mcp.resource(f"shop://n{number}")(nothing)
    mcp.resource(f"n{number}://{{word}}")(spoken)


async def post(
    app: HttpApp, method: str, params: dict[str, Any], name: str | None = None, session: bytes | None = None
) -> tuple[dict[bytes, bytes], bytes]:
    """The headers and the body of a response."""
    modern = PROTOCOL_VERSION_META_KEY in params.get("_meta", {})
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = [
        (b"host", b"127.0.0.1"),
        (b"accept", b"application/json, text/event-stream"),
        (b"content-type", b"application/json"),
        (b"mcp-protocol-version", b"2026-07-28" if modern else b"2025-11-25"),
        *([(b"mcp-method", method.encode())] if modern else []),
        *([(b"mcp-name", name.encode())] if modern and name else []),
        *([(b"mcp-session-id", session)] if session else []),
    ]
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        if waiting:
            return waiting.pop()
        return await asyncio.get_running_loop().create_future()

    async def send(event: Any) -> None:
        sent.append(event)

    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/mcp", "client": ("127.0.0.1", 5000)}
    await app({**scope, "headers": headers}, receive, send)
    assert b'"result"' in sent[1]["body"], sent
    return dict(sent[0]["headers"]), sent[1]["body"]


async def cost(app: HttpApp, *request: Any) -> int:
    """What a request takes that was made before."""
    await post(app, *request)
    with counted() as steps:
        await post(app, *request)
    assert steps.count > 10
    return steps.count


MODERN_REQUESTS: list[tuple[str, dict[str, Any], str | None]] = [
    ("tools/call", {"name": "n1", "arguments": {}, "_meta": META}, "n1"),
    ("prompts/get", {"name": "n1", "arguments": {"word": "a"}, "_meta": META}, "n1"),
    ("resources/read", {"uri": "shop://n1", "_meta": META}, "shop://n1"),
    ("tools/list", {"_meta": META}, None),
    ("prompts/list", {"_meta": META}, None),
    ("resources/list", {"_meta": META}, None),
    ("resources/templates/list", {"_meta": META}, None),
    ("server/discover", {"_meta": META}, None),
]
LEGACY_REQUESTS: list[tuple[str, dict[str, Any], str | None]] = [
    ("tools/call", {"name": "n1", "arguments": {}}, None),
    ("tools/list", {}, None),
    ("initialize", HELLO, None),
]


@pytest.mark.parametrize("request_", [*MODERN_REQUESTS, *LEGACY_REQUESTS], ids=lambda one: str(one[0]))
async def test_a_request_costs_the_same_however_much_is_registered(request_: tuple[Any, ...]) -> None:
    few, many = (shop(count).streamable_http_app(stateless_http=True) for count in (FEW, MANY))
    assert await cost(few, *request_) == await cost(many, *request_)


@pytest.mark.parametrize(
    "request_", [MODERN_REQUESTS[0], LEGACY_REQUESTS[0], LEGACY_REQUESTS[1]], ids=["modern", "older", "older list"]
)
async def test_a_request_costs_the_same_however_many_sessions_are_open(request_: tuple[Any, ...]) -> None:
    app = shop(FEW).streamable_http_app()
    ids = [(await post(app, "initialize", HELLO))[0][b"mcp-session-id"] for _ in range(FEW)]
    few = await cost(app, *request_, ids[0])
    for _ in range(MANY):
        await post(app, "initialize", HELLO)
    assert await cost(app, *request_, ids[0]) == few


def test_a_tool_costs_the_same_to_register_however_many_there_are() -> None:
    mcp, costs = shop(FEW), list[int]()
    for start in (FEW, FEW + MANY):
        with counted() as steps:
            add(mcp, start)
        costs.append(steps.count)
        for number in range(start + 1, start + MANY):
            add(mcp, number)
    assert costs[1] <= costs[0]  # the first time, more has to be read
