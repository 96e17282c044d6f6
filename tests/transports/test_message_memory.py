"""A large message costs a client memory in proportion to its length, however it is cut, over every transport."""

import asyncio
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from bespeak.protocol.server_sent_events import EventReader
from bespeak.transports.http.client import HttpTransport
from bespeak.transports.interfaces import ANSWER_LIMIT, Outgoing
from bespeak.transports.stdio.client import StdioServerParameters, StdioTransport
from bespeak.transports.stdio.lines import LineCutter
from tests.transports.http.scripted_server import CALL

MIB = 1024 * 1024
LARGE = 32 * MIB
SMALL = 64 * 1024
"""Of a message in very many pieces: each of them takes its time while memory is traced."""
PIECE = b"x" * 65536
SLACK = MIB
pytestmark = [pytest.mark.timing, pytest.mark.long]
Feed = Callable[[bytes], Iterator[object]]


class Peak:
    """The most memory that was in use at one time, in bytes."""

    bytes = 0


@contextmanager
def traced() -> Generator[Peak]:
    peak = Peak()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    try:
        yield peak
    finally:
        peak.bytes = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()


def peak_of(feed: Feed, pieces: Iterable[bytes]) -> tuple[int, int]:
    """The most memory that reading took, and how many messages were found."""
    found = 0
    with traced() as peak:
        for piece in pieces:
            for _ in feed(piece):
                found += 1
    return peak.bytes, found


def in_pieces(head: bytes, length: int, size: int, end: bytes) -> Iterator[bytes]:
    yield head
    for at in range(0, length, size):
        yield PIECE[:size] if size > 2 else bytes((120, 48 + at % 10))  # no two of them the same object
    yield end


# Readers


EVENTS = {
    "one line": (LARGE, lambda: in_pieces(b"data: ", LARGE, 65536, b"\n\n")),
    "many lines": (LARGE, lambda: iter([*[b"data: " + PIECE + b"\n"] * (LARGE // 65536), b"\n"])),
    "tiny pieces": (SMALL, lambda: in_pieces(b"data: ", SMALL, 2, b"\n\n")),
}


@pytest.mark.parametrize(("length", "pieces"), EVENTS.values(), ids=EVENTS)
def test_an_event_takes_at_most_three_times_its_length(length: int, pieces: Callable[[], Iterator[bytes]]) -> None:
    took, found = peak_of(EventReader(ANSWER_LIMIT).feed, pieces())
    assert found == 1
    assert took < 3 * length + SLACK


@pytest.mark.parametrize("filler", [b"\n", b"data: x\n\n"])
def test_a_long_piece_takes_no_more_than_itself_whatever_its_lines(filler: bytes) -> None:
    piece = filler * (MIB // len(filler))
    took, _ = peak_of(EventReader(ANSWER_LIMIT).feed, [piece])
    assert took < len(piece)


LINES = {
    "pieces": (LARGE, lambda: in_pieces(b"", LARGE, 65536, b"\n")),
    "tiny pieces": (SMALL, lambda: in_pieces(b"", SMALL, 2, b"\r\n")),
}


@pytest.mark.parametrize(("length", "pieces"), LINES.values(), ids=LINES)
def test_a_line_takes_at_most_three_times_its_length(length: int, pieces: Callable[[], Iterator[bytes]]) -> None:
    took, found = peak_of(LineCutter(ANSWER_LIMIT).feed, pieces())
    assert found == 1
    assert took < 3 * length + SLACK


@pytest.mark.parametrize("feed", [EventReader(MIB).feed, LineCutter(MIB).feed], ids=["events", "lines"])
def test_what_is_longer_than_the_limit_takes_no_more_than_that(feed: Feed) -> None:
    with traced() as peak:
        try:
            for piece in in_pieces(b"data: ", LARGE, 65536, b"\n\n"):
                for _ in feed(piece):
                    pass
        except ValueError:
            pass
    assert peak.bytes < 3 * MIB


# Clients


BEGIN, END = b'{"jsonrpc":"2.0","id":1,"result":{"text":"', b'"}}'


@asynccontextmanager
async def writing(head: bytes, begin: bytes, end: bytes) -> AsyncGenerator[str]:
    """The URL of a server that answers with a message of that length, from one small piece of its own."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'"}')
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: " + head + b"\r\n\r\n" + begin)
        for _ in range(LARGE // len(PIECE)):
            writer.write(PIECE)
            await writer.drain()
        writer.write(end)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


@pytest.mark.parametrize(
    ("kind", "begin", "end"),
    [(b"text/event-stream", b"data: " + BEGIN, END + b"\n\n"), (b"application/json", BEGIN, END)],
    ids=["event", "body"],
)
async def test_a_large_response_over_http_takes_at_most_four_times_its_length(
    kind: bytes, begin: bytes, end: bytes
) -> None:
    async with writing(kind, begin, end) as url, HttpTransport(url) as transport:
        with traced() as peak:
            response = await transport.exchange(CALL, lambda data: None)
    assert len(response) == LARGE + len(BEGIN + END)
    assert peak.bytes < 4 * LARGE


CHILD = f"""
import sys
sys.stdin.readline()
sys.stdout.write({BEGIN.decode()!r})
for _ in range({LARGE // len(PIECE)}):
    sys.stdout.write("x" * {len(PIECE)})
sys.stdout.write({END.decode()!r} + "\\n")
sys.stdout.flush()
sys.stdin.readline()
"""


async def test_a_large_response_over_stdio_takes_at_most_four_times_its_length() -> None:
    parameters = StdioServerParameters(sys.executable, ["-IS", "-c", CHILD])
    async with StdioTransport(parameters) as transport:
        with traced() as peak:
            response = await transport.exchange(Outgoing(1, "tools/call", b"{}", {}), lambda data: None)
    assert len(response) == LARGE + len(BEGIN + END)
    assert peak.bytes < 4 * LARGE
