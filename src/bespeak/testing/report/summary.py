"""The results of a whole run: counts, order, and the most serious failure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bespeak.testing.report.excerpts import ReportBudget
from bespeak.testing.report.results import Failure, Kind, Result


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of a run, or of the part before it was interrupted."""

    results: Sequence[Result]
    deselected: int = 0
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def passed(self) -> int:
        return sum(result.passed for result in self.results)

    @property
    def failed(self) -> int:
        return len(self.results) - self.passed

    @property
    def succeeded(self) -> bool:
        """Whether all tests ran and passed."""
        return bool(self.results) and not self.failed and not self.interrupted


def gravest(failures: Sequence[Failure]) -> Failure:
    """Return the first failure of the most serious kind. It decides the exit code."""
    kinds = list(Kind)
    return min(failures, key=lambda failure: kinds.index(failure.kind))


def in_order(results: Iterable[Result]) -> list[Result]:
    """Return the results in the order of their suites, shortened if there are many."""
    budget = ReportBudget()
    ordered = sorted(results, key=lambda one: (one.suite, one.line, one.name, _last(one.case), _last(one.era)))
    return [budget.of(result) for result in ordered]


def _last(text: str | None) -> tuple[bool, str]:
    """Sorts `None` before any text."""
    return text is not None, text or ""
