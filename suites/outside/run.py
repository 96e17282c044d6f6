"""Runs the suites of this folder, each in a new workplace, and prints a line for each.

`python -m suites.outside.run [NAME...]` from the root of the project; `make suites-outside` installs the servers before.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from suites.outside.workplace import workplace

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
ENDING = ".bespeak.yaml"
AT_ONCE = 2
"""How many suites run at the same time. Most of the time goes into starting servers."""


@dataclass(frozen=True, slots=True)
class Run:
    """One suite, run."""

    passed: int
    failed: int
    seconds: float
    code: int
    output: str
    """What the test tool printed."""


def names() -> list[str]:
    """Return the names of all suites."""
    return sorted(path.name.removesuffix(ENDING) for path in FOLDER.glob(f"*{ENDING}"))


def run(name: str, options: list[str]) -> Run:
    """Run a suite in a new workplace."""
    began = time.monotonic()
    with workplace() as variables, tempfile.TemporaryDirectory() as reports:
        report = Path(reports) / "report.json"
        suite = FOLDER.relative_to(ROOT) / f"{name}{ENDING}"
        command = [str(Path(sys.executable).parent / "bespeak"), "test", str(suite), "--report", "pretty", *options]
        ran = subprocess.run(
            [*command, "--report", f"json={report}"],
            check=False,
            cwd=ROOT,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        counts = json.loads(report.read_text())["summary"] if report.exists() else {"passed": 0, "failed": 0}
    return Run(counts["passed"], counts["failed"], time.monotonic() - began, ran.returncode, ran.stdout)


def described(name: str, ran: Run) -> str:
    """Return a line about a run, below the output of the test tool if it failed."""
    tests = f"{ran.failed} of {ran.passed + ran.failed} tests failed" if ran.code else f"{ran.passed} tests"
    line = f"{'FAILED' if ran.code else 'ok':7} {name:20} {tests:24} {ran.seconds:6.1f} s"
    return f"{ran.output}\n{line}" if ran.code else line


def main() -> int:
    """Run the suites that are named, or all. Return the exit code."""
    parser = argparse.ArgumentParser(description="Run the suites for servers of npm and PyPI.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a suite, such as memory; all of them if none is named"
    )
    parser.add_argument("-k", metavar="WORDS", help="run only tests whose title matches")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(names())):
        parser.error(f"no such suite: {', '.join(unknown)}. There are: {', '.join(names())}")
    options = [] if arguments.k is None else ["-k", arguments.k]
    chosen = arguments.names or names()
    failures = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, ran in zip(chosen, pool.map(partial(run, options=options), chosen), strict=True):
            failures += ran.code != 0
            print(described(name, ran), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
