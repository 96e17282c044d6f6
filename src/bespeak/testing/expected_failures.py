"""What a test comes to if the suite says that it is skipped, or is expected to fail."""

from collections.abc import Sequence

from bespeak.testing.report.results import Failure, Kind
from bespeak.testing.suite.suite_file import Test


def outcome_of(
    test: Test, failures: Sequence[Failure], *, ran: bool
) -> tuple[Sequence[Failure], str | None, str | None]:
    """Return the failures to report, why the test was skipped, and why it failed as expected.

    Only a test that was run to its end, as `ran` says, may fail as expected.
    """
    if test.skip is not None:
        return failures, None if failures else test.skip, None
    if test.xfail is None or not ran:
        return failures, None, None
    if not failures:
        return [Failure(f"the test is marked xfail ({test.xfail}), but it passed; remove xfail")], None, None
    return failures, None, test.xfail if fails_as_expected(test, failures) else None


def fails_as_expected(test: Test, failures: Sequence[Failure]) -> bool:
    """Return whether the suite expects the failures of a test that was run to its end."""
    return test.xfail is not None and bool(failures) and all(one.kind is Kind.FAILED for one in failures)
