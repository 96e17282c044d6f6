"""The redactions that a suite declares for all its tests, and those that matched in none of them."""

from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path

from bespeak.testing.run_options import relative
from bespeak.testing.suite.loader import Suite
from bespeak.testing.suite.plan import Item, items_of


@dataclass(slots=True)
class SuiteRedactions:
    """What the redactions of one suite matched so far."""

    suite: Suite
    _matched: set[str] = field(default_factory=set[str])
    _passed: set[tuple[str, str | None]] = field(default_factory=set[tuple[str, str | None]])
    """The tests and cases that passed: others may have ended before there was something to redact."""

    def add(self, item: Item, matched: Set[str], *, passed: bool) -> None:
        """Note what matched in a test."""
        self._matched |= matched
        if passed:
            self._passed.add((item.test.name, item.case))

    def notes(self, start: Path) -> list[str]:
        """Return a note for each redaction that matched nothing, if the whole suite has passed."""
        if {(item.test.name, item.case) for item in items_of(self.suite)} - self._passed:
            return []
        return [
            f"{relative(self.suite.file('redact', number), start)}:{self.suite.line('redact', number)}: "
            f"redact: {one.written!r} matched nothing in any test"
            for number, one in enumerate(self.suite.model.redact)
            if one.written not in self._matched
        ]
