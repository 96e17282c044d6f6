"""Expectations of a suite: a plain value is deep equality, operators say less, and the first differing path is named."""

import json
import re
import sys
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.conversation.matchers import (
    ABSENT,
    LONGEST_SEARCHED,
    Difference,
    InvalidMatcher,
    Operator,
    equal_to,
    join,
    parse_matcher,
)
from bespeak.testing.value_paths import EVERY, parse_path
from bespeak.transports.interfaces import MissingExtra


def check(written: Any, actual: Any) -> Difference | None:
    return parse_matcher(written).check(actual)


def differs(written: Any, actual: Any) -> Difference:
    difference = check(written, actual)
    assert difference is not None, f"{written!r} held for {actual!r}"
    return difference


def refused(written: Any) -> InvalidMatcher:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is what the tests look at
        parse_matcher(written)
    assert isinstance(caught.value, InvalidMatcher)
    return caught.value


# Equality


@pytest.mark.parametrize(
    ("written", "actual"),
    [
        (True, 1),
        (1, True),
        (False, 0),
        (1, "1"),
        (None, False),
        ([], {}),
        ("a", ["a"]),
        ([True], [1]),
        (2**53 + 1, float(2**53)),
        ("é", "e\u0301"),
    ],
)
def test_a_plain_value_does_not_hold_for_anything_else(written: Any, actual: Any) -> None:
    assert check(written, actual) is not None


@pytest.mark.parametrize(
    ("written", "actual", "path", "expected", "found"),
    [
        (1, 2, "", 1, 2),
        ({"a": 1}, [1], "", {"a": 1}, [1]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b", 1, 2),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "a[1].b", 2, 3),
        ({"a": 1, "b": 2}, {"a": 1}, "b", 2, ABSENT),
        ({"a": 1}, {"a": 1, "b": 2}, "b", ABSENT, 2),
        ({}, {"a": None}, "a", ABSENT, None),
        ({"a": None}, {}, "a", None, ABSENT),
        ([1, 2], [1], "[1]", 2, ABSENT),
        ([1], [1, 2, 3], "[1]", ABSENT, 2),
        ({"a": 1, "b": 2, "c": 3}, {"c": 0, "b": 0, "a": 1}, "b", 2, 0),
        ({"odd key": [1]}, {"odd key": [2]}, '["odd key"][0]', 1, 2),
        ({"a": {'"': 1}}, {"a": {'"': 2}}, r'a["\""]', 1, 2),
        ({"": 1}, {"": 2}, '[""]', 1, 2),
        ({"a\u202eb": 1}, {"a\u202eb": 2}, r'["a\u202eb"]', 1, 2),
    ],
)
def test_the_first_difference_is_named_by_its_path(
    written: Any, actual: Any, path: str, expected: Any, found: Any
) -> None:
    difference = differs(written, actual)
    assert (difference.path, difference.expected, difference.actual) == (path, expected, found)


def test_a_path_begins_where_the_caller_says() -> None:
    difference = parse_matcher({"a": [1]}).check({"a": [2]}, "structuredContent")
    assert difference is not None
    assert difference.path == "structuredContent.a[0]"


@pytest.mark.parametrize(
    ("written", "actual", "said"),
    [
        (1, 2, "expected 1, got 2"),
        ("a", None, 'expected "a", got null'),
        ("a", "a" * 500, 'expected "a", got "aaa'),
        ({"a": 1}, 1, "expected a map, got 1"),
        ([1], "x", 'expected a list, got "x"'),
        ({"a": 1}, {}, "is missing"),
        ({}, {"a": 1}, "was not expected"),
        ([1], [1, 2], "was not expected; the list should have 1 entry, but has 2"),
        ([1, 2], [1, 2, 3], "was not expected; the list should have 2 entries, but has 3"),
        ([], [1, 2], "was not expected; the list should be empty, but has 2"),
        ({"contains": "b"}, "ac", 'does not contain "b": "ac"'),
        ({"contains": ["a", "b"]}, ["a", "c"], 'does not contain "b": ["a", "c"]'),
        ({"contains": ["a"]}, {"a": 1}, 'is a map, which cannot contain "a"; name its members'),
        ({"contains": 1}, "ac", "is a string, which cannot contain 1"),
        ({"contains": 1}, {"a": 1}, "is a map, which cannot contain 1; name its members"),
        ({"contains": 1}, True, "is a boolean, but contains needs a string, a list or a map"),
        ({"matches": "^b"}, "ab", 'does not match "^b": "ab"'),
        ({"matches": "1"}, 1, "is a number, but matches needs a string"),
        ({"oneOf": [1, 2]}, 3, "matches none of the 2 options of oneOf: 3"),
        ({"not": 1}, 1, "must not match, but does: 1"),
        ({"absent": True}, 1, "should be absent: 1"),
        ({"gt": 1}, 1, "must be greater than 1, but is 1"),
        ({"lt": 1}, 1, "must be less than 1, but is 1"),
        ({"gt": 1}, "2", "is a string, but gt needs a number"),
        ({"lt": 2}, True, "is a boolean, but lt needs a number"),
        ({"length": 1}, "", "should have 1 character, but has 0"),
        ({"length": 3}, [1, 2, 3, 4], "should have 3 entries, but has 4"),
        ({"length": 0}, {"a": 1}, "should have no members, but has 1"),
        ({"length": {"gt": 2}}, [1], "the number of entries must be greater than 2, but is 1"),
        ({"length": 1}, 1, "is a number, which has no length"),
        ({"each": 1}, {"a": 1}, "is a map, but each needs a list"),
        ({"schema": {"type": "string"}}, 5, "does not fit the schema: 5 is not of type 'string'"),
        (
            {"schema": {"$ref": "https://example.com/x"}},
            5,
            'refers to "https://example.com/x", which it does not contain',
        ),
        ({"schema": {"$ref": "#"}}, 5, "the schema refers to itself endlessly"),
        ({"snapshot": "x"}, 5, "snapshots cannot be used here; write the expected value"),
    ],
)
def test_a_difference_says_what_was_expected_and_what_is_there(written: Any, actual: Any, said: str) -> None:
    message = differs(written, actual).message
    assert said in message
    assert len(message) < 300


# Operators


OPERATORS: list[tuple[Any, list[Any], list[Any]]] = [
    ({"equals": {"gt": 1}}, [{"gt": 1}, {"gt": 1.0}], [2, {"gt": 2}, {}]),
    ({"equals": [{"not": 1}]}, [[{"not": 1}]], [[2]]),
    ({"contains": "b"}, ["abc", ["b"], ["a", "b"]], ["", "B", [], [["b"]], {"b": 1}, None, 5]),
    ({"contains": {"gt": 2}}, [[1, 3]], [[1], "3", {"gt": 2}]),
    ({"contains": {"a": 1}}, [{"a": 1}, {"a": 1, "b": 2}, [{"a": 1}]], [{"a": 2}, {}, [{"a": 1, "b": 2}], "a"]),
    ({"contains": {"a": {"matches": "x"}}}, [{"a": "x", "b": 1}], [{"a": "y"}]),
    ({"contains": {"a": {"absent": True}}}, [{}, {"b": 1}], [{"a": None}]),
    (
        {"contains": ["a", "b"]},
        [["b", "x", "a"], ["a", "b"], "xbyaz"],
        [["a"], [["a", "b"]], [], "a", {"a": 1, "b": 1}],
    ),
    ({"contains": ["a", "a"]}, [["a"]], [["b"]]),
    ({"contains": [{"gt": 2}, {"contains": {"a": 1}}]}, [[{"a": 1, "b": 2}, 3]], [[3], [{"a": 1}]]),
    ({"contains": [["a", "b"]]}, [[["a", "b"], 1]], [["a", "b"], [["b", "a"]]]),
    ({"contains": {"equals": ["a", "b"]}}, [[["a", "b"], 1]], [["a", "b"]]),
    ({"contains": [{"equals": {"gt": 2}}]}, [[{"gt": 2}], {"gt": 2, "x": 1}], [[3]]),
    ({"contains": {}}, [{}, {"a": 1}, [{}]], [[], ""]),
    ({"contains": {"equals": {"gt": 2}}}, [{"gt": 2, "x": 1}, [{"gt": 2}]], [[3], {"gt": 3}]),
    ({"contains": {"equals": "a"}}, ["cab", ["a"]], ["b"]),
    ({"contains": {"contains": {"a": 1}}}, [[{"a": 1, "b": 2}]], [[{"a": 2}], [1]]),
    ({"matches": "b+"}, ["abbc"], ["ac", 5, None, ["b"]]),
    ({"matches": "(?i)^CITY$"}, ["city"], ["a city"]),
    ({"schema": {"type": "integer"}}, [5, 5.0], [True, "5", 5.5]),
    ({"schema": {"const": 1}}, [1], [True]),
    ({"schema": {"$defs": {"a": {"type": "null"}}, "$ref": "#/$defs/a"}}, [None], [0]),
    ({"schema": {"prefixItems": [{"type": "string"}]}}, [["a"], []], [[1]]),
    ({"oneOf": [1, {"gt": 5}, "x"]}, [1, 6, "x"], [2, True, "y"]),
    ({"oneOf": [{"absent": True}, 1]}, [ABSENT, 1], [2, None]),
    ({"not": 1}, [2, True, None], [1, 1.0, ABSENT]),
    ({"not": {"contains": "x"}}, ["a", 5], ["ax", ABSENT]),
    ({"not": {"not": 1}}, [1], [2, ABSENT]),
    ({"not": {"present": True}}, [ABSENT], [None, 1]),
    ({"not": {"absent": True}}, [None, 1], [ABSENT]),
    ({"absent": True}, [ABSENT], [None, False, "", 0]),
    ({"present": True}, [None, False, "", 0, {}], [ABSENT]),
    ({"gt": 1}, [2, 1.5, 2**70], [1, 0, True, "2", None, ABSENT]),
    ({"lt": 1}, [0, -1.5], [1, 2, False, "0", None]),
    ({"lte": 1}, [1, 1.0, 0], [1.1, False]),
    ({"gt": 1, "lt": 3}, [2], [1, 3]),
    ({"present": True, "gt": 1}, [2], [1, ABSENT]),
    ({"absent": True, "gt": 1}, [], [2, ABSENT]),
    ({"length": 2}, ["ab", [1, 2], {"a": 1, "b": 2}], ["a", 2, None, True]),
    ({"length": {"gte": 1, "lt": 3}}, ["a", "ab"], ["", "abc"]),
    ({"length": {"oneOf": [1, 3]}}, ["a", "abc"], ["ab"]),
    ({"each": {"gt": 1}}, [[], [2, 3]], [[1], [2, 1], {"a": 2}, 2]),
    ({"each": {"a": {"present": True}}}, [[{"a": None}]], [[{}], [{"a": 1, "b": 2}]]),
    ({"a": {"absent": True}}, [{}], [{"a": 1}, {"b": 1}, ABSENT]),
    ([{"absent": True}], [[]], [[1]]),
]


@pytest.mark.parametrize(("written", "holds", "fails"), OPERATORS)
def test_an_operator_holds_for_what_it_says_only(written: Any, holds: list[Any], fails: list[Any]) -> None:
    assert [actual for actual in holds if check(written, actual)] == []
    assert [actual for actual in fails if check(written, actual) is None] == []


@pytest.mark.parametrize(
    ("written", "actual", "path"),
    [
        ({"each": {"gt": 1}}, [2, 3, 1, 0], "[2]"),
        ({"a": {"each": {"b": {"matches": "x"}}}}, {"a": [{"b": "x"}, {"b": "y"}]}, "a[1].b"),
        ({"contains": {"a": {"b": 1}}}, {"a": {"b": 2}, "c": 3}, "a.b"),
        ({"a": {"oneOf": [{"b": 1}]}}, {"a": {"b": 2}}, "a"),
        ({"a": {"length": 3}}, {"a": "x"}, "a"),
        ({"a": {"equals": {"gt": [1]}}}, {"a": {"gt": [2]}}, "a.gt[0]"),
        (
            {"a": {"schema": {"properties": {"b c": {"items": {"type": "null"}}}}}},
            {"a": {"b c": [None, 5]}},
            'a["b c"][1]',
        ),
        ({"a": {"gt": 1, "lt": 3}}, {"a": 4}, "a"),
    ],
)
def test_an_operator_names_the_first_place_where_it_fails(written: Any, actual: Any, path: str) -> None:
    assert differs(written, actual).path == path


def test_matches_looks_at_the_first_mebibyte_only() -> None:
    assert LONGEST_SEARCHED == 1024 * 1024
    assert check({"matches": "b$"}, "a" * (LONGEST_SEARCHED - 1) + "b" + "a" * 10) is None
    assert check({"matches": "b"}, "a" * LONGEST_SEARCHED + "b") is not None


# What cannot be written


@pytest.mark.parametrize(
    ("written", "said", "steps"),
    [
        ({"gt": 1, "name": 2}, 'gt is an operator and "name" is not; write {equals: {...}} to compare', ("name",)),
        ({"a": [{"x": 1, "length": 2}]}, "to compare with a map that has such keys", ("a", 0, "x")),
        ({"a": {"matches": "("}}, "matches needs a regular expression: missing )", ("a", "matches")),
        ({"matches": 5}, "matches needs a regular expression, written as a string", ("matches",)),
        ({"schema": {"type": "text"}}, "schema.type is not a valid JSON Schema: 'text' is not valid", ("schema",)),
        ({"schema": {"pattern": "("}}, "schema.pattern is not a valid JSON Schema", ("schema",)),
        ({"oneOf": []}, "oneOf needs a list of possible values", ("oneOf",)),
        ({"oneOf": [1, {"gt": "x"}]}, "gt needs a number", ("oneOf", 1, "gt")),
        ({"absent": False}, "write {absent: true}, or {present: true} for the opposite", ("absent",)),
        ({"present": False}, "write {present: true}, or {absent: true} for the opposite", ("present",)),
        ({"gt": "1"}, "gt needs a number", ("gt",)),
        ({"lte": float("nan")}, "lte needs a number", ("lte",)),
        ({"length": "2"}, "length needs a whole number or a matcher such as {gt: 2}", ("length",)),
        ({"length": -1}, "length needs a whole number", ("length",)),
        ({"length": True}, "length needs a whole number", ("length",)),
        ({"length": {"a": 1}}, "length needs a whole number", ("length",)),
        ({"snapshot": ""}, "snapshot needs a name", ("snapshot",)),
        ({1: 2}, "the key 1 must be a string; quote it", ()),
        ({"equals": {True: 2}}, "the key true must be a string; quote it", ("equals",)),
        ({"a": (1, 2)}, "must be a JSON value, not tuple", ("a",)),
        ([float("inf")], "inf cannot be written as JSON", (0,)),
        ({"contains": []}, "contains: [] accepts everything; name what must be contained", ("contains",)),
        ({"contains": [1, {"gt": "x"}]}, "gt needs a number", ("contains", 1, "gt")),
        ({"not": {"each": {"contains": {"gt": []}}}}, "gt needs a number", ("not", "each", "contains", "gt")),
    ],
)
def test_an_invalid_matcher_is_rejected_with_its_place(written: Any, said: str, steps: tuple[str | int, ...]) -> None:
    error = refused(written)
    assert said in str(error)
    assert error.steps == steps


def test_without_the_extra_a_schema_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(MissingExtra, match=r"pip install 'bespeak\[test\]'"):
        parse_matcher({"schema": {}})


@given(st.text())
@example("[[a]")
@example("(?P<a>x)(?P<a>y)")
@example("a{99999999999999999999}")
def test_any_expression_is_compiled_or_refused_with_a_sentence(text: str) -> None:
    try:
        parse_matcher({"matches": text})
    except InvalidMatcher as error:
        refusal = str(error)
    else:
        refusal = "matches needs a regular expression: "
    assert refusal.startswith("matches needs a regular expression: ")


# Snapshots


@dataclass
class Kept:
    """Snapshots that differ from everything in one place."""

    difference: Difference | None
    seen: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])

    def check(self, name: str, actual: Any, path: str) -> Difference | None:
        self.seen.append((name, actual))
        return self.difference


def test_a_snapshot_is_compared_by_who_keeps_them() -> None:
    kept = Kept(None)
    assert parse_matcher({"a": [{"snapshot": "forecast"}]}).check({"a": [5]}, "", kept) is None
    assert kept.seen == [("forecast", 5)]


@pytest.mark.parametrize(
    ("path", "inner", "whole"),
    [("", "", ""), ("", "b.c", "b.c"), ("a", "", "a"), ("a", "b[0]", "a.b[0]"), ("a", "[0].b", "a[0].b")],
)
def test_the_path_of_a_snapshot_goes_on_from_where_it_stands(path: str, inner: str, whole: str) -> None:
    kept = Kept(Difference(inner, "differs", 1, 2))
    assert parse_matcher({"snapshot": "x"}).check(5, path, kept) == Difference(whole, "differs", 1, 2)


# Whatever the value

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
KEYS = st.text(max_size=5) | st.sampled_from([operator.value for operator in Operator])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20)


@given(VALUES)
def test_equals_of_any_value_holds_for_that_value(value: Any) -> None:
    assert check({"equals": value}, value) is None
    assert equal_to(value).check(json.loads(json.dumps(value))) is None


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("ABC"), inner)))
def test_a_value_without_operators_is_equal_to_itself(value: Any) -> None:
    assert check(value, value) is None
    assert check({"not": value}, value) is not None


@given(VALUES, VALUES | st.just(ABSENT))
@example({"matches": "(?<\u202e"}, "")
def test_any_value_is_a_matcher_for_any_other_or_is_refused(written: Any, actual: Any) -> None:
    try:
        matcher = parse_matcher(written)
    except InvalidMatcher as error:
        said = str(error)
    else:
        assert matcher.written == written
        difference = matcher.check(actual)
        said = "" if difference is None else difference.message
    assert said.isprintable()


def at(value: Any, path: str) -> Any:
    """What lies at a path; `ABSENT` if nothing does."""
    for step in parse_path(path) if path else ():
        assert step is not EVERY
        if isinstance(step, int):
            entries = cast("list[Any]", value)
            value = entries[step] if step < len(entries) else ABSENT
        else:
            value = cast("dict[Any, Any]", value).get(step, ABSENT)
    return value


FEW = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, "", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b c", "gt", "*", '"']), inner),
    max_leaves=8,
)
"""Values of few kinds, so that two of them often have much in common."""


@given(FEW, FEW)
@example({"a": [1, {"b c": True}]}, {"a": [1, {"b c": 1}]})
@example([0], [False])
def test_the_first_differing_path_leads_to_a_difference(expected: Any, actual: Any) -> None:
    difference = equal_to(expected).check(actual)
    if difference is None:
        assert expected == actual
        return
    assert at(expected, difference.path) is difference.expected
    assert at(actual, difference.path) is difference.actual
    if difference.expected is not ABSENT:
        assert equal_to(difference.expected).check(difference.actual) is not None
    else:
        assert difference.actual is not ABSENT


@given(st.lists(st.text() | st.integers(0, 99), min_size=1))
def test_a_path_that_is_written_is_read_back(steps: list[str | int]) -> None:
    path = ""
    for step in steps:
        path = join(path, step)
    assert parse_path(path) == tuple(steps)
    assert path.isprintable()
    assert not re.search(r"^\.|\.\.", re.sub(r'"(?:[^"\\]|\\.)*"', '""', path))
