"""Protocol 23.2, 23.5 and the encoding of 24: the values of headers, and routing headers that repeat the body."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.protocol.errors import (
    HEADER_MISMATCH,
    MCPError,
)
from bespeak.protocol.headers import (
    Headers,
    check_routing,
    decode_value,
    encode_value,
    routing_headers,
)

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
    assert Headers([(b"Mcp-Name", b"a")])[name] == "a"


def test_optional_whitespace_around_a_value_is_trimmed() -> None:
    headers = sent(("X-Thing", " \t a b\t "))
    assert headers["x-thing"] == "a b"
    assert headers.only("X-Thing") == b"a b"


def test_a_repeated_header_reads_as_one_joined_with_a_comma() -> None:
    headers = sent(("Accept", "a/b "), ("X", "1"), ("Accept", " c/d"))
    assert headers["Accept"] == "a/b, c/d"
    assert headers.joined(b"accept") == b"a/b , c/d"
    assert headers.joined(b"y") is None
    assert sent(("X", "1")).joined(b"x") == b"1"


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
        ("a ", "=?base64?YSA=?="),
        (" a", "=?base64?IGE=?="),
        ("a\tb", "=?base64?YQli?="),
        ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?="),
        ("\x7f", "=?base64?fw==?="),
        # half of the marker, or one in another case, is not a marker
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
def test_any_text_survives_its_header_as_printable_ascii_without_outer_space(text: str) -> None:
    value = encode_value(text)
    assert decode_value("Mcp-Name", value.encode("ascii")) == text
    assert value == value.strip()
    assert all(0x20 <= ord(character) <= 0x7E for character in value)


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param(b"YQ", id="no padding"),
        pytest.param(b"YQ===", id="too much padding"),
        pytest.param(b"YQ==YQ==", id="padding in the middle"),
        pytest.param(b"5pel-pys6_qe", id="the alphabet of URLs"),
        pytest.param(b"YW I=", id="a space"),
        pytest.param(b"/w==", id="not UTF-8"),
        pytest.param(b"7aCA", id="half a surrogate pair"),
    ],
)
def test_between_the_markers_only_strict_base64_of_utf_8_is_accepted(inner: bytes) -> None:
    with pytest.raises(MCPError) as caught:
        decode_value("Mcp-Name", b"=?base64?" + inner + b"?=")
    said = "the header Mcp-Name does not contain valid Base64 of UTF-8 text"
    assert (caught.value.code, caught.value.message) == (HEADER_MISMATCH, said)


@pytest.mark.parametrize("value", [b"=?base64?YQ==", b"YQ==?=", b"=?Base64?YQ==?=", b"YQ=="])
def test_without_both_markers_exactly_as_they_are_a_value_is_literal(value: bytes) -> None:
    assert decode_value("Mcp-Name", value) == value.decode()


@pytest.mark.parametrize("value", ["é".encode("latin-1"), "日本語".encode(), b"a\tb", b"a\x00b", b"\x7f", b"a\nb"])
def test_a_value_that_is_not_printable_ascii_must_be_encoded(value: bytes) -> None:
    # protocol 24: tabs and control characters are encoded, and a server rejects invalid characters
    with pytest.raises(MCPError) as caught:
        decode_value("Mcp-Name", value)
    said = "the header Mcp-Name contains characters that are not printable ASCII; encode it in Base64"
    assert (caught.value.code, caught.value.message) == (HEADER_MISMATCH, said)


@given(st.binary() | st.binary().map(lambda inner: b"=?base64?" + inner + b"?="))
def test_whatever_bytes_a_header_holds_they_are_a_text_or_a_mismatch(value: bytes) -> None:
    with suppress(MCPError):
        assert isinstance(decode_value("Mcp-Name", value), str)


# Routing headers against the body


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


@pytest.mark.parametrize("name", [None, 5])
def test_a_name_that_is_not_text_is_left_to_the_check_of_the_params(name: Any) -> None:
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
        (routing(method="Tools/Call"), "the header Mcp-Method is 'Tools/Call', but the method is 'tools/call'"),
        (routing(name="RUN_SQL"), "the header Mcp-Name is 'RUN_SQL', but params.name is 'run_sql'"),
        (routing(name=""), "the header Mcp-Name is '', but params.name is 'run_sql'"),
        (routing(name="=?base64?UlVO?="), "the header Mcp-Name is 'RUN', but params.name is 'run_sql'"),
        (routing(name="=?base64?YQ?="), "the header Mcp-Name does not contain valid Base64 of UTF-8 text"),
    ],
)
def test_a_routing_header_that_differs_even_in_case_is_a_mismatch(headers: Headers, says: str) -> None:
    assert mismatch(headers, name="run_sql") == says


@pytest.mark.parametrize("name", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_a_repeated_routing_header_is_a_mismatch_though_both_say_the_same(name: str) -> None:
    headers = Headers([*routing().raw, (name.lower().encode(), routing().last[name.lower().encode()])])
    assert mismatch(headers, name="run_sql") == f"the header {name} occurs more than once"


def test_another_header_may_be_repeated() -> None:
    headers = Headers([*routing().raw, (b"x-forwarded-for", b"a"), (b"x-forwarded-for", b"b")])
    check_routing(headers, VERSION, "tools/call", {"name": "run_sql"})


def test_routing_headers_are_checked_in_the_protocols_order() -> None:
    wrong = routing(version="v1", method="wrong", name="wrong")
    assert "MCP-Protocol-Version" in mismatch(wrong, name="run_sql")
    assert "Mcp-Method" in mismatch(routing(method="wrong", name="wrong"), name="run_sql")


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
