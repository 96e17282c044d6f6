"""Whether results keep the schemas of their tools: protocol.md sections 10 and 21."""

import sys
import time
from typing import Any

import pytest

from bespeak.conversation.json_schemas import Uncheckable, first_error
from bespeak.conversation.tool_schemas import argument_fault, input_findings, output_findings, tool_findings

Json = dict[str, Any]
NUMBER: Json = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def output(schema: Any, **result: Any) -> list[str]:
    return [one.text for one in output_findings("x", {"outputSchema": schema}, result)]


@pytest.mark.parametrize("value", [{"n": 1}, {"n": 1.0}, {"n": 1, "more": None}])
def test_a_result_that_matches_is_right(value: Any) -> None:
    assert output(NUMBER, structuredContent=value) == []


def test_a_result_that_does_not_match_is_found_with_its_place() -> None:
    assert output(NUMBER, structuredContent={"n": "1"}) == [
        "the structuredContent of 'x' does not match its schema: n: '1' is not of type 'integer'"
    ]
    assert output({"type": "array"}, structuredContent=None) == [
        "the structuredContent of 'x' does not match its schema: None is not of type 'array'"
    ]


def test_a_long_reason_is_cut() -> None:
    assert len(output({"type": "array"}, structuredContent="x" * 10_000)[0]) < 500


def test_structured_content_that_is_missing_is_found_unless_the_call_failed() -> None:
    text = "the tool 'x' has an outputSchema, but no structuredContent came"
    assert output(NUMBER) == output(NUMBER, isError=False) == [text]
    assert output(NUMBER, isError=True) == []
    assert output_findings("x", {}, {}) == output_findings("x", {"outputSchema": 5}, {}) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"$schema": "https://example.com/mine", "type": "array"},
        {"$schema": 5, "type": "array"},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"pattern": "("},
    ],
)
def test_a_schema_that_cannot_be_used_proves_nothing(schema: Json) -> None:
    assert output(schema, structuredContent="x") == []


def test_a_schema_that_takes_for_ever_is_given_up() -> None:
    hard: Json = {"$defs": {"a0": {"type": "string"}}, "$ref": "#/$defs/a60"}
    for number in range(60):
        again = {"$ref": f"#/$defs/a{number}"}
        hard["$defs"][f"a{number + 1}"] = {"allOf": [again, again]}
    began = time.monotonic()
    with pytest.raises(Uncheckable, match="takes too long"):
        first_error(hard, "x", seconds=0.1)
    assert time.monotonic() - began < 30


def test_a_schema_may_name_an_older_dialect() -> None:
    old: Json = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
    assert output(old, structuredContent=["a", 1]) == []
    assert output(old, structuredContent=[1]) == [
        "the structuredContent of 'x' does not match its schema: [0]: 1 is not of type 'string'"
    ]


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ({}, ["the tool 'x' has no inputSchema"]),
        ({"inputSchema": None}, ["the tool 'x' has an inputSchema whose type is not object"]),
        ({"inputSchema": {"type": "string"}}, ["the tool 'x' has an inputSchema whose type is not object"]),
        ({"inputSchema": {"type": "object"}}, []),
    ],
)
def test_arguments_are_an_object(tool: Json, text: list[str]) -> None:
    assert [one.text for one in input_findings("x", tool)] == text


def test_the_name_of_a_tool_has_letters_digits_and_three_signs() -> None:
    right: Json = {"inputSchema": {"type": "object"}}
    assert tool_findings("a_B-1.c", right) == tool_findings("x" * 128, right) == []
    for name in ("", "a b", "x" * 129, "a/b", "é", "a\n"):
        assert [one.rule for one in tool_findings(name, right)] == ["tool-name"]


def test_a_header_of_an_argument_that_the_protocol_forbids_is_found_with_its_reason() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}}
    assert [one.text for one in tool_findings("x", {"inputSchema": schema})] == [
        "the tool 'x': n: only a string, an integer or a boolean can be repeated in a header"
    ]


def test_the_first_fault_of_arguments_is_told_if_the_schema_can_be_used() -> None:
    assert argument_fault({"inputSchema": NUMBER}, {"n": 1}) is None
    assert argument_fault({"inputSchema": NUMBER}, {"n": "1"}) == "n: '1' is not of type 'integer'"
    assert argument_fault({"inputSchema": NUMBER}, {}) == "'n' is a required property"
    assert argument_fault({"inputSchema": {"type": "nothing"}}, {}) is argument_fault({}, {}) is None


def schema_faults(**tool: Any) -> list[str]:
    return [one.text for one in tool_findings("x", {"inputSchema": {"type": "object"}, **tool})]


def test_a_schema_that_is_not_valid_is_found_with_its_place() -> None:
    assert schema_faults(inputSchema={"type": "object", "properties": {"n": {"type": "integr"}}}) == [
        "the inputSchema of the tool 'x' is not valid: schema.properties.n.type: 'integr' is not valid under any of the "
        "given schemas"
    ]
    assert schema_faults(outputSchema={"required": "n"}) == [
        "the outputSchema of the tool 'x' is not valid: schema.required: 'n' is not of type 'array'"
    ]


DRAFT_4 = "http://json-schema.org/draft-04/schema#"


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": DRAFT_4, "minimum": 1, "exclusiveMinimum": True},
        {"$schema": "https://example.com/a-dialect-of-its-own", "type": 5},
        {"$ref": "https://example.com/elsewhere"},
        {"type": "string", "x-unknown": 5},
        True,
        {},
    ],
)
def test_a_schema_is_valid_in_its_own_dialect_or_nobody_can_say(schema: Any) -> None:
    assert schema_faults(outputSchema=schema) == []


def test_a_schema_that_is_nested_without_end_is_not_judged() -> None:
    endless: Json = {}
    endless["not"] = endless
    assert schema_faults(outputSchema=endless) == []


def test_without_jsonschema_no_schema_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    assert schema_faults(outputSchema={"type": 5}) == []
    assert output({"type": "array"}, structuredContent=1) == []
