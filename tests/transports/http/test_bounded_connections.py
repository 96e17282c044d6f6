"""Connections over real sockets: bounds on heads and bodies, what a refused client reads, and unread output."""

import asyncio
import gc
import socket
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
import pytest

from bespeak import MCPServer
from bespeak.transports.http import connection_limits as connections
from bespeak.transports.http.connection_limits import FULL, TOO_MANY, ConnectionLimits
from bespeak.transports.http.custom_routes import HttpRequest, HttpResponse
from bespeak.transports.http.framing import HEAD_BYTES
from bespeak.transports.http.refusals import READ_FIRST
from tests.transports.http.callers import server_with
from tests.waiting import eventually, pass_time
from tests.wires import Listening, Parser

LARGE = b"x" * (16 * 1024 * 1024)
"""More than the buffers of sockets hold."""
pytestmark = [
    pytest.mark.timing,
    pytest.mark.parametrize("parser", [pytest.param("h11", marks=pytest.mark.long), "httptools"]),
]


class Desk:
    """A server with a route that answers, one that waits, and one that answers at length."""

    def __init__(self) -> None:
        self.mcp = MCPServer("desk")
        self.go_on = asyncio.Event()
        self.waiting = 0
        self.mcp.custom_route("/quick", ["GET", "POST"])(self.quick)
        self.mcp.custom_route("/slow", ["GET", "POST"])(self.slow)
        self.mcp.custom_route("/large", ["GET"])(self.large)
        self.mcp.custom_route("/late", ["GET"])(self.late)

    async def quick(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("quick")

    async def slow(self, request: HttpRequest) -> HttpResponse:
        self.waiting += 1
        await self.go_on.wait()
        return HttpResponse("slow")

    async def large(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(LARGE)

    async def late(self, request: HttpRequest) -> HttpResponse:
        await self.slow(request)
        return HttpResponse(LARGE)


@asynccontextmanager
async def listening(parser: Parser, desk: Desk | None = None, **limits: Any) -> AsyncGenerator[Listening]:
    app = (desk or Desk()).mcp.streamable_http_app()
    async with Listening(app, parser, ConnectionLimits(**limits)) as server:
        yield server


class Caller:
    """A client that says exactly what it is told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._transport: Any = writer.transport

    async def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            await asyncio.sleep(0)

    async def status(self) -> int:
        """The status of the next response; its body is read."""
        head = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), 20)
        await self._reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
        return int(head.split()[1])

    async def rest(self) -> bytes:
        """All that comes until the end. A reset is an error."""
        return await asyncio.wait_for(self._reader.read(), 20)

    async def gone(self) -> None:
        """Return when the server has ended the connection, in whatever way."""
        with suppress(OSError):
            await self.rest()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def close(self) -> None:
        self._writer.close()


async def drip(caller: Caller) -> None:
    while True:
        await caller.say(b"x")
        await asyncio.sleep(0.01)


@asynccontextmanager
async def calling(server: Listening, address: str = "127.0.0.1") -> AsyncGenerator[Caller]:
    caller = await dial(server, address)
    yield caller
    caller.close()


async def dial(server: Listening, address: str = "127.0.0.1") -> Caller:
    return Caller(*await asyncio.open_connection("127.0.0.1", server.port, local_addr=(address, 0)))


def get(path: str, length: int = 0) -> bytes:
    """A request whose head has that many bytes, if that is more than it needs."""
    start = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX: ".encode()
    return start + b"x" * (length - len(start) - 4) + b"\r\n\r\n"


# How long a head may be

CUTS = [[], [1], [HEAD_BYTES], [HEAD_BYTES - 3, HEAD_BYTES - 2, HEAD_BYTES - 1]]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@pytest.mark.parametrize("places", CUTS)
@pytest.mark.parametrize(
    "before", [b"", get("/quick"), b"POST /quick HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n\r\n\r\n"]
)
async def test_a_head_at_the_limit_is_served_and_one_byte_more_is_not(
    parser: Parser, places: list[int], before: bytes
) -> None:
    async with listening(parser) as server:
        for length, status in ((HEAD_BYTES, 200), (HEAD_BYTES + 1, 431)):
            async with calling(server) as caller:
                await caller.say(*cut(before + get("/quick", length), [len(before) + place for place in places]))
                assert [await caller.status() for _ in range(1 + bool(before))][-1] == status


async def test_the_next_heads_of_a_connection_have_the_same_limit(parser: Parser) -> None:
    async with listening(parser) as server, calling(server) as caller:
        for _ in range(3):
            await caller.say(*cut(get("/quick", HEAD_BYTES), [20]))
            assert await caller.status() == 200
        await caller.say(get("/quick", HEAD_BYTES + 1))
        said = await caller.rest()
        assert b"HTTP/1.1 431 Request Header Fields Too Large\r\n" in said
        assert b"the head of the request is longer than 65536 bytes" in said


async def test_a_head_without_end_is_refused_and_the_client_can_read_it_while_it_sends(parser: Parser) -> None:
    async with listening(parser) as server, calling(server) as caller:
        await caller.say(*[b"GET / HTTP/1.1\r\n", *[b"X: " + b"x" * 10_000 + b"\r\n"] * 500])
        assert (await caller.rest()).startswith(b"HTTP/1.1 431 ")


async def test_what_came_before_a_head_that_is_too_long_gets_its_response_first(parser: Parser) -> None:
    desk = Desk()
    async with listening(parser, desk) as server, calling(server) as caller:
        await caller.say(get("/slow"))
        await eventually(lambda: desk.waiting == 1)
        await caller.say(b"GET /" + b"x" * HEAD_BYTES)
        for _ in range(20):  # nobody listens any more
            await caller.say(b"x" * HEAD_BYTES)
        desk.go_on.set()
        said = await caller.rest()
        assert b" 200 " in said.partition(b"slow")[0]
        assert b" 431 " in said.partition(b"slow")[2]


async def test_a_trailer_without_end_is_refused(parser: Parser) -> None:
    desk = Desk()
    async with listening(parser, desk) as server, calling(server) as caller:
        await caller.say(b"POST /slow HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n")
        await caller.say(*[b"X: " + b"x" * 10_000 + b"\r\n"] * 10)
        assert b" 431 " in await caller.rest()
        desk.go_on.set()


# How long it may take


@pytest.mark.parametrize("first", [b"", get("/quick")])
@pytest.mark.long
async def test_a_head_that_does_not_come_to_its_end_in_time_is_refused(parser: Parser, first: bytes) -> None:
    async with listening(parser, head_timeout=1) as server, calling(server) as caller:
        if first:
            await caller.say(first)
            assert await caller.status() == 200
        await caller.say(b"GET / HTTP/1.1\r\n")
        said = await caller.rest()
        assert said.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"the head of the request did not arrive in time" in said
        assert len(server.connections) == 0


@pytest.mark.long
async def test_a_client_that_keeps_sending_a_little_gains_no_time(parser: Parser) -> None:
    async with listening(parser, head_timeout=0.2) as server, calling(server) as caller:
        ending = asyncio.create_task(caller.rest())
        for number in range(2000):
            await caller.say(b"X-%d: x\r\n" % number if number else b"GET / HTTP/1.1\r\n")
            await asyncio.sleep(0.01)
            if ending.done():
                break
        assert (await ending).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("said", [b"", b"\r\n"])
@pytest.mark.long
async def test_a_connection_on_which_nothing_is_asked_is_ended(parser: Parser, said: bytes) -> None:
    async with listening(parser, head_timeout=0.2) as server, calling(server) as caller:
        await caller.say(said)
        await caller.gone()
        assert len(server.connections) == 0


@pytest.mark.long
async def test_a_body_that_nobody_reads_and_does_not_end_is_refused(parser: Parser) -> None:
    desk = Desk()
    async with listening(parser, desk, body_timeout=0.2) as server, calling(server) as caller:
        await caller.say(b"POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx")
        said = await caller.rest()
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b"the body of the request did not arrive in time" in said
        desk.go_on.set()


@pytest.mark.long
async def test_a_body_that_still_trickles_after_its_response_ends_the_connection(parser: Parser) -> None:
    async with listening(parser, body_timeout=0.2) as server, calling(server) as caller:
        await caller.say(b"POST /quick HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx")
        assert await caller.status() == 200
        await caller.gone()
        await eventually(lambda: len(server.connections) == 0)


async def test_time_in_which_the_server_does_not_read_is_not_the_clients(parser: Parser) -> None:
    desk = Desk()
    async with listening(parser, desk, body_timeout=5) as server, calling(server) as caller:
        await caller.say(b"POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n" + b"x" * 200_000)
        await eventually(lambda: any(one.flow.read_paused for one in server.open))
        await pass_time(60, steps=20)
        desk.go_on.set()
        assert await caller.status() == 200


# What a refused client can read


@pytest.mark.parametrize(
    "said", [b"NONSENSE\r\n\r\n", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n"]
)
async def test_a_client_that_goes_on_sending_can_read_why_it_was_refused(parser: Parser, said: bytes) -> None:
    async with listening(parser) as server, calling(server) as caller:
        json = b"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\r\n"
        caller.pause_reading()  # a reset would take away what it has not read
        await caller.say(said + json, *[b"x" * 10_000] * 500)
        await eventually(lambda: len(server.connections) == 0)  # it was refused
        caller.resume_reading()
        assert (await caller.rest()).split()[1] in (b"400", b"413")


async def test_a_client_that_never_stops_sending_is_cut_off(parser: Parser) -> None:
    async with listening(parser) as server, calling(server) as caller:
        with pytest.raises(OSError, match=r"(?i)reset|broken pipe|lost"):
            await caller.say(b"GET /" + b"x" * HEAD_BYTES, *[b"x" * 1_000_000] * 100)


@pytest.mark.long
async def test_a_client_that_was_refused_and_stays_is_hung_up_on(
    parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.1)
    async with listening(parser, head_timeout=2) as server, calling(server) as caller:
        await caller.say(b"GET /" + b"x" * HEAD_BYTES)
        assert await caller.status() == 431
        with pytest.raises(OSError, match=r"(?i)reset|broken pipe|lost"):
            await drip(caller)


async def test_stopping_does_not_wait_for_those_who_were_refused_or_never_finished(parser: Parser) -> None:
    async with listening(parser) as server:
        half, refused = await dial(server), await dial(server)
        await half.say(b"GET / HTTP/1.1\r\n")
        await refused.say(b"GET /" + b"x" * HEAD_BYTES)
        assert await refused.status() == 431
    await half.gone()
    await refused.gone()
    half.close()
    refused.close()


# How many connections


async def test_an_address_that_holds_too_many_is_told_so_and_another_one_is_served(parser: Parser) -> None:
    async with listening(parser, max_connections=20) as server:
        crowd = [await dial(server, "127.0.0.2") for _ in range(10)]
        await eventually(lambda: len(server.connections) == 10)
        async with calling(server, "127.0.0.2") as one_more:
            await one_more.say(get("/quick"))
            said = await one_more.rest()
            assert said.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
            assert b"retry-after: 1\r\n" in said
            assert TOO_MANY.reason.encode() in said
        async with calling(server) as other:
            await other.say(get("/quick"))
            assert await other.status() == 200
        for one in crowd:
            one.close()


@pytest.mark.long
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n"])
async def test_who_has_asked_nothing_makes_room(parser: Parser, said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "YOUNG_SECONDS", 0.0)
    async with listening(parser, max_connections=20) as server:
        crowd = [await dial(server) for _ in range(10)]
        for one in crowd:
            await one.say(said)
        expected = "head" if said else "request"
        await eventually(lambda: [one._connection._expected for one in server.open] == [expected] * 10)
        async with calling(server) as newcomer:
            await newcomer.say(get("/quick"))
            assert await newcomer.status() == 200
        if said:
            assert (await crowd[0].rest()).startswith(b"HTTP/1.1 429 ")
        else:
            await crowd[0].gone()
        for one in crowd:
            one.close()


async def test_who_makes_room_and_asks_after_all_is_told_to_try_again(
    parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "YOUNG_SECONDS", 0.0)
    async with listening(parser, max_connections=8, trusted_proxies=("127.0.0.1",)) as server:
        crowd = [await dial(server) for _ in range(8)]
        for one in crowd:
            await one.say(get("/quick"))
            assert await one.status() == 200
        async with calling(server) as newcomer:
            await newcomer.say(get("/quick"))
            assert await newcomer.status() == 200
            await crowd[0].say(get("/quick"))
            assert (await crowd[0].rest()).startswith(b"HTTP/1.1 503 ")
        for one in crowd:
            one.close()


@pytest.mark.long
async def test_who_waits_for_a_next_request_makes_room_and_requests_under_way_do_not(
    parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "YOUNG_SECONDS", 0.0)
    monkeypatch.setattr(connections, "HOPELESS_SECONDS", 0.0)
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.0)
    desk = Desk()
    async with listening(parser, desk, max_connections=2, trusted_proxies=("127.0.0.1",)) as server:
        idle, busy = await dial(server), await dial(server)
        await idle.say(get("/quick"))
        assert await idle.status() == 200
        await busy.say(get("/slow"))
        await eventually(lambda: desk.waiting == 1)
        async with calling(server) as newcomer:
            await newcomer.say(get("/slow"))
            await idle.gone()
            await eventually(lambda: desk.waiting == 2)
            async with calling(server) as one_more:
                await one_more.say(get("/quick"))
                said = await one_more.rest()
                assert said.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
                assert b"retry-after: 1\r\n" in said
                assert FULL.reason.encode() in said
            desk.go_on.set()
            assert [await busy.status(), await newcomer.status()] == [200, 200]
        busy.close()
        idle.close()


async def test_those_who_are_refused_are_held_in_bounds_and_told_all_the_same(
    parser: Parser, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()
    async with listening(parser, desk, max_connections=8) as server:
        crowd = [await dial(server) for _ in range(4)]
        await eventually(lambda: len(server.connections) == 4)
        refused = [await dial(server) for _ in range(5)]
        said = [await one.rest() for one in refused[:4]]  # nobody has said anything: the next ones needed the room
        assert all(one.startswith(b"HTTP/1.1 429 ") for one in said)
        for one in [*crowd, *refused]:
            one.close()
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "bespeak.http"]
    assert warning == f"connections are refused: {TOO_MANY.reason} (4 of 8 are open; logged once a minute)"


# What clients do not read


@pytest.mark.long
async def test_a_client_that_does_not_read_is_cut_off(parser: Parser) -> None:
    async with listening(parser, read_timeout=1) as server, calling(server) as caller:
        await caller.say(get("/large"))
        await eventually(lambda: len(server.connections) == 1)
        await eventually(lambda: len(server.connections) == 0)


@pytest.mark.long
async def test_a_client_that_was_told_goodbye_and_does_not_read_is_cut_off(parser: Parser) -> None:
    async with listening(parser, read_timeout=1) as server:
        with socket.socket() as client:
            client.setblocking(False)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", server.port))
            await asyncio.get_running_loop().sock_sendall(client, b"GET /large HTTP/1.0\r\nHost: localhost\r\n\r\n")
            await eventually(lambda: len(server.connections) == 1)
            await eventually(lambda: len(server.connections) == 0)


async def test_a_client_that_reads_slowly_gets_all_of_it(parser: Parser) -> None:
    async with listening(parser, read_timeout=5) as server:
        loop = asyncio.get_running_loop()
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", server.port))
            await loop.sock_sendall(client, get("/large"))
            size = 0
            while size < len(LARGE):
                size += len(await loop.sock_recv(client, 400_000))
                await pass_time(0.25)
    assert size > len(LARGE)


async def test_too_much_unread_output_is_dropped_and_who_does_not_read_may_not_ask_for_more(
    parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "YOUNG_SECONDS", 1000.0)
    async with listening(parser, max_unread_bytes=len(LARGE)) as server:
        crowd = [await dial(server, "127.0.0.2") for _ in range(6)]
        for one in crowd[:3]:
            await one.say(get("/large"))
        await eventually(lambda: server.connections.pressed)
        async with calling(server, "127.0.0.2") as same, calling(server) as other:
            await same.say(get("/quick"))
            said = await asyncio.wait_for(same._reader.readuntil(b"then try again"), 20)  # pyright: ignore[reportPrivateUsage] - its own
            assert said.startswith(b"HTTP/1.1 429 ")
            assert READ_FIRST.encode()[:30] in said
            await other.say(get("/quick"))
            assert await other.status() == 200
            monkeypatch.setattr(connections, "YOUNG_SECONDS", 0.0)
            await pass_time(2, steps=2)
            await eventually(lambda: not server.connections.pressed)
            await same.say(get("/quick"))
        for one in crowd:
            one.close()


async def test_far_too_much_is_dropped_at_once(parser: Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "YOUNG_SECONDS", 1000.0)
    desk = Desk()
    async with listening(parser, desk, max_unread_bytes=len(LARGE) // 4) as server:
        crowd = [await dial(server) for _ in range(6)]
        for one in crowd:
            await one.say(get("/late"))
        await eventually(lambda: desk.waiting == 6)
        desk.go_on.set()
        await eventually(lambda: len(server.connections) <= 2)
        for one in crowd:
            one.close()


async def test_a_head_may_come_with_a_large_body(parser: Parser) -> None:
    async with Listening(server_with().streamable_http_app(), parser) as listening, httpx2.AsyncClient() as client:
        for _ in range(2):  # on one connection
            response = await client.post(
                listening.url, content=b"x" * 1_000_000, headers={"content-type": "text/plain"}
            )
            assert response.status_code == 415


# What is left of one


async def test_a_lost_connection_is_freed_at_once(parser: Parser) -> None:
    gc.disable()
    try:
        async with listening(parser) as server:
            caller = await dial(server)
            await caller.say(b"GET / HTTP/1.1\r\n")
            await eventually(lambda: len(server.open) == 1)
            left = [weakref.ref(protocol) for protocol in server.open]
            caller.close()
            await eventually(lambda: not server.open)
            await eventually(lambda: [one() for one in left] == [None])
    finally:
        gc.enable()
