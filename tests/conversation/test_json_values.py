"""JSON values whose type nobody has promised."""

from typing import Any

import pytest

from bespeak.conversation.json_values import as_array, as_object, is_number, is_whole, kind_of


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "a string"),
        ([], "an array"),
        ({}, "an object"),
    ],
)
def test_each_value_has_a_kind(value: Any, kind: str) -> None:
    assert kind_of(value) == kind


def test_only_an_object_has_members_and_only_an_array_has_entries() -> None:
    assert as_object({"a": 1}) == {"a": 1}
    assert as_array([1]) == [1]
    assert as_object([1]) == {}
    assert as_array({"a": 1}) == []


@pytest.mark.parametrize(
    ("value", "number", "whole"),
    [(1, True, True), (1.0, True, True), (1.5, True, False), (True, False, False), ("1", False, False)],
)
def test_true_is_no_number_and_a_whole_number_may_have_a_point(value: Any, number: bool, whole: bool) -> None:
    assert is_number(value) is number
    assert is_whole(value) is whole
