"""The bytes a siege sends and reads."""

import asyncio
import json

import pytest
from siege.attacks.edges import pieces
from siege.wire import Closed, Head, Place, parse_head, read_json, reason

PLACE = Place(8000, "127.0.0.2", "10.0.0.1")


def reader(data: bytes) -> asyncio.StreamReader:
    made = asyncio.StreamReader()
    made.feed_data(data)
    made.feed_eof()
    return made


def test_a_request_says_its_length_and_for_whom_it_is_forwarded() -> None:
    head, _, body = PLACE.modern("plain", {"a": 1}).partition(b"\r\n\r\n")
    assert b"X-Forwarded-For: 10.0.0.1\r\n" in head
    assert head.endswith(b"Content-Length: %d" % len(body))
    assert json.loads(body)["params"]["arguments"] == {"a": 1}


def test_the_head_of_a_response_is_read() -> None:
    head = parse_head(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\ncontent-length: 0")
    assert head == Head(503, {"retry-after": "5", "content-length": "0"})


async def test_json_is_read_from_a_body_or_from_the_first_event_of_a_stream() -> None:
    _, content = await read_json(reader(b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"a":1}'))
    assert content == {"a": 1}
    _, content = await read_json(reader(b'HTTP/1.1 200 OK\r\n\r\n10\r\nevent: message\r\ndata: {"b":2}\r\n\r\n'))
    assert content == {"b": 2}


async def test_a_connection_that_closes_without_a_response_is_told_apart() -> None:
    with pytest.raises(Closed, match="without a response"):
        await read_json(reader(b""))
    with pytest.raises(Closed, match="the stream ended"):
        await read_json(reader(b"HTTP/1.1 200 OK\r\n\r\n"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"error": {"code": -32600, "message": "too many"}}, "429 -32600: too many"),
        ({"result": {"isError": True, "content": [{"text": "full"}]}}, "429 tool error: full"),
        (None, "429 without a reason"),
    ],
)
def test_a_refusal_is_counted_by_what_it_says(content: object, said: str) -> None:
    assert reason(Head(429), content) == said


def test_data_is_cut_into_pieces() -> None:
    assert pieces(b"abcdefg", 3) == [b"abc", b"def", b"g"]
