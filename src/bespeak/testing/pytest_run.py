"""The suites of one run of pytest: one event loop, one set of connections, one report."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bespeak.testing.cassettes.record_mode import RecordingRefused
from bespeak.testing.report.outside_questions import ToldOnce
from bespeak.testing.report.results import Result
from bespeak.testing.report.summary import Summary
from bespeak.testing.report.writers import Writer, open_writers
from bespeak.testing.run_options import check_recordable, check_servers, make_options, relative
from bespeak.testing.runner import Runner
from bespeak.testing.suite.loader import Suite, load_suite
from bespeak.testing.suite.plan import Item, at_era, for_profile, items_of
from bespeak.testing.unused_files import unused_files
from bespeak.transports.interfaces import MissingExtra


class UnusableOptions(Exception):
    """The command line options cannot be used."""


class SuiteRun:
    """Collects and runs the suites of a pytest run."""

    def __init__(
        self,
        *,
        start: Path,
        record: str,
        verify: bool,
        cassettes: str | None,
        servers: Sequence[str],
        era: str | None,
        reports: Sequence[str],
        profile: str | None = None,
    ) -> None:
        try:
            self.options = make_options(
                record=record,
                verify=verify,
                cassettes=None if cassettes is None else Path(cassettes),
                servers=servers,
                era=era,
                start=start,
                profile=profile,
            )
            if any(not spec.startswith(("json=", "junit=", "html=")) for spec in reports):
                raise ValueError("--bespeak-report takes json=FILE, junit=FILE or html=FILE")
            self._writers: list[Writer] = open_writers(reports, sys.stdout, colour=False) if reports else []
        except (ValueError, RecordingRefused, MissingExtra) as error:
            raise UnusableOptions(str(error)) from None
        self._loop: asyncio.Runner | None = None
        self._runner = Runner(self.options)
        self._suites: dict[Path, Suite] = {}
        self.unusable: str | None = None
        """Why no test can run, if that was found after collection."""
        self.outside = ToldOnce()
        self.told_notes: list[str] = []
        """The notes of the run and of its tests, once it is reported."""
        self.elsewhere = 0
        """The number of tests left out because they run at other revisions, or play a client of their own."""

    def items(self, path: Path) -> list[Item]:
        """Return the tests of a suite. Raises `BadSuite` and `UnusableOptions`."""
        suite = self._suites.get(path)
        if suite is None:
            suite = self._suites[path] = load_suite(path)
            try:
                check_recordable(self.options, [suite])
            except ValueError as error:
                raise UnusableOptions(str(error)) from None
        items = items_of(suite)
        kept = items if self.options.era is None else at_era(items, self.options.era)
        kept = for_profile(kept, self.options.profile)
        self.elsewhere += len(items) - len(kept)
        return kept

    def check_servers(self) -> None:
        """Raises `UnusableOptions` for a replacement of a server that no suite has."""
        try:
            if self._suites:
                check_servers(self.options, list(self._suites.values()))
        except ValueError as error:
            raise UnusableOptions(str(error)) from None

    def run(self, item: Item) -> Result:
        """Run one test. Connections stay open for the next."""
        if self.unusable is not None:
            return self.broken_off(item, self.unusable)
        if self._loop is None:
            self._loop = asyncio.Runner()
        try:
            return self._loop.run(self._runner.run(item))
        except BaseException:
            self._give_up()  # nothing of it may run beside the next test
            raise

    def leave(self, item: Item) -> Result:
        """Clean up after the suite of a test. Return a result with what went wrong."""
        failures = [] if self._loop is None else self._loop.run(self._runner.leave(item.suite))
        return Result(relative(item.suite.path, self.options.start), 1, "teardown", None, None, "", failures)

    def _give_up(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()
        self._runner = Runner(self.options)

    def broken_off(self, item: Item, how: str) -> Result:
        """Return the result of a test that pytest stopped."""
        return self._runner.broken_off(item, how)

    def close(self) -> None:
        """Close all connections."""
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                loop.run(self._runner.close())
            finally:
                loop.close()

    def notes(self) -> list[str]:
        """Return what the author of the suites should know after the run."""
        return [*self._runner.notes(), *self.unused_notes()]

    def unused_notes(self) -> list[str]:
        """Return the notes about files that no test of the collected suites uses."""
        return unused_files(list(self._suites.values()), self.options).notes()

    def report(
        self,
        told: Sequence[tuple[dict[str, Any], float]],
        deselected: int,
        *,
        interrupted: bool,
        notes: Sequence[str] = (),
    ) -> None:
        """Write the reports, with the notes of other processes. Raises `OSError`."""
        results = [Result.from_json(one, seconds) for one, seconds in told]
        seconds = sum(result.seconds for result in results)
        summary = Summary(results, deselected, interrupted, seconds, [*self.notes(), *notes])
        self.told_notes = summary.all_notes
        for writer in self._writers:
            writer.ended(summary)
