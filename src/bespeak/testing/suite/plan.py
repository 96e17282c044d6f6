"""The plan of a run: one item for each test, case and era."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from bespeak.conversation.profiles.known_profiles import ChosenProfile
from bespeak.protocol.versions import MODERN_PROTOCOL_VERSIONS, SPOKEN, is_modern
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
    file: Path
    """The file that contains it: the suite's, or one that it includes."""

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
            line, file = suite.line(*place), suite.file(*place)
            found += [Item(suite, merged, case and case.name, era, line, file) for era in eras]
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
        replace(item, era=era)
        for item in items
        if (item.era is None or item.era == era) and (modern or not (item.test.tamper or item.test.fault))
    ]


def with_tags(
    items: Sequence[Item], everything: Sequence[Item], wanted: Sequence[str], unwanted: Sequence[str]
) -> list[Item]:
    """Return the items that have one of the wanted tags, if any are wanted, and none of the unwanted ones.

    Raises `ValueError` for a tag that no item has: a misspelt one would select the wrong tests.
    """
    known = {tag for item in everything for tag in item.test.tags or ()}
    for flag, tags in (("--tag", wanted), ("--not-tag", unwanted)):
        missing = next((tag for tag in tags if tag not in known), None)
        if missing is not None:
            raise ValueError(f"{flag}: no test has the tag {missing!r}; tags: {', '.join(sorted(known)) or '(none)'}")

    def fits(item: Item) -> bool:
        tags = set(item.test.tags or ())
        return (not wanted or bool(tags & set(wanted))) and not tags & set(unwanted)

    return [item for item in items if fits(item)]


def for_profile(items: Sequence[Item], profile: ChosenProfile | None) -> list[Item]:
    """Return the items that can run with a profile, and those to skip because their revision has no rounds.

    Hostile tests play a client of their own.
    """
    if profile is None:
        return list(items)
    needs_rounds = profile.make().needs_rounds
    return [
        _skipped(item, without_rounds(item.era)) if needs_rounds and item.era and not is_modern(item.era) else item
        for item in items
        if not (item.test.tamper or item.test.fault or item.test.stop or item.test.probe)
    ]


def _skipped(item: Item, reason: str) -> Item:
    """An item that is skipped. A reason in the suite comes first."""
    return replace(item, test=item.test.model_copy(update={"skip": item.test.skip or reason}))


def without_rounds(mode: str) -> str:
    """Return why a profile that needs rounds does not run a test: its revision or its `protocol` has none."""
    what = f"revision {mode}" if mode in SPOKEN else f"protocol: {mode}"
    return f"this profile answers rounds, which {what} does not have"


def has_no_rounds(mode: str) -> bool:
    """Return whether no revision of a mode has rounds. What `auto` means is known when the server has been asked."""
    return mode != "auto" and not is_modern(mode)
