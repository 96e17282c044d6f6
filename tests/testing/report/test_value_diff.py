"""The diff of an expected and an actual value: lines of YAML, only where they differ, and never much."""

from typing import Any

import pytest

from bespeak.conversation.differences import ABSENT
from bespeak.testing.report.value_diff import LONGEST_LINE, MOST_LINES, value_diff
from bespeak.testing.report.yaml_lines import DEEPEST, yaml_lines

DAYS = [{"day": number, "sky": "sunny"} for number in range(5)]


def test_a_diff_shows_the_lines_that_differ_with_three_around_them() -> None:
    other = [*DAYS[:3], {"day": 3, "sky": "rain"}, DAYS[4]]
    assert value_diff({"days": DAYS}, {"days": other}) == (
        "--- expected",
        "+++ actual",
        "@@ -6,6 +6,6 @@",
        "   - day: 2",
        '     sky: "sunny"',
        "   - day: 3",
        '-    sky: "sunny"',
        '+    sky: "rain"',
        "   - day: 4",
        '     sky: "sunny"',
    )


def test_texts_are_compared_line_by_line() -> None:
    assert value_diff("a\nb\nc", "a\nx\nc")[3:] == (" a", "-b", "+x", " c")


@pytest.mark.parametrize(
    ("expected", "actual"), [(DAYS, DAYS), ("a", "b"), (1, 2), (ABSENT, DAYS), (DAYS, ABSENT), ({"a": 1}, {"a": 2})]
)
def test_equal_values_missing_values_and_single_lines_have_no_diff(expected: Any, actual: Any) -> None:
    assert value_diff(expected, actual) == ()


def test_a_long_diff_is_cut() -> None:
    lines = value_diff([f"a{number}" for number in range(1000)], [f"b{number}" for number in range(1000)])
    assert len(lines) == MOST_LINES + 1
    assert lines[-1].startswith("... (")


@pytest.mark.long
def test_a_difference_far_from_the_beginning_is_found() -> None:
    before = [str(number) for number in range(100_000)]
    assert value_diff([*before, "a"], [*before, "b"])[-2:] == ('-- "a"', '+- "b"')


def test_long_lines_are_shown_around_their_difference() -> None:
    lines = value_diff(["x" * 1000 + "a" + "y" * 1000, 1], ["x" * 1000 + "b" + "y" * 1000, 1])
    changed = lines[3:5]
    assert [len(line) <= LONGEST_LINE + 7 for line in changed] == [True, True]
    assert ["a" in changed[0], "b" in changed[1]] == [True, True]


def test_a_long_line_that_replaces_nothing_is_cut_at_its_end() -> None:
    assert value_diff([1, 2], [1, 2, "z" * 500])[-1].endswith("z...")


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ({}, ["{}"]),
        ([], ["[]"]),
        (None, ["null"]),
        ({"a": {"b": [1, {"c": 2}]}}, ["a:", "  b:", "    - 1", "    - c: 2"]),
        ({"a-b": "x", "odd key": ""}, ['a-b: "x"', '"odd key": ""']),
        ({"text": "one\ntwo"}, ["text: |", "  one", "  two"]),
        (["one\ntwo"], ["- |", "    one", "    two"]),
        ([[1], []], ["- - 1", "- []"]),
        ({"a": ABSENT}, []),
    ],
)
def test_values_are_written_as_yaml(value: Any, lines: list[str]) -> None:
    assert list(yaml_lines(value)) == lines


def test_what_is_nested_deeply_is_cut() -> None:
    value: Any = 1
    for _ in range(DEEPEST + 5):
        value = [value]
    assert next(yaml_lines(value)).endswith("...")
