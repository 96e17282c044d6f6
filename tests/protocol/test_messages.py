"""JSON-RPC messages: what is read, what is malformed and the error for it, and that what is written is strict JSON."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)

from bespeak.protocol.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    MCPError,
)
from bespeak.protocol.messages import (
    LOG_LEVELS,
    Batch,
    LegacyRequest,
    MalformedMessage,
    Message,
    Meta,
    Notification,
    Request,
    Response,
    not_for_a_batch,
    read_message,
    read_meta,
    write_error,
    write_notification,
    write_request,
    write_result,
)
from bespeak.protocol.versions import LATEST_MODERN_VERSION

CAPABILITIES = CLIENT_CAPABILITIES_META_KEY
META: dict[str, Any] = {PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION, CLIENT_CAPABILITIES_META_KEY: {}}


def envelope(**members: Any) -> dict[str, Any]:
    """A request with these members changed; `...` leaves one out."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}, **members}
    return {name: value for name, value in message.items() if value is not ...}


def with_meta(**members: Any) -> dict[str, Any]:
    meta = {key: value for key, value in {**META, **members}.items() if value is not ...}
    return envelope(params={"_meta": meta})


def read(message: Any) -> Message | Batch:
    return read_message(json.dumps(message).encode())


def read_request(message: Any) -> Request:
    request = read(message)
    assert isinstance(request, Request)
    return request


def refused(message: Any) -> tuple[int, str | int | None, str]:
    """The code, id and text of the error for a message."""
    with pytest.raises(MalformedMessage) as caught:
        read_message(message if isinstance(message, bytes) else json.dumps(message).encode())
    return caught.value.error.code, caught.value.id, caught.value.error.message


def strict(raw: bytes) -> Any:
    """Read JSON as any other implementation would: `NaN` and `Infinity` are not JSON."""

    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(raw, parse_constant=no_constant)


# Reading


def test_a_request_is_read_with_its_metadata() -> None:
    meta = {
        **META,
        CLIENT_INFO_META_KEY: {"name": "c", "version": "1"},
        LOG_LEVEL_META_KEY: "warning",
        "progressToken": "p-7",
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    }
    request = read_request(envelope(id="a", params={"_meta": meta, "cursor": "x"}))
    assert (request.id, request.method, request.params["cursor"]) == ("a", "tools/list", "x")
    assert request.meta == Meta(LATEST_MODERN_VERSION, {}, {"name": "c", "version": "1"}, "warning", "p-7", meta)


def test_client_info_log_level_and_progress_token_are_optional() -> None:
    assert read_request(envelope()).meta == Meta(LATEST_MODERN_VERSION, {}, None, None, None, META)


@pytest.mark.parametrize("value", ["", "x", 0, -1, 2**70])
def test_an_id_and_a_progress_token_are_any_string_or_integer(value: str | int) -> None:
    assert read_request(envelope(id=value)).id == value
    assert read_request(with_meta(progressToken=value)).meta.progress_token == value


def test_a_message_without_an_id_is_a_notification() -> None:
    note = read({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})
    assert note == Notification("notifications/cancelled", {"requestId": 3})


def test_a_notification_needs_no_params_and_no_metadata() -> None:
    assert read({"jsonrpc": "2.0", "method": "notifications/x"}) == Notification("notifications/x", {})


@pytest.mark.parametrize("id_", ["r", 7])
def test_a_response_is_read_with_the_id_of_its_request(id_: str | int) -> None:
    # protocol 25.2: servers of older revisions ask their clients
    error = {"code": -1, "message": "no"}
    assert read({"jsonrpc": "2.0", "id": id_, "result": {"a": 1}}) == Response(id_, {"a": 1}, None)
    assert read({"jsonrpc": "2.0", "id": id_, "error": error}) == Response(id_, None, error)


@pytest.mark.parametrize("count", [1, 100])
def test_a_batch_is_read_as_its_messages(count: int) -> None:
    # protocol 25.5: one older revision allows batches; the others refuse what was read here
    assert read([envelope()] * count) == Batch((read_request(envelope()),) * count)


def test_a_malformed_message_in_a_batch_does_not_spoil_the_others() -> None:
    batch = read([17, envelope(), envelope(jsonrpc="1.0")])
    assert isinstance(batch, Batch)
    number, request, other = batch.messages
    assert request == read(envelope())
    assert isinstance(number, MalformedMessage)
    assert isinstance(other, MalformedMessage)
    said = (number.error.code, number.id, number.error.message)
    assert said == (INVALID_REQUEST, None, "each message of a batch must be an object")
    assert (other.error.code, other.id) == (INVALID_REQUEST, 1)


# Malformed messages


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff\xfe", b"[" * 5000, b'"\\ud800"', b"1" * 5000, b'{"x": NaN}', b'{"x": -Infinity}']
)
def test_bytes_that_are_not_json_are_a_parse_error(raw: bytes) -> None:
    assert refused(raw) == (PARSE_ERROR, None, "the message is not valid JSON")


ONE = "one JSON-RPC message at a time: the body must be an object"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ([], f"{ONE}; this batch is empty"),
        ([envelope()] * 101, f"{ONE}; a batch, where allowed, may contain at most 100 messages"),
        ("text", ONE),
        (None, ONE),
    ],
)
def test_anything_but_an_object_or_a_batch_of_some_is_an_invalid_request(message: Any, said: str) -> None:
    assert refused(message) == (INVALID_REQUEST, None, said)


@pytest.mark.parametrize("version", [..., "1.0", 2.0, None])
def test_a_message_of_another_json_rpc_is_an_invalid_request(version: Any) -> None:
    said = 'the message must contain "jsonrpc": "2.0"'
    assert refused(envelope(jsonrpc=version)) == (INVALID_REQUEST, 1, said)


@pytest.mark.parametrize("method", [..., None, 1, ["tools/list"]])
def test_a_message_with_neither_a_method_nor_a_result_is_an_invalid_request(method: Any) -> None:
    assert refused(envelope(method=method)) == (INVALID_REQUEST, 1, "the message has no method")


@pytest.mark.parametrize("id_", [None, True, 1.0, [1]])
def test_an_id_of_another_type_is_an_invalid_request_with_an_error_without_an_id(id_: Any) -> None:
    assert refused(envelope(id=id_)) == (INVALID_REQUEST, None, "the id must be a string or an integer")


@pytest.mark.parametrize("params", [None, [], "x"])
def test_params_that_are_not_an_object_are_invalid_params(params: Any) -> None:
    assert refused(envelope(params=params)) == (INVALID_PARAMS, 1, "params must be an object")


# Metadata


@pytest.mark.parametrize("params", [{}, {"_meta": None}, {"_meta": []}])
def test_metadata_that_is_missing_or_not_an_object_is_invalid_params(params: Any) -> None:
    with pytest.raises(MCPError, match=r"params\._meta is missing; it must contain the protocol version") as caught:
        read_meta(params)
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize(
    "params", [{}, {"_meta": None}, {"_meta": "x"}, {"_meta": {"progressToken": 1}}, {"_meta": {CAPABILITIES: {}}}]
)
def test_a_request_that_does_not_name_its_version_is_an_older_clients(params: Any) -> None:
    # protocol 27.1: the version's key is the evidence, not `_meta` itself
    assert read(envelope(params=params)) == LegacyRequest(1, "tools/list", params)
    assert read(envelope(params=...)) == LegacyRequest(1, "tools/list", {})


MALFORMED: list[tuple[str, list[Any], str]] = [
    (
        PROTOCOL_VERSION_META_KEY,
        [None, 20260728],
        f"params._meta must contain {PROTOCOL_VERSION_META_KEY}, a string",
    ),
    (CAPABILITIES, [..., None, "x"], f"params._meta must contain {CAPABILITIES}, an object"),
    (CAPABILITIES, [{"elicitation": 5}], f"{CAPABILITIES}: elicitation must be an object"),
    (CAPABILITIES, [{"roots": "yes"}], f"{CAPABILITIES}: roots must be an object"),
    (
        LOG_LEVEL_META_KEY,
        ["WARNING", "", 3, ["debug"]],
        f"{LOG_LEVEL_META_KEY} must be one of debug, info, notice,",
    ),
    ("progressToken", [True, 1.5, {}], "progressToken must be a string or an integer"),
]


@pytest.mark.parametrize(("member", "values", "said"), MALFORMED)
def test_a_malformed_member_of_the_metadata_is_invalid_params(member: str, values: list[Any], said: str) -> None:
    for value in values:
        code, id_, message = refused(with_meta(**{member: value}))
        assert (code, id_) == (INVALID_PARAMS, 1)
        assert message.startswith(said)


def test_unknown_capabilities_are_legal() -> None:
    capabilities: dict[str, Any] = {"telepathy": 5, "extensions": {"com.example/x": {}}}
    assert read_request(with_meta(**{CAPABILITIES: capabilities})).meta.capabilities == capabilities


def test_log_level_and_progress_token_of_an_unsupported_version_are_not_checked() -> None:
    future = {PROTOCOL_VERSION_META_KEY: "2031-01-01", LOG_LEVEL_META_KEY: "whisper", "progressToken": 1.5}
    assert read_request(with_meta(**future)).meta.protocol_version == "2031-01-01"


def test_client_info_that_is_not_an_object_is_ignored() -> None:
    # It is for display only, and a server must serve requests that lack it.
    assert read_request(with_meta(**{CLIENT_INFO_META_KEY: "acme"})).meta.client_info is None


# Arbitrary input


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


META_LIKE = st.fixed_dictionaries(
    {},
    optional={
        PROTOCOL_VERSION_META_KEY: st.just(LATEST_MODERN_VERSION) | JSON,
        CLIENT_CAPABILITIES_META_KEY: st.just(dict[str, Any]()) | JSON,
        CLIENT_INFO_META_KEY: JSON,
        LOG_LEVEL_META_KEY: st.sampled_from(LOG_LEVELS) | JSON,
        "progressToken": JSON,
    },
)


ENVELOPE_LIKE = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers() | JSON,
        "method": st.text() | JSON,
        "params": st.fixed_dictionaries({}, optional={"_meta": META_LIKE | JSON}) | JSON,
    },
)


@given(st.binary() | (ENVELOPE_LIKE | JSON).map(lambda value: json.dumps(value).encode()))
def test_arbitrary_input_is_read_or_is_malformed(raw: bytes) -> None:
    try:
        read_message(raw)
    except MalformedMessage as malformed:
        write_error(malformed.id, malformed.error)


def test_malformed_passes_through_a_context_manager_unchanged() -> None:
    # contextlib sets the traceback of what it lets through, which a frozen exception would refuse
    @contextmanager
    def scope() -> Generator[None]:
        yield

    with pytest.raises(MalformedMessage), scope():
        read_message(b"")


# Writing


def test_a_result_carries_the_id_in_its_own_type() -> None:
    assert strict(write_result("7", {"a": 1})) == {"jsonrpc": "2.0", "id": "7", "result": {"a": 1}}
    assert strict(write_result(7, {})) == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_an_error_has_data_only_if_there_is_some() -> None:
    assert strict(write_error(1, MCPError(-32602, "no"))) == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32602, "message": "no"},
    }
    assert strict(write_error(1, MCPError(-32602, "no", {"uri": "x"})))["error"]["data"] == {"uri": "x"}


def test_an_error_for_an_unreadable_request_has_no_id() -> None:
    assert "id" not in strict(write_error(None, MCPError(PARSE_ERROR, "no")))


def test_notifications_and_requests_are_written_as_they_are() -> None:
    assert strict(write_notification("n", {"a": 1})) == {"jsonrpc": "2.0", "method": "n", "params": {"a": 1}}
    assert strict(write_request(3, "m", {"a": 1})) == {"jsonrpc": "2.0", "id": 3, "method": "m", "params": {"a": 1}}


@pytest.mark.parametrize("number", [float("nan"), float("-inf")])
def test_a_number_that_json_does_not_know_is_written_as_null_in_a_result(number: float) -> None:
    assert strict(write_result(1, {"number": number}))["result"] == {"number": None}


def test_only_modern_requests_and_initialize_must_not_be_part_of_a_batch() -> None:
    assert not_for_a_batch(read_request(envelope()))
    assert not_for_a_batch(LegacyRequest(1, "initialize", {}))
    assert not not_for_a_batch(LegacyRequest(1, "tools/list", {}))
    assert not not_for_a_batch(Notification("initialize", {}))
