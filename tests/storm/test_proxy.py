"""The proxy of a storm: whose turn it is, what it changes in heads, and whether a response is complete."""

import asyncio
import socket

import pytest
from storm.proxy import BodyEnd, Proxy, RoundRobin, for_worker, from_worker
from storm.records import Break

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
REQUEST = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


def test_workers_take_turns() -> None:
    turns = RoundRobin(3)
    chosen: list[int] = []
    for _ in range(4):
        chosen.append(turns.candidates()[0])
        turns.chose(chosen[-1])
    assert chosen == [0, 1, 2, 0]


def test_the_turn_after_a_worker_that_refused_is_that_of_the_one_behind_the_chosen() -> None:
    turns = RoundRobin(3)
    assert turns.candidates() == [0, 1, 2]
    turns.chose(1)  # worker 0 is down
    assert turns.candidates() == [2, 0, 1]


@pytest.mark.parametrize(
    ("head", "pieces", "complete"),
    [
        (HEAD, [b"hel", b"lo"], True),
        (HEAD, [b"hel"], False),
        (CHUNKED, [b"5\r\nhello\r\n", b"0\r\n", b"\r\n"], True),
        (CHUNKED, [b"5\r\nhello\r\n"], False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", [], True),
    ],
)
def test_a_response_is_complete_at_its_length_or_last_chunk(head: bytes, pieces: list[bytes], complete: bool) -> None:
    end = BodyEnd.after(head)
    for piece in pieces:
        assert not end.complete
        end.feed(piece)
    assert end.complete is complete


def test_a_request_is_sent_on_over_a_connection_of_its_own() -> None:
    head = for_worker(b"POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n")
    assert head == b"POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def test_a_response_says_which_worker_sent_it() -> None:
    assert from_worker(HEAD, 3) == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nstorm-worker: 3\r\n\r\n"


async def through_a_proxy(response: bytes) -> tuple[bytes, list[Break]]:
    """Return what a client gets if the first worker is down and the second sends this and closes, and what broke."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(response)
        writer.close()

    with socket.socket() as down:
        down.bind(("127.0.0.1", 0))  # and does not listen
        worker = await asyncio.start_server(answer, "127.0.0.1", 0)
        ports: list[int] = [one.getsockname()[1] for one in (down, worker.sockets[0])]
        proxy = Proxy(ports, lambda number: 100 + number)
        async with worker, proxy.listening() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(REQUEST)
            received = await reader.read()
            writer.close()
    return received, proxy.breaks


async def test_a_request_goes_to_the_next_worker_that_accepts_it() -> None:
    received, breaks = await through_a_proxy(HEAD + b"hello")
    assert received.endswith(b"storm-worker: 1\r\n\r\nhello")
    assert not breaks


@pytest.mark.parametrize(("head", "body"), [(b"", b""), (HEAD, b"hel"), (CHUNKED, b"5\r\nhello\r\n")])
async def test_a_response_that_breaks_off_ends_there_for_the_client_and_is_noted(head: bytes, body: bytes) -> None:
    received, breaks = await through_a_proxy(head + body)
    assert received == (from_worker(head, 1) + body if head else b"")
    assert breaks == [Break(101, "POST /mcp HTTP/1.1")]
