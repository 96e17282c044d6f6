"""JSON-RPC envelopes: what is a message, what is malformed and how it is answered, and what goes out is strict JSON."""

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
    UNSUPPORTED_PROTOCOL_VERSION,
    MCPError,
)
from bespeak.protocol.messages import (
    LOG_LEVELS,
    Batch,
    LegacyRequest,
    MalformedMessage,
    Message,
    Notification,
    Request,
    Response,
    read_message,
    read_meta,
    write_error,
    write_notification,
    write_request,
    write_result,
)
from bespeak.protocol.versions import LATEST_MODERN_VERSION, check_version, is_modern

META: dict[str, Any] = {PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION, CLIENT_CAPABILITIES_META_KEY: {}}


def envelope(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}, **members}


def without(name: str) -> dict[str, Any]:
    message = envelope()
    del message[name]
    return message


def read(message: Any) -> Message | Batch:
    return read_message(json.dumps(message).encode())


def refused(raw: bytes) -> MalformedMessage:
    with pytest.raises(MalformedMessage) as caught:
        read_message(raw)
    return caught.value


def refused_meta(**members: Any) -> MalformedMessage:
    meta = {key: value for key, value in {**META, **members}.items() if value is not ...}
    return refused(json.dumps(envelope(params={"_meta": meta})).encode())


def strict(raw: bytes) -> Any:
    """Read JSON as any other implementation would: `NaN` and `Infinity` are no JSON."""

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
    request = read(envelope(id="a", params={"_meta": meta, "cursor": "x"}))
    assert isinstance(request, Request)
    assert (request.id, request.method, request.params["cursor"]) == ("a", "tools/list", "x")
    assert request.meta.protocol_version == LATEST_MODERN_VERSION
    assert request.meta.capabilities == {}
    assert request.meta.client_info == {"name": "c", "version": "1"}
    assert request.meta.log_level == "warning"
    assert request.meta.progress_token == "p-7"
    assert request.meta.raw == meta


def test_client_info_log_level_and_progress_token_are_optional() -> None:
    request = read(envelope())
    assert isinstance(request, Request)
    assert (request.meta.client_info, request.meta.log_level, request.meta.progress_token) == (None, None, None)


@pytest.mark.parametrize("id_", ["", "x", 0, -1, 2**70])
def test_an_id_is_any_string_or_integer(id_: str | int) -> None:
    request = read(envelope(id=id_))
    assert isinstance(request, Request)
    assert request.id == id_


@pytest.mark.parametrize("token", ["", "x", 0, -1])
def test_a_progress_token_is_any_string_or_integer(token: str | int) -> None:
    request = read(envelope(params={"_meta": {**META, "progressToken": token}}))
    assert isinstance(request, Request)
    assert request.meta.progress_token == token


@pytest.mark.parametrize("level", LOG_LEVELS)
def test_every_log_level_of_the_protocol_is_known(level: str) -> None:
    request = read(envelope(params={"_meta": {**META, LOG_LEVEL_META_KEY: level}}))
    assert isinstance(request, Request)
    assert request.meta.log_level == level


def test_a_message_without_an_id_is_a_notification() -> None:
    note = read({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})
    assert note == Notification("notifications/cancelled", {"requestId": 3})


def test_a_notification_needs_no_params_and_no_metadata() -> None:
    assert read({"jsonrpc": "2.0", "method": "notifications/x"}) == Notification("notifications/x", {})


@pytest.mark.parametrize("id_", ["r", 7])
def test_a_response_is_read_with_what_it_answers(id_: str | int) -> None:
    # protocol 25.2: servers of older revisions ask their clients
    error = {"code": -1, "message": "no"}
    assert read({"jsonrpc": "2.0", "id": id_, "result": {"a": 1}}) == Response(id_, {"a": 1}, None)
    assert read({"jsonrpc": "2.0", "id": id_, "error": error}) == Response(id_, None, error)


@pytest.mark.parametrize("count", [1, 100])
def test_a_batch_is_read_as_its_messages(count: int) -> None:
    # protocol 25.5: one older revision allows them; who takes none refuses it
    one = read(envelope())
    assert isinstance(one, Request)
    assert read([envelope()] * count) == Batch((one,) * count)


def test_what_is_wrong_in_a_batch_does_not_spoil_the_rest_of_it() -> None:
    batch = read([17, envelope(), envelope(jsonrpc="1.0"), []])
    assert isinstance(batch, Batch)
    number, request, other, array = batch.messages
    assert isinstance(request, Request)
    assert isinstance(number, MalformedMessage)
    assert isinstance(other, MalformedMessage)
    assert isinstance(array, MalformedMessage)
    assert (number.error.code, number.id, number.error.message) == (
        INVALID_REQUEST,
        None,
        "each message of a batch must be an object",
    )
    assert (other.error.code, other.id) == (INVALID_REQUEST, 1)
    assert array.error.message == number.error.message


# What is malformed


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"nonsense", b"\xff\xfe", b'{"a":}', b"[" * 5000, b'"\\ud800"', b"1" * 5000]
)
def test_what_is_not_json_is_a_parse_error(raw: bytes) -> None:
    malformed = refused(raw)
    assert (malformed.error.code, malformed.id) == (PARSE_ERROR, None)
    assert "not valid JSON" in malformed.error.message


@pytest.mark.parametrize("constant", [b"NaN", b"Infinity", b"-Infinity"])
def test_a_constant_that_json_does_not_know_is_a_parse_error(constant: bytes) -> None:
    raw = json.dumps(envelope()).encode().replace(b'"tools/list"', b'"tools/list", "x": ' + constant)
    assert refused(raw).error.code == PARSE_ERROR


@pytest.mark.parametrize("message", [[], [envelope()] * 101, "text", 1, True, None])
def test_an_empty_or_endless_batch_or_anything_but_an_object_is_an_invalid_request(message: Any) -> None:
    malformed = refused(json.dumps(message).encode())
    assert (malformed.error.code, malformed.id) == (INVALID_REQUEST, None)
    assert "one JSON-RPC message at a time" in malformed.error.message


@pytest.mark.parametrize("version", ["1.0", 2.0, 2, None, ["2.0"]])
def test_a_message_of_another_json_rpc_is_an_invalid_request(version: Any) -> None:
    malformed = refused(json.dumps(envelope(jsonrpc=version)).encode())
    assert (malformed.error.code, malformed.id) == (INVALID_REQUEST, 1)
    assert '"jsonrpc": "2.0"' in malformed.error.message


def test_a_message_that_does_not_say_json_rpc_is_an_invalid_request() -> None:
    assert refused(json.dumps(without("jsonrpc")).encode()).error.code == INVALID_REQUEST


@pytest.mark.parametrize("method", [None, 1, ["tools/list"], {}])
def test_a_method_that_is_no_string_is_an_invalid_request(method: Any) -> None:
    malformed = refused(json.dumps(envelope(method=method)).encode())
    assert (malformed.error.code, malformed.id) == (INVALID_REQUEST, 1)
    assert "no method" in malformed.error.message


def test_a_message_with_neither_method_nor_result_is_an_invalid_request() -> None:
    malformed = refused(b'{"jsonrpc": "2.0", "id": "r"}')
    assert (malformed.error.code, malformed.id) == (INVALID_REQUEST, "r")
    assert "no method" in malformed.error.message


@pytest.mark.parametrize("id_", [None, True, False, 1.5, 1.0, [1], {}])
def test_an_id_of_another_type_is_an_invalid_request_answered_without_an_id(id_: Any) -> None:
    malformed = refused(json.dumps(envelope(id=id_)).encode())
    assert (malformed.error.code, malformed.id) == (INVALID_REQUEST, None)
    assert "the id must be a string or an integer" in malformed.error.message


@pytest.mark.parametrize("params", [None, [], "x", 1, True])
def test_params_that_are_no_object_are_invalid_params(params: Any) -> None:
    malformed = refused(json.dumps(envelope(params=params)).encode())
    assert (malformed.error.code, malformed.id) == (INVALID_PARAMS, 1)
    assert "params must be an object" in malformed.error.message


# Metadata


@pytest.mark.parametrize("params", [{}, {"_meta": None}, {"_meta": []}, {"_meta": "x"}])
def test_metadata_that_is_missing_or_no_object_is_invalid_params(params: Any) -> None:
    with pytest.raises(MCPError, match=r"params\._meta is missing") as caught:
        read_meta(params)
    assert caught.value.code == INVALID_PARAMS


WITHOUT_VERSION: list[Any] = [
    {},
    {"_meta": None},
    {"_meta": []},
    {"_meta": "x"},
    {"_meta": {}},
    {"_meta": {"progressToken": 1}},
    {"_meta": {CLIENT_CAPABILITIES_META_KEY: {}}},
]


@pytest.mark.parametrize("params", WITHOUT_VERSION)
def test_a_request_that_does_not_name_its_version_is_an_older_client_s(params: Any) -> None:
    # protocol 27.1: the version's key is the evidence, a bare `_meta` is none
    assert read(envelope(params=params)) == LegacyRequest(1, "tools/list", params)


def test_a_request_without_params_is_an_older_client_s() -> None:
    assert read(without("params")) == LegacyRequest(1, "tools/list", {})


@pytest.mark.parametrize("version", [None, 20260728, ["2026-07-28"]])
def test_metadata_must_name_a_protocol_version(version: Any) -> None:
    malformed = refused_meta(**{PROTOCOL_VERSION_META_KEY: version})
    assert (malformed.error.code, malformed.id) == (INVALID_PARAMS, 1)
    assert PROTOCOL_VERSION_META_KEY in malformed.error.message


@pytest.mark.parametrize("capabilities", [..., None, [], "x", True])
def test_metadata_must_hold_the_client_s_capabilities(capabilities: Any) -> None:
    malformed = refused_meta(**{CLIENT_CAPABILITIES_META_KEY: capabilities})
    assert malformed.error.code == INVALID_PARAMS
    assert CLIENT_CAPABILITIES_META_KEY in malformed.error.message


@pytest.mark.parametrize("capabilities", [{"elicitation": 5}, {"sampling": []}, {"roots": "yes"}])
def test_capabilities_that_are_no_client_capabilities_are_invalid_params(capabilities: dict[str, Any]) -> None:
    # protocol 2.1: a missing or invalid required key makes the request malformed
    assert refused_meta(**{CLIENT_CAPABILITIES_META_KEY: capabilities}).error.code == INVALID_PARAMS


def test_unknown_capabilities_are_legal() -> None:
    capabilities: dict[str, Any] = {"telepathy": {}, "extensions": {"com.example/x": {}}}
    meta = {**META, CLIENT_CAPABILITIES_META_KEY: capabilities}
    assert isinstance(read(envelope(params={"_meta": meta})), Request)


@pytest.mark.parametrize("version", ["2031-01-01", "2025-11-25", "", "latest"])
def test_a_version_that_no_request_can_name_is_answered_with_those_spoken_here(version: str) -> None:
    with pytest.raises(MCPError) as refused:
        check_version(version)
    assert refused.value.code == UNSUPPORTED_PROTOCOL_VERSION
    assert refused.value.data == {
        "supported": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
        "requested": version,
    }
    assert refused.value.message == "unsupported protocol version"


def test_an_unsupported_version_can_be_read_whatever_it_says_of_levels_and_tokens() -> None:
    meta = {**META, PROTOCOL_VERSION_META_KEY: "2031-01-01", LOG_LEVEL_META_KEY: "whisper", "progressToken": 1.5}
    request = read(envelope(params={"_meta": meta}))
    assert isinstance(request, Request)
    assert request.meta.protocol_version == "2031-01-01"


@pytest.mark.parametrize("level", ["loud", "WARNING", "", 3, ["debug"], {}])
def test_an_unknown_log_level_is_invalid_params(level: Any) -> None:
    malformed = refused_meta(**{LOG_LEVEL_META_KEY: level})
    assert malformed.error.code == INVALID_PARAMS
    assert "must be one of debug, info, notice, warning" in malformed.error.message


@pytest.mark.parametrize("token", [True, 1.5, [], {}])
def test_a_progress_token_of_another_type_is_invalid_params(token: Any) -> None:
    malformed = refused_meta(progressToken=token)
    assert malformed.error.code == INVALID_PARAMS
    assert "progressToken must be a string or an integer" in malformed.error.message


@pytest.mark.parametrize("info", ["acme", 1, []])
def test_client_info_that_is_no_object_is_passed_over(info: Any) -> None:
    # it is for display only, and a server must serve requests that lack it
    request = read(envelope(params={"_meta": {**META, CLIENT_INFO_META_KEY: info}}))
    assert isinstance(request, Request)
    assert request.meta.client_info is None


# Whatever comes


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


def reads_or_is_malformed(raw: bytes) -> None:
    try:
        read_message(raw)
    except MalformedMessage as malformed:
        write_error(malformed.id, malformed.error)


@given(st.binary())
def test_arbitrary_bytes_never_raise_anything_but_malformed(raw: bytes) -> None:
    reads_or_is_malformed(raw)


@given(JSON)
def test_arbitrary_json_never_raises_anything_but_malformed(value: Any) -> None:
    reads_or_is_malformed(json.dumps(value).encode())


@given(ENVELOPE_LIKE)
def test_near_misses_of_an_envelope_never_raise_anything_but_malformed(value: Any) -> None:
    reads_or_is_malformed(json.dumps(value).encode())


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


def test_an_error_to_an_unreadable_request_leaves_the_id_out() -> None:
    assert "id" not in strict(write_error(None, MCPError(PARSE_ERROR, "no")))


def test_notifications_and_requests_are_written_as_they_are() -> None:
    assert strict(write_notification("n", {"a": 1})) == {"jsonrpc": "2.0", "method": "n", "params": {"a": 1}}
    assert strict(write_request(3, "m", {"a": 1})) == {"jsonrpc": "2.0", "id": 3, "method": "m", "params": {"a": 1}}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_written_is_json_whatever_numbers_are_in_it(number: float) -> None:
    strict(write_result(1, {"number": number}))


# Versions


def test_a_version_is_modern_from_2026_07_28_on() -> None:
    assert is_modern("2026-07-28")
    assert not is_modern("2025-11-25")
