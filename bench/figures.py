"""What the bench measures: its rows, the seconds of each library turn by turn, and the ratios that follow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

OURS, SDK, FASTMCP, BARE, NEWER = "bespeak", "mcp", "fastmcp", "bare", "bespeak on 3.13"
LIBRARIES = (OURS, SDK, FASTMCP, BARE, NEWER)
TIMES_FASTMCP = 10.0


@dataclass(frozen=True, slots=True)
class Row:
    """One piece of work, and how fast it is meant to be."""

    key: str
    work: str
    unit: str = "us"
    times_sdk: float | None = None
    """How many times the speed of the official SDK is to be reached."""
    of_bare: float | None = None
    """Which share of the speed of a bare ASGI app is to be reached."""
    at_most: float | None = None
    """The largest figure in the row's unit."""

    @property
    def factor(self) -> float:
        """From what is measured, seconds or MiB, to the unit."""
        return {"us": 1e6, "ms": 1e3, "MiB": 1}[self.unit]

    @property
    def is_http(self) -> bool:
        return self.key.startswith("http ")


ROWS = [
    Row("http plain", "HTTP, plain tool", times_sdk=5, of_bare=0.70),
    Row("http resolved", "HTTP, three resolvers", times_sdk=5),
    Row("http asked", "HTTP, one question (two requests)", times_sdk=8, of_bare=0.35),
    Row("http progressing", "HTTP, three progress notifications in a stream"),
    Row("http older", "HTTP, plain tool in a session of 2025-11-25"),
    Row("http pushed", "HTTP, a question pushed to a client of 2025-11-25"),
    Row("http waiting", "HTTP, eight 50 ms resolvers", "ms", at_most=70),
    Row("stdio plain", "stdio, plain tool"),
    Row("stdio resolved", "stdio, three resolvers"),
    Row("stdio asked", "stdio, one question (two requests)"),
    Row("plain", "in process, plain tool", times_sdk=4),
    Row("resolved", "in process, three resolvers", times_sdk=4),
    Row("asked", "in process, one question (two rounds)", times_sdk=4),
    Row("waiting", "in process, eight 50 ms resolvers", "ms", at_most=70),
    Row("import", "import and a server object", "ms", times_sdk=2),
    Row("memory", "memory after that", "MiB", at_most=42),
]

Figures = dict[str, dict[str, list[float]]]
"""By row and by library, what was measured turn by turn."""


def figure(times: Sequence[float]) -> float:
    """Return the figure for what was measured in several turns."""
    return median(times)


def ratio(row: Mapping[str, Sequence[float]], library: str) -> float | None:
    """Return how many times as long another library took as ours; `None` if it was not measured."""
    if not row.get(library) or not row.get(OURS):
        return None
    return figure(row[library]) / figure(row[OURS])


def missed(figures: Figures) -> list[str]:
    """Return the goals that were not reached, one line each."""
    found: list[str] = []
    for row in ROWS:
        measured = figures.get(row.key, {})
        sdk, fastmcp, bare = (ratio(measured, library) for library in (SDK, FASTMCP, BARE))
        if row.times_sdk is not None and sdk is not None and sdk < row.times_sdk:
            found.append(f"{row.work}: {sdk:.1f} times the official SDK, {row.times_sdk:g} are the goal")
        if row.is_http and row.times_sdk is not None and fastmcp is not None and fastmcp < TIMES_FASTMCP:
            found.append(f"{row.work}: {fastmcp:.1f} times FastMCP, {TIMES_FASTMCP:g} are the goal")
        if row.of_bare is not None and bare is not None and bare < row.of_bare:
            found.append(f"{row.work}: {bare:.0%} of a bare app's speed, {row.of_bare:.0%} are the goal")
        if row.at_most is not None and measured.get(OURS) and figure(measured[OURS]) * row.factor > row.at_most:
            found.append(
                f"{row.work}: {figure(measured[OURS]) * row.factor:.1f} {row.unit}, {row.at_most:g} are the most"
            )
    return found


def told(row: Row, times: Sequence[float]) -> str:
    """Return a figure with its spread: `52.1 us (51.0 to 55.2)`."""
    low, middle, high = (one * row.factor for one in (min(times), figure(times), max(times)))
    return f"{middle:,.1f} {row.unit} ({low:,.1f} to {high:,.1f})"


def table(figures: Figures) -> list[str]:
    """Return the figures as lines of a table for a terminal."""
    lines = [f"{'work':<50}{'bespeak':>36}{'official SDK':>14}{'FastMCP':>10}{'of bare':>9}"]
    for row in ROWS:
        measured = figures.get(row.key, {})
        if not measured.get(OURS):
            continue
        sdk, fastmcp, bare = (ratio(measured, library) for library in (SDK, FASTMCP, BARE))
        lines.append(
            f"{row.work:<50}{told(row, measured[OURS]):>36}{_times(sdk):>14}{_times(fastmcp):>10}"
            f"{'' if bare is None else f'{bare:.0%}':>9}"
        )
        if measured.get(NEWER):
            lines.append(f"{'    on Python 3.13':<50}{told(row, measured[NEWER]):>36}")
    return lines


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f} x"


def as_json(figures: Figures, growth: Mapping[str, Any], versions: Mapping[str, str]) -> dict[str, Any]:
    """Return everything as JSON: in each row, the seconds (or MiB) of each library turn by turn."""
    return {"versions": dict(versions), "figures": figures, "growth": dict(growth), "missed": missed(figures)}
