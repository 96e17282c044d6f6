"""What a server in this process logs while a command uses it: failures with the author's own lines instead of a traceback."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

from bespeak.cli.output import wants_tracebacks
from bespeak.server.author_frames import author_lines

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class AuthorLines(logging.Formatter):
    """Shows an exception as its message, and the lines of the author's code that led to it."""

    def formatException(self, ei: ExcInfo) -> str:
        error = ei[1]
        if error is None or wants_tracebacks():
            return super().formatException(ei)
        while error.__cause__ is not None and not author_lines(error, only_own=True):
            error = error.__cause__
        shown, lines = ei[1], author_lines(error, only_own=True)
        told = [shown, error] if lines and error is not shown else [shown]
        return "\n".join([*(f"{type(one).__name__}: {one}" for one in told), *lines])


def with_cause(error: Exception) -> str:
    """Return what an error says, and the lines of the author's code that caused it."""
    lines = author_lines(error.__cause__, only_own=True) if error.__cause__ is not None else []
    return "\n".join([str(error), *lines])


@contextmanager
def brief_failures() -> Generator[None]:
    """Have failures logged briefly in the block, unless the server has configured logging itself."""
    handler = logging.lastResort
    if handler is None:
        yield
        return
    before = handler.formatter
    handler.setFormatter(AuthorLines())
    try:
        yield
    finally:
        handler.formatter = before
