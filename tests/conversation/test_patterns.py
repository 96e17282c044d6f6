"""Patterns mean what they mean to Python's `re`, and every search for one comes to an end."""

import re
import sys
import time
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.conversation import patterns
from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.conversation.matchers import InvalidMatcher, parse_matcher
from bespeak.conversation.patterns import LARGEST, Expression, InvalidPattern, PatternTimeout
from bespeak.testing.expect.expectations import Telling, judge
from bespeak.testing.suite.suite_file import Expect
from bespeak.transports.interfaces import MissingExtra
from tests.testing.canned import Canned, Hold, asking, form, told
from tests.testing.canned import hold as hold

EVIL = "^(a|a)*$"
BAIT = "a" * 60 + "b"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches are stopped at once, so that tests need not wait for it."""
    monkeypatch.setattr(patterns, "SECONDS", 0.1)
    monkeypatch.setattr(Expression.__init__, "__defaults__", (0.1,))


# As with re

TEXTS = [
    *("", "a", "aaa", "abc", "A-1", "x{e}", "{", "{}", "a{1", "[:alph]", "a]", "é", "²", "í", "\x1c", " "),
    *("\xa0", "ab\ncd", "a b", "٣", "Straße", '{"a": 1}', "0123-45", "a.b@c.de", "(x)", "#", "a#b", "aXb"),
    *("\x1f_", "日本", "a\n", "2026-11-16T12:00:00Z", "550e8400-e29b-41d4-a716-446655440000", "+49 30 1234"),
    *("https://example.com/a?b=c",),
]
PATTERNS = [
    *("^a+$", "a{e}", "(?:a){i<=1}", "[[:alpha:]]", "[[a]", "[]a]", "[^]a]", "[a&&b]", "[a||b]", "[a-]"),
    *(r"[\]\[]", r"\w+", r"^\w+$", r"\W", r"\bi", r"\B", r"b\B", r"\s", r"\S", r"[\s]", r"[^\s]", r"[\W]"),
    *(r"[\w-]+@[\w.]+", r"\d", r"[^\d]", r"[\S]", "a{,2}b", "a{,}", "{", "{}", "a{1", "a{2}", "a{2,}"),
    *("a{1,2}?", "x{2}|a{3}", "a++", "(?>a+)b", r"(?x) a \# b # [ c", "(?x)[ #]a", "(?#[)a", r"(?a)\w"),
    *(r"(?a:\w)\w", r"(?u:\w)", r"(?a)(?u:\w)\w", "(?i)STRASSE|straße", "(?i:A)b", "(?-i:a)", "(?s)b.c"),
    *("(?m)^c", "a$", r"\Aa\Z", r"a\Z", r"\N{DIGIT ONE}", r"[\N{DIGIT ONE}]", "(?P<n>a)(?P=n)"),
    *("(a)?(?(1)b|c)", "(?<=a)b", "(?<!a)b", "(?=a)", "(?!a)", r"\(x\)", r"\u00e9", r"\x1c", r"\U000065e5"),
    *(r"(a)\1", r"[\b]", r"\.", r"\-", r"^[A-Z]{1,3}-\d+$", "^[^@]+@[^@]+$", r"^(?:[a-z]+\.)*[a-z]+$"),
    *(r"^\d{4}-\d{2}-\d{2}T[\d:]+Z$", "^$", "^.*$", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"),
    *(r"^\+?[0-9 ]+$", "^https?://", r"^\S+$", "^(?!.*X).*$", "^"),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_found_where_re_finds_it(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expression, known = Expression(pattern), re.compile(pattern)
    assert [text for text in TEXTS if expression.found_in(text)] == [text for text in TEXTS if known.search(text)]


CLASSES = (r"\w", r"\s", r"\S", r"\d", r"\b", r"[a\W]", "[^a]", "[[]", "(?:a|b)", "|", "(?=a)")
PIECES = st.sampled_from([*r"ab .$^é²", *CLASSES, "{", "{2}", "{,2}", "*", "?"])


@given(st.lists(PIECES, max_size=6).map("".join), st.text("ab {\x1cé²\u0301\n", max_size=8))
def test_any_pattern_of_these_parts_is_found_where_re_finds_it(pattern: str, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            known = re.compile(pattern)
        except re.error:
            with pytest.raises(InvalidPattern):
                Expression(pattern)
            return
        assert Expression(pattern).found_in(text) == (known.search(text) is not None)


@pytest.mark.parametrize(
    "pattern", ["(", r"\p{L}", "a(?i)b", "(?<=a+)b", "[z-a]", "a**", r"(?P<a>x)(?P<a>y)", "(?V1)a", r"\K"]
)
def test_what_re_does_not_read_is_refused_in_its_words(pattern: str) -> None:
    with pytest.raises(re.error) as known:
        re.compile(pattern)
    with pytest.raises(InvalidPattern) as refused:
        Expression(pattern)
    assert str(refused.value) == str(known.value)


LARGE = {
    "repeated": "a{100000000}",
    "repeated over and over": "(?:(?:[ab]{1000}){1000}){1000}",
    "doubled": "(?:" * 50 + "a" + "){1,9}" * 50,
}


@pytest.mark.parametrize("pattern", LARGE.values(), ids=LARGE)
def test_a_pattern_that_would_take_all_memory_is_refused(pattern: str) -> None:
    """The engine writes repetitions out."""
    with pytest.raises(InvalidMatcher, match=f"its repetitions expand to more than {LARGEST:,} parts"):
        parse_matcher({"matches": pattern})


@pytest.mark.parametrize(
    "pattern", ["a{1000}", "(?:ab){0,60000}", "(?:(?:a{10}){10}){10}", "(?:" * 50 + "a" + ")*" * 50]
)
def test_a_pattern_with_many_repetitions_is_read(pattern: str) -> None:
    assert Expression(pattern).found_in("ab" * 1000) == (re.search(pattern, "ab" * 1000) is not None)


def test_without_the_extra_a_pattern_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(MissingExtra, match=r"regular expressions need regex: pip install 'bespeak\[test\]'"):
        parse_matcher({"matches": "a"})


# An end


@pytest.mark.timing
@pytest.mark.parametrize("pattern", ["^(a+)+$", EVIL, "^(a|aa)+$", "^((a)|(a))*$"])
def test_a_search_with_an_evil_pattern_ends_in_time(pattern: str) -> None:
    began = time.perf_counter()
    try:
        assert Expression(pattern, 0.2).found_in(BAIT) is False
    except PatternTimeout as timeout:
        assert timeout.pattern == pattern  # noqa: PT017 - either outcome is right
    assert time.perf_counter() - began < 10


@pytest.mark.timing
@pytest.mark.long
def test_all_searches_for_one_expression_share_their_time() -> None:
    expression = Expression(EVIL, 0.2)
    assert expression.found_in("aaa")
    with pytest.raises(PatternTimeout):
        expression.found_in(BAIT)
    assert expression.seconds <= 0
    with pytest.raises(PatternTimeout):
        expression.found_in("aaa")


STOPPED = f"the search for the pattern '{EVIL}' was stopped after 0.1 s; rewrite it so that it can match a text in only one way"
EVERYWHERE: dict[str, tuple[Any, Any, str]] = {
    "alone": ({"matches": EVIL}, BAIT, "v"),
    "deep": ({"a": [{"matches": EVIL}]}, {"a": [BAIT]}, "v.a[0]"),
    "denied": ({"not": {"matches": EVIL}}, BAIT, "v"),
    "contained": ({"contains": {"matches": EVIL}}, [BAIT, "a"], "v[0]"),
    "one of several": ({"oneOf": [{"matches": EVIL}, BAIT]}, BAIT, "v"),
    "each": ({"each": {"matches": EVIL}}, ["a", BAIT], "v[1]"),
}


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("written", "actual", "path"), EVERYWHERE.values(), ids=EVERYWHERE)
def test_a_search_that_was_stopped_is_a_difference(written: Any, actual: Any, path: str) -> None:
    difference = parse_matcher(written).judge(actual, "v")
    assert difference is not None
    assert (difference.path, difference.message, difference.stopped) == (path, STOPPED, True)


SCHEMAS: dict[str, tuple[Any, Any, str]] = {
    "pattern": ({"pattern": EVIL}, BAIT, "schema.pattern"),
    "deep": ({"properties": {"a": {"items": {"pattern": EVIL}}}}, {"a": [BAIT]}, "schema.properties.a.items.pattern"),
    "denied": ({"not": {"pattern": EVIL}}, BAIT, "schema.not.pattern"),
    "any of": ({"anyOf": [{"pattern": EVIL}, True]}, BAIT, "schema.anyOf[0].pattern"),
    "names": ({"propertyNames": {"pattern": EVIL}}, {BAIT: 1}, "schema.propertyNames.pattern"),
    "pattern properties": ({"patternProperties": {EVIL: True}}, {BAIT: 1}, "schema.patternProperties"),
    "additional": (
        {"additionalProperties": False, "patternProperties": {EVIL: True}},
        {BAIT: 1},
        "schema.patternProperties",
    ),
    "unevaluated": (
        {"unevaluatedProperties": False, "allOf": [{"patternProperties": {EVIL: True}}]},
        {BAIT: 1},
        "schema.allOf[0].patternProperties",
    ),
    "another draft": (
        {"items": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": EVIL}},
        [BAIT],
        "schema.items.pattern",
    ),
    "itself": (
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "items": {"$ref": "#"}, "pattern": EVIL},
        [[BAIT]],
        "schema.pattern",
    ),
}


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("schema", "actual", "where"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_search_for_a_pattern_of_a_schema_is_stopped_too(schema: Any, actual: Any, where: str) -> None:
    difference = parse_matcher({"schema": schema}).judge(actual, "v")
    assert difference is not None
    assert difference.path == "v"
    assert difference.message == STOPPED.replace(f"'{EVIL}'", f"'{EVIL}' at {where}")


# Within a test


@pytest.mark.usefixtures("short")
@pytest.mark.long
async def test_a_search_that_was_stopped_fails_its_test_and_the_next_one_runs(hold: Hold) -> None:
    tests = f"""
  - {{name: a, tool: x, expect: {{text: {{matches: '{EVIL}'}}}}}}
  - {{name: b, tool: x, expect: {{structuredContent: {{schema: {{properties: {{a: {{pattern: '{EVIL}'}}}}}}}}}}}}
  - {{name: c, tool: x, expect: {{text: {{matches: 'b$'}}}}}}
"""
    results = await hold(Canned(told(BAIT, structuredContent={"a": BAIT})), tests)
    assert [[failure.message for failure in result.failures] for result in results] == [
        [f"text: {STOPPED}"],
        [f"structuredContent: {STOPPED}".replace(f"'{EVIL}'", f"'{EVIL}' at schema.properties.a.pattern")],
        [],
    ]


ASKED = {
    "a rule": (
        f"inputResponses: [{{when: {{message: {{matches: '{EVIL}'}}}}, answer: x}}, {{otherwise: decline}}]",
        f"the rule [0] of the answers, when.message: {STOPPED}",
    ),
    "a round": (
        f"rounds: [{{expect: {{messages: {{city: {{matches: '{EVIL}'}}}}}}, answer: {{city: decline}}}}]",
        f"round 1, messages of 'city': {STOPPED}",
    ),
}


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("written", "message"), ASKED.values(), ids=ASKED)
async def test_a_search_that_was_stopped_fails_a_rule_and_a_round(hold: Hold, written: str, message: str) -> None:
    (result,) = await hold(Canned(asking(city=form(BAIT)), told("x")), f"  - {{name: a, tool: x, {written}}}")
    assert [failure.message for failure in result.failures] == [message]


def test_a_judgement_hides_what_a_stopped_search_would_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Expression.__init__, "__defaults__", (0.1,))
    expect = Expect.model_validate({"text": {"matches": f"{EVIL}|hunter2"}})
    envelope = {"result": {"content": [{"type": "text", "text": BAIT}]}}

    def hide(value: Any) -> Any:
        return value.replace("hunter2", "?") if isinstance(value, str) else {"matches": f"{EVIL}|?"}

    (failure,) = judge(expect, envelope, rounds=0, asked=[], notifications=[], snapshots=None, telling=Telling(hide))
    assert failure.message.startswith(f"text: the search for the pattern '{EVIL}|?' was stopped")


def test_a_fixture_reads_its_patterns_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="matches needs a regular expression: "):
        InputResponseFixture([{"when": {"message": {"matches": "("}}, "answer": 1}])
