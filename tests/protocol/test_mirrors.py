"""Protocol section 24: which `x-mcp-header` annotations are valid, what a client sends for them, what a server takes."""

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


def check(value: Any, header: str | None, *, mirror: ParameterHeader = REGION) -> None:
    headers = {} if header is None else {mirror.header: header}
    check_parameter_headers([mirror], sent(headers), {"region": value})


def mismatch(value: Any, header: str | None) -> str:
    with pytest.raises(MCPError) as caught:
        check(value, header)
    assert caught.value.code == HEADER_MISMATCH
    return caught.value.message


# Which annotations are valid


def test_a_schema_without_annotations_has_no_mirrors() -> None:
    assert read_parameter_headers({}) == ()
    assert read_parameter_headers(tool(region={"type": "string"})) == ()


@pytest.mark.parametrize("kind", ["string", "integer", "boolean"])
def test_an_annotated_property_of_a_plain_type_is_mirrored(kind: str) -> None:
    found = read_parameter_headers(tool(region=annotated(type=kind), other={"type": "number"}))
    assert found == (REGION,)


def test_a_nested_property_is_mirrored_by_its_path() -> None:
    schema = tool(where=tool(deep=tool(region=annotated("Region"))), dry=annotated("Dry-Run", type="boolean"))
    assert read_parameter_headers(schema) == (
        ParameterHeader("Mcp-Param-Region", ("where", "deep", "region")),
        ParameterHeader("Mcp-Param-Dry-Run", ("dry",)),
    )


@pytest.mark.parametrize("name", ["a", "X-1", TCHARS])
def test_a_header_name_is_any_token(name: str) -> None:
    assert read_parameter_headers(tool(a=annotated(name)))[0].header == f"Mcp-Param-{name}"


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a:b", "a\n", "a\t", "\x00", "é", "日", *sorted(set(string.punctuation) - set(TCHARS))]
)
def test_a_header_name_that_is_no_token_makes_the_tool_invalid(name: str) -> None:
    with pytest.raises(
        InvalidParameterHeader, match=r"where\.a: x-mcp-header must be a header name \(letters, digits, -\), not"
    ):
        read_parameter_headers(tool(where=tool(a=annotated(name))))


@pytest.mark.parametrize("name", [None, 1, True, ["A"], {"A": 1}])
def test_a_header_name_that_is_no_text_makes_the_tool_invalid(name: Any) -> None:
    with pytest.raises(InvalidParameterHeader, match="x-mcp-header must be a header name"):
        read_parameter_headers(tool(a=annotated(name)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (tool(a=annotated("Region"), b=annotated("REGION")), "Region"),
        (tool(a=annotated("x"), b=tool(c=annotated("X"))), "x"),
    ],
)
def test_two_names_that_differ_in_case_only_make_the_tool_invalid(one: dict[str, Any], other: str) -> None:
    with pytest.raises(InvalidParameterHeader, match=f"(?i)two properties claim the header Mcp-Param-{other}"):
        read_parameter_headers(one)


@pytest.mark.parametrize(
    "kind", ["number", "object", "array", "null", ["string", "null"], ["string"], None, "String", 1]
)
def test_a_property_of_another_type_makes_the_tool_invalid(kind: Any) -> None:
    with pytest.raises(
        InvalidParameterHeader, match=r"a: only a string, an integer or a boolean can be repeated in a header"
    ):
        read_parameter_headers(tool(a=annotated(type=kind)))


def test_a_property_without_a_type_makes_the_tool_invalid() -> None:
    with pytest.raises(InvalidParameterHeader, match="only a string, an integer or a boolean"):
        read_parameter_headers(tool(a={"x-mcp-header": "A", "anyOf": [{"type": "string"}, {"type": "null"}]}))


@pytest.mark.parametrize("bound", ["minimum", "maximum", "const", "default"])
@pytest.mark.parametrize("number", [SAFE + 1, -SAFE - 1, 2**70])
def test_an_integer_beyond_what_a_double_holds_makes_the_tool_invalid(bound: str, number: int) -> None:
    with pytest.raises(InvalidParameterHeader, match=r"a: a mirrored integer must stay within 2\*\*53 - 1"):
        read_parameter_headers(tool(a=annotated(type="integer", **{bound: number})))


@pytest.mark.parametrize("schema", [{"enum": [1, SAFE + 1]}, {"const": 2.0**53}, {"maximum": 1e300}])
def test_an_integer_beyond_what_a_double_holds_is_found_however_it_is_written(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterHeader, match="must stay within"):
        read_parameter_headers(tool(a=annotated(type="integer", **schema)))


def test_an_integer_at_the_very_bounds_is_mirrored() -> None:
    assert read_parameter_headers(tool(a=annotated("A", type="integer", minimum=-SAFE, maximum=SAFE, default=True)))


INNER = tool(a=annotated())


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"x-mcp-header": "A", "type": "string"}, id="root"),
        pytest.param(tool(a={"type": "array", "items": annotated()}), id="items"),
        pytest.param(tool(a={"type": "array", "items": INNER}), id="an object in items"),
        pytest.param(tool(a={"type": "array", "prefixItems": [annotated()]}), id="prefixItems"),
        pytest.param(tool(a={"type": "array", "contains": annotated()}), id="contains"),
        *[pytest.param(tool(a={word: [{}, annotated()]}), id=word) for word in ("anyOf", "allOf", "oneOf")],
        *[pytest.param({word: [INNER]}, id=f"{word} of the root") for word in ("anyOf", "allOf", "oneOf")],
        *[pytest.param({**tool(), word: INNER}, id=word) for word in ("if", "then", "else", "not")],
        *[pytest.param({word: {"R": annotated()}}, id=word) for word in ("$defs", "definitions", "patternProperties")],
        pytest.param({**tool(a={"$ref": "#/$defs/R"}), "$defs": {"R": annotated()}}, id="$ref"),
        pytest.param({**tool(a={"$ref": "#/$defs/R"}), "$defs": {"R": INNER}}, id="$ref to an object"),
        pytest.param({"dependentSchemas": {"a": INNER}}, id="dependentSchemas"),
        pytest.param({"additionalProperties": annotated()}, id="additionalProperties"),
        pytest.param({"propertyNames": annotated()}, id="propertyNames"),
        pytest.param({"properties": [annotated()]}, id="properties that are no object"),
        pytest.param({**INNER, "$defs": {"x-mcp-header": annotated("B")}}, id="beside a valid one"),
    ],
)
def test_an_annotation_off_the_path_of_plain_properties_makes_the_tool_invalid(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterHeader, match="x-mcp-header stands where no path of plain properties leads"):
        read_parameter_headers(schema)


@pytest.mark.parametrize("name", ["x-mcp-header", "properties", "default", "items", "$defs", "enum"])
def test_a_property_may_have_any_name_even_that_of_the_annotation(name: str) -> None:
    assert read_parameter_headers(tool(**{name: annotated()})) == (ParameterHeader("Mcp-Param-Region", (name,)),)
    assert read_parameter_headers(tool(**{name: {"type": "string"}})) == ()


@pytest.mark.parametrize("word", ["default", "const", "examples", "enum"])
def test_an_annotation_within_data_is_data(word: str) -> None:
    assert read_parameter_headers(tool(a={"type": "object", word: [{"x-mcp-header": "A"}]})) == ()
    assert read_parameter_headers(tool(a={"type": "object", word: {"x-mcp-header": "A"}})) == ()


def test_a_property_with_the_annotations_name_may_require_others() -> None:
    schema = {**tool(**{"x-mcp-header": {"type": "string"}}, a={}), "dependentRequired": {"x-mcp-header": ["a"]}}
    assert read_parameter_headers(schema) == ()


@pytest.mark.parametrize("properties", [{"a": True, "b": None, "region": annotated()}, {"a": 5, "region": annotated()}])
def test_a_property_that_is_no_object_is_passed_over(properties: dict[str, Any]) -> None:
    assert read_parameter_headers(tool(**properties)) == (REGION,)


WORDS = ["x-mcp-header", "type", "properties", "items", "anyOf", "$defs", "default", "minimum", "a", "b"]
LEAVES = st.sampled_from(["A", "a", "", "string", "integer", "object", 1, 2**60, 1.5, True, None])
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from(WORDS), below), max_leaves=12
)


@given(st.dictionaries(st.sampled_from(WORDS), ANYTHING))
def test_whatever_a_schema_holds_it_is_read_or_invalid(schema: dict[str, Any]) -> None:
    with suppress(InvalidParameterHeader):
        names = [mirror.header.lower() for mirror in read_parameter_headers(schema)]
        assert len(set(names)) == len(names)


# What a client sends


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "us-west1"),
        ("us west 1", "us west 1"),
        ("", ""),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("日本語", "=?base64?5pel5pys6Kqe?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("true", "true"),
        (42, "42"),
        (-7, "-7"),
        (0, "0"),
        (SAFE, "9007199254740991"),
        (-SAFE, "-9007199254740991"),
        (42.0, "42"),
        (True, "true"),
        (False, "false"),
    ],
)
def test_an_argument_is_sent_as_its_header_and_taken(value: Any, header: str) -> None:
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
        ({"where": {"region": None}}, None),
        ({"where": {}}, None),
        ({"where": None}, None),
        ({"where": "x"}, None),
        ({"where": [{"region": "x"}]}, None),
        ({"region": "x"}, None),
    ],
)
def test_a_nested_argument_is_read_at_its_path(arguments: dict[str, Any], value: Any) -> None:
    mirror = ParameterHeader("Mcp-Param-Region", ("where", "region"))
    assert mirror.value(arguments) == value
    assert write_parameter_headers([mirror], arguments) == ({} if value is None else {"Mcp-Param-Region": value})


# What a server takes


@pytest.mark.parametrize("value", ["us-west1", "", 42, 0, True, False])
def test_an_argument_whose_header_is_missing_is_a_mismatch(value: Any) -> None:
    assert mismatch(value, None) == "the header Mcp-Param-Region is missing; it repeats the argument 'region'"


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "us-west2"),
        ("us-west1", "US-WEST1"),
        ("us-west1", ""),
        ("", "x"),
        ("42", "42.0"),
        ("日本語", "=?base64?5pel5pys?="),
        (42, "43"),
        (42, "42.5"),
        (42, "42."),
        (42, "42.0x"),
        (42, ""),
        (42, "forty-two"),
        (42, "-42"),
        (1, "true"),
        (True, "1"),
        (True, "True"),
        (True, "false"),
        (False, "0"),
        (1.5, "1.5"),
        ([1], "[1]"),
        ({}, "{}"),
    ],
)
def test_a_header_that_differs_from_its_argument_is_a_mismatch(value: Any, header: str) -> None:
    says = "the header Mcp-Param-Region differs from the argument 'region', which it repeats"
    assert mismatch(value, header) == says


@pytest.mark.parametrize(("value", "header"), [(42, "42.0"), (42, "42.000"), (-42, "-42.0"), (42.0, "42"), (0, "0.0")])
def test_integers_are_compared_as_numbers(value: Any, header: str) -> None:
    check(value, header)


@pytest.mark.parametrize(("value", "header"), [(42, "042"), (42, "4.2e1"), (0, "-0"), (0, "-0.0")])
def test_integers_are_compared_as_numbers_in_any_form_of_them(value: Any, header: str) -> None:
    check(value, header)


@pytest.mark.parametrize("header", ["x", "", "null"])
def test_a_header_whose_argument_is_absent_is_a_mismatch(header: str) -> None:
    says = "the header Mcp-Param-Region is there, but not the argument 'region', which it repeats"
    assert mismatch(None, header) == says


@pytest.mark.parametrize("header", ["=?base64?YQ?=", "=?base64?5pel-pys?=", "=?base64?/w==?="])
def test_a_header_that_cannot_be_decoded_is_a_mismatch(header: str) -> None:
    assert mismatch("a", header) == "the header Mcp-Param-Region holds no valid Base64 of UTF-8"


@pytest.mark.parametrize(("value", "header"), [("é", "\xe9"), (42, "\xb2")])
def test_a_header_that_is_not_ascii_is_a_mismatch(value: Any, header: str) -> None:
    assert mismatch(value, header) == "the header Mcp-Param-Region holds more than plain ASCII; encode it in Base64"


@pytest.mark.parametrize("arguments", [{"region": "x"}, {}])
def test_a_mirrored_header_that_is_there_twice_is_a_mismatch(arguments: dict[str, Any]) -> None:
    line = (b"mcp-param-region", b"x")
    with pytest.raises(MCPError, match="the header Mcp-Param-Region is there twice") as caught:
        check_parameter_headers([REGION], Headers([line, line]), arguments)
    assert caught.value.code == HEADER_MISMATCH


def test_an_encoded_header_may_say_what_could_be_plain() -> None:
    check("us-west1", "=?base64?dXMtd2VzdDE=?=")
    check(42, "=?base64?NDI=?=")


def test_a_message_names_a_nested_argument_by_its_path_and_shows_no_value() -> None:
    mirror = ParameterHeader("Mcp-Param-Region", ("where", "region"))
    with pytest.raises(MCPError, match=r"the argument 'where\.region'") as caught:
        check_parameter_headers([mirror], sent({"Mcp-Param-Region": "sent"}), {"where": {"region": "s3cret"}})
    assert "s3cret" not in caught.value.message


def test_an_unknown_mirror_is_ignored() -> None:
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
    # that the integer is out of bounds is for the check of the arguments to say: no client can mend its headers
    check_parameter_headers([REGION], sent(write_parameter_headers([REGION], {"region": value})), {"region": value})


@given(
    st.dictionaries(STEPS, VALUES),
    st.lists(st.tuples(st.sampled_from([one.header.lower().encode() for one in ALL]), st.binary())),
)
def test_whatever_the_headers_hold_they_are_taken_or_a_mismatch(
    arguments: dict[str, Any], raw: list[tuple[bytes, bytes]]
) -> None:
    with suppress(MCPError):
        check_parameter_headers(ALL, Headers(raw), arguments)
