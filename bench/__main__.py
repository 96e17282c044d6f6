"""Runs both libraries in turn, several times over, and prints their ratios: `python -m bench --peer PYTHON`."""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUBJECT = Path(__file__).parent / "subject.py"


@dataclass(frozen=True, slots=True)
class Row:
    key: str
    work: str
    unit: str
    factor: float
    """From what is measured to the unit."""


ROWS = [
    Row("plain", "in-process call, plain tool", "us", 1e6),
    Row("resolved", "in-process call, three resolvers", "us", 1e6),
    Row("asked", "in-process call, one question (two rounds)", "us", 1e6),
    Row("waiting", "eight independent 50 ms resolvers", "ms", 1e3),
    Row("import", "import and a server object", "ms", 1e3),
    Row("memory", "memory after that", "MiB", 1),
]


def run(python: str, library: str, scale: float) -> dict[str, Any]:
    command = [python, str(SUBJECT), library, str(scale)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        sys.exit(f"{library} failed its own bench:\n{finished.stderr}")
    return json.loads(finished.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("--peer", required=True, help="an interpreter that has the official SDK")
    parser.add_argument("--turns", type=int, default=5, help="how often each library is run, in alternation")
    parser.add_argument("--scale", type=float, default=1.0, help="how many calls to make, 1 being the full bench")
    options = parser.parse_args()
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    for _ in range(options.turns):
        ours.append(run(sys.executable, "bespeak", options.scale))
        theirs.append(run(options.peer, "mcp", options.scale))
    peer = f"mcp {theirs[0]['version']}"
    print(f"{'work':<44} {'bespeak':>12} {peer:>12} {'ratio':>8}")
    for row in ROWS:
        us = min(turn[row.key] for turn in ours) * row.factor
        them = min(turn[row.key] for turn in theirs) * row.factor
        print(f"{row.work:<44} {us:>8.1f} {row.unit:<3} {them:>8.1f} {row.unit:<3} {them / us:>7.1f}x")


if __name__ == "__main__":
    main()
