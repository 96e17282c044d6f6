"""The plan of a run: one item for each test, case and era."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from bespeak.protocol.versions import MODERN_PROTOCOL_VERSIONS
from bespeak.testing.suite.loader import Suite
from bespeak.testing.suite.suite_file import Case, Server, Test


@dataclass(frozen=True, slots=True)
class Item:
    """One test, case and era to run."""

    suite: Suite
    test: Test
    """The test, with the keys of its case put in."""
    case: str | None
    era: str | None
    """The revision to run at; `None` if the server's `protocol` setting decides."""
    line: int

    @property
    def title(self) -> str:
        """The test's name with its case and era."""
        more = [part for part in (self.case, self.era) if part is not None]
        return f"{self.test.name} [{', '.join(more)}]" if more else self.test.name

    @property
    def server_name(self) -> str:
        return self.test.server or self.suite.model.server or next(iter(self.suite.model.servers))

    @property
    def server(self) -> Server:
        return self.suite.model.servers[self.server_name]


def items_of(suite: Suite) -> list[Item]:
    """Return all items of a suite in their order."""
    found: list[Item] = []
    for number, test in enumerate(suite.model.tests):
        eras: Sequence[str | None] = test.eras or suite.model.eras or [None]
        for row, case in enumerate(test.cases or [None]):
            place = ("tests", number) if case is None else ("tests", number, "cases", row)
            merged = test if case is None else _put_over(test, case)
            found += [Item(suite, merged, case and case.name, era, suite.line(*place)) for era in eras]
    return found


def _put_over(test: Test, case: Case) -> Test:
    """Put the keys of a case into a test: maps are merged, other values replaced."""
    changes: dict[str, Any] = {"cases": None}
    for name in case.model_fields_set - {"name"}:
        ours, theirs = getattr(test, name), getattr(case, name)
        if name == "expect":
            given = {field: getattr(theirs, field) for field in theirs.model_fields_set}
            changes[name] = ours.model_copy(update=given)
        elif isinstance(ours, dict) and isinstance(theirs, dict):
            changes[name] = {**cast("dict[str, Any]", ours), **cast("dict[str, Any]", theirs)}
        else:
            changes[name] = theirs
    return test.model_copy(update=changes)


def at_era(items: Sequence[Item], era: str) -> list[Item]:
    """Return the items that run at a revision: those that name it, and those that name none."""
    modern = era in MODERN_PROTOCOL_VERSIONS
    return [
        Item(item.suite, item.test, item.case, era, item.line)
        for item in items
        if (item.era is None or item.era == era) and (modern or not (item.test.tamper or item.test.fault))
    ]
