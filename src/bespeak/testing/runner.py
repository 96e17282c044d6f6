"""Runs the tests of a run in order. Each gets a result, whatever happens to it."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from bespeak.conversation.connection_pool import Pool
from bespeak.testing.item_run import ItemRun
from bespeak.testing.redaction.declared import redactor_for
from bespeak.testing.redaction.redactor import SHORTEST
from bespeak.testing.redaction.suite_redactions import SuiteRedactions
from bespeak.testing.report.results import Failure, Outcome, Result
from bespeak.testing.run_options import Options, relative
from bespeak.testing.suite.loader import Suite
from bespeak.testing.suite.plan import Item, items_of
from bespeak.testing.suite.variables import DoesNotFit, Unknown, environment, lookup, names_in
from bespeak.testing.suite_setup import SuiteSetups

logger = logging.getLogger("bespeak.testing")


class Runner:
    """Runs the tests of one run, one after the other."""

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        self._pool = Pool()
        self._setups = SuiteSetups(self._pool)
        self._captured: dict[tuple[Path, str | None], dict[str, Any]] = {}
        self._ran: dict[tuple[Path, str, str | None], Outcome] = {}
        self._redactions: dict[Path, SuiteRedactions] = {}
        self._short: dict[str, str] = {}
        """For each variable of the environment with a very short value: what to say of it."""
        self._tokens: list[str] = []
        """The request states of all tests so far: a server may print in one test what it issued in another."""

    async def close(self) -> None:
        """Close all connections, end the servers that were started, and clean up after their suites."""
        try:
            for failure in await self._setups.leave_all():
                logger.error("%s%s", failure, f"\n{failure.hint}" if failure.hint else "")
        finally:
            await self._pool.close()

    async def run(self, item: Item) -> Result:
        """Run one test. Whatever goes wrong is in its result."""
        began = time.perf_counter()
        run = self._item_run(item)
        if item.test.skip is None and not run.skips():
            try:
                secrets = environment(item.suite.needs)
                self._note_short(item.suite, secrets)
                run.redactor = redactor_for([*item.suite.model.redact, *item.test.redact], secrets)
                captured = await self._needed(item)
                run.fill(lookup(secrets, captured))
                await run.run()
            except (Unknown, DoesNotFit) as error:
                run.failures.append(Failure(str(error)))
            except Exception as error:  # the other tests still run, and the reports are written
                logger.exception("a test could not be run")
                run.failures.append(Failure(f"the test could not be run: {type(error).__name__}: {error}"))
        result = run.result(time.perf_counter() - began)
        if result.outcome is Outcome.PASSED:
            self._captured.setdefault((item.suite.path, item.era), {}).update(run.captured)
        redactions = self._redactions.setdefault(item.suite.path, SuiteRedactions(item.suite))
        redactions.add(item, run.matched, passed=result.outcome is Outcome.PASSED)
        self._ran[(item.suite.path, item.test.name, item.era)] = result.outcome
        return result

    async def leave(self, suite: Suite) -> list[Failure]:
        """Clean up after a suite, when its last test has run. Return what went wrong."""
        return await self._setups.leave(suite)

    def notes(self) -> list[str]:
        """Return what the author of the suites should know after the run."""
        unmatched = [note for known in self._redactions.values() for note in known.notes(self._options.start)]
        return [*self._short.values(), *unmatched]

    def _note_short(self, suite: Suite, secrets: Mapping[str, str]) -> None:
        """Note the values that are parts of many words. They are redacted all the same: each may be a secret."""
        short = {name for name, value in secrets.items() if 0 < len(value) < SHORTEST}
        for name in sorted(short - self._short.keys()):
            file, line = suite.place_of_variable(name)
            self._short[name] = (
                f"{relative(file, self._options.start)}:{line}: the value of ${{env:{name}}} is shorter than {SHORTEST} "
                "characters, so it is redacted within other words, too, and the reports are hard to read"
            )

    def broken_off(self, item: Item, how: str) -> Result:
        """Return the result of a test that was stopped."""
        run = self._item_run(item)
        run.failures.append(Failure(f"the test was stopped: {how}"))
        return run.result(0.0)

    def _item_run(self, item: Item) -> ItemRun:
        return ItemRun(item, self._options, self._pool, self._setups, self._tokens)

    async def _needed(self, item: Item) -> dict[str, Any]:
        """Return the values captured by earlier tests. Runs those tests first if they have not run. Raises `Unknown`."""
        captured = self._captured.setdefault((item.suite.path, item.era), {})
        written = item.test.model_dump(by_alias=True, exclude_unset=True)
        needed = {name for name in names_in(written) if not name.startswith("env:")} - captured.keys()
        for source in items_of(item.suite) if needed else ():
            name = next((name for name in source.test.capture if name in needed - captured.keys()), None)
            if name is None:
                continue
            outcome = self._ran.get((item.suite.path, source.test.name, item.era))
            if outcome is None:
                outcome = (await self.run(replace(source, era=item.era))).outcome
            if outcome is not Outcome.PASSED:
                how = "was skipped" if outcome is Outcome.SKIPPED else "failed"
                raise Unknown(f"${{{name}}} has no value: the test {source.test.name!r}, which captures it, {how}")
        return captured


async def run_items(runner: Runner, items: Sequence[Item], finished: Callable[[Result], bool]) -> None:
    """Run tests in their order until `finished` returns false, then close the connections."""
    try:
        for item, following in zip_longest(items, items[1:]):
            result = await runner.run(item)
            if following is None or following.suite.path != item.suite.path:
                result = result.with_failures(await runner.leave(item.suite))
            if not finished(result):
                return
    finally:
        await runner.close()
