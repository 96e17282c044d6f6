"""Schemas of suites are checked as jsonschema checks them, whoever searches for their patterns."""

from typing import Any

import jsonschema
import pytest

from bespeak.conversation.json_schemas import validator_of
from bespeak.conversation.matchers import parse_matcher

PATTERNS = {"^a": {"type": "integer"}, "b$": True}
TWO = {"properties": {"a": True, "b": True}}
HAS_A = {"properties": {"a": True}}
CLOSED: dict[str, Any] = {"unevaluatedProperties": False}
TABLE: list[tuple[Any, list[Any]]] = [
    ({"pattern": "^a+$"}, ["aa", "ab", 5, None]),
    ({"patternProperties": PATTERNS}, [{"a": 1}, {"a": "x"}, {"xb": "x"}, [], {}]),
    ({"additionalProperties": False}, [{}, {"a": 1}, {"a": 1, "b": 2}, 5]),
    (
        {"additionalProperties": False, "properties": {"c": True}, "patternProperties": PATTERNS},
        [{"c": 1}, {"d": 1}, {"a": 1}],
    ),
    ({"additionalProperties": {"type": "null"}, "patternProperties": PATTERNS}, [{"c": None}, {"c": 1}, {"xb": 1}]),
    ({"additionalProperties": True}, [{"c": 1}]),
    (CLOSED, [{}, {"a": 1}, 5]),
    (CLOSED | {"properties": {"c": True}, "patternProperties": PATTERNS}, [{"c": 1}, {"a": 1}, {"d": 1}]),
    ({"unevaluatedProperties": {"type": "null"}, "properties": {"c": True}}, [{"d": None}, {"d": 1}, {"c": 1, "d": 1}]),
    (CLOSED | {"$ref": "#/$defs/x", "$defs": {"x": HAS_A}}, [{"a": 1}, {"b": 1}]),
    (CLOSED | {"allOf": [{"patternProperties": PATTERNS}, True]}, [{"a": 1}, {"c": 1}]),
    (CLOSED | {"anyOf": [{"properties": {"a": {"const": 1}}}, {"required": ["z"]}]}, [{"a": 1}, {"a": 2}]),
    (CLOSED | {"oneOf": [HAS_A, False]}, [{"a": 1}, {"b": 2}]),
    (CLOSED | {"dependentSchemas": {"a": TWO}}, [{"a": 1, "b": 1}, {"b": 1}]),
    (
        CLOSED
        | {
            "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
            "then": {"properties": {"b": True}},
            "else": {"properties": {"c": True}},
        },
        [{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "c": 1}, {"c": 1}, {"b": 1}],
    ),
    (CLOSED | {"if": {"required": ["a"]}}, [{"a": 1}, {}]),
    (CLOSED | {"allOf": [{"additionalProperties": {"type": "string"}}]}, [{"a": "x"}]),
    (
        CLOSED | {"$dynamicRef": "#x", "$defs": {"y": {"$dynamicAnchor": "x", "properties": {"a": True}}}},
        [{"a": 1}, {"b": 1}],
    ),
    ({"properties": {"$schema": {"const": "x"}}}, [{"$schema": "x"}, {"$schema": "y"}]),
    ({"const": {"$schema": "x"}}, [{"$schema": "x"}, {}]),
    ({"enum": [{"$schema": "x"}]}, [{"$schema": "x"}, {}]),
]


@pytest.mark.parametrize(("schema", "values"), TABLE)
def test_a_value_is_valid_where_jsonschema_says_so(schema: Any, values: list[Any]) -> None:
    library: Any = jsonschema
    usual: Any = library.Draft202012Validator(schema)
    ours = validator_of(schema)
    assert [ours.is_valid(value) for value in values] == [usual.is_valid(value) for value in values]


@pytest.mark.parametrize(
    ("schema", "actual", "message"),
    [
        ({"pattern": "^a"}, "b", "'b' does not match '^a'"),
        ({"format": "email"}, "b", "'b' is not a 'email'"),
        ({"format": "date-time"}, "2026-07-28", "'2026-07-28' is not a 'date-time'"),
        ({"additionalProperties": False}, {"b": 1}, "Additional properties are not allowed ('b' was unexpected)"),
        (
            {"additionalProperties": False},
            {"b": 1, "c": 2},
            "Additional properties are not allowed ('b', 'c' were unexpected)",
        ),
        ({"unevaluatedProperties": False}, {"b": 1}, "Unevaluated properties are not allowed ('b' was unexpected)"),
        (
            {"unevaluatedProperties": {"type": "null"}},
            {"b": 1},
            "Unevaluated properties are not valid under the given schema ('b' was unexpected)",
        ),
    ],
)
def test_a_value_that_does_not_fit_a_schema_is_reported(schema: Any, actual: Any, message: str) -> None:
    difference = parse_matcher({"schema": schema}).check(actual)
    assert difference is not None
    assert difference.message == f"does not fit the schema: {message}"


def test_a_pattern_where_no_schema_is_looked_for_can_be_unreadable() -> None:
    difference = parse_matcher({"schema": {"$ref": "#/other", "other": {"pattern": "("}}}).check("x")
    assert difference is not None
    assert difference.message.startswith("the schema has a pattern that cannot be used: missing )")


@pytest.mark.parametrize(
    ("schema", "value"), [({"format": "uri"}, 5), ({"format": "uri"}, "a:b"), ({"format": "phone"}, "no")]
)
def test_formats_are_checked_in_texts_and_others_are_not_known(schema: Any, value: Any) -> None:
    assert parse_matcher({"schema": schema}).check(value) is None
