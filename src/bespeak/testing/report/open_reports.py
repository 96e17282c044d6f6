"""All reports of one run. A reader of stdout that has gone away, such as `head`, ends that report and no other."""

from collections.abc import Callable, Sequence
from typing import TextIO

from bespeak.terminal.closed_pipes import discard
from bespeak.testing.report.results import Result
from bespeak.testing.report.summary import Summary
from bespeak.testing.report.writers import Writer


class Reports:
    """The reports that are being written."""

    def __init__(self, writers: Sequence[Writer], out: TextIO) -> None:
        self._writers = list(writers)
        self._out = out

    @property
    def is_read(self) -> bool:
        """Whether there is a report that somebody can still read."""
        return bool(self._writers)

    def started(self, count: int) -> None:
        self._each(lambda writer: writer.started(count))

    def finished(self, result: Result) -> None:
        self._each(lambda writer: writer.finished(result))

    def ended(self, summary: Summary) -> list[OSError]:
        """Write what comes last. Return why reports could not be written."""
        errors: list[OSError] = []

        def end(writer: Writer) -> None:
            try:
                writer.ended(summary)
            except BrokenPipeError:
                raise
            except OSError as error:
                errors.append(error)

        self._each(end)
        return errors

    def _each(self, write: Callable[[Writer], None]) -> None:
        for writer in list(self._writers):
            try:
                write(writer)
                self._out.flush()
            except BrokenPipeError:
                self._writers.remove(writer)
                discard(self._out)
