"""Run the tests on a busy machine, again and again: `make stress`. Stops at the first failure.

`stress-ng` keeps four workers busy meanwhile. The tests that wait for time or for another process (marked `timing`) are run more
often than the others, because these are the ones that a busy machine can break.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

BUSY_WORKERS = 4


def main() -> None:
    """Run the tests as often as the command line says."""
    parser = argparse.ArgumentParser(prog="stress")
    parser.add_argument("--tests", type=int, default=5, help="how often all tests are run")
    parser.add_argument("--timing", type=int, default=100, help="how often the tests marked `timing` are run")
    options = parser.parse_args()
    with busy_machine():
        for number in range(1, options.tests + 1):
            run(f"all tests, {number} of {options.tests}", "-n", "3")
        for number in range(1, options.timing + 1):
            run(f"tests marked timing, {number} of {options.timing}", "-n", "4", "-m", "timing")


@contextmanager
def busy_machine() -> Generator[None]:
    """Keep the machine busy while the block is open."""
    program = shutil.which("stress-ng")
    if program is None:
        sys.exit("stress-ng is not installed; install it first, with `apt-get install stress-ng` on Debian")
    stress = subprocess.Popen([program, "--cpu", str(BUSY_WORKERS), "--quiet"])
    try:
        yield
    finally:
        stress.terminate()
        stress.wait()


def run(name: str, *arguments: str) -> None:
    """Run pytest once. Ends the program if a test fails."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "pytest", *arguments], capture_output=True, text=True, check=False)
    last = next((line for line in reversed(done.stdout.splitlines()) if line.strip()), "no output")
    print(f"{name}: {last} ({time.monotonic() - began:.0f} s)", flush=True)
    if done.returncode:
        sys.exit(done.stdout)


if __name__ == "__main__":
    main()
