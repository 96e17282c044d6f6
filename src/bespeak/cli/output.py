"""Error messages on stderr, and results shown at a terminal.

Both may contain a server's text. It cannot control the terminal, and it cannot imitate our messages: only our own lines start
with `bespeak:`, and further lines are indented.
"""

import itertools
import sys
from collections.abc import Iterator
from typing import TextIO

from bespeak.terminal.safe_text import clean, columns, marked, rows

NAME = "bespeak:"
INDENT = " " * len(f"{NAME} ")
LONGEST, MOST_ROWS = 30_000, 300
"""The maximum size of a message: characters and rows."""


def complain(problem: str, code: int) -> int:
    """Print an error on stderr. Return the exit code."""
    tell(problem)
    return code


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
