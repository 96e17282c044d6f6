"""Lays the sieges one after the other and prints what the server held: `python -m siege [--short] [--only WORD] [--json FILE]`."""

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path

from siege.cases import cases
from siege.laying import Cores, Outcome, lay
from siege.table import as_json, table

CALLS = 200
CALLS_SHORT = 30


def main() -> None:
    parser = argparse.ArgumentParser(prog="siege")
    parser.add_argument("--short", action="store_true", help="every attack with small counts")
    parser.add_argument("--only", action="append", default=[], help="only attacks whose name contains this")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    options = parser.parse_args()
    chosen = [
        case
        for case in cases(short=options.short)
        if not options.only or any(word in case.name for word in options.only)
    ]
    if not chosen:
        sys.exit("no attack has such a name")
    cores = Cores.choose()
    if cores.others is None:
        print("This machine has one core for all: the honest client's times say little.")
    else:
        os.sched_setaffinity(0, {cores.others})
    outcomes: list[Outcome] = []
    for case in chosen:
        started = time.perf_counter()
        outcome = asyncio.run(lay(case, CALLS_SHORT if options.short else CALLS, cores))
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


def report(outcome: Outcome, seconds: float) -> None:
    """Say at once what came of one attack."""
    print(f"{outcome.case}: {'PASS' if outcome.passed else 'FAIL'} after {seconds:.0f} s", flush=True)
    for number, turn in enumerate(outcome.turns, 1):
        happened = ", ".join(f"{name} {times}" for name, times in turn.tally.items())
        print(f"  attack {number}, {turn.seconds:.1f} s: {happened}")
        print(f"    waiting {turn.peak.waiting} at the peak, claims {turn.peak.claims}")
    for check in outcome.checks:
        print(f"  {'met' if check.met else 'NOT MET'}: {check.demand}{f' ({check.found})' if check.found else ''}")


if __name__ == "__main__":
    main()
