"""The outcomes as one table for people, and as JSON for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from siege.honest import Samples
from siege.laying import Outcome
from siege.readings import Reading

_HEADS = ("attack", "memory MiB", "tasks", "files", "sessions", "plain ms", "asked ms", "pushed ms", "")


def rows(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """One row an attack, in the words of the first line of `table`."""
    return [
        (
            outcome.case,
            *(_held(outcome, name) for name in ("memory", "tasks", "files", "sessions")),
            *(_times(outcome, kind) for kind in ("plain", "asked", "pushed")),
            "PASS" if outcome.passed else "FAIL",
        )
        for outcome in outcomes
    ]


def table(outcomes: Sequence[Outcome]) -> str:
    """All of it, with what was not met below each row."""
    written = rows(outcomes)
    widths = [max(len(row[column]) for row in [_HEADS, *written]) for column in range(len(_HEADS))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

    lines = [
        "held: before / first peak / after / second peak; honest medians: before / while it rises / under all of it",
        line(_HEADS),
    ]
    for row, outcome in zip(written, outcomes, strict=True):
        lines.append(line(row))
        lines += [f"    not met: {check.demand} ({check.found})" for check in outcome.checks if not check.met]
    return "\n".join(lines)


def as_json(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Everything that was measured, but for the single times."""
    return [
        {
            "attack": outcome.case,
            "passed": outcome.passed,
            "checks": [asdict(check) for check in outcome.checks],
            "honest before": _summary(outcome.before),
            "turns": [
                {
                    "before": asdict(turn.before),
                    "peak": asdict(turn.peak),
                    "after": asdict(turn.after),
                    "tally": dict(turn.tally),
                    "seconds": turn.seconds,
                    "honest while it rises": _summary(turn.rising),
                    "honest under all of it": _summary(turn.during),
                    "honest afterwards": _summary(turn.afterwards),
                }
                for turn in outcome.turns
            ],
        }
        for outcome in outcomes
    ]


def _summary(samples: Samples) -> dict[str, Any]:
    return {
        kind: {"calls": len(one.times), "median ms": one.median_ms, "failures": one.failures}
        for kind, one in samples.items()
    }


def _held(outcome: Outcome, name: str) -> str:
    if not outcome.turns:
        return "-"
    first = outcome.turns[0]
    readings: list[Reading] = [first.before, first.peak, first.after, *(turn.peak for turn in outcome.turns[1:])]
    values = [one.of(name) for one in readings]
    if not any(value is not None for value in values):
        return "-"
    return " / ".join("?" if value is None else f"{value:.0f}" for value in values)


def _times(outcome: Outcome, kind: str) -> str:
    if kind not in outcome.before:
        return "-"
    first = outcome.turns[0]
    medians = (outcome.before[kind].median_ms, first.rising[kind].median_ms, first.during[kind].median_ms)
    return " / ".join("?" if one is None else f"{one:.1f}" for one in medians)
