"""What workers have logged: tracebacks, and everything else beyond uvicorn's notes."""

import re
from collections import Counter
from collections.abc import Sequence

LINES_AROUND = 25
"""How much of a log is shown with a traceback."""


def tracebacks(log: str) -> list[str]:
    """Return the tracebacks in a log, each with the line before it."""
    lines = log.splitlines()
    places = [number for number, line in enumerate(lines) if line.lstrip(" +|").startswith("Traceback")]
    return ["\n".join(lines[max(0, number - 1) : number + LINES_AROUND]) for number in places]


def complaints(logs: Sequence[str]) -> Counter[str]:
    """Return what logs say beyond uvicorn's notes, counted. Numbers and names that differ from line to line are left out."""
    lines = (line for log in logs for line in log.splitlines() if line and not line.startswith(("INFO:", " ")))
    return Counter(re.sub(r"[0-9a-f]*\d[0-9a-f]*", "N", line) for line in lines)
