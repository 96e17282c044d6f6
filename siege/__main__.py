"""Lays the sieges one after the other and prints what the server held: `python -m siege [--short] [--only WORD] [--json FILE]`."""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path

from siege.cases import cases
from siege.clients import endless_pattern, large_event, one_line, short_lines
from siege.laying import FULL, SHORT, Cores, Outcome, lay
from siege.table import as_json, table

EVENT_MIB = 32
EVENT_MIB_SHORT = 8


def main() -> None:
    parser = argparse.ArgumentParser(prog="siege")
    parser.add_argument("--short", action="store_true", help="every attack with small counts")
    parser.add_argument("--only", action="append", default=[], help="only attacks whose name contains this")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    options = parser.parse_args()
    cores = Cores.choose()
    length = SHORT if options.short else FULL
    attacks: dict[str, Callable[[], Coroutine[None, None, Outcome]]] = {
        case.name: partial(lay, case, length, cores) for case in cases(short=options.short)
    }
    attacks |= against_clients(EVENT_MIB_SHORT if options.short else EVENT_MIB)
    chosen = {
        name: attack
        for name, attack in attacks.items()
        if not options.only or any(word in name for word in options.only)
    }
    if not chosen:
        sys.exit("no attack has such a name")
    if cores.others is None:
        print("This machine has one core for all: the honest client's times say little.")
    else:
        os.sched_setaffinity(0, {cores.others})
    outcomes: list[Outcome] = []
    for attack in chosen.values():
        started = time.perf_counter()
        outcome = asyncio.run(attack())
        if (
            options.short and not outcome.passed
        ):  # with so few calls, a machine that was busy for a moment shows in a median
            report(outcome, time.perf_counter() - started)
            print("once more, because the short form makes few calls:")
            outcome = asyncio.run(attack())
        outcomes.append(outcome)
        report(outcome, time.perf_counter() - started)
        if options.json is not None:
            options.json.write_text(json.dumps(as_json(outcomes), indent=2) + "\n")
    print()
    print(table(outcomes))
    failed = [outcome.case for outcome in outcomes if not outcome.passed]
    if failed:
        sys.exit(f"\n{len(failed)} of {len(outcomes)} attacks did more than they may: {', '.join(failed)}")
    print(f"\nAll {len(outcomes)} attacks were withstood.")


def against_clients(mib: int) -> dict[str, Callable[[], Coroutine[None, None, Outcome]]]:
    """Attacks on what is no server, with events of so many MiB."""
    found: dict[str, Callable[[str], Coroutine[None, None, Outcome]]] = {
        "9 a large event in one line": lambda name: large_event(name, mib, one_line),
        "9 a large event in short lines": lambda name: large_event(name, mib, short_lines),
        "10 a pattern without an end": endless_pattern,
    }
    return {name: partial(attack, name) for name, attack in found.items()}


def report(outcome: Outcome, seconds: float) -> None:
    """Say at once what came of one attack."""
    print(f"{outcome.case}: {'PASS' if outcome.passed else 'FAIL'} after {seconds:.0f} s", flush=True)
    for number, turn in enumerate(outcome.turns, 1):
        counts = {**turn.tally, "waiting at the peak": turn.peak.waiting, "claims at the peak": turn.peak.claims}
        happened = "; ".join(f"{name}: {times}" for name, times in counts.items() if times is not None)
        print(f"  attack {number}, {turn.seconds:.1f} s. {happened}")
    for check in outcome.checks:
        print(f"  {'met' if check.met else 'NOT MET'}: {check.demand}{f' ({check.found})' if check.found else ''}")


if __name__ == "__main__":
    main()
