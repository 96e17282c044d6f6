"""What a siege calls withstood, and what not."""

from collections.abc import Mapping

import pytest
from siege.honest import Sample, Samples
from siege.judgement import (
    Turn,
    grows_at_most,
    happened,
    judge_afterwards,
    judge_honest,
    judge_second,
    lets_go,
    never_happened,
)
from siege.readings import Reading

CALM: Samples = {"plain": Sample([0.001] * 20)}


def turn(
    peak: float = 60, *, tally: Mapping[str, int] | None = None, waiting: tuple[int, int, int] = (0, 0, 0)
) -> Turn:
    before, most, after = (
        Reading(memory, 10, waiting=number) for memory, number in zip((50, peak, 50), waiting, strict=True)
    )
    return Turn(before, most, after, tally or {}, 1.0)


@pytest.mark.parametrize(("seconds", "met"), [(0.005, True), (0.0051, False)])
def test_an_honest_median_may_be_five_times_as_long(seconds: float, met: bool) -> None:
    checks = judge_honest(CALM, {"plain": Sample([seconds] * 20)}, 20, "under attack")
    assert [check.met for check in checks] == [True, met]


def test_a_single_failed_honest_call_fails_the_judgement() -> None:
    checks = judge_honest(CALM, {"plain": Sample([0.001] * 20, ["Refused: 503"])}, 20, "under attack")
    assert [(check.met, check.found) for check in checks] == [(False, "Refused: 503"), (True, "1.0 times")]


def test_honest_calls_that_were_not_made_in_time_are_missed() -> None:
    (served,) = judge_honest(CALM, {"plain": Sample([0.001] * 19)}, 20, "under attack")
    assert (served.met, served.found) == (False, "19 served")


def test_few_calls_while_an_attack_rises_make_no_median() -> None:
    (served,) = judge_honest(CALM, {"plain": Sample([0.9] * 3)}, 0, "while it rises")
    assert served.met


@pytest.mark.parametrize(("peak", "met"), [(75.9, True), (76, False)])
def test_a_second_attack_may_add_less_than_16_mib(peak: float, met: bool) -> None:
    assert [check.met for check in judge_second([turn(60), turn(peak)])] == [met]


def test_whoever_comes_after_an_attack_must_be_served() -> None:
    refused = Turn(Reading(50), Reading(50), Reading(50), {}, 1.0, afterwards={"asked": Sample([], ["Refused: full"])})
    assert [check.met for check in judge_afterwards([turn()])] == [True]
    assert [(check.met, check.found) for check in judge_afterwards([turn(), refused])] == [(False, "Refused: full")]


def test_what_grows_is_counted_from_before_the_first_attack() -> None:
    turns = [turn(waiting=(1, 33, 33)), turn(waiting=(33, 34, 33))]
    assert grows_at_most("waiting", 33)(turns).met
    assert not grows_at_most("waiting", 32)(turns).met


def test_what_could_not_be_found_out_is_not_met() -> None:
    assert not grows_at_most("sessions", 1000)([turn()]).met
    assert not lets_go("sessions", 1000)([turn()]).met


def test_what_is_left_after_the_first_attack_must_be_let_go() -> None:
    assert lets_go("waiting", 0)([turn(waiting=(1, 30, 1))]).met
    assert not lets_go("waiting", 0)([turn(waiting=(1, 30, 2))]).met


def test_what_happened_is_counted_by_its_name_or_its_beginning() -> None:
    turns = [turn(tally={"refused": 3, "refused with 503": 3}), turn(tally={"refused with 429": 1})]
    assert happened("refused", 3)(turns).met
    assert happened("refused with", 3)(turns).met
    assert not happened("refused", 4)(turns).met
    assert not never_happened("refused")(turns).met
    assert never_happened("reset")(turns).met
