"""How two values are shown in one message."""

import pytest

from bespeak.conversation.differences import LONGEST_SHOWN, both_shown, shown

LONG = " ".join(f"word{number}" for number in range(30))


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (f"{LONG} one {LONG}", f"{LONG} two {LONG}"),
        (f"{LONG} one", f"{LONG} one more"),
        (f"{LONG}\nline one", f"{LONG}\nline two"),
        (LONG + '"' * 50 + "one", LONG + '"' * 50 + "two"),
        ('{"a":"' + '1","b":"' * 20 + 'one"}', '{"a":"' + '1","b":"' * 20 + 'two"}'),
    ],
    ids=["in the middle", "at the end", "lines", "quotes", "JSON"],
)
def test_long_texts_are_shown_around_their_first_difference(expected: str, actual: str) -> None:
    told = both_shown(expected, actual)
    assert told[0] != told[1]
    for text in told:
        assert text.startswith('"...')
        assert len(text) <= LONGEST_SHOWN + len("...")


def test_the_cut_is_at_the_end_of_a_word() -> None:
    told = both_shown(f"{LONG} the end is one", f"{LONG} the end is two")
    assert told == (
        '"...word26 word27 word28 word29 the end is one"',
        '"...word26 word27 word28 word29 the end is two"',
    )


def test_nothing_is_cut_in_the_middle_of_a_word() -> None:
    token = "c2VjcmV0" * 20
    assert both_shown(f"{token}a", f"{token}b") == (shown(f"{token}a"), shown(f"{token}b"))


@pytest.mark.parametrize(
    ("expected", "actual"),
    [("short one", "short two"), (f"one {LONG}", f"two {LONG}"), (LONG, 1), (None, LONG), ([LONG, 1], [LONG, 2])],
    ids=["short texts", "texts that differ at their beginning", "a number", "null", "lists"],
)
def test_other_values_are_shown_from_their_beginning(expected: object, actual: object) -> None:
    assert both_shown(expected, actual) == (shown(expected), shown(actual))
