"""The set-up of suites during a run: before the first test of each that needs a server, and after its last."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.redaction.result_redactor import ResultRedactor
from bespeak.testing.report.results import Failure
from bespeak.testing.setup_commands import run_commands
from bespeak.testing.suite.loader import Suite
from bespeak.testing.suite.variables import text_filler


@dataclass(slots=True)
class _SetUp:
    """A suite that was set up."""

    suite: Suite
    fill: Callable[[str], str]
    redactor: Redactor
    failures: list[Failure]
    wanted: dict[str, Wanted] = field(default_factory=dict[str, Wanted])
    """The connections of its tests, by their keys."""


@dataclass(slots=True)
class SuiteSetups:
    """The suites of a run that are set up."""

    pool: Pool
    _done: dict[Path, _SetUp] = field(default_factory=dict[Path, _SetUp])

    async def enter(
        self, suite: Suite, find: Callable[[str], Any], redactor: Redactor, wanted: Wanted
    ) -> list[Failure]:
        """Set a suite up, unless that was done before, for a test that needs a connection. Return what went wrong."""
        done = self._done.get(suite.path)
        if done is None:
            fill = text_filler(find, port=False)
            failures = await run_commands(suite.model.setup, suite.folder, fill, "setup of the suite")
            done = self._done[suite.path] = _SetUp(suite, fill, redactor, failures)
        done.wanted[wanted.key] = wanted
        return done.failures

    async def leave(self, suite: Suite) -> list[Failure]:
        """Clean up after a suite, if it was set up. Its servers are stopped first. Return what went wrong."""
        done = self._done.pop(suite.path, None)
        if done is None or not suite.model.teardown:
            return []
        for wanted in done.wanted.values():
            await self.pool.drop(wanted)
        failures = await run_commands(
            suite.model.teardown, suite.folder, done.fill, "teardown of the suite", go_on=True
        )
        return [ResultRedactor(done.redactor).failure(one, []) for one in failures]

    async def leave_all(self) -> list[Failure]:
        """Clean up after all suites that were set up."""
        return [failure for done in list(self._done.values()) for failure in await self.leave(done.suite)]
