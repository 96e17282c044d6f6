"""Checking content against a peer's form (design section 5, protocol 7.3): as far as its schema says something."""

from typing import Any

import pytest

from bespeak.protocol.forms import check_content


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": None, "required": None},
        {"type": "object", "properties": {"x": True}},
        {"type": "object", "properties": {"x": {"type": "mystery"}}},
        {"type": "object", "properties": {"x": {}}},
    ],
)
def test_a_peers_odd_schema_is_checked_as_far_as_it_says_something(schema: dict[str, Any]) -> None:
    assert check_content(schema, {"x": 1}) == []


def test_a_peers_legacy_titled_enum_is_understood() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "enum": ["a"], "enumNames": ["A"]}}}
    assert check_content(schema, {"x": "a"}) == []
    assert check_content(schema, {"x": "A"}) == ["x: must be one of the offered choices"]


def test_titled_choices_are_checked_by_their_values() -> None:
    titled = [{"const": "a", "title": "Alpha"}]
    schema = {
        "type": "object",
        "properties": {"x": {"type": "string", "oneOf": titled}, "y": {"type": "array", "items": {"anyOf": titled}}},
    }
    assert check_content(schema, {"x": "a", "y": ["a"]}) == []
    assert check_content(schema, {"x": "Alpha", "y": ["Alpha"]}) == [
        "x: must be one of the offered choices",
        "y: must contain only offered choices",
    ]
