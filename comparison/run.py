"""Runs the program of each row with each framework, prints the table and writes docs/comparison.md: `make comparison`.

With `CI` set, the page is not written; it is a failure if it would change.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from comparison.table import FRAMEWORKS, ROWS, Measured, page

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "comparison.md"
SECONDS = 60.0


class Failed(Exception):
    """A program did not report anything."""


def measure(python: str, row: str, framework: str) -> Measured:
    """Run one program. Raises `Failed` with what it printed."""
    command = [python, "-m", f"comparison.rows.{row}", framework]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    reported = ended.stdout.strip().splitlines()
    if ended.returncode or not reported:
        raise Failed(f"{row} with {framework} failed:\n{ended.stdout}{ended.stderr}")
    return Measured(**json.loads(reported[-1]))


def main() -> int:
    """Measure all rows. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Compare three frameworks.")
    for framework, name in FRAMEWORKS.items():
        parser.add_argument(f"--{framework}", required=True, help=f"a Python that has {name}")
    pythons: dict[str, str] = vars(parser.parse_args())
    table: dict[str, dict[str, Measured]] = {}
    try:
        for row, situation in ROWS.items():
            print(situation, flush=True)
            table[row] = {}
            for framework, name in FRAMEWORKS.items():
                one = table[row][framework] = measure(pythons[framework], row, framework)
                print(f"  {name:14}{one.says}", flush=True)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    return publish(page(table), PAGE, check=bool(os.environ.get("CI")))


def publish(text: str, file: Path, *, check: bool) -> int:
    """Write the page, or check that it is up to date. Returns the exit code."""
    if not check:
        file.write_text(text)
    elif not file.exists() or file.read_text() != text:
        print(f"{file.name} is not what was measured; run `make comparison` and commit it.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
