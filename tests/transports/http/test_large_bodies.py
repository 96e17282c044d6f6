"""Large bodies: how many may arrive at one time, from which address, and in which order they are read."""

import asyncio
import json
from typing import Any

import pytest

from bespeak import HttpRequest, HttpResponse, MCPServer
from bespeak.transports.http.large_bodies import LARGE_BYTES, TURN_BYTES, LargeBodies, Message
from tests.transports.http.legacy.older_client import Exchange
from tests.wires import Listening

pytestmark = pytest.mark.timing

ROOM = 1000


@pytest.mark.parametrize(
    ("taken", "address", "size", "fits"),
    [
        ([], "a", 5000, True),  # one body is always let in
        ([("a", 400)], "a", 600, True),
        ([("a", 400)], "a", 601, False),
        ([("a", 501)], "a", 1, False),  # above half, and the address has more than its tenth
        ([("a", 501)], "b", 400, True),  # its first
        ([("a", 501), ("b", 60)], "b", 40, True),
        ([("a", 501), ("b", 60)], "b", 41, False),
        ([("a", 501)], None, 400, True),  # nobody knows whose it is
        ([(None, 900)], "b", 101, False),
    ],
)
async def test_a_body_is_let_in_while_there_is_room_and_above_half_one_address_has_a_tenth(
    taken: list[tuple[str | None, int]], address: str | None, size: int, fits: bool
) -> None:
    bodies = LargeBodies(ROOM)
    for whose, how_much in taken:
        await bodies.let_in(whose, how_much)
    assert bodies.fits(address, size) is fits


async def test_who_waits_is_let_in_when_another_is_let_out_and_who_gave_up_is_not() -> None:
    bodies = LargeBodies(ROOM)
    await bodies.let_in("a", 900)
    first, second = (asyncio.create_task(bodies.let_in("b", 900)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    bodies.let_out("a", 900)
    await second
    assert not bodies.fits("a", 900)
    bodies.let_out("b", 900)
    assert bodies.fits("a", 900)


async def test_a_body_gives_its_room_back_once() -> None:
    bodies = LargeBodies(ROOM)
    large = bodies.body("a", 700)
    large.let_out()
    await large.turn(700)
    assert not bodies.fits("b", 700)
    large.let_out()
    large.let_out()
    assert bodies.fits("b", 700)


async def test_the_messages_of_very_large_bodies_are_taken_up_one_after_the_other() -> None:
    bodies = LargeBodies(10 * TURN_BYTES)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    first, second, third = (bodies.body(None, TURN_BYTES + 1) for _ in range(3))
    await first.turn(TURN_BYTES + 1)
    turns = [asyncio.create_task(one.turn(TURN_BYTES + 1)) for one in (second, third)]
    await asyncio.sleep(0)
    assert [turn.done() for turn in turns] == [False, False]
    await first.until_answered(send)({"type": "http.response.start"})
    await turns[0]
    assert (sent, turns[1].done()) == ([{"type": "http.response.start"}], False)
    second.begun()  # and says nothing
    await turns[1]


def call(text: str) -> bytes:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params: dict[str, Any] = {"name": "length", "arguments": {"text": text}, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def counting() -> MCPServer[Any]:
    mcp = MCPServer[Any]("counting")

    @mcp.tool()
    async def length(text: str) -> int:
        return len(text)

    return mcp


HEADERS = {
    "host": "127.0.0.1",
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "length",
}
LARGE = call("x" * 3 * LARGE_BYTES)


@pytest.mark.parametrize("path", ["/mcp", "/upload"])
@pytest.mark.long
async def test_who_finds_no_room_in_time_is_told_so_with_503_and_who_comes_later_is_served(path: str) -> None:
    mcp, reached, gate = counting(), asyncio.Event(), asyncio.Event()

    @mcp.custom_route("/upload", methods=["POST"])
    async def upload(request: HttpRequest) -> HttpResponse:
        length = len(await request.body())
        reached.set()
        await gate.wait()
        return HttpResponse(str(length))

    app = mcp.streamable_http_app(max_incoming_bytes=len(LARGE), request_body_timeout=0.2)
    async with Listening(app) as listening:
        async with Exchange(listening.port, "POST", HEADERS, LARGE, "/upload") as first:
            await reached.wait()
            async with Exchange(listening.port, "POST", HEADERS, LARGE, path) as second:
                refused = await second.whole()
                assert (refused.status, refused.headers["retry-after"]) == (503, "1")
                assert b"too many large bodies are being received; try again later" in refused.body
            gate.set()
            assert (await first.whole()).body == str(len(LARGE)).encode()
        async with Exchange(listening.port, "POST", HEADERS, LARGE) as later:
            assert (await later.whole()).json["result"]["structuredContent"] == {"result": 3 * LARGE_BYTES}


@pytest.mark.long
async def test_a_large_body_that_never_ends_gives_its_room_back_when_its_time_is_up() -> None:
    app = counting().streamable_http_app(max_incoming_bytes=len(LARGE), request_body_timeout=0.2)
    async with Listening(app) as listening:
        async with Unfinished(listening.port, "POST", HEADERS, LARGE) as unfinished:
            assert (await unfinished.whole()).status == 408
        async with Exchange(listening.port, "POST", HEADERS, LARGE) as later:
            assert (await later.whole()).status == 200


class Unfinished(Exchange):
    """A request whose last byte never comes."""

    def send(self) -> None:
        given = {**self.headers, "Content-Length": str(len(self.body) + 1)}
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.writer.write(f"POST {self.path} HTTP/1.1\r\n{head}\r\n".encode() + self.body)


def test_a_room_without_a_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="max_incoming_bytes must be at least 1"):
        MCPServer("x").streamable_http_app(max_incoming_bytes=0)
