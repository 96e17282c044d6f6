"""Writes docs/speed.md and its pictures from bench/figures.json: `python -m bench.page`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.figures import BARE, FASTMCP, NEWER, OURS, ROWS, SDK, Figures, Row, figure, missed, ratio, told
from bench.plot import bars, lines

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "bench" / "figures.json"
PAGE = ROOT / "docs" / "speed.md"
IMAGES = ROOT / "docs" / "images"

INTRODUCTION = """# How fast it is

`make bench` measures Bespeak {ours} beside the official SDK {sdk}, FastMCP {fastmcp} and a bare ASGI app, in
one run on one machine. All servers over HTTP run under the same uvicorn with uvloop and httptools, each on one
core; `wrk` loads them from another core, over eight connections. The libraries take turns, every answer is
checked, and the functions are async. The bare app only parses JSON and answers what it always answers: it is
the floor under any framework.

The times below are those of this run, as the median of the turns with the fastest and the slowest. They are
different on your machine; the ratios are less so. A ratio of 5 means that the other library takes five times as
long.

![How many calls each library serves in a second](images/speed.svg)

"""

EXPLANATIONS = """
Both peers run with `json_response=True`, except where they have to stream: progress, and questions that are
pushed. FastMCP has no resolvers that ask, so there its tool returns the question, and reads the answer when it
runs again; nothing keeps such an answer from being used twice. The official SDK seals what a call has settled,
as Bespeak does, and does not remember what was spent.
"""

GROWTH = """
## How the cost of a call grows

One call through the app, without a socket. It does not depend on how many tools are registered, how many
sessions of older clients are open, or how many other calls wait. Each resolver and each answer adds the same
again. The two rows of workers are the CPU time that all workers of `bespeak run --workers` take together for one
call over HTTP, without and with a question. One worker has its ledger in memory; several share one in a file, which
takes longer. Beyond that it stays about the same with more of them, so they serve more calls in the same time as long as
there is a core for each.

![The time of one call by resolvers, answers, tools, sessions and waiting calls](images/growth.svg)

"""

GUARD = """
## What keeps it so

`make bench-counted` counts the instructions of a call with valgrind instead of timing it. CI fails if a call
takes a fifth more than it did, whatever else the machine is doing.
"""


def page(figures: Figures, growth: Mapping[str, Mapping[str, float]], versions: Mapping[str, str]) -> str:
    """Return the page."""
    introduction = INTRODUCTION.format(ours=versions[OURS], sdk=versions[SDK], fastmcp=versions[FASTMCP])
    header = "| work | Bespeak | x official SDK | x FastMCP | share of a bare app's speed |\n|---|---|---|---|---|\n"
    rows = "".join(_row(row, figures[row.key]) for row in ROWS if figures.get(row.key))
    newer = [row for row in ROWS if figures.get(row.key, {}).get(NEWER)]
    parts = [introduction, header, rows, EXPLANATIONS]
    if newer:
        parts += [
            "\n## On Python 3.13\n\n| work | Python 3.11 | Python 3.13 |\n|---|---|---|\n",
            *(f"| {row.work} | {_figure(row, figures, OURS)} | {_figure(row, figures, NEWER)} |\n" for row in newer),
        ]
    parts += [GROWTH, _growth(growth)]
    goals = missed(figures)
    if goals:
        parts += ["\n## What is not reached\n\n", *(f"* {line}\n" for line in goals)]
    return "".join([*parts, GUARD])


def _row(row: Row, measured: Mapping[str, list[float]]) -> str:
    sdk, fastmcp, bare = (ratio(measured, library) for library in (SDK, FASTMCP, BARE))
    share = "" if bare is None else f"{bare:.0%}"
    return f"| {row.work} | {told(row, measured[OURS])} | {_times(sdk)} | {_times(fastmcp)} | {share} |\n"


def _figure(row: Row, figures: Figures, library: str) -> str:
    return f"{figure(figures[row.key][library]) * row.factor:,.1f} {row.unit}"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}"


def _growth(growth: Mapping[str, Mapping[str, float]]) -> str:
    lines_ = ["| by | one call |\n|---|---|\n"]
    for what, sizes in growth.items():
        shown = ", ".join(f"{int(size):,}: {seconds * 1e6:,.0f} us" for size, seconds in sizes.items())
        lines_.append(f"| {what} | {shown} |\n")
    return "".join(lines_)


def pictures(figures: Figures, growth: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Return the pictures by their file names."""
    shown = [row for row in ROWS if row.key in ("http plain", "http resolved", "http asked")]
    names = {OURS: "Bespeak", SDK: "official SDK", FASTMCP: "FastMCP", BARE: "bare app"}
    groups = {
        row.work: {names[one]: 1 / figure(figures[row.key][one]) for one in names if figures[row.key].get(one)}
        for row in shown
    }
    curves = {what: [(float(size), seconds * 1e6) for size, seconds in sizes.items()] for what, sizes in growth.items()}
    return {"speed.svg": bars(groups, "calls a second"), "growth.svg": lines(curves, "us for one call")}


def main() -> None:
    written: dict[str, Any] = json.loads(FIGURES.read_text())
    growth = {
        what: dict(sorted(sizes.items(), key=lambda one: int(one[0]))) for what, sizes in written["growth"].items()
    }
    PAGE.write_text(page(written["figures"], growth, written["versions"]))
    for name, picture in pictures(written["figures"], growth).items():
        (IMAGES / name).write_text(picture)


if __name__ == "__main__":
    main()
