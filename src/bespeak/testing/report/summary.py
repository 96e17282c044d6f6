"""The results of a whole run: counts, order, and the most serious failure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bespeak.terminal.safe_text import marked
from bespeak.testing.report.excerpts import ReportBudget, shortened
from bespeak.testing.report.results import Outcome, Result, gravest

LONGEST_CAUSE = 300
"""How many characters of a cause are shown in one line."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of a run, or of the part before it was interrupted."""

    results: Sequence[Result]
    deselected: int = 0
    interrupted: bool = False
    seconds: float = 0.0
    notes: Sequence[str] = ()
    """What the author of the suites should know, and what fails no test."""

    @property
    def all_notes(self) -> list[str]:
        """The notes of the run and of its tests, each once."""
        return list(dict.fromkeys([*self.notes, *(note for result in self.results for note in result.notes)]))

    @property
    def passed(self) -> int:
        return self._count(Outcome.PASSED)

    @property
    def failed(self) -> int:
        return self._count(Outcome.FAILED)

    @property
    def skipped(self) -> int:
        return self._count(Outcome.SKIPPED)

    @property
    def xfailed(self) -> int:
        return self._count(Outcome.XFAILED)

    def _count(self, outcome: Outcome) -> int:
        return sum(result.outcome is outcome for result in self.results)

    @property
    def succeeded(self) -> bool:
        """Whether the run ended, and no test failed."""
        return bool(self.results) and not self.failed and not self.interrupted


def cause_of(result: Result) -> str:
    """Return why a test failed, in one line."""
    first = gravest(result.failures)
    lines = str(first).splitlines() or [""]
    more = len(result.failures) - 1
    told = shortened(marked(lines[0]), LONGEST_CAUSE)
    return f"{told} (and {more} more)" if more else told


def in_order(results: Iterable[Result]) -> list[Result]:
    """Return the results in the order of their suites, shortened if there are many."""
    budget = ReportBudget()
    ordered = sorted(results, key=lambda one: (one.suite, one.line, one.name, _last(one.case), _last(one.era)))
    return [budget.of(result) for result in ordered]


def _last(text: str | None) -> tuple[bool, str]:
    """Sorts `None` before any text."""
    return text is not None, text or ""
