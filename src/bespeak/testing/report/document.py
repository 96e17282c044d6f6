"""A report that is written as a whole when the run is over."""

from pathlib import Path
from typing import TextIO

from bespeak.conversation.atomic_files import write_whole
from bespeak.testing.report.results import Result
from bespeak.testing.report.summary import Summary


class Document:
    """A report that is written as a whole at the end."""

    def __init__(self, place: Path | TextIO) -> None:
        self._place = place

    def started(self, total: int) -> None:
        pass

    def finished(self, result: Result) -> None:
        pass

    def ended(self, summary: Summary) -> None:
        text = self._text(summary)
        if isinstance(self._place, Path):
            write_whole(self._place, text)
        else:
            self._place.write(text)
            self._place.flush()

    def _text(self, summary: Summary) -> str:
        raise NotImplementedError
