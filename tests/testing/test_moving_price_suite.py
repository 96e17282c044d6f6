"""The shop whose price moves, with Bespeak. `make suites` runs the same suite with the official SDK's shop."""

from pathlib import Path

import pytest

from bespeak.conversation.profiles.known_profiles import KNOWN, find_profile
from bespeak.testing.runner import Options
from tests.testing.canned import messages, run

SUITE = Path(__file__).parents[2] / "suites" / "moving_price" / "moving_price.bespeak.yaml"


@pytest.mark.timing
@pytest.mark.parametrize("profile", [None, *KNOWN])
@pytest.mark.long
async def test_nothing_is_found_in_our_shop_whoever_pays(profile: str | None) -> None:
    options = Options(profile=None if profile is None else find_profile(profile))
    results = await run(SUITE, options)
    assert messages(results) == []
    assert len(results) == 2
