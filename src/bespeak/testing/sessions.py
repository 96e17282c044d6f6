"""The suites of one run of pytest: one event loop, one set of connections, one report."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bespeak.testing.cassettes import Mode, RecordingRefused, check_allowed
from bespeak.testing.loading import Suite, load_suite
from bespeak.testing.plan import Item, at_era, items_of, revision
from bespeak.testing.reports import Summary, Writer, open_writers
from bespeak.testing.results import Result
from bespeak.testing.running import Options, Runner, named_server


class UnusableOptions(Exception):
    """What was said on the command line makes no sense. Says what would."""


class Session:
    """Collects and runs suites for somebody else's runner."""

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
    ) -> None:
        try:
            mode = Mode.named(record)
            check_allowed(mode)
            self._era = None if era is None else revision(era)
            self._options = Options(
                record=mode,
                verify=verify,
                cassettes=None if cassettes is None else Path(cassettes),
                servers=dict(map(named_server, servers)),
                start=start,
            )
            if any("=" not in spec for spec in reports):
                raise ValueError("--bespeak-report takes FORM=FILE, such as json=report.json")
            self._writers: list[Writer] = open_writers(reports, sys.stdout, colour=False) if reports else []
        except (ValueError, RecordingRefused) as error:
            raise UnusableOptions(str(error)) from None
        self._loop: asyncio.Runner | None = None
        self._runner = Runner(self._options)
        self._suites: dict[Path, Suite] = {}

    def items(self, path: Path) -> list[Item]:
        """The tests of a suite. Raises `BadSuite`."""
        suite = self._suites.get(path)
        if suite is None:
            suite = self._suites[path] = load_suite(path)
        items = items_of(suite)
        return items if self._era is None else at_era(items, self._era)

    def run(self, item: Item) -> Result:
        """Run one test. Connections stay open for the next."""
        if self._loop is None:
            self._loop = asyncio.Runner()
        return self._loop.run(self._runner.run(item))

    def end(self, told: Sequence[tuple[dict[str, Any], float]], deselected: int, *, interrupted: bool) -> None:
        """Close all connections, and write the reports."""
        if self._loop is not None:
            self._loop.run(self._runner.close())
            self._loop.close()
            self._loop = None
        results = [Result.from_json(one, seconds) for one, seconds in told]
        summary = Summary(results, deselected, interrupted, sum(result.seconds for result in results))
        for writer in self._writers:
            writer.ended(summary)
