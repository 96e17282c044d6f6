"""The order of `asked`: rounds have one, the questions of a round do not."""

import pytest

from bespeak.conversation.question_names import SpelledKey
from bespeak.testing.expect.asked_order import in_expected_order

ASKED = [SpelledKey(key) for key in ("units~0000aaaa", "city", "when")]


@pytest.mark.parametrize(
    ("sizes", "expected", "told"),
    [
        ([2, 1], ["city", "units", "when"], ["city", "units", "when"]),
        ([2, 1], ["city", "units~0000aaaa", "when"], ["city", "units", "when"]),
        ([1, 1, 1], ["city", "units", "when"], ["units", "city", "when"]),
        ([2, 1], ["city", "town", "when"], ["units", "city", "when"]),
        ([2, 1], ["city", "units"], ["units", "city", "when"]),
        ([2], ["city", "units", "when"], ["units", "city", "when"]),
        ([2, 1], {"contains": "city"}, ["units", "city", "when"]),
        ([2, 1], None, ["units", "city", "when"]),
    ],
)
def test_the_names_of_a_round_are_put_in_the_expected_order(
    sizes: list[int], expected: object, told: list[str]
) -> None:
    assert in_expected_order(ASKED, sizes, expected) == told
