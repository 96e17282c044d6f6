"""Names that differ from another name by what is probably a typing mistake."""

from collections.abc import Iterable
from enum import Enum

LONG = 5
"""Shorter names often differ by one letter on purpose."""


class Nearness(Enum):
    """How near two different names are."""

    FAR = 0
    PERHAPS = 1
    """One letter more or fewer, such as a plural."""
    NEAR = 2
    """Equal except for case and underscores, or one letter changed, or two letters swapped."""


def nearness(name: str, other: str) -> Nearness:
    """Return how near two different names are."""
    one, two = (text.replace("_", "").lower() for text in (name, other))
    if one == two:
        return Nearness.NEAR
    if min(len(one), len(two)) < LONG:
        return Nearness.FAR
    if len(one) == len(two):
        differing = [place for place in range(len(one)) if one[place] != two[place]]
        swapped = len(differing) == 2 and [one[place] for place in differing] == [
            two[place] for place in reversed(differing)
        ]
        return Nearness.NEAR if len(differing) == 1 or swapped else Nearness.FAR
    short, long = sorted((one, two), key=len)
    is_one_more = any(long[:place] + long[place + 1 :] == short for place in range(len(long)))
    return Nearness.PERHAPS if is_one_more else Nearness.FAR


def nearest(name: str, others: Iterable[str]) -> tuple[str, Nearness]:
    """Return the nearest of some other names, and how near it is."""
    ranked = [(other, nearness(name, other)) for other in others]
    return max(ranked, key=lambda one: one[1].value, default=("", Nearness.FAR))
