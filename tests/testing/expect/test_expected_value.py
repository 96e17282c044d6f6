"""The expected value of a diff: matchers that accept a value do not show, those that do not are shown as they are written."""

from typing import Any

import pytest

from bespeak.conversation.matchers import ABSENT, parse_matcher
from bespeak.testing.expect.expected_value import expected_value


def kept(name: str) -> Any:
    return {"old": {"a": 1}}.get(name, ABSENT)


@pytest.mark.parametrize(
    ("written", "actual", "expected"),
    [
        ({"matches": "^a"}, "abc", "abc"),
        ({"matches": "^b"}, "abc", {"matches": "^b"}),
        ({"a": {"gt": 1}, "b": 2}, {"b": 3, "a": 5, "c": 6}, {"b": 2, "a": 5}),
        ({"contains": {"a": 1}}, {"a": 2, "b": 3}, {"a": 1, "b": 3}),
        ({"contains": "x"}, "abc", {"contains": "x"}),
        ([1, {"gt": 3}], [1, 5, 9], [1, 5]),
        ([1, 2], [1], [1, 2]),
        ({"equals": {"gt": 1}}, {"gt": 2}, {"gt": 1}),
        ({"a": {"absent": True}}, {}, {}),
        ({"a": {"absent": True}}, {"a": 1}, {"a": {"absent": True}}),
        ({"snapshot": "old"}, {"a": 2}, {"a": 1}),
        ({"x": {"snapshot": "new"}}, {"x": 1}, {}),
        (5, {"a": 1}, 5),
        ({"a": 1}, "text", {"a": 1}),
    ],
)
def test_the_expected_value_is_as_near_to_the_actual_one_as_it_may_be(written: Any, actual: Any, expected: Any) -> None:
    assert expected_value(parse_matcher(written), actual, kept) == expected
