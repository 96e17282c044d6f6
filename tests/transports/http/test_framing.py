"""Where heads and bodies begin and end: the same however the bytes are cut, whatever the bytes are."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.transports.http.framing import Framing

LIMIT = 100


@dataclass(frozen=True, slots=True)
class Sent:
    head: bytes
    body: bytes


def with_length(body: bytes) -> Sent:
    return Sent(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body), body)


def chunked(chunks: list[bytes], trailer: bytes) -> Sent:
    written = b"".join(b"%x;e=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return Sent(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", written + b"0\r\n" + trailer + b"\r\n")


text = st.text(alphabet="a\r\n0: ", max_size=40).map(str.encode)
requests = st.one_of(
    st.integers(0, LIMIT - 22).map(lambda size: Sent(b"GET /" + b"x" * size + b" HTTP/1.1\r\n\r\n", b"")),
    text.map(with_length),
    st.builds(chunked, st.lists(text.filter(bool), max_size=3), st.sampled_from([b"", b"A: b\r\n"])),
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places})
    return [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]


@given(st.lists(requests, max_size=4), st.lists(st.integers(0, 10_000), max_size=8), st.sampled_from([b"", b"\r\n"]))
def test_requests_are_followed_to_their_ends_however_they_are_cut(
    sent: list[Sent], places: list[int], between: bytes
) -> None:
    framing = Framing(LIMIT)
    for piece in cut(b"".join(one.head + one.body + between for one in sent), places):
        assert framing.feed(piece) == len(piece)
    assert (framing.in_head, framing.in_body, framing.heads) == (False, False, len(sent))


@given(
    st.lists(requests, max_size=3),
    st.integers(1, 3 * LIMIT),
    st.booleans(),
    st.lists(st.integers(0, 10_000), max_size=8),
)
def test_a_head_may_have_just_so_many_bytes_however_it_is_cut_and_whatever_came_before(
    before: list[Sent], length: int, ends: bool, places: list[int]
) -> None:
    head = (b"G" * (length - 4) + b"\r\n\r\n" if ends and length > 4 else b"G" * length)[:length]
    framing = Framing(LIMIT)
    first = b"".join(one.head + one.body for one in before)
    taken = 0
    for piece in cut(first + head, places):
        taken += (fine := framing.feed(piece))
        if fine < len(piece):
            break
    if length <= LIMIT:
        assert taken == len(first + head)
    else:  # of what is refused, only what came before it was clear
        assert len(first) <= taken <= len(first) + LIMIT


@pytest.mark.parametrize("line", [b"X: y\r\n", b"x" * 10])
def test_a_trailer_and_a_line_between_chunks_have_the_limit_of_a_head(line: bytes) -> None:
    framing = Framing(LIMIT)
    start = chunked([b"abc"], b"").head + b"3\r\nabc\r\n0\r\n"
    assert framing.feed(start) == len(start)
    assert not all(framing.feed(line) == len(line) for _ in range(LIMIT))


def test_what_a_body_contains_does_not_matter_to_the_framing() -> None:
    framing = Framing(LIMIT)
    assert framing.feed(with_length(b"x" * 10**6).head)
    assert framing.feed(b"\r\n\r\n" * 200_000)
    assert framing.in_body


@given(st.lists(st.one_of(st.binary(max_size=200), requests.map(lambda one: one.head + one.body)), max_size=5))
def test_bytes_that_make_no_sense_are_no_error(pieces: list[bytes]) -> None:
    framing = Framing(LIMIT)
    for piece in pieces:
        framing.feed(piece)
