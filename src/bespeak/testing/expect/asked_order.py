"""The order of questions in `asked`: the rounds are in order, but the questions of one round may come in any."""

from collections.abc import Sequence
from typing import Any, cast

from bespeak.conversation.question_names import SpelledKey


def in_expected_order(asked: Sequence[SpelledKey], sizes: Sequence[int], expected: Any) -> list[str]:
    """Return the names with those of each round in the expected order, if that order has the same names."""
    if not isinstance(expected, list) or sum(sizes) != len(asked) or len(cast("list[Any]", expected)) != len(asked):
        return list(asked)
    wanted, told = cast("list[Any]", expected), list[str]()
    for size in sizes:
        start = len(told)
        told += _ordered(asked[start : start + size], wanted[start : start + size])
    return told


def _ordered(names: Sequence[SpelledKey], expected: Sequence[Any]) -> Sequence[SpelledKey]:
    left, told = list(names), list[SpelledKey]()
    for wanted in expected:
        found = next((name for name in left if wanted in (str(name), name.other)), None)
        if found is None:
            return names
        left.remove(found)
        told.append(found)
    return told
