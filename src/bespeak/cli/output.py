"""What a command says when it cannot do what it was told, and results that are shown at a terminal.

Some of it may be a server's words. Nothing in them steers a terminal, and only our own lines start at the very left with our
name: whatever follows the first line of a complaint is indented.
"""

import itertools
import sys
from collections.abc import Iterator
from typing import TextIO

from bespeak.terminal.safe_text import clean, columns, marked, rows

NAME = "bespeak:"
INDENT = " " * len(f"{NAME} ")
LONGEST, MOST_ROWS = 30_000, 300
"""How much of a complaint is shown: characters, and rows."""


def complain(problem: str, code: int) -> int:
    """Say what is wrong, on stderr; the exit code."""
    tell(problem)
    return code


def tell(sentence: str) -> None:
    """Say something, on stderr."""
    width = columns(sys.stderr) - len(INDENT) if sys.stderr.isatty() else LONGEST
    lines = map(marked, sentence[:LONGEST].split("\n"))
    shown = list(itertools.islice((row for line in lines for row in rows(line, width)), MOST_ROWS + 1))
    if len(sentence) > LONGEST or len(shown) > MOST_ROWS:
        shown[MOST_ROWS:] = [f"(cut: there are {len(sentence):,} characters)"]
    print(f"{NAME} " + f"\n{INDENT}".join(shown), file=sys.stderr)


def result_lines(text: str, out: TextIO) -> Iterator[str]:
    """The lines of a result, for the terminal that it is written to. One that could pass for a line of ours stands behind a bar."""
    for line in text.split("\n"):
        shown = marked(line)
        if NAME not in clean(line, len(line) + 1):
            yield shown
            continue
        for row in rows(shown, columns(out) - len(INDENT) - 3):
            yield f"{INDENT} | {row}"
