"""Runs the libraries in turn, several times over, and prints their ratios: `python -m bench --peer PYTHON`."""

import argparse
import json
import socket
import subprocess
import sys
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
CALLS = {"plain": 2000, "resolved": 1500, "asked": 500, "waiting": 8}
Times = dict[str, float]


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


def keep_best(best: Times, key: str, seconds: float) -> None:
    best[key] = min(best.get(key, seconds), seconds)


def forget(best: Times, key: str, seconds: float) -> None: ...


def wire(peer: str, turns: int, scale: float) -> tuple[Times, Times, Times]:
    """Seconds per call: ours, the peer's, and a bare app's, the best of so many turns taken in alternation."""
    ours, theirs, bare = Times(), Times(), Times()
    calls = {tool: max(8, int(number * scale)) for tool, number in CALLS.items()}
    with ExitStack() as stack:
        sides = [(ours, sys.executable, "bespeak"), (theirs, peer, "mcp")]
        https = [(best, stack.enter_context(listening(python, library))) for best, python, library in sides]
        stdios = [(best, stack.enter_context(speaking(python, library))) for best, python, library in sides]
        floor = stack.enter_context(listening(sys.executable, "bare"))
        for turn in range(-1, turns):  # the first one is to warm up
            take = keep_best if turn >= 0 else forget
            for tool, number in calls.items():
                for best, http in https:
                    take(best, f"http {tool}", http.run(tool, number))
                    if tool == "plain":
                        take(bare, "http plain", floor.run(tool, number))
                    elif tool == "asked":
                        take(bare, "http asked", floor.run(tool, number, requests=2))
                for best, stdio in stdios:
                    if tool != "waiting":
                        take(best, f"stdio {tool}", stdio.run(tool, max(8, number // 4)))
    return ours, theirs, bare


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("--peer", required=True, help="an interpreter that has the official SDK")
    parser.add_argument("--turns", type=int, default=5, help="how often each library is run, in alternation")
    parser.add_argument("--scale", type=float, default=1.0, help="how many calls to make, 1 being the full bench")
    options = parser.parse_args()
    ours, theirs, bare = wire(options.peer, options.turns, options.scale)
    version = ""
    for _ in range(options.turns):
        for best, python, library in [(ours, sys.executable, "bespeak"), (theirs, options.peer, "mcp")]:
            measured = in_process(python, library, options.scale)
            version = measured.pop("version")
            for key, value in measured.items():
                keep_best(best, key, value)
    print(f"{'work':<44} {'bespeak':>12} {f'mcp {version}':>12} {'ratio':>8}  share of a bare ASGI app's speed")
    for row in [*WIRE, *IN_PROCESS]:
        us, them = ours[row.key], theirs[row.key]
        share = f"{bare[row.key] / us:>8.0%}" if row.key in bare else ""
        print(
            f"{row.work:<44} {us * row.factor:>8.1f} {row.unit:<3} {them * row.factor:>8.1f} {row.unit:<3} "
            f"{them / us:>7.1f}x {share}"
        )


if __name__ == "__main__":
    main()
