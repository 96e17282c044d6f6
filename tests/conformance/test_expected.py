"""What the suite is expected to have: the bar that a run is held to."""

from typing import Literal

import pytest
from conformance.client import SCENARIOS
from conformance.expected import CHECKS, LEGACY, MODERN, REVISIONS


@pytest.mark.parametrize(("revision", "scenarios", "checks"), [(LEGACY, 33, 84), (MODERN, 40, 152)])
def test_the_server_is_held_to_all_checks(revision: str, scenarios: int, checks: int) -> None:
    expected = CHECKS["server", revision]
    assert (len(expected), sum(expected.values())) == (scenarios, checks)


@pytest.mark.parametrize(("revision", "scenarios"), [(LEGACY, 5), (MODERN, 8)])
def test_the_client_is_held_to_every_scenario_without_oauth(revision: str, scenarios: int) -> None:
    assert len(CHECKS["client", revision]) == scenarios


def test_the_client_does_something_in_each_of_its_scenarios() -> None:
    assert {name for revision in REVISIONS for name in CHECKS["client", revision]} == set(SCENARIOS)


@pytest.mark.parametrize("side", ["server", "client"])
def test_every_scenario_has_a_check(side: Literal["server", "client"]) -> None:
    assert all(checks > 0 for revision in REVISIONS for checks in CHECKS[side, revision].values())
