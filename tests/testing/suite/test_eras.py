"""`--era`: which revision a name stands for."""

import pytest

from bespeak.protocol.versions import SPOKEN
from bespeak.testing.suite.eras import revision


@pytest.mark.parametrize(
    ("era", "meant"), [("modern", "2026-07-28"), ("legacy", "2025-11-25"), *((one, one) for one in SPOKEN)]
)
def test_an_era_is_a_revision_or_the_newest_of_its_kind(era: str, meant: str) -> None:
    assert revision(era) == meant


@pytest.mark.parametrize("era", ["", "Modern", "2025", "auto", "2027-01-01"])
def test_an_era_that_is_invalid_is_refused_with_those_there_are(era: str) -> None:
    with pytest.raises(ValueError, match=r"an era is modern, legacy or one of 2026-07-28, .*not ") as caught:
        revision(era)
    assert repr(era) in str(caught.value)
