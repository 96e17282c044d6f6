"""The exit code of a run is that of the most serious failure."""

from dataclasses import replace

import pytest

from bespeak.cli.test_command import exit_code_of
from bespeak.testing.report.results import Kind, Result
from bespeak.testing.report.summary import Summary
from tests.testing.runs import FAILED, GONE, PASSED, SKIPPED, STALE, XFAILED, with_failure


@pytest.mark.parametrize(
    ("results", "interrupted", "code"),
    [
        ([PASSED, PASSED], False, 0),
        ([PASSED, FAILED], False, 1),
        ([GONE, STALE, FAILED], False, 1),
        ([STALE, GONE], False, 3),
        ([PASSED, STALE], False, 4),
        ([SKIPPED, XFAILED, PASSED], False, 0),
        ([SKIPPED], False, 0),
        ([XFAILED, with_failure(kind=Kind.SETUP), GONE], False, 1),
        ([], False, 7),
        ([], True, 130),
        ([FAILED, PASSED], True, 130),
    ],
)
def test_the_exit_code_is_that_of_the_gravest_kind_of_failure(
    results: list[Result], interrupted: bool, code: int
) -> None:
    assert exit_code_of(Summary(results, interrupted=interrupted)) == code


def test_the_gravest_failure_of_one_test_decides_whatever_its_place() -> None:
    mixed = replace(PASSED, failures=[*STALE.failures, *GONE.failures, *with_failure().failures])

    assert exit_code_of(Summary([mixed])) == 1
