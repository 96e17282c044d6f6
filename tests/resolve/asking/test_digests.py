"""Digests of JSON values."""

from typing import Any

import pytest
from pydantic_core import from_json

from bespeak.resolve.asking.digests import digest, json_bytes


def test_a_digest_is_the_same_whatever_the_order_of_members() -> None:
    assert digest({"a": {"x": 1, "y": [2]}, "b": 3}) == digest({"b": 3, "a": {"y": [2], "x": 1}})
    assert digest([1, 2]) == digest((1, 2))


@pytest.mark.parametrize(
    ("one", "other"),
    [([1, 2], [2, 1]), (1, "1"), (1, True), (None, "null"), ({}, []), ({"a": None}, {}), ("a", ["a"]), (0, 0.5)],
)
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


@pytest.mark.parametrize("value", ["text", 5, 1.5, None, True, [], {}, [{"b": [1, {"d": 1, "c": 2}], "a": "é"}]])
def test_json_bytes_read_back_as_the_same_value(value: Any) -> None:
    assert from_json(json_bytes(value)) == value
