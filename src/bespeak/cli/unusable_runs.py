"""Reports of a run that could not start: CI shows the mistakes in place of an old report or of none."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TextIO

from bespeak.testing.report.results import Failure, Kind, Result
from bespeak.testing.report.summary import Summary
from bespeak.testing.report.writers import open_writers
from bespeak.testing.run_options import relative
from bespeak.testing.suite.loader import BadSuite


def report_unusable(specs: Sequence[str], error: Exception, out: TextIO) -> None:
    """Write the reports that go to files. Those that cannot be written are left out: the error is on stderr already."""
    results = (
        _bad_suites(error) if isinstance(error, BadSuite) else [_result("bespeak test", 1, "can start", [str(error)])]
    )
    for spec in specs:
        try:
            writers = open_writers([spec], out, colour=False) if "=" in spec else []
            for writer in writers:
                writer.ended(Summary(results))
        except (OSError, ValueError):
            continue


def _bad_suites(error: BadSuite) -> list[Result]:
    return [
        _result(suite, found[0].line, "is a valid suite", list(map(str, found)))
        for suite, group in groupby(error.faults, key=lambda fault: relative(fault.path, Path.cwd()))
        if (found := list(group))
    ]


def _result(suite: str, line: int, name: str, messages: Sequence[str]) -> Result:
    failures = [Failure(message, Kind.UNUSABLE) for message in messages]
    return Result(suite, line, name, None, None, "", failures)
