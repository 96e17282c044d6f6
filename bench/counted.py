"""Counts the instructions of a call, which do not depend on what else the machine does: `python -m bench.counted`.

What a bare ASGI app and the load itself take is subtracted, and is the unit at the same time. Fails if a call takes a fifth more
than when `EXPECTED` was set. Needs valgrind. Another Python counts differently, so nothing is compared there.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
FEW, MANY = 40, 120
"""The difference between these numbers of calls leaves out what it takes to start."""
ALLOWED = 1.2
EXPECTED = {"plain": 0.41, "resolved": 0.73, "asked": 5.42, "older": 0.26}
"""How many times the instructions of a bare app a call took, beyond those of the bare app, when this was last set."""
EXPECTED_ON = (3, 11)
REQUESTS = {"asked": 2}


def script(library: str, tool: str, calls: int) -> list[str]:
    return [sys.executable, str(HERE / "counted_calls.py"), library, tool, str(calls)]


def instructions(library: str, tool: str, calls: int) -> int:
    """Return how many instructions a process needs that makes so many calls."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *script(library, tool, calls)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    counted = re.search(r"Collected : (\d+)", finished.stderr)
    if finished.returncode or counted is None:
        sys.exit(f"{library} {tool} failed:\n{finished.stderr}")
    return int(counted[1])


def per_call(row: tuple[str, str]) -> float:
    """Return the instructions of one call, without those of starting up."""
    library, tool = row
    return (instructions(library, tool, MANY) - instructions(library, tool, FEW)) / (MANY - FEW)


def main() -> None:
    rows = [("bare", "plain"), *(("bespeak", tool) for tool in EXPECTED)]
    for library, tool in rows[:2]:  # so that no run that is counted has to compile something first
        subprocess.run(script(library, tool, 1), check=True)
    with ThreadPoolExecutor(2) as pool:
        floor, *counts = pool.map(per_call, rows)
    worse = False
    for (tool, expected), count in zip(EXPECTED.items(), counts, strict=True):
        ours = count / floor - REQUESTS.get(tool, 1)
        worse = worse or ours > expected * ALLOWED
        print(
            f"{tool:<10}{count / 1000:>7.0f} thousand instructions, {ours:.2f} times a bare app's; expected {expected}"
        )
    if worse and sys.version_info[:2] == EXPECTED_ON:
        sys.exit("A call takes a fifth more instructions than expected. If that is meant, change EXPECTED.")


if __name__ == "__main__":
    main()
