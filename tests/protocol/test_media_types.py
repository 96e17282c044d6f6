"""Protocol 23.2: `Accept` lists both kinds of response, and `Content-Type` is JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.media_types import accepts_responses, accepts_streams, is_json

BOTH = [
    b"application/json, text/event-stream",
    b"  TEXT/Event-Stream \t,\tapplication/JSON  ",
    b"application/json ; q=0.9 , text/event-stream;charset=utf-8 ; Q=0.001",
    b"text/html, application/json, , text/event-stream, */*;q=0",
    b"*/*;q=0.1",
    b"application/*, text/*",
]
JSON_ONLY = [
    b"application/json",
    b"application/*",
    b"application/json, text/event-stream;q=0",
    b"application/json, text/event-streams",
    b"*/*, text/event-stream;q=0",
    b"*/*, text/*;q=0",
]
STREAMS_ONLY = [
    b"text/event-stream",
    b"text/*",
    b"application/jsonx, text/event-stream",
    b"application/json; q = 0 , text/event-stream",
    b"application/json;q=0, text/event-stream, */*",
    b"application/*;q=0, */*",
    b"application/json;q=much, text/event-stream",
    b"application/json;q=, text/event-stream",
    b"application/json;q=-1, text/event-stream",
    b"application/json;q=nan, text/event-stream",
    b"*, text/event-stream",
    b"\xff\xfe, text/event-stream",
]


@pytest.mark.parametrize(
    ("accept", "json", "streams"),
    [
        (None, True, True),
        *((accept, True, True) for accept in BOTH),
        *((accept, True, False) for accept in JSON_ONLY),
        *((accept, False, True) for accept in STREAMS_ONLY),
        (b"text/html", False, False),
        (b"", False, False),
        (b",", False, False),
    ],
)
def test_a_client_accepts_what_it_lists_or_anything_if_it_lists_nothing(
    accept: bytes | None, json: bool, streams: bool
) -> None:
    assert accepts_responses(accept, streams=False) == json
    assert accepts_responses(accept, streams=True) == (json and streams)
    assert accepts_streams(accept) == streams


@pytest.mark.parametrize(
    "content_type",
    [
        b" application/json ",
        b"APPLICATION/JSON;",
        b"application/json;charset=UTF-8",
        b'application/json; charset="utf-8"',
        b"application/json; profile=x; charset=utf8",
    ],
)
def test_json_in_utf_8_is_json(content_type: bytes) -> None:
    assert is_json(content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        b"",
        b"text/plain; application/json",
        b"text/plain;charset=application/json",
        b"application/jsonp",
        b"application/vnd.api+json",
        b"application/json, text/plain",
        b"application/json; charset=latin-1",
        b"application/json; charset=",
        b"application/json; charset=utf-8; charset=utf-16",
        b"\xff",
    ],
)
def test_any_other_content_type_or_none_is_not_json(content_type: bytes | None) -> None:
    assert not is_json(content_type)


PARTS = b'application/json|text/event-stream|*/*|text/*|,|;|q=|0|1|.|=| |"|charset='.split(b"|")


@given(st.binary() | st.lists(st.sampled_from(PARTS)).map(b"".join))
def test_no_header_breaks_the_reading_of_media_types(value: bytes) -> None:
    assert accepts_responses(value, streams=False) >= accepts_responses(value, streams=True)
    assert is_json(value) in (True, False)
