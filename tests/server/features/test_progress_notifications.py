"""The progress notifications of one request: whatever reports and heartbeats there are, their values rise."""

import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.messages import Meta
from bespeak.server.features.progress_notifications import ProgressNotifications

NOVEMBER, MARCH, FIRST = "2025-11-25", "2025-03-26", "2024-11-05"


def notifications(version: str = NOVEMBER, token: str | int | None = "p", **options: Any) -> ProgressNotifications:
    return ProgressNotifications(Meta(version, {}, None, None, token, {}), **options)


def params(notification: bytes | None) -> dict[str, Any]:
    assert notification is not None
    read = json.loads(notification)
    assert (read["jsonrpc"], read["method"]) == ("2.0", "notifications/progress")
    return read["params"]


def value(notification: bytes | None) -> float:
    return params(notification)["progress"]


# Heartbeats


def test_a_heartbeat_is_a_millionth_above_the_last_value_and_says_that_an_answer_is_waited_for() -> None:
    progress = notifications()
    progress.report(3, 10, "three of ten")
    assert params(progress.heartbeat()) == {
        "progressToken": "p",
        "progress": 3.000001,
        "message": "Waiting for an answer",
    }
    assert value(progress.heartbeat()) == pytest.approx(3.000002, abs=1e-9)


def test_before_any_value_heartbeats_count_in_millionths() -> None:
    progress = notifications()
    assert value(progress.heartbeat()) == 0.000001
    assert value(progress.heartbeat()) == 0.000002


@pytest.mark.parametrize(("version", "said"), [(FIRST, False), (MARCH, True), (NOVEMBER, True)])
def test_revisions_before_2025_03_26_have_no_message(version: str, said: bool) -> None:
    progress = notifications(version)
    assert ("message" in params(progress.heartbeat())) is said
    assert ("message" in params(progress.report(1, message="one"))) is said


def test_without_a_token_nothing_is_written() -> None:
    progress = notifications(token=None)
    assert (progress.wanted, progress.heartbeat(), progress.report(1)) == (False, None, None)


def test_a_token_of_nothing_is_a_token() -> None:
    assert params(notifications(token=0).heartbeat())["progressToken"] == 0


@pytest.mark.parametrize("last", [1e11, 2**60, -1e30, 1e300])
def test_a_heartbeat_rises_though_the_last_value_is_too_large_for_millionths(last: float) -> None:
    progress = notifications()
    progress.report(last)
    assert value(progress.heartbeat()) > last


def test_above_the_largest_number_there_is_nothing_to_send() -> None:
    progress = notifications()
    progress.report(1.7976931348623157e308)
    assert progress.heartbeat() is None
    assert progress.report(1) is None


# An author's values


def test_without_heartbeats_a_value_that_does_not_grow_is_not_sent() -> None:
    progress = notifications()
    sent = [progress.report(step) is not None for step in (0, 0, 1, 0.5, 1, 1.5, -3)]
    assert sent == [True, False, True, False, False, True, False]


@pytest.mark.parametrize("step", [5, 5.0000005, 3, -1])
def test_an_authors_next_value_after_a_heartbeat_is_always_sent_just_above_the_last_if_it_is_not_higher(
    step: float,
) -> None:
    progress = notifications()
    progress.report(5)
    last = value(progress.heartbeat())
    notification = params(progress.report(step, message="what the author says"))
    assert notification["progress"] == pytest.approx(last + 0.000001, abs=1e-9)
    assert notification["progress"] > last
    assert notification["message"] == "what the author says"


def test_a_higher_value_after_a_heartbeat_is_sent_as_it_is() -> None:
    progress = notifications()
    progress.report(5)
    progress.heartbeat()
    assert value(progress.report(6)) == 6


def test_an_authors_first_value_after_heartbeats_is_sent_though_it_is_zero() -> None:
    progress = notifications()
    progress.heartbeat()
    assert value(progress.report(0, 10)) == 0.000002


def test_heartbeats_swallow_no_value_that_grows_over_the_authors_own() -> None:
    progress = notifications()
    progress.report(1)
    for _ in range(5):
        progress.heartbeat()
    values = [value(progress.report(step)) for step in (1.000001, 1.000002, 1.000003)]
    assert values == sorted(values)
    assert len(set(values)) == 3


def test_one_value_after_a_heartbeat_does_not_open_the_way_for_others_that_do_not_grow() -> None:
    progress = notifications()
    progress.report(5)
    progress.heartbeat()
    assert progress.report(3) is not None
    assert [progress.report(step) for step in (3, 4, 5)] == [None, None, None]
    assert value(progress.report(6)) == 6


# What an author's value is out of


def test_a_heartbeat_has_no_total_and_an_authors_stays_unless_the_value_had_to_go_above_it() -> None:
    progress = notifications()
    progress.report(10, 10)
    assert "total" not in params(progress.heartbeat())
    assert "total" not in params(progress.report(10, 10)), "10.000002 of 10 is nonsense"
    progress.heartbeat()
    assert params(progress.report(10, 20))["total"] == 20


def test_a_total_that_the_author_exceeds_is_the_authors_own() -> None:
    assert params(notifications().report(11, 10)) == {"progressToken": "p", "progress": 11, "total": 10}


# Silence


def test_silence_is_counted_from_the_request_and_from_every_notification() -> None:
    now = [100.0]
    progress = notifications(clock=lambda: now[0])
    now[0] = 107.0
    assert progress.silence() == 7.0
    progress.report(1)
    assert progress.silence() == 0.0
    now[0] = 110.0
    assert progress.report(1) is None
    assert progress.silence() == 3.0, "what was not sent broke no silence"
    progress.heartbeat()
    assert progress.silence() == 0.0


@given(st.lists(st.none() | st.floats() | st.integers(-(2**70), 2**70)))
def test_whatever_is_reported_between_heartbeats_the_values_rise_and_are_numbers(steps: list[float | None]) -> None:
    progress = notifications()
    written = [progress.heartbeat() if step is None else progress.report(step) for step in steps]
    values = [value(one) for one in written if one is not None]
    assert all(map(math.isfinite, values))
    assert all(before < after for before, after in itertools.pairwise(values))
