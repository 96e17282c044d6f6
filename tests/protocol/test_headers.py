"""Protocol 23.2, 23.5 and the encoding of 24: headers that repeat the body; and section 4: statuses and versions."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.protocol.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    MCPError,
    http_status,
)
from bespeak.protocol.headers import (
    Headers,
    check_routing,
    decode_value,
    encode_value,
    routing_headers,
)
from bespeak.protocol.versions import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS, check_version

VERSION = "2026-07-28"
METHODS = ["tools/call", "prompts/get", "resources/read", "tools/list", "server/discover"]
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.text(max_size=4), below, max_size=2),
    max_leaves=5,
)


def sent(*pairs: tuple[str, str]) -> Headers:
    """Headers as an ASGI server hands them on: names in lower case."""
    return Headers((name.lower().encode(), value.encode("latin-1")) for name, value in pairs)


def routing(*, version: str = VERSION, method: str = "tools/call", name: str | None = "run_sql") -> Headers:
    pairs = [("MCP-Protocol-Version", version), ("Mcp-Method", method)]
    return sent(*pairs, *([] if name is None else [("Mcp-Name", name)]))


def mismatch(headers: Headers, method: str = "tools/call", version: str = VERSION, **params: Any) -> str:
    with pytest.raises(MCPError) as caught:
        check_routing(headers, version, method, params)
    assert caught.value.code == HEADER_MISMATCH
    return caught.value.message


# The headers of a request, as a mapping


@pytest.mark.parametrize("name", ["mcp-name", "Mcp-Name", "MCP-NAME"])
def test_a_header_is_found_by_its_name_in_any_case(name: str) -> None:
    assert sent(("Mcp-Name", "Run_SQL"))[name] == "Run_SQL"


def test_a_server_that_keeps_the_case_of_names_changes_nothing_for_who_looks_one_up() -> None:
    assert Headers([(b"X-Thing", b"a")])["x-thing"] == "a"


def test_optional_whitespace_around_a_value_is_trimmed() -> None:
    headers = sent(("X-Thing", " \t a b\t "))
    assert headers["x-thing"] == "a b"
    assert headers.only("X-Thing") == b"a b"


def test_a_header_sent_twice_reads_as_one_joined_with_a_comma() -> None:
    assert sent(("Accept", "a/b "), ("X", "1"), ("Accept", " c/d"))["Accept"] == "a/b, c/d"


def test_a_header_that_is_not_there_is_a_key_error() -> None:
    headers = sent(("X", "1"))
    with pytest.raises(KeyError, match="Y"):
        _ = headers["Y"]
    assert headers.get("Y") is None
    assert "語" not in headers


def test_iterating_headers_gives_each_name_once_in_lower_case() -> None:
    headers = Headers([(b"a", b"1"), (b"B", b"2"), (b"A", b"3")])
    assert list(headers) == ["a", "b"]
    assert len(headers) == 2
    assert dict(headers) == {"a": "1, 3", "b": "2"}


def test_the_repr_of_headers_shows_no_value() -> None:
    assert repr(sent(("Authorization", "Bearer s3cret"), ("X", "1"))) == "<Headers authorization, x>"


@given(st.lists(st.tuples(st.from_regex(rb"[!#-'*+\-.0-9A-Z^-z|~]{1,3}", fullmatch=True), st.binary(max_size=4))))
def test_whatever_was_sent_headers_are_a_mapping(raw: list[tuple[bytes, bytes]]) -> None:
    headers = Headers(raw)
    assert len(list(headers)) == len(headers)
    assert all(name in headers and name.upper() in headers for name in headers)


# Values: plain, or Base64 between markers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # the protocol's own examples
        ("us west 1", "us west 1"),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("日本語", "=?base64?5pel5pys6Kqe?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        # the edges of plain
        ("", ""),
        ("~", "~"),
        (" ", "=?base64?IA==?="),
        ("a ", "=?base64?YSA=?="),
        (" a", "=?base64?IGE=?="),
        ("a\tb", "=?base64?YQli?="),
        ("a\n", "=?base64?YQo=?="),
        ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?="),
        ("\x00", "=?base64?AA==?="),
        ("\x7f", "=?base64?fw==?="),
        ("é", "=?base64?w6k=?="),
        # half of the marker is no marker, nor is one in another case
        ("=?base64?x", "=?base64?x"),
        ("x?=", "x?="),
        ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
    ],
)
def test_a_text_is_written_plain_where_that_is_safe_and_read_back(text: str, value: str) -> None:
    assert encode_value(text) == value
    assert decode_value("Mcp-Name", value.encode()) == text


@given(st.text())
@example("=?base64?=")
@example("=?base64??=")
@example("=?base64?" + "A" * 100 + "?=")
def test_any_text_survives_its_header(text: str) -> None:
    value = encode_value(text).encode("ascii")
    assert decode_value("Mcp-Name", value) == text
    assert Headers([(b"mcp-name", b" " + value + b"\t")]).only("Mcp-Name") == value


@given(st.text())
def test_what_is_written_is_always_printable_ascii_without_outer_space(text: str) -> None:
    value = encode_value(text)
    assert value == value.strip()
    assert all(0x20 <= ord(character) <= 0x7E for character in value)


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param(b"YQ", id="no padding"),
        pytest.param(b"YQ=", id="half the padding"),
        pytest.param(b"YQ===", id="too much padding"),
        pytest.param(b"YWI==", id="padding where none belongs"),
        pytest.param(b"=YQ=", id="padding first"),
        pytest.param(b"YQ==YQ==", id="padding in the middle"),
        pytest.param(b"Y", id="one character"),
        pytest.param(b"5pel-pys6_qe", id="the alphabet of URLs"),
        pytest.param(b"YW I=", id="a space"),
        pytest.param(b"literal!", id="no Base64 at all"),
        pytest.param(b"/w==", id="no UTF-8"),
        pytest.param(b"7aCA", id="half a surrogate pair"),
    ],
)
def test_between_the_markers_only_strict_base64_of_utf_8_is_taken(inner: bytes) -> None:
    with pytest.raises(MCPError, match=r"the header Mcp-Name holds no valid Base64 of UTF-8") as caught:
        decode_value("Mcp-Name", b"=?base64?" + inner + b"?=")
    assert caught.value.code == HEADER_MISMATCH


@pytest.mark.parametrize("value", [b"=?base64?YQ==", b"YQ==?=", b"=?Base64?YQ==?=", b"=?BASE64?YQ==?=", b"YQ=="])
def test_without_both_markers_exactly_as_they_are_a_value_is_literal(value: bytes) -> None:
    assert decode_value("Mcp-Name", value) == value.decode()


@pytest.mark.parametrize("value", ["é".encode("latin-1"), "é".encode(), b"\xff", "日本語".encode()])
def test_a_value_that_is_not_ascii_must_be_encoded(value: bytes) -> None:
    with pytest.raises(
        MCPError, match="the header Mcp-Name holds more than plain ASCII; encode it in Base64"
    ) as caught:
        decode_value("Mcp-Name", value)
    assert caught.value.code == HEADER_MISMATCH


@pytest.mark.parametrize("value", [b"a\tb", b"a\x00b", b"a\x1fb", b"\x7f", b"a\nb"])
def test_a_value_with_a_plain_control_character_is_refused(value: bytes) -> None:
    # protocol 24: tabs and any control character are encoded, and a server rejects invalid characters
    with pytest.raises(MCPError) as caught:
        decode_value("Mcp-Name", value)
    assert caught.value.code == HEADER_MISMATCH


@given(st.binary() | st.binary().map(lambda inner: b"=?base64?" + inner + b"?="))
def test_whatever_bytes_a_header_holds_they_are_a_text_or_a_mismatch(value: bytes) -> None:
    with suppress(MCPError):
        assert isinstance(decode_value("Mcp-Name", value), str)


# Routing headers against the body


def test_the_request_of_the_protocols_example_is_taken() -> None:
    headers = sent(
        ("Host", "mcp.acme.example"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "run_sql"),
        ("Mcp-Param-Region", "us-west1"),
    )
    check_routing(headers, VERSION, "tools/call", {"name": "run_sql", "arguments": {"region": "us-west1"}})


@pytest.mark.parametrize(
    ("method", "param"), [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")]
)
def test_a_method_that_names_something_repeats_the_name(method: str, param: str) -> None:
    check_routing(routing(method=method, name="a://b"), VERSION, method, {param: "a://b"})
    message = mismatch(routing(method=method, name=None), method, **{param: "a://b"})
    assert message == f"the header Mcp-Name is missing; it repeats params.{param}"


def test_a_method_that_names_nothing_needs_no_name() -> None:
    check_routing(routing(method="tools/list", name=None), VERSION, "tools/list", {"name": "x", "uri": "y"})


def test_a_name_may_be_encoded_though_it_need_not_be() -> None:
    check_routing(routing(name="=?base64?cnVuX3NxbA==?="), VERSION, "tools/call", {"name": "run_sql"})


@pytest.mark.parametrize("name", [None, 5, ["run_sql"], {}])
def test_a_name_that_is_no_text_is_left_to_the_check_of_the_params(name: Any) -> None:
    check_routing(routing(name=None), VERSION, "tools/call", {"name": name})


@pytest.mark.parametrize(
    ("left_out", "says"),
    [
        (
            "mcp-protocol-version",
            "the header MCP-Protocol-Version is missing; it repeats the protocol version in params._meta",
        ),
        ("mcp-method", "the header Mcp-Method is missing; it repeats the method"),
        ("mcp-name", "the header Mcp-Name is missing; it repeats params.name"),
    ],
)
def test_a_routing_header_that_is_missing_is_a_mismatch(left_out: str, says: str) -> None:
    headers = Headers(pair for pair in routing().raw if pair[0] != left_out.encode())
    assert mismatch(headers, name="run_sql") == says


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        (
            routing(version="2025-11-25"),
            "the header MCP-Protocol-Version is '2025-11-25', but the protocol version in params._meta is '2026-07-28'",
        ),
        (routing(method="tools/list"), "the header Mcp-Method is 'tools/list', but the method is 'tools/call'"),
        (routing(method="Tools/Call"), "the header Mcp-Method is 'Tools/Call', but the method is 'tools/call'"),
        (routing(method=""), "the header Mcp-Method is '', but the method is 'tools/call'"),
        (routing(name="RUN_SQL"), "the header Mcp-Name is 'RUN_SQL', but params.name is 'run_sql'"),
        (routing(name=""), "the header Mcp-Name is '', but params.name is 'run_sql'"),
        (routing(name="=?base64?UlVO?="), "the header Mcp-Name is 'RUN', but params.name is 'run_sql'"),
    ],
)
def test_a_routing_header_that_differs_even_in_case_is_a_mismatch(headers: Headers, says: str) -> None:
    assert mismatch(headers, name="run_sql") == says


def test_a_name_that_cannot_be_decoded_is_a_mismatch() -> None:
    assert "holds no valid Base64" in mismatch(routing(name="=?base64?YQ?="), name="a")


@pytest.mark.parametrize("name", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_a_routing_header_that_is_there_twice_is_a_mismatch_though_both_say_the_same(name: str) -> None:
    headers = Headers([*routing().raw, (name.lower().encode(), routing().last[name.lower().encode()])])
    assert mismatch(headers, name="run_sql") == f"the header {name} is there twice"


def test_another_header_may_be_there_twice() -> None:
    headers = Headers([*routing().raw, (b"x-forwarded-for", b"a"), (b"x-forwarded-for", b"b")])
    check_routing(headers, VERSION, "tools/call", {"name": "run_sql"})


def test_routing_headers_are_checked_in_the_protocols_order() -> None:
    wrong = routing(version="v1", method="wrong", name="wrong")
    assert "MCP-Protocol-Version" in mismatch(wrong, name="run_sql")
    assert "Mcp-Method" in mismatch(routing(method="wrong", name="wrong"), name="run_sql")


def test_a_version_that_differs_from_its_header_is_a_mismatch_before_it_is_unsupported() -> None:
    assert "'v999'" in mismatch(routing(version=VERSION), version="v999", name="run_sql")


# What a client sends


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "run_sql"}, "run_sql"),
        ("prompts/get", {"name": "日本語"}, "=?base64?5pel5pys6Kqe?="),
        ("resources/read", {"uri": "file:///a b", "name": "other"}, "file:///a b"),
    ],
)
def test_a_client_sends_version_method_and_name(method: str, params: dict[str, Any], name: str) -> None:
    assert routing_headers(VERSION, method, params) == {
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
        "Mcp-Name": name,
    }


@pytest.mark.parametrize(("method", "params"), [("tools/list", {"name": "x"}), ("tools/call", {}), ("x", {"": "y"})])
def test_a_client_sends_no_name_for_what_has_none(method: str, params: dict[str, Any]) -> None:
    assert "Mcp-Name" not in routing_headers(VERSION, method, params)


PLAIN = st.from_regex(r"[!-<>-~]([ -~]*[!-~])?", fullmatch=True)


@given(
    st.sampled_from(METHODS) | PLAIN, st.fixed_dictionaries({}, optional={"name": JSON, "uri": JSON, "": JSON}), PLAIN
)
def test_what_a_client_sends_is_what_a_server_takes(method: str, params: dict[str, Any], version: str) -> None:
    check_routing(sent(*routing_headers(version, method, params).items()), version, method, params)


def test_a_method_travels_as_it_is_and_only_a_name_is_ever_encoded() -> None:
    method = "=?base64?dG9vbHM=?="
    assert routing_headers(VERSION, method, {})["Mcp-Method"] == method


# Statuses and versions


@pytest.mark.parametrize(
    ("code", "number", "status"),
    [
        (PARSE_ERROR, -32700, 400),
        (INVALID_REQUEST, -32600, 400),
        (METHOD_NOT_FOUND, -32601, 404),
        (INVALID_PARAMS, -32602, 400),
        (HEADER_MISMATCH, -32020, 400),
        (MISSING_REQUIRED_CLIENT_CAPABILITY, -32021, 400),
        (UNSUPPORTED_PROTOCOL_VERSION, -32022, 400),
    ],
)
def test_an_error_of_the_protocol_has_its_status(code: int, number: int, status: int) -> None:
    assert code == number
    assert http_status(code) == status


def test_an_internal_error_is_a_result_of_http_or_a_failure_of_the_server() -> None:
    assert http_status(INTERNAL_ERROR) in (200, 500)


@pytest.mark.parametrize("code", [0, 1, 404, 500, -32000, -32002, -32042, -31999])
def test_an_authors_own_code_is_no_failure_of_http(code: int) -> None:
    assert http_status(code) == 200


def test_a_version_spoken_here_passes() -> None:
    check_version(VERSION)
    assert LATEST_MODERN_VERSION in MODERN_PROTOCOL_VERSIONS


@pytest.mark.parametrize("version", ["2031-01-01", "2025-11-25", "2024-11-05", "", "2026-07-28 ", "v999"])
def test_a_version_that_no_request_can_name_is_refused_with_those_spoken_here(version: str) -> None:
    with pytest.raises(MCPError, match="unsupported protocol version") as caught:
        check_version(version)
    assert caught.value.code == UNSUPPORTED_PROTOCOL_VERSION
    # the older ones are reached by `initialize`
    supported = [VERSION, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
    assert caught.value.data == {"supported": supported, "requested": version}
