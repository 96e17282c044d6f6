"""A client and a server in one process: bytes travel, the lifespan is held, and cancelling the wait cancels the request."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bespeak import Client, MCPServer
from bespeak.transports.memory import MemoryTransport
from bespeak.transports.transport import Notify, Outgoing


class Echo:
    """A server that answers a message with itself, or not at all."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.raise_exceptions: list[bool] = []

    async def serve(self, message: bytes, notify: Notify, *, raise_exceptions: bool = False) -> bytes | None:
        self.raise_exceptions.append(raise_exceptions)
        if message == b"silence":
            return None
        if message == b"wait":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.events.append("cancelled")
                raise
        notify(b"about " + message)
        return message

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        self.events.append("entered")
        try:
            yield
        finally:
            self.events.append("left")


def ignore(note: bytes) -> None: ...


def outgoing(message: bytes) -> Outgoing:
    return Outgoing(1, "tools/call", message, {})


async def test_the_server_s_lifespan_is_held_while_the_transport_is_open() -> None:
    echo = Echo()
    async with MemoryTransport(echo) as transport:
        assert echo.events == ["entered"]
        await transport.exchange(outgoing(b"a"), ignore)
    assert echo.events == ["entered", "left"]


async def test_the_lifespan_is_left_whatever_happens_inside_and_does_not_see_it() -> None:
    echo = Echo()
    with pytest.raises(KeyError):
        async with MemoryTransport(echo):
            raise KeyError
    assert echo.events == ["entered", "left"]


async def test_leaving_without_having_entered_is_harmless() -> None:
    echo = Echo()
    await MemoryTransport(echo).__aexit__(None, None, None)
    assert echo.events == []


async def test_a_message_is_exchanged_for_its_answer_and_its_notifications() -> None:
    notes: list[bytes] = []
    async with MemoryTransport(Echo()) as transport:
        assert await transport.exchange(outgoing(b"a"), notes.append) == b"a"
    assert notes == [b"about a"]


async def test_no_answer_to_a_request_is_a_connection_error() -> None:
    async with MemoryTransport(Echo()) as transport:
        with pytest.raises(ConnectionError, match="the server gave no answer to a request"):
            await transport.exchange(outgoing(b"silence"), ignore)


async def test_cancelling_the_wait_cancels_the_request() -> None:
    echo = Echo()
    async with MemoryTransport(echo) as transport:
        waiting = asyncio.ensure_future(transport.exchange(outgoing(b"wait"), ignore))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert "cancelled" in echo.events


@pytest.mark.parametrize("raised", [True, False])
async def test_whether_crashes_are_raised_is_handed_to_the_server(raised: bool) -> None:
    echo = Echo()
    async with MemoryTransport(echo, raise_exceptions=raised) as transport:
        await transport.exchange(outgoing(b"a"), ignore)
    assert echo.raise_exceptions == [raised]


async def test_requests_run_side_by_side() -> None:
    echo = Echo()
    async with MemoryTransport(echo) as transport:
        waiting = asyncio.ensure_future(transport.exchange(outgoing(b"wait"), ignore))
        assert await transport.exchange(outgoing(b"a"), ignore) == b"a"
        waiting.cancel()
        await asyncio.wait({waiting})


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


async def test_what_travels_is_json() -> None:
    mcp = MCPServer("shop")
    seen: list[Any] = []

    class Spy:
        async def serve(self, message: bytes, notify: Notify, *, raise_exceptions: bool = False) -> bytes | None:
            response = await mcp.serve(message, notify, raise_exceptions=raise_exceptions)
            seen.extend([message, response])
            return response

        running = staticmethod(mcp.running)

    async with Client(Spy()) as client:
        await client.list_tools()
    assert [type(json.loads(raw)) for raw in seen] == [dict] * 4
