"""The in-memory transport: messages are bytes, the lifespan is held, and cancelling the wait cancels the request."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from bespeak import Client, MCPServer
from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import LegacyRequest, Notification, Request, Response
from bespeak.transports.interfaces import Ask, Channel, Notify, Outgoing, WrittenResponse
from bespeak.transports.memory import MemoryTransport

META = {PROTOCOL_VERSION_META_KEY: "2026-07-28", CLIENT_CAPABILITIES_META_KEY: dict[str, Any]()}


class Echo:
    """A server that answers a request with its method."""

    ready = True
    attended = True

    def __init__(self) -> None:
        self.events: list[str] = []
        self.raise_exceptions: list[bool] = []
        self.told: list[Notification | Response] = []

    async def answer(
        self, request: Request, notify: Notify, headers: Headers | None = None, *, raise_exceptions: bool = False
    ) -> WrittenResponse:
        await self.reached(request.method, raise_exceptions)
        notify(b"about " + request.method.encode())
        return WrittenResponse(request.method.encode())

    async def reached(self, method: str, raise_exceptions: bool) -> None:
        self.raise_exceptions.append(raise_exceptions)
        if method == "wait":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.events.append("cancelled")
                raise

    def peer(self, unaskable: AskingObstacle | None = None, assumed: str | None = None) -> "OlderEcho":
        self.events.append(f"peer {unaskable} {assumed}")
        return OlderEcho(self)

    def end_subscriptions(self) -> None: ...

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        self.events.append("entered")
        try:
            yield
        finally:
            self.events.append("left")


class OlderEcho:
    """Its side for clients of older revisions."""

    version = None

    def __init__(self, echo: Echo) -> None:
        self._echo = echo

    async def answer(
        self,
        request: LegacyRequest,
        channel: Channel,
        headers: Headers | None = None,
        *,
        raise_exceptions: bool = False,
    ) -> WrittenResponse:
        await self._echo.reached(request.method, raise_exceptions)
        channel.notify(b"about an older " + request.method.encode())
        if request.method == "ask":
            channel.push(b'{"jsonrpc": "2.0", "id": "q-1", "method": "roots/list"}')
        if request.method == "tell":
            channel.push(b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}')
        channel.pause()
        return WrittenResponse(b"older " + request.method.encode())

    def at_once(self, request: LegacyRequest) -> WrittenResponse | None:
        return None

    def heard(self, message: Notification | Response) -> None:
        self._echo.told.append(message)

    async def stand(self, notify: Notify) -> None:
        notify(b"changed")
        await asyncio.Event().wait()

    def close(self, reason: str) -> None:
        self._echo.events.append(reason)


OPENED = ["entered", "peer None None"]
CLOSED = ["the client has closed the connection", "left"]


def ignore(note: bytes) -> None: ...


def outgoing(method: str, *, older: bool = False) -> Outgoing:
    params = {} if older else {"_meta": META}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Outgoing(1, method, json.dumps(message).encode(), {})


async def test_the_server_s_lifespan_is_held_while_the_transport_is_open() -> None:
    echo = Echo()
    async with MemoryTransport(echo) as transport:
        assert echo.events == OPENED
        await transport.exchange(outgoing("a"), ignore)
    assert echo.events == OPENED + CLOSED


async def test_nothing_is_exchanged_before_the_transport_is_open() -> None:
    echo = Echo()
    with pytest.raises(RuntimeError, match=r"the transport is not open; use it through `async with Client\(\.\.\.\)`"):
        await MemoryTransport(echo).exchange(outgoing("a"), ignore)
    assert echo.raise_exceptions == []


async def test_a_message_is_exchanged_for_its_answer_and_its_notifications() -> None:
    notes: list[bytes] = []
    async with MemoryTransport(Echo()) as transport:
        assert await transport.exchange(outgoing("a"), notes.append) == b"a"
    assert notes == [b"about a"]


async def test_a_message_that_names_no_revision_is_for_the_peer_of_older_clients() -> None:
    notes: list[bytes] = []
    async with MemoryTransport(Echo()) as transport:
        assert await transport.exchange(outgoing("a", older=True), notes.append) == b"older a"
    assert notes == [b"about an older a"]


async def test_what_is_pushed_reaches_the_client_as_a_question_or_as_a_notification() -> None:
    notes: list[Any] = []
    asked: list[dict[str, Any]] = []
    ask: Ask = asked.append
    async with MemoryTransport(Echo()) as transport:
        await transport.exchange(outgoing("ask", older=True), ignore, ask)
        await transport.exchange(outgoing("tell", older=True), notes.append, ask)
    assert asked == [{"jsonrpc": "2.0", "id": "q-1", "method": "roots/list"}]
    assert [json.loads(note) for note in notes[1:]] == [{"jsonrpc": "2.0", "method": "notifications/cancelled"}]


async def test_a_question_to_a_client_that_takes_none_is_a_connection_error() -> None:
    async with MemoryTransport(Echo()) as transport:
        with pytest.raises(ConnectionError, match="the client does not accept questions"):
            await transport.exchange(outgoing("ask", older=True), ignore)


async def test_what_wants_no_answer_is_told_to_the_peer() -> None:
    echo = Echo()
    async with MemoryTransport(echo) as transport:
        await transport.say(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', {})
        await transport.say(b'{"jsonrpc": "2.0", "id": "q-1", "result": {"roots": []}}', {})
    assert echo.told == [Notification("notifications/initialized", {}), Response("q-1", {"roots": []}, None)]


async def test_no_answer_to_a_request_is_a_connection_error() -> None:
    async with MemoryTransport(Echo()) as transport:
        silence = Outgoing(1, "silence", b'{"jsonrpc": "2.0", "method": "silence"}', {})
        with pytest.raises(ConnectionError, match="the server did not respond to a request"):
            await transport.exchange(silence, ignore)


@pytest.mark.parametrize(
    ("raw", "code", "told"),
    [
        (b"{", -32700, "the message is not valid JSON"),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600, "one JSON-RPC message at a time"),
    ],
)
async def test_what_is_no_message_is_answered_and_not_served(raw: bytes, code: int, told: str) -> None:
    echo = Echo()
    async with MemoryTransport(echo) as transport:
        response = json.loads(await transport.exchange(Outgoing(1, "a", raw, {}), ignore))
    assert response["error"]["code"] == code
    assert told in response["error"]["message"]
    assert echo.raise_exceptions == []


@pytest.mark.parametrize("older", [False, True])
async def test_cancelling_the_wait_cancels_the_request(older: bool) -> None:
    echo = Echo()
    async with MemoryTransport(echo) as transport:
        waiting = asyncio.ensure_future(transport.exchange(outgoing("wait", older=older), ignore))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert "cancelled" in echo.events


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("raised", [True, False])
async def test_whether_crashes_are_raised_is_handed_to_the_server(raised: bool, older: bool) -> None:
    echo = Echo()
    async with MemoryTransport(echo, raise_exceptions=raised) as transport:
        await transport.exchange(outgoing("a", older=older), ignore)
    assert echo.raise_exceptions == [raised]


async def test_nothing_mutable_is_shared_between_client_and_server() -> None:
    mcp = MCPServer("shop")
    kept: list[list[int]] = []

    @mcp.tool()
    async def keep(items: list[int]) -> list[int]:
        kept.append(items)
        items.append(99)
        return items

    mine = [1]
    async with Client(mcp) as client:
        result = await client.call_tool("keep", {"items": mine})
    assert mine == [1]
    structured: Any = result.structured_content
    structured["result"].append(5)
    assert kept == [[1, 99]]


async def test_leaving_without_having_entered_is_harmless() -> None:
    echo = Echo()
    await MemoryTransport(echo).__aexit__(None, None, None)
    assert echo.events == []
