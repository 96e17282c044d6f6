"""Protocol section 24: which `x-mcp-header` annotations are valid, what a client sends for them, what a server accepts."""

import string
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.protocol.errors import HEADER_MISMATCH, MCPError
from bespeak.protocol.headers import Headers
from bespeak.protocol.parameter_headers import (
    InvalidParameterHeader,
    ParameterHeader,
    check_parameter_headers,
    read_parameter_headers,
    write_parameter_headers,
)

SAFE = 2**53 - 1


REGION = ParameterHeader("Mcp-Param-Region", ("region",))


TCHARS = string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~"


def annotated(name: Any = "Region", **schema: Any) -> dict[str, Any]:
    return {"type": "string", "x-mcp-header": name, **schema}


def tool(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def sent(headers: dict[str, str]) -> Headers:
    return Headers((name.lower().encode(), value.encode("latin-1")) for name, value in headers.items())


def check(value: Any, header: str | None, *, parameter: ParameterHeader = REGION) -> None:
    headers = {} if header is None else {parameter.header: header}
    check_parameter_headers([parameter], sent(headers), {"region": value})


def mismatch(value: Any, header: str | None) -> str:
    with pytest.raises(MCPError) as caught:
        check(value, header)
    assert caught.value.code == HEADER_MISMATCH
    return caught.value.message


def invalid(schema: dict[str, Any]) -> str:
    with pytest.raises(InvalidParameterHeader) as caught:
        read_parameter_headers(schema)
    return str(caught.value)


# Which annotations are valid


@pytest.mark.parametrize("kind", ["string", "integer", "boolean"])
def test_an_annotated_property_of_a_plain_type_has_a_header(kind: str) -> None:
    assert read_parameter_headers(tool(region=annotated(type=kind), other={"type": "number"})) == (REGION,)
    assert read_parameter_headers(tool(region={"type": kind})) == read_parameter_headers({}) == ()


def test_the_header_of_a_nested_property_has_its_path() -> None:
    schema = tool(where=tool(deep=tool(region=annotated("Region"))), dry=annotated("Dry-Run", type="boolean"))
    assert read_parameter_headers(schema) == (
        ParameterHeader("Mcp-Param-Region", ("where", "deep", "region")),
        ParameterHeader("Mcp-Param-Dry-Run", ("dry",)),
    )


@pytest.mark.parametrize("name", ["a", "X-1", TCHARS])
def test_a_header_name_is_any_token(name: str) -> None:
    assert read_parameter_headers(tool(a=annotated(name)))[0].header == f"Mcp-Param-{name}"


@pytest.mark.parametrize(
    "name", ["", "a b", "a:b", "a\n", "é", *sorted(set(string.punctuation) - set(TCHARS)), None, 1, ["A"]]
)
def test_a_header_name_that_is_not_a_token_makes_the_tool_invalid(name: Any) -> None:
    said = f"where.a: x-mcp-header must be a header name (letters, digits, -), not {name!r}"
    assert invalid(tool(where=tool(a=annotated(name)))) == said


def test_two_names_that_differ_only_in_case_make_the_tool_invalid() -> None:
    said = "two properties use the same header Mcp-Param-X"
    assert invalid(tool(a=annotated("x"), b=tool(c=annotated("X")))) == said


@pytest.mark.parametrize("kind", ["number", "object", "array", "null", ["string", "null"], None, "String"])
def test_a_property_of_another_type_makes_the_tool_invalid(kind: Any) -> None:
    said = "a: only a string, an integer or a boolean can be repeated in a header"
    assert invalid(tool(a=annotated(type=kind))) == said


@pytest.mark.parametrize(
    "schema",
    [
        *({word: SAFE + 1} for word in ("minimum", "maximum", "const", "default")),
        *({"minimum": -SAFE - 1}, {"enum": [1, SAFE + 1]}, {"const": 2.0**53}, {"maximum": 1e300}),
    ],
)
def test_an_integer_beyond_what_a_double_can_hold_makes_the_tool_invalid(schema: dict[str, Any]) -> None:
    said = "a: an integer that is repeated in a header must not exceed 2**53 - 1"
    assert invalid(tool(a=annotated(type="integer", **schema))) == said


def test_an_integer_at_the_very_bounds_is_valid() -> None:
    assert read_parameter_headers(tool(a=annotated("A", type="integer", minimum=-SAFE, maximum=SAFE, default=True)))


INNER = tool(a=annotated())


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"x-mcp-header": "A", "type": "string"}, id="root"),
        pytest.param(tool(a={"type": "array", "items": INNER}), id="items"),
        pytest.param(tool(a={"type": "array", "prefixItems": [annotated()]}), id="prefixItems"),
        *[pytest.param(tool(a={word: [{}, annotated()]}), id=word) for word in ("anyOf", "allOf", "oneOf")],
        *[pytest.param({**tool(), word: INNER}, id=word) for word in ("if", "not", "additionalProperties")],
        *[pytest.param({word: {"R": annotated()}}, id=word) for word in ("$defs", "definitions", "patternProperties")],
        pytest.param({**tool(a={"$ref": "#/$defs/R"}), "$defs": {"R": INNER}}, id="$ref"),
        pytest.param({"dependentSchemas": {"a": INNER}}, id="dependentSchemas"),
        pytest.param({"properties": [annotated()]}, id="properties that are not an object"),
        pytest.param({**INNER, "$defs": {"x-mcp-header": annotated("B")}}, id="beside a valid one"),
    ],
)
def test_an_annotation_that_plain_properties_do_not_reach_makes_the_tool_invalid(schema: dict[str, Any]) -> None:
    assert invalid(schema) == "x-mcp-header is only allowed on properties that are reachable through plain 'properties'"


@pytest.mark.parametrize("name", ["x-mcp-header", "properties", "default", "$defs"])
def test_a_property_may_have_any_name_even_that_of_the_annotation(name: str) -> None:
    assert read_parameter_headers(tool(**{name: annotated()})) == (ParameterHeader("Mcp-Param-Region", (name,)),)
    assert read_parameter_headers(tool(**{name: {"type": "string"}})) == ()


@pytest.mark.parametrize("word", ["default", "const", "examples", "enum", "dependentRequired"])
def test_an_annotation_within_data_is_data(word: str) -> None:
    assert read_parameter_headers(tool(a={"type": "object", word: [{"x-mcp-header": "A"}]})) == ()
    assert read_parameter_headers(tool(a={"type": "object", word: {"x-mcp-header": "A"}})) == ()


def test_a_property_whose_schema_is_not_an_object_is_ignored() -> None:
    assert read_parameter_headers(tool(a=True, b=None, c=5, region=annotated())) == (REGION,)


WORDS = ["x-mcp-header", "type", "properties", "items", "anyOf", "$defs", "default", "minimum", "a", "b"]


LEAVES = st.sampled_from(["A", "a", "", "string", "integer", "object", 1, 2**60, 1.5, True, None])


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from(WORDS), below), max_leaves=12
)


@given(st.dictionaries(st.sampled_from(WORDS), ANYTHING))
@pytest.mark.long
def test_any_schema_is_read_or_invalid(schema: dict[str, Any]) -> None:
    with suppress(InvalidParameterHeader):
        names = [one.header.lower() for one in read_parameter_headers(schema)]
        assert len(set(names)) == len(names)


# What a client sends


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us west 1", "us west 1"),
        ("", ""),
        ("日本語", "=?base64?5pel5pys6Kqe?="),
        ("a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("true", "true"),
        (-7, "-7"),
        (0, "0"),
        (SAFE, "9007199254740991"),
        (42.0, "42"),
        (True, "true"),
        (False, "false"),
    ],
)
def test_an_argument_is_sent_as_its_header_and_accepted(value: Any, header: str) -> None:
    assert write_parameter_headers([REGION], {"region": value}) == {"Mcp-Param-Region": header}
    check(value, header)


@pytest.mark.parametrize("arguments", [{}, {"region": None}, {"other": "x"}])
def test_an_absent_or_null_argument_has_no_header(arguments: dict[str, Any]) -> None:
    assert write_parameter_headers([REGION], arguments) == {}
    check_parameter_headers([REGION], sent({}), arguments)


@pytest.mark.parametrize("value", [[1], {"a": 1}, 1.5, float("inf"), float("nan")])
def test_what_has_no_form_in_a_header_is_left_to_the_check_of_the_arguments(value: Any) -> None:
    assert write_parameter_headers([REGION], {"region": value}) == {}
    check(value, None)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"where": {"region": "x"}}, "x"),
        ({"where": '{"region": "x"}'}, "x"),
        ({"where": "{"}, None),
        ({"where": {}}, None),
        ({"where": "x"}, None),
        ({"where": [{"region": "x"}]}, None),
        ({"region": "x"}, None),
    ],
)
def test_a_nested_argument_is_read_at_its_path(arguments: dict[str, Any], value: Any) -> None:
    parameter = ParameterHeader("Mcp-Param-Region", ("where", "region"))
    assert parameter.value(arguments) == value
    assert write_parameter_headers([parameter], arguments) == ({} if value is None else {"Mcp-Param-Region": value})


# What a server accepts


@pytest.mark.parametrize("value", ["us-west1", "", 42, 0, False])
def test_an_argument_whose_header_is_missing_is_a_mismatch(value: Any) -> None:
    assert mismatch(value, None) == "the header Mcp-Param-Region is missing; it repeats the argument 'region'"


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "US-WEST1"),
        ("us-west1", ""),
        ("", "x"),
        ("42", "42.0"),
        (42, "42.5"),
        (42, "42."),
        (42, "42.0x"),
        (42, ""),
        (42, "-42"),
        (1, "true"),
        (True, "1"),
        (True, "True"),
        (False, "0"),
        (1.5, "1.5"),
        ([1], "[1]"),
    ],
)
def test_a_header_that_differs_from_its_argument_is_a_mismatch(value: Any, header: str) -> None:
    says = "the header Mcp-Param-Region differs from the argument 'region', which it repeats"
    assert mismatch(value, header) == says


@pytest.mark.parametrize(
    ("value", "header"), [(42, "42.000"), (-42, "-42.0"), (42.0, "42"), (42, "042"), (42, "4.2e1"), (0, "-0.0")]
)
def test_integers_are_compared_as_numbers_in_any_form(value: Any, header: str) -> None:
    check(value, header)


@pytest.mark.parametrize("header", ["x", "", "null"])
def test_a_header_whose_argument_is_absent_is_a_mismatch(header: str) -> None:
    says = "the header Mcp-Param-Region is present, but the argument 'region', which it repeats, is missing"
    assert mismatch(None, header) == says


def test_a_header_that_cannot_be_decoded_is_a_mismatch() -> None:
    assert mismatch("a", "=?base64?YQ?=") == "the header Mcp-Param-Region does not contain valid Base64 of UTF-8 text"
    assert "characters that are not printable ASCII; encode it in Base64" in mismatch("é", "\xe9")


@pytest.mark.parametrize("arguments", [{"region": "x"}, {}])
def test_a_repeated_parameter_header_is_a_mismatch(arguments: dict[str, Any]) -> None:
    line = (b"mcp-param-region", b"x")
    with pytest.raises(MCPError, match="the header Mcp-Param-Region occurs more than once") as caught:
        check_parameter_headers([REGION], Headers([line, line]), arguments)
    assert caught.value.code == HEADER_MISMATCH


def test_an_encoded_header_may_say_what_could_be_plain() -> None:
    check("us-west1", "=?base64?dXMtd2VzdDE=?=")
    check(42, "=?base64?NDI=?=")


def test_a_message_names_a_nested_argument_by_its_path_and_shows_no_value() -> None:
    parameter = ParameterHeader("Mcp-Param-Region", ("where", "region"))
    with pytest.raises(MCPError, match=r"the argument 'where\.region'") as caught:
        check_parameter_headers([parameter], sent({"Mcp-Param-Region": "sent"}), {"where": {"region": "s3cret"}})
    assert "s3cret" not in caught.value.message


def test_an_unknown_parameter_header_is_ignored() -> None:
    check_parameter_headers(
        [REGION], sent({"Mcp-Param-Region": "x", "Mcp-Param-Other": "=?base64?!?="}), {"region": "x"}
    )


# Both ends


LEAF = (
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats()
    | st.text()
    | st.sampled_from(["42.0", "true", "=?base64?=", ""])
)


STEPS = st.sampled_from(["a", "b"])


VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAF, lambda below: st.lists(below, max_size=2) | st.dictionaries(STEPS, below), max_leaves=6
)


PATHS = [("a",), ("b",), ("a", "a"), ("a", "b"), ("b", "a", "b")]


ALL = [ParameterHeader(f"Mcp-Param-{number}", path) for number, path in enumerate(PATHS)]


@given(st.dictionaries(STEPS, VALUES))
@example({"a": -0.0, "b": 2.0**53})
def test_what_a_client_sends_is_what_a_server_takes(arguments: dict[str, Any]) -> None:
    check_parameter_headers(ALL, sent(write_parameter_headers(ALL, arguments)), arguments)


@pytest.mark.parametrize("value", [SAFE + 1, -SAFE - 1, 2**70])
def test_what_a_client_sends_for_an_unsafe_integer_is_not_refused_for_a_header_it_left_out(value: int) -> None:
    # the check of the arguments reports that the integer is out of bounds: no client can repair its headers
    check_parameter_headers([REGION], sent(write_parameter_headers([REGION], {"region": value})), {"region": value})
