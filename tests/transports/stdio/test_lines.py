"""Newline-delimited messages (protocol section 22): lines are found however they are cut, and blocking files never block."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.aio.outbox import UNREAD_BYTES
from bespeak.transports.stdio import lines
from bespeak.transports.stdio.lines import AHEAD, READ_BYTES, LineCutter, LineTooLong, ThreadedReader, ThreadedWriter
from tests.waiting import eventually

LIMIT = 6
TOO_LONG = "too long"
Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """The reading and the writing end; a test may close either itself."""
    ends = os.pipe()
    before = set(threading.enumerate())
    yield ends
    with contextlib.suppress(OSError):
        os.close(ends[1])
    # A thread that reads later must not read the pipe of another test, which may get the same number.
    for thread in set(threading.enumerate()) - before:
        thread.join(1)
    with contextlib.suppress(OSError):
        os.close(ends[0])


def cut(pieces: Iterable[bytes], limit: int = LIMIT) -> list[bytes | str]:
    cutter = LineCutter(limit)
    found: list[bytes | str] = []
    for piece in pieces:
        found.extend(TOO_LONG if isinstance(line, LineTooLong) else line for line in cutter.feed(piece))
    return found


def expected(stream: bytes, limit: int = LIMIT) -> list[bytes | str]:
    """What is to be found, written the slow and plain way."""
    *whole, rest = stream.split(b"\n")
    found: list[bytes | str] = [TOO_LONG if len(line) > limit else line.removesuffix(b"\r") for line in whole]
    return [*found, TOO_LONG] if len(rest) > limit else found


# Cutting


STREAMS = st.lists(st.sampled_from([b"\n", b"\r", b"a", b"bcd", "é".encode(), b"\x00", b"\xff", b"0123456"])).map(
    b"".join
)


@settings(deadline=None)
@given(STREAMS, st.data())
def test_the_same_lines_are_found_wherever_the_stream_is_cut(stream: bytes, data: st.DataObject) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    pieces = [stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)]
    assert cut(pieces) == expected(stream)


@settings(deadline=None)
@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=9)))
def test_only_a_newline_ends_a_line(texts: list[str]) -> None:
    stream = "".join(f"{text}.\n" for text in texts).encode()  # the full stop keeps a \r from being an ending
    assert cut([stream], 1000) == [f"{text}.".encode() for text in texts]


def test_a_line_may_end_with_a_carriage_return_and_keeps_those_inside() -> None:
    assert cut([b"a\r\n", b"b\rc\r\n", b"\r\n"]) == [b"a", b"b\rc", b""]


def test_a_line_of_exactly_the_limit_is_taken_and_one_more_is_not() -> None:
    assert cut([b"x" * LIMIT + b"\n"]) == [b"x" * LIMIT]
    assert cut([b"x" * (LIMIT + 1) + b"\n"]) == [TOO_LONG]


def test_a_line_that_is_too_long_is_reported_before_it_ends_and_only_once() -> None:
    cutter = LineCutter(LIMIT)
    assert list(cutter.feed(b"xxxx")) == []
    assert [type(line) for line in cutter.feed(b"xxxx")] == [LineTooLong]
    assert list(cutter.feed(b"x" * 100)) == []
    assert list(cutter.feed(b"x" * 100 + b"\n")) == []


def test_the_line_after_one_that_is_too_long_is_as_good_as_any() -> None:
    assert cut([b"x" * 50, b"x\nnext\n", b"y" * 9 + b"\nlast\n"]) == [TOO_LONG, b"next", TOO_LONG, b"last"]


# Reading


async def test_a_reader_gives_what_arrives_and_ends_when_the_other_side_is_closed(pipe: Pipe) -> None:
    reader = ThreadedReader(pipe[0])
    pieces = aiter(reader)
    for sent in (b"one", b"two"):
        os.write(pipe[1], sent)
        assert await anext(pieces) == sent
    os.close(pipe[1])
    assert [piece async for piece in pieces] == []


async def test_a_reader_can_be_stopped_though_nothing_arrives(pipe: Pipe) -> None:
    reader = ThreadedReader(pipe[0])
    reader.stop()
    async with asyncio.timeout(5):
        assert [piece async for piece in reader] == []


async def test_a_file_that_cannot_be_read_is_one_that_has_ended(pipe: Pipe) -> None:
    async with asyncio.timeout(5):
        assert [piece async for piece in ThreadedReader(pipe[1])] == []


async def test_a_reader_is_only_so_far_ahead_of_those_who_use_it(monkeypatch: pytest.MonkeyPatch, pipe: Pipe) -> None:
    read: list[int] = []

    def endless(fd: int, size: int) -> bytes:
        read.append(size)
        return b"x" if len(read) < 1000 else b""

    monkeypatch.setattr(lines.os, "read", endless)
    reader = ThreadedReader(pipe[0])
    await eventually(lambda: len(read) >= AHEAD)
    assert read == [READ_BYTES] * AHEAD, (
        "its thread waits for room before it reads, so there is nothing to wait for here"
    )
    assert len([piece async for piece in reader]) == 999


def test_a_reader_s_thread_ends_though_its_loop_is_gone(pipe: Pipe) -> None:
    before = set(threading.enumerate())

    async def start() -> None:
        ThreadedReader(pipe[0])

    asyncio.run(start())
    (thread,) = set(threading.enumerate()) - before
    os.write(pipe[1], b"for nobody")
    thread.join(5)
    assert not thread.is_alive()


# Writing


async def test_a_writer_sends_everything_in_order_before_it_is_closed(pipe: Pipe) -> None:
    writer = ThreadedWriter(pipe[1])
    sent = [f"{number}\n".encode() for number in range(1000)]
    for line in sent:
        writer.outbox.add(line)
        if line.endswith(b"0\n"):
            await asyncio.sleep(0)
    await writer.close(5)
    assert os.read(pipe[0], 1 << 16) == b"".join(sent)


async def test_more_than_a_pipe_holds_is_written_whole(pipe: Pipe) -> None:
    writer = ThreadedWriter(pipe[1])
    sent = os.urandom(1_000_000)
    writer.outbox.add(sent)
    got = b""
    async for piece in ThreadedReader(pipe[0]):
        got += piece
        if len(got) == len(sent):
            break
    assert got == sent
    await writer.close(5)


@pytest.mark.timing
@pytest.mark.parametrize("begun", [False, True], ids=["at once", "while it writes"])
async def test_a_writer_is_closed_as_soon_as_everything_is_sent(pipe: Pipe, begun: bool) -> None:
    writer = ThreadedWriter(pipe[1])
    await asyncio.sleep(0)
    writer.outbox.add(b"last words")
    if begun:
        await asyncio.sleep(0)
    began = time.perf_counter()
    await writer.close(50)
    assert time.perf_counter() - began < 25
    assert os.read(pipe[0], 100) == b"last words"


@pytest.mark.timing
@pytest.mark.long
async def test_closing_waits_only_so_long_for_one_who_does_not_read(pipe: Pipe) -> None:
    writer = ThreadedWriter(pipe[1])
    writer.outbox.add(bytes(1_000_000))
    began = time.perf_counter()
    await writer.close(0.05)
    assert time.perf_counter() - began < 25
    os.close(pipe[0])
    await eventually(lambda: writer.broken)


async def test_a_slow_reader_does_not_hold_up_the_loop_and_room_comes_back_when_it_reads(pipe: Pipe) -> None:
    writer = ThreadedWriter(pipe[1])
    writer.outbox.add(bytes(UNREAD_BYTES + 1))
    room = asyncio.create_task(writer.outbox.has_room())
    await asyncio.sleep(0)
    assert not room.done()
    got = 0

    async def read() -> None:
        nonlocal got
        async for piece in reader:
            got += len(piece)

    reader = ThreadedReader(pipe[0])
    reading = asyncio.create_task(read())
    await asyncio.wait_for(room, 5)
    await eventually(lambda: got == UNREAD_BYTES + 1)
    reader.stop()
    await reading
    await writer.close(5)


async def test_what_nobody_can_read_any_more_is_dropped_without_fuss(pipe: Pipe) -> None:
    writer = ThreadedWriter(pipe[1])
    os.close(pipe[0])
    writer.outbox.add(bytes(UNREAD_BYTES + 1))
    async with asyncio.timeout(5):
        await eventually(lambda: writer.broken)
        writer.outbox.add(bytes(UNREAD_BYTES + 1))
        await writer.outbox.has_room()
        await writer.close(5)


def test_a_writer_s_thread_ends_though_its_loop_is_gone(pipe: Pipe) -> None:
    before = set(threading.enumerate())

    async def start() -> threading.Thread:
        writer = ThreadedWriter(pipe[1])
        writer.outbox.add(bytes(1_000_000))
        (thread,) = set(threading.enumerate()) - before
        await asyncio.sleep(0)  # it begins to write, and nobody reads
        return thread

    thread = asyncio.run(start())
    os.close(pipe[0])
    thread.join(5)
    assert not thread.is_alive()
