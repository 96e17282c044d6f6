"""What to redact if a conversation differs from its recording."""

from collections.abc import Sequence
from typing import Any

import pytest

from bespeak.conversation.differences import ABSENT
from bespeak.testing.cassettes.cassette_format import Place, StaleCassette
from bespeak.testing.cassettes.redaction_hints import MOST_LISTED, redaction_hint

TEXT = "turns[0].result.content[0].text"
START = "if this value is different every time, list it in redact"


def hint(before: Any, now: Any, path: str = TEXT, places: Sequence[Place] = ()) -> str | None:
    return redaction_hint(StaleCassette("it differs", path, before, now), places)


def patterns(before: str, now: str) -> list[str]:
    """The patterns of a hint; none if it names the place."""
    lines = (hint(before, now) or "").splitlines()
    return [line.partition("pattern: ")[2] for line in lines if "pattern: " in line]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("size: 1\nage: 12 s", "size: 1\nage: 13 s", ["'age: .+'"]),
        ("it's 2.5 a\nb", "it's 2.7 a\nb", ["'it''s .+'"]),
        ("a\n  took [ms] 7", "a\n  took [ms] 8", [r"'took \[ms\] .+'"]),
        ("a\nfrom: 1\nuntil: 2", "a\nfrom: 3\nuntil: 4", ["'from: .+'", "'until: .+'"]),
        ("a\nid-1", "a\nid-2", []),
        ("a\n1 apple", "a\n2 apples", []),
        ("a: 1", "a: 2", []),
        ("one: 1\ntwo: 2", "one: 2\ntwo: 3", []),
        ("a\nsize: 1", "a\nb\nsize: 1", []),
        ("a\ntotal: ", "a\ntotal: 5", []),
        ("a\nin [suiteFolder]/x: 1", "a\nin [suiteFolder]/x: 2", []),
        ("a\nred\x1b: 1", "a\nred\x1b: 2", []),
    ],
    ids=[
        *("a line", "an apostrophe", "special characters", "two lines", "nothing before it", "nothing like it"),
        *("one line", "all lines", "another number of lines", "an empty value", "a placeholder", "a control character"),
    ],
)
def test_lines_that_begin_alike_are_found_by_a_pattern(before: str, now: str, expected: list[str]) -> None:
    assert patterns(before, now) == expected
    assert expected or hint(before, now) == f"{START}: content[0].text, and record again"


@pytest.mark.parametrize("member", ["isError", "resultType"])
def test_what_is_always_recorded_cannot_be_redacted(member: str) -> None:
    assert hint(True, False, f"turns[0].result.{member}") is None
    other = ("turns[0].result.structuredContent.id", 1, 2)
    places = [other, (f"turns[0].result.{member}", True, False)]
    assert hint(1, 2, other[0], places) == f"{START}: structuredContent.id, and record again"


def test_what_is_missing_cannot_be_redacted() -> None:
    assert hint(ABSENT, 1) is None
    assert hint(1, ABSENT) is None


def test_a_place_in_several_turns_is_named_once() -> None:
    places = [(f"turns[{number}].result.content[0].text", "a", "b") for number in range(3)]
    assert hint("a", "b", places[0][0], places) == f"{START}: content[0].text, and record again"


def test_only_some_of_many_places_are_listed() -> None:
    places = [(f"turns[0].result.structuredContent.rows[{number}]", 1, 2) for number in range(MOST_LISTED + 2)]
    lines = (hint(1, 2, places[0][0], places) or "").splitlines()
    assert len(lines) == MOST_LISTED + 3
    assert lines[-1] == "    # and 2 more"
