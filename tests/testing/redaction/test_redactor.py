"""Redaction: declared paths become `[redacted]`, and the value of a secret turns up nowhere, neither in texts nor in keys."""

import copy
import json
from typing import Any, cast
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.conversation.matchers import ABSENT
from bespeak.testing.redaction.redactor import REDACTED, Redactor

# Paths


# Declared places


@pytest.mark.parametrize(
    ("path", "value", "redacted"),
    [
        ("a", {"a": 1, "b": 2}, {"a": REDACTED, "b": 2}),
        ("a", {"a": {"b": [1]}}, {"a": REDACTED}),
        ("a", {"a": None}, {"a": REDACTED}),
        ("a.b[0].c", {"a": {"b": [{"c": 1, "d": 2}, {"c": 3}]}}, {"a": {"b": [{"c": REDACTED, "d": 2}, {"c": 3}]}}),
        ("items[*].id", {"items": [{"id": 1}, {"id": 2}, 3]}, {"items": [{"id": REDACTED}, {"id": REDACTED}, 3]}),
        ("items.*.id", {"items": [{"id": 1}]}, {"items": [{"id": REDACTED}]}),
        ("items[*].id", {"items": {"x": {"id": 1}}}, {"items": {"x": {"id": REDACTED}}}),
        ("*.token", {"a": {"token": 1}, "token": 2}, {"a": {"token": REDACTED}, "token": 2}),
        ("*", [1, [2]], [REDACTED, REDACTED]),
        ("[1]", [1, 2], [1, REDACTED]),
        ("[0]", {"0": 1}, {"0": 1}),
        ('["0"]', ["a"], ["a"]),
        ("[0]", "text", "text"),
        ("a.b", {"a": "b"}, {"a": "b"}),
        ("a[5]", {"a": [1]}, {"a": [1]}),
        ("missing", {"a": 1}, {"a": 1}),
        ('["*"]', {"*": 1, "a": 2}, {"*": REDACTED, "a": 2}),
    ],
)
def test_what_lies_at_a_declared_path_is_redacted(path: str, value: Any, redacted: Any) -> None:
    assert Redactor([path], {}).apply(value) == redacted


def test_paths_are_independent_of_each_other() -> None:
    value = {"a": {"b": 1, "c": 2}, "d": 3}
    assert Redactor(["a.b", "*.c", "a.x.y"], {}).apply(value) == {"a": {"b": REDACTED, "c": REDACTED}, "d": 3}
    assert Redactor(["a.b", "a"], {}).apply(value) == {"a": REDACTED, "d": 3}


@pytest.mark.parametrize("member", ["inputRequests", "inputResponses"])
@pytest.mark.parametrize("path", ["pay.said", '["pay~1a2b3c4d"].said', "*.said"])
def test_a_path_leads_to_a_question_by_its_name_or_by_its_whole_key(member: str, path: str) -> None:
    value = {member: {"pay~1a2b3c4d": {"said": 1, "more": 2}}, "result": {"pay~1a2b3c4d": {"said": 3}}}
    between = "" if path.startswith("[") else "."
    told = Redactor([f"{member}{between}{path}"], {"KEY": "more"}).apply(value)
    assert told == {member: {"pay~1a2b3c4d": {"said": REDACTED, "${env:KEY}": 2}}, "result": value["result"]}


def test_only_questions_are_reached_by_a_name() -> None:
    value = {"result": {"pay~1a2b3c4d": 1}, "inputResponses": {"x": {"pay~1a2b3c4d": 2}, "pay": 3}}
    redaction = Redactor(["result.pay", "inputResponses.x.pay", 'inputResponses["pay~1a2b3c4d"]'], {})
    assert redaction.apply(value) == value


@pytest.mark.parametrize("path", ["inputResponses", "*"])
def test_all_questions_can_be_redacted_at_once(path: str) -> None:
    assert Redactor([path], {}).apply({"inputResponses": {"pay": 3}}) == {"inputResponses": REDACTED}


def test_a_declared_path_is_found_by_the_key_as_it_was_sent() -> None:
    redaction = Redactor(['["s3cret"]'], {"KEY": "s3cret"})
    assert redaction.apply({"s3cret": 1}) == {"${env:KEY}": REDACTED}


def test_what_is_redacted_is_a_copy() -> None:
    value = {"a": [{"b": "s3cret"}], "c": [1]}
    before = copy.deepcopy(value)
    redacted = Redactor(["c[0]"], {"KEY": "s3cret"}).apply(value)
    assert value == before
    assert redacted == {"a": [{"b": "${env:KEY}"}], "c": [REDACTED]}


# Secrets


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        ({"KEY": "s3cret"}, "Bearer s3cret.", "Bearer ${env:KEY}."),
        ({"KEY": "s3cret"}, "s3crets3cret", "${env:KEY}${env:KEY}"),
        ({"KEY": "s3cret"}, "S3CRET", "S3CRET"),
        ({"KEY": ""}, "text", "text"),
        ({}, "text", "text"),
        ({"A": "abc", "B": "abcdef"}, "abcdef abc", "${env:B} ${env:A}"),
        ({"A": "xab", "B": "abcdef"}, "xabcdef", "x${env:B}"),
        ({"B": "same", "A": "same"}, "same", "${env:A}"),
        ({"A": "s3cret", "B": "env"}, "s3cret env", "${env:A} ${env:B}"),
        ({"A": "s3cret", "B": "A", "C": "$"}, "s3cret A $", "${env:A} ${env:B} ${env:C}"),
        ({"A": "(.*)"}, "a(.*)b", "a${env:A}b"),
        ({"A": "\\1"}, "a\\1b", "a${env:A}b"),
        ({"A": "two\nlines"}, "two\nlines", "${env:A}"),
    ],
)
def test_the_value_of_a_secret_gives_way_to_its_name(secrets: dict[str, str], text: str, shown: str) -> None:
    assert Redactor((), secrets).text(text) == shown
    assert Redactor((), secrets).apply({"a": [text], text: 1}) == {"a": [shown], shown: 1}


@pytest.mark.parametrize("value", [None, True, 5, 1.5, [], {}, ABSENT])
def test_what_is_not_a_text_stays_as_it_is(value: Any) -> None:
    assert Redactor((), {"A": "5"}).apply(value) == value


@pytest.mark.parametrize("secret", ['a"b', "a\\b", "pass wörd", "a/b?c=d&e", "two\nlines", "\U0001f600", "a+b"])
def test_a_secret_is_found_in_json_and_urls_inside_of_a_text(secret: str) -> None:
    redaction = Redactor((), {"KEY": secret})
    assert redaction.text(json.dumps({"a": secret})) == '{"a": "${env:KEY}"}'
    assert redaction.text(json.dumps({"a": secret}, ensure_ascii=False)) == '{"a": "${env:KEY}"}'
    assert redaction.text(f"http://host/?key={quote(secret, safe='')}&x=1") == "http://host/?key=${env:KEY}&x=1"
    assert redaction.text(json.dumps(secret)) == '"${env:KEY}"'


def test_a_secret_that_is_not_unicode_is_hidden_too() -> None:
    """The environment may hold any bytes, and Python has a way to keep them in a text."""
    assert Redactor((), {"KEY": "a\udcff"}).text("xa\udcffx?") == "x${env:KEY}x?"


def test_a_redaction_does_not_show_its_secrets() -> None:
    assert "s3cret" not in repr(Redactor(["a"], {"KEY": "s3cret"}))


# Whatever the value

# Of letters that neither `${env:NAME}` nor `[redacted]` has: a secret that is a part of those is there by right.
SECRET = st.text('xyz/ é"\\\n', min_size=1, max_size=4)
SECRETS = st.dictionaries(st.sampled_from("ABCDEF"), SECRET | st.just(""))
TEXT = st.text('xyz/ é"\\\nq', max_size=12)
LEAVES = st.none() | st.booleans() | st.integers() | TEXT
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=15)


def texts(value: Any) -> list[str]:
    """All texts in a value, keys included."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return [*members, *texts(list(members.values()))]
    if isinstance(value, list):
        return [text for entry in cast("list[Any]", value) for text in texts(entry)]
    return [value] if isinstance(value, str) else []


@given(VALUES, SECRETS)
@example("xyxyx", {"A": "xyx", "B": "yx"})
@example({"x y": ["y x"]}, {"A": "x", "B": "y", "C": " "})
def test_no_secret_is_left_anywhere(value: Any, secrets: dict[str, str]) -> None:
    left = texts(Redactor((), secrets).apply(value))
    assert [text for text in left for secret in secrets.values() if secret and secret in text] == []


@given(VALUES, SECRETS)
def test_redacting_twice_changes_nothing_more(value: Any, secrets: dict[str, str]) -> None:
    redaction = Redactor(["*.x", "[0]"], secrets)
    once = redaction.apply(value)
    assert redaction.apply(once) == once


@given(st.text(), SECRETS)
def test_a_text_without_secrets_stays_the_same(text: str, secrets: dict[str, str]) -> None:
    redaction = Redactor((), secrets)
    if not any(secret and secret in text for secret in secrets.values()) and not set(text) & set("%+\\"):
        assert redaction.text(text) == text
