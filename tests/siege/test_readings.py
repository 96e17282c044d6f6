"""Readings of what a server holds."""

from siege.readings import Reading, highest


def test_the_highest_of_each_is_taken_and_what_is_not_known_is_left_out() -> None:
    seen = highest([Reading(10, 5, tasks=3), Reading(8, 9, tasks=None, sessions=2)])
    assert seen == Reading(10, 9, tasks=3, sessions=2)


def test_a_reading_exceeds_another_by_more_than_the_slack() -> None:
    before, after = Reading(50, 10, tasks=3, waiting=0), Reading(50, 12, tasks=7, waiting=None)
    assert after.exceeds(before, {"files": 2, "tasks": 3, "waiting": 0}) == ["tasks"]
