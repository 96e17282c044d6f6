"""Protocol 23.2: `Accept` lists both kinds of answer, and the body says that it is JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.media_types import accepts_responses, is_json


@pytest.mark.parametrize(
    "accept",
    [
        b"application/json, text/event-stream",
        b"text/event-stream, application/json",
        b"application/json,text/event-stream",
        b"  application/json \t,\ttext/event-stream  ",
        b"Application/JSON, TEXT/Event-Stream",
        b"application/json;q=0.9, text/event-stream;q=0.1",
        b"application/json ; q=0.9 , text/event-stream ; Q=1",
        b"application/json;charset=utf-8;q=1, text/event-stream;charset=utf-8",
        b"text/html, application/json, text/event-stream, image/*",
        b"application/json, text/event-stream, */*;q=0",
        b"*/*",
        b"*/*;q=0.1",
        b"application/*, text/*",
        b"application/json, text/*;q=0.5",
        b"application/json, */*",
        b"application/json, , text/event-stream,",
        b"application/json;q=0.001, text/event-stream",
    ],
)
def test_a_client_that_lists_both_in_any_order_or_by_wildcard_is_served(accept: bytes) -> None:
    assert accepts_responses(accept, streams=True)


@pytest.mark.parametrize("streams", [True, False])
def test_a_client_that_does_not_say_takes_anything(streams: bool) -> None:
    assert accepts_responses(None, streams=streams)


@pytest.mark.parametrize(
    "accept",
    [
        b"text/event-stream",
        b"text/*",
        b"text/html",
        b"",
        b",",
        b"application/jsonx, text/event-stream",
        b"application/json-seq, text/event-stream",
        b"json, text/event-stream",
        b"application/json;q=0, text/event-stream",
        b"application/json;q=0.000, text/event-stream",
        b"application/json; q = 0 , text/event-stream",
        b"application/json;q=0, text/event-stream, */*",
        b"application/*;q=0, */*",
        b"application/json;q=much, text/event-stream",
        b"application/json;q=, text/event-stream",
        b"application/json;q=-1, text/event-stream",
        b"application/json;q=nan, text/event-stream",
        b"*, text/event-stream",
        b"\xff\xfe, text/event-stream",
    ],
)
@pytest.mark.parametrize("streams", [True, False])
def test_a_client_that_takes_no_json_is_not_served(accept: bytes, streams: bool) -> None:
    assert not accepts_responses(accept, streams=streams)


@pytest.mark.parametrize(
    "accept",
    [
        b"application/json",
        b"application/*",
        b"application/json, text/html",
        b"application/json, text/event-stream;q=0",
        b"application/json, text/event-streams",
        b"*/*, text/event-stream;q=0",
        b"*/*, text/*;q=0",
    ],
)
def test_a_client_that_takes_no_event_streams_is_served_only_where_there_are_none(accept: bytes) -> None:
    assert not accepts_responses(accept, streams=True)
    assert accepts_responses(accept, streams=False)


@pytest.mark.parametrize(
    "content_type",
    [
        b"application/json",
        b" application/json ",
        b"APPLICATION/JSON",
        b"application/json; charset=utf-8",
        b"application/json;charset=UTF-8",
        b'application/json; charset="utf-8"',
        b"application/json; charset=utf8",
        b"application/json; profile=x; charset=utf-8",
        b"application/json;",
    ],
)
def test_a_body_that_says_it_is_json_in_utf_8_is_json(content_type: bytes) -> None:
    assert is_json(content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        b"",
        b"text/plain",
        b"text/plain; application/json",
        b"text/plain;charset=application/json",
        b"application/x-www-form-urlencoded",
        b"multipart/form-data; boundary=application/json",
        b"application/jsonp",
        b"application/vnd.api+json",
        b"application/json, text/plain",
        b"application/json; charset=utf-16",
        b"application/json; charset=latin-1",
        b"application/json; charset=",
        b"application/json; charset=utf-8; charset=utf-16",
        b"\xff",
    ],
)
def test_a_body_that_says_something_else_or_nothing_is_not_json(content_type: bytes | None) -> None:
    assert not is_json(content_type)


PARTS = st.sampled_from(
    [
        b"application/json",
        b"text/event-stream",
        b"*/*",
        b"text/*",
        b",",
        b";",
        b"q=",
        b"0",
        b"1",
        b".",
        b"=",
        b" ",
        b'"',
        b"charset=",
    ]
)


@given(st.binary() | st.lists(PARTS).map(b"".join), st.booleans())
def test_no_header_breaks_the_reading_of_media_types(value: bytes, streams: bool) -> None:
    assert accepts_responses(value, streams=streams) in (True, False)
    assert is_json(value) in (True, False)


@given(st.lists(PARTS).map(b"".join))
def test_who_takes_streams_and_json_takes_json(accept: bytes) -> None:
    assert accepts_responses(accept, streams=False) or not accepts_responses(accept, streams=True)
