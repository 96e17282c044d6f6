"""Error messages on stderr, and results shown at a terminal.

Both may contain a server's text. It cannot control the terminal, and it cannot imitate our messages: only our own lines start
with `bespeak:`, and further lines are indented.
"""

import itertools
import os
import sys
import traceback
from collections.abc import Iterator
from typing import TextIO

from bespeak.terminal.safe_text import clean, columns, marked, rows

NAME = "bespeak:"
INDENT = " " * len(f"{NAME} ")
LONGEST, MOST_ROWS = 30_000, 300
"""The maximum size of a message: characters and rows."""


TRACEBACKS = "BESPEAK_TRACEBACK"
"""The environment variable that asks for tracebacks, as the option --traceback does."""


def complain(problem: str, code: int, cause: BaseException | None = None) -> int:
    """Print an error on stderr, after the traceback of its cause if the user asked for tracebacks. Return the exit code."""
    if cause is not None and wants_tracebacks():
        for line in "".join(traceback.format_exception(cause)).splitlines():
            print(marked(line), file=sys.stderr)
    tell(problem)
    return code


def wants_tracebacks() -> bool:
    """Return whether the user asked for tracebacks."""
    return os.environ.get(TRACEBACKS, "0") not in ("", "0")


def ask_for_tracebacks(wanted: bool) -> bool:
    """Called with the option --traceback. Worker processes inherit it."""
    if wanted:
        os.environ[TRACEBACKS] = "1"
    return wanted


def tell(sentence: str) -> None:
    """Print a message on stderr."""
    width = columns(sys.stderr) - len(INDENT) if sys.stderr.isatty() else LONGEST
    lines = map(marked, sentence[:LONGEST].split("\n"))
    shown = list(itertools.islice((row for line in lines for row in rows(line, width)), MOST_ROWS + 1))
    if len(sentence) > LONGEST or len(shown) > MOST_ROWS:
        shown[MOST_ROWS:] = [f"(cut: the message has {len(sentence):,} characters)"]
    print(f"{NAME} " + f"\n{INDENT}".join(shown), file=sys.stderr)


def result_lines(text: str, out: TextIO) -> Iterator[str]:
    """Return the lines of a result for a terminal. A line that looks like one of our messages is put behind a bar."""
    for line in text.split("\n"):
        shown = marked(line)
        if NAME not in clean(line, len(line) + 1) and NAME not in shown:  # either may leave out what the other shows
            yield shown
            continue
        for row in rows(shown, columns(out) - len(INDENT) - 3):
            yield f"{INDENT} | {row}"
