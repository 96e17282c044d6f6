"""A unified diff of two values, written as lines of YAML."""

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from bespeak.conversation.differences import ABSENT
from bespeak.testing.report.yaml_lines import yaml_lines

CONTEXT = 3
"""How many equal lines are shown around a difference."""
MOST_COMPARED = 400
"""How many lines are compared from the first difference on. Comparing takes the longer the more lines there are."""
MOST_LINES = 60
"""How many lines a diff shows."""
LONGEST_LINE = 200


def value_diff(expected: Any, actual: Any) -> tuple[str, ...]:
    """Return the lines of a diff; none if the values are equal, if one is missing, or if each is a single line."""
    if expected is ABSENT or actual is ABSENT:
        return ()
    before, after = list(yaml_lines(expected)), list(yaml_lines(actual))
    if before == after or max(len(before), len(after)) <= 1:
        return ()
    start = _equal(before, after)
    skipped = max(start - CONTEXT, 0)
    before, after = (lines[skipped : start + MOST_COMPARED] for lines in (before, after))
    hunks = difflib.unified_diff(before, after, "expected", "actual", n=CONTEXT, lineterm="")
    lines = list(_shortened([_moved(line, skipped) for line in hunks]))
    more = len(lines) - MOST_LINES
    return tuple(lines if more <= 0 else [*lines[:MOST_LINES], f"... ({more:,} more lines)"])


def _equal(before: Sequence[str], after: Sequence[str]) -> int:
    """How many lines at the beginning are equal."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(before), len(after)))


def _moved(line: str, lines: int) -> str:
    """A line of a diff, with the line numbers of a hunk counted from the beginning of the values."""
    if not line.startswith("@@") or not lines:
        return line
    parts = line.split(" ")
    for at in (1, 2):
        number, comma, count = parts[at][1:].partition(",")
        parts[at] = f"{parts[at][0]}{int(number) + lines}{comma}{count}"
    return " ".join(parts)


def _shortened(lines: Sequence[str]) -> Iterator[str]:
    """Shorten long lines. Two lines that replace each other are shown around the place where they differ."""
    for number, line in enumerate(lines):
        if len(line) <= LONGEST_LINE:
            yield line
            continue
        other = ""
        if line.startswith("-") and number + 1 < len(lines) and lines[number + 1].startswith("+"):
            other = lines[number + 1]
        elif line.startswith("+") and lines[number - 1].startswith("-"):
            other = lines[number - 1]
        start = max(_equal(line[1:], other[1:]) - LONGEST_LINE // 2, 0)
        cut = line[1 + start : 1 + start + LONGEST_LINE]
        after = "..." if 1 + start + LONGEST_LINE < len(line) else ""
        yield f"{line[0]}{'...' if start else ''}{cut}{after}"
