"""Protocol 23.4: event streams with one message per event, with any line ends and in any chunks."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.protocol.server_sent_events import KEEP_ALIVE, EventReader, EventTooLong, write_event, write_first_event

PLENTY = 1_000_000


ENDS = [b"\r", b"\n", b"\r\n"]


def read(*pieces: bytes, limit: int = PLENTY) -> list[bytes]:
    reader = EventReader(limit)
    return [event for piece in pieces for event in reader.feed(piece)]


def bytewise(stream: bytes) -> list[bytes]:
    return [stream[place : place + 1] for place in range(len(stream))]


# Writing


def test_a_message_is_written_as_one_event_with_an_id_only_if_one_is_given() -> None:
    assert write_event(b'{"a":1}') == b'event: message\r\ndata: {"a":1}\r\n\r\n'
    assert write_event(b"{}", "7") == b"id: 7\r\nevent: message\r\ndata: {}\r\n\r\n"


def test_a_first_event_says_where_to_resume_and_perhaps_when() -> None:
    reader = EventReader(PLENTY)
    assert list(reader.feed(write_first_event("s-0", None))) == [b""]
    assert (reader.last_id, reader.retry_ms) == ("s-0", None)
    list(reader.feed(write_first_event("s-1", 250)))
    assert (reader.last_id, reader.retry_ms) == ("s-1", 250)


def test_a_reader_that_restarts_drops_an_event_that_was_not_complete() -> None:
    reader = EventReader(PLENTY)
    list(reader.feed(write_event(b"a", "1") + b"id: 2\ndata: b\nda"))
    reader.restart()
    assert reader.last_id == "1"
    assert list(reader.feed(b"\xef\xbb\xbfdata: c\n\n")) == [b"c"]
    assert reader.last_id == "1"


@given(st.lists(st.dictionaries(st.text(), st.text()), max_size=4))
def test_what_is_written_is_what_is_read_with_keep_alives_between(messages: list[dict[str, str]]) -> None:
    written = [json.dumps(message, ensure_ascii=False).encode() for message in messages]
    assert KEEP_ALIVE.startswith(b":\r\n")
    assert read(KEEP_ALIVE + b"".join(write_event(message) + KEEP_ALIVE for message in written)) == written


# Reading


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("lines", "events"),
    [
        pytest.param([b"data: x", b""], [b"x"], id="data alone"),
        pytest.param([b"event: message", b"data: x", b""], [b"x"], id="of the kind message"),
        pytest.param([b"event:", b"data: x", b""], [b"x"], id="of an empty kind"),
        pytest.param([b"data:  x ", b""], [b" x "], id="only one space belongs to the field"),
        pytest.param([b"data: a:b: c", b""], [b"a:b: c"], id="colons in the data"),
        pytest.param([b"data: a", b"data: b", b"data:", b"data: c", b""], [b"a\nb\n\nc"], id="many lines of data"),
        pytest.param([b"data", b""], [b""], id="a field without a colon"),
        pytest.param([b": a comment", b"data: x", b": data: y", b":", b""], [b"x"], id="comments"),
        pytest.param([b"id: 1", b"retry: 5", b"other: z", b"data: x", b""], [b"x"], id="other fields"),
        pytest.param([b"DATA: y", b" data: z", b"data : w", b"data: x", b""], [b"x"], id="names are exact"),
        pytest.param([b"event: ping", b"data: x", b""], [], id="another kind"),
        pytest.param([b"event: ping", b"", b"data: x", b""], [b"x"], id="a kind ends with its event"),
        pytest.param([b"event: ping", b"data: y", b"", b"data: x", b""], [b"x"], id="and so does its data"),
        pytest.param([b"", b"", b"data: x", b"", b"", b""], [b"x"], id="empty lines"),
        pytest.param([b"data: x", b"", b"data: y", b""], [b"x", b"y"], id="two events"),
        pytest.param([b"data: x", b"", b"data: y"], [b"x"], id="one without its end"),
        pytest.param([b"id: 1", b""], [], id="no data"),
        pytest.param(
            ["data: 日本語\u2028\x85\x0b".encode(), b""], ["日本語\u2028\x85\x0b".encode()], id="no other line ends"
        ),
    ],
)
def test_events_are_read_by_the_rules_of_event_streams(end: bytes, lines: list[bytes], events: list[bytes]) -> None:
    stream = b"".join(line + end for line in lines)
    assert read(stream) == events
    assert read(*bytewise(stream)) == events


def test_a_byte_order_mark_belongs_to_the_beginning_of_a_stream_only() -> None:
    stream = b"\xef\xbb\xbfdata: x\n\n\xef\xbb\xbfdata: y\n\n"
    assert read(stream) == read(*bytewise(stream)) == [b"x"]


def test_an_event_is_returned_with_the_chunk_that_completes_it() -> None:
    reader = EventReader(PLENTY)
    assert list(reader.feed(b"data: x\r\n")) == []
    assert list(reader.feed(b"\r")) == [b"x"]  # the line feed may never come
    assert list(reader.feed(b"\n")) == []


LINES = st.sampled_from(
    [b"", b"", b"", b"data: x", b"data:", b"data", b"event: ping", b"event: message", b":", b": c", b"id: 1"]
)


ANY_LINE = LINES | st.binary(max_size=6).map(lambda data: b"data: " + data)


@st.composite
def cut_streams(draw: st.DrawFn, ends: Any = ENDS) -> tuple[bytes, list[bytes]]:
    """A stream, and the same in pieces."""
    lines = draw(st.lists(st.tuples(ANY_LINE, st.sampled_from(ends)), max_size=12))
    stream = b"".join(line + end for line, end in lines)
    cuts = draw(st.lists(st.integers(0, len(stream)), max_size=12))
    return stream, [stream[start:stop] for start, stop in pairwise([0, *sorted(cuts), len(stream)])]


@given(cut_streams())
@example((b"data: x\r\n\n", [b"data: x\r", b"\n", b"\n"]))
@example((b"data: x\r\n\r\n", [b"data: x\r", b"", b"\n", b"", b"\r", b"", b"\n"]))
@example((b"data: x\r\n\r\ndata: y\r\n\n", [b"data: x\r\n\r", b"\ndata: y\r", b"\n", b"\n"]))
def test_a_stream_in_any_chunks_gives_the_events_of_the_whole(cut: tuple[bytes, list[bytes]]) -> None:
    stream, pieces = cut
    assert read(*pieces) == read(*bytewise(stream)) == read(stream)


@given(st.lists(st.binary(max_size=20)))
def test_no_bytes_break_the_reader(pieces: list[bytes]) -> None:
    assert all(b"\r" not in event for event in read(*pieces))


# The limit


LONG = b"x" * 500


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"data: " + LONG], id="a line without its end"),
        pytest.param([b"data: ", LONG[:250], LONG[250:]], id="a line in pieces"),
        pytest.param([b"data: " + LONG + b"\r\n"], id="an event without its end"),
        pytest.param([b"data: xxxxxxxxxxxxxxxxxx\n"] * 25, id="many lines of data"),
        pytest.param([b"data:\n" * 500], id="many empty lines of data"),
        pytest.param([b": " + LONG], id="a comment without its end"),
        pytest.param([LONG], id="nothing known"),
        pytest.param([b"data: " + LONG + b"\r\n", b"\r\n"], id="the end in a piece of its own"),
    ],
)
def test_an_event_longer_than_the_limit_is_refused_before_it_is_complete(pieces: list[bytes]) -> None:
    with pytest.raises(EventTooLong):
        read(*pieces, limit=100)


@pytest.mark.parametrize("more", [b"", b"data: y\r\n\r\n"])
def test_an_event_longer_than_the_limit_is_refused_though_it_comes_in_one_chunk(more: bytes) -> None:
    # otherwise the same stream is refused or not by how the network cuts it
    with pytest.raises(EventTooLong):
        read(write_event(LONG) + more, limit=100)


@pytest.mark.parametrize("size", [1, 10_000])
def test_the_limit_is_for_one_event_and_a_stream_may_be_longer(size: int) -> None:
    stream = (write_event(b"x" * 50) + KEEP_ALIVE + b": " + b"c" * 50 + b"\n") * 100
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert read(*pieces, limit=200) == [b"x" * 50] * 100


def test_events_before_the_one_that_is_too_long_are_returned() -> None:
    reader = EventReader(100)
    events = reader.feed(b"data: x\n\ndata: " + LONG)
    assert next(events) == b"x"
    with pytest.raises(EventTooLong):
        next(events)
