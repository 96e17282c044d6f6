"""Runs the tests of a run in order. Each gets a result, whatever happens to it."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bespeak.conversation.connection_pool import Pool
from bespeak.testing.item_run import ItemRun
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.report.results import Failure, Result
from bespeak.testing.run_options import Options
from bespeak.testing.suite.plan import Item, items_of
from bespeak.testing.suite.variables import DoesNotFit, Unknown, environment, lookup, names_in

logger = logging.getLogger("bespeak.testing")


class Runner:
    """Runs the tests of one run, one after the other."""

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        self._pool = Pool()
        self._captured: dict[tuple[Path, str | None], dict[str, Any]] = {}
        self._ran: dict[tuple[Path, str, str | None], bool] = {}
        self._tokens: list[str] = []
        """The request states of all tests so far: a server may print in one test what it issued in another."""

    async def close(self) -> None:
        """Close all connections, and end the servers that were started."""
        await self._pool.close()

    async def run(self, item: Item) -> Result:
        """Run one test. Whatever goes wrong is in its result."""
        began = time.perf_counter()
        run = ItemRun(item, self._options, self._pool, self._tokens)
        try:
            secrets = environment(item.suite.needs)
            run.redactor = Redactor(item.suite.model.redact, secrets)
            captured = await self._needed(item)
            run.fill(lookup(secrets, captured))
            await run.run()
        except (Unknown, DoesNotFit) as error:
            run.failures.append(Failure(str(error)))
        except Exception as error:  # the other tests still run, and the reports are written
            logger.exception("a test could not be run")
            run.failures.append(Failure(f"the test could not be run: {type(error).__name__}: {error}"))
        if not run.failures:
            self._captured.setdefault((item.suite.path, item.era), {}).update(run.captured)
        self._ran[(item.suite.path, item.test.name, item.era)] = not run.failures
        return run.result(time.perf_counter() - began)

    def broken_off(self, item: Item, how: str) -> Result:
        """Return the result of a test that was stopped."""
        run = ItemRun(item, self._options, self._pool, self._tokens)
        run.failures.append(Failure(f"the test was stopped: {how}"))
        return run.result(0.0)

    async def _needed(self, item: Item) -> dict[str, Any]:
        """Return the values captured by earlier tests. Runs those tests first if they have not run. Raises `Unknown`."""
        captured = self._captured.setdefault((item.suite.path, item.era), {})
        written = item.test.model_dump(by_alias=True, exclude_unset=True)
        needed = {name for name in names_in(written) if not name.startswith("env:")} - captured.keys()
        for source in items_of(item.suite) if needed else ():
            name = next((name for name in source.test.capture if name in needed - captured.keys()), None)
            if name is None:
                continue
            passed = self._ran.get((item.suite.path, source.test.name, item.era))
            if passed is None:
                passed = (await self.run(replace(source, era=item.era))).passed
            if not passed:
                raise Unknown(f"${{{name}}} has no value: the test {source.test.name!r}, which captures it, failed")
        return captured


async def run_items(runner: Runner, items: Sequence[Item], finished: Callable[[Result], bool]) -> None:
    """Run tests in their order until `finished` returns false, then close the connections."""
    try:
        for item in items:
            if not finished(await runner.run(item)):
                return
    finally:
        await runner.close()
