"""Runs the libraries in turn, several times over, and prints the best times and their ratios: `python -m bench --peer PYTHON`."""

import argparse
import json
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.load import Http, Stdio, until_it_listens

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Row:
    key: str
    work: str
    unit: str
    factor: float
    """From what is measured to the unit."""


IN_PROCESS = [
    Row("plain", "in-process call, plain tool", "us", 1e6),
    Row("resolved", "in-process call, three resolvers", "us", 1e6),
    Row("asked", "in-process call, one question (two rounds)", "us", 1e6),
    Row("waiting", "eight independent 50 ms resolvers", "ms", 1e3),
    Row("import", "import and a server object", "ms", 1e3),
    Row("memory", "memory after that", "MiB", 1),
]
WIRE = [
    Row("http plain", "HTTP, plain tool", "us", 1e6),
    Row("http resolved", "HTTP, three resolvers", "us", 1e6),
    Row("http asked", "HTTP, one question (two requests)", "us", 1e6),
    Row("http waiting", "HTTP, eight 50 ms resolvers", "ms", 1e3),
    Row("stdio plain", "stdio, plain tool", "us", 1e6),
    Row("stdio resolved", "stdio, three resolvers", "us", 1e6),
    Row("stdio asked", "stdio, one question (two requests)", "us", 1e6),
]
CALLS = {"plain": 1000, "resolved": 800, "asked": 250, "waiting": 8}
Times = dict[str, list[float]]
"""What was measured of each piece of work, turn by turn."""


def in_process(python: str, library: str, scale: float) -> dict[str, Any]:
    command = [python, str(HERE / "in_process.py"), library, str(scale)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        sys.exit(f"{library} failed its own bench:\n{finished.stderr}")
    return json.loads(finished.stdout)


@contextmanager
def listening(python: str, library: str) -> Generator[Http]:
    """A library behind uvicorn, and connections to it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    server = subprocess.Popen([python, str(HERE / "server.py"), library, str(port)])
    try:
        until_it_listens(port, lambda: server.poll() is None)
        http = Http(port)
        yield http
        http.close()
    finally:
        server.terminate()
        server.wait(20)


@contextmanager
def speaking(python: str, library: str) -> Generator[Stdio]:
    """A library on stdio."""
    stdio = Stdio([python, str(HERE / "server.py"), library, "stdio"])
    yield stdio
    stdio.close()


def wire(peer: str, turns: int, scale: float) -> tuple[Times, Times, Times]:
    """Seconds per call: ours, the peer's, and a bare app's, in so many turns taken in alternation."""
    ours, theirs, bare = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list), Times()
    calls = {tool: max(8, int(number * scale)) for tool, number in CALLS.items()}
    with ExitStack() as stack:
        sides = [(ours, sys.executable, "bespeak"), (theirs, peer, "mcp")]
        https = [(times, stack.enter_context(listening(python, library))) for times, python, library in sides]
        stdios = [(times, stack.enter_context(speaking(python, library))) for times, python, library in sides]
        floor = stack.enter_context(listening(sys.executable, "bare"))
        bare |= {"http plain": [], "http asked": []}
        for turn in range(turns + 1):
            for tool, number in calls.items():
                for times, http in https:
                    times[f"http {tool}"].append(http.run(tool, number))
                if f"http {tool}" in bare:
                    bare[f"http {tool}"].append(floor.run(tool, number, requests=2 if tool == "asked" else 1))
                for times, stdio in stdios:
                    if tool != "waiting":
                        times[f"stdio {tool}"].append(stdio.run(tool, max(8, number // 4)))
            if turn == 0:  # which was to warm up
                for times in (ours, theirs, bare):
                    for measured in times.values():
                        measured.clear()
    return ours, theirs, bare


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("--peer", required=True, help="an interpreter that has the official SDK")
    parser.add_argument("--turns", type=int, default=9, help="how often each library is run, in alternation")
    parser.add_argument("--scale", type=float, default=1.0, help="how many calls to make, 1 being the full bench")
    options = parser.parse_args()
    ours, theirs, bare = wire(options.peer, options.turns, options.scale)
    version = ""
    for _ in range(options.turns):
        for times, python, library in [(ours, sys.executable, "bespeak"), (theirs, options.peer, "mcp")]:
            measured = in_process(python, library, options.scale)
            version = measured.pop("version")
            for key, value in measured.items():
                times[key].append(value)
    print(f"{'work':<44} {'bespeak':>12} {f'mcp {version}':>12} {'ratio':>8}  share of a bare ASGI app's speed")
    for row in [*WIRE, *IN_PROCESS]:
        us, them = min(ours[row.key]), min(theirs[row.key])  # what else runs on a machine only ever adds
        share = f"{min(bare[row.key]) / us:>8.0%}" if row.key in bare else ""
        print(
            f"{row.work:<44} {us * row.factor:>8.1f} {row.unit:<3} {them * row.factor:>8.1f} {row.unit:<3} "
            f"{them / us:>7.1f}x {share}"
        )


if __name__ == "__main__":
    main()
