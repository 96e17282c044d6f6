"""Runs the libraries in turn, several times over, and prints medians, spread and ratios: `python -m bench --peer PYTHON`.

Each server has a core of its own; the load comes from another one. Every answer is checked.
"""

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.pythons import environment, interpreter

from bench.figures import BARE, FASTMCP, NEWER, OURS, SDK, Figures, as_json, missed, table
from bench.growth import grown, growth_table
from bench.legacy import LegacyClient
from bench.load import Http, Stdio
from bench.pushed import seconds_per_pushed_call
from bench.wrk import CONNECTIONS, NO_SESSION, listening, on_core, seconds_per_call

HERE = Path(__file__).parent
LOADS = ("plain", "resolved", "asked")
PUSHED_CALLS = 400
STDIO_CALLS = {"plain": 250, "resolved": 200, "asked": 60}


class Bench:
    """The figures so far, and the interpreters of the libraries."""

    def __init__(self, interpreters: dict[str, str], turns: int, seconds: int, scale: float) -> None:
        self.interpreters = interpreters
        self.turns = turns
        self.seconds = seconds
        self.scale = scale
        self.figures: Figures = {}
        self.versions: dict[str, str] = {}

    def put(self, row: str, library: str, measured: float) -> None:
        self.figures.setdefault(row, {}).setdefault(library, []).append(measured)

    @property
    def libraries(self) -> Sequence[str]:
        """The libraries under measurement, without the bare app."""
        return [one for one in self.interpreters if one != BARE]

    def http(self) -> None:
        """Load from wrk: in each turn, each library does each kind of work."""
        with ExitStack() as stack:
            ports = {
                library: stack.enter_context(listening(python, name(library)))[0]
                for library, python in self.interpreters.items()
            }
            streams = {
                library: stack.enter_context(listening(self.interpreters[library], name(library), "stream"))[0]
                for library in self.libraries
            }
            sessions = {library: asyncio.run(session(ports[library])) for library in self.libraries}
            for port in ports.values():
                seconds_per_call(port, "plain", 1)  # to warm up
            for _ in range(self.turns):
                for tool in LOADS:
                    for library in self.libraries:
                        self.put(f"http {tool}", library, seconds_per_call(ports[library], tool, self.seconds))
                    bare = seconds_per_call(ports[BARE], "plain", self.seconds) if tool != "resolved" else None
                    if bare is not None:
                        self.put(f"http {tool}", BARE, bare * (2 if tool == "asked" else 1))
                for library in self.libraries:
                    took = seconds_per_call(streams[library], "progressing", self.seconds)
                    self.put("http progressing", library, took)
                for library in self.libraries:
                    took = seconds_per_call(ports[library], "plain", self.seconds, sessions[library])
                    self.put("http older", library, took)
                for library in self.libraries:
                    calls = max(CONNECTIONS, round(PUSHED_CALLS * self.scale))
                    self.put("http pushed", library, pushed(streams[library], library, calls))
                for library in self.libraries:
                    http = Http(ports[library])
                    self.put("http waiting", library, http.run("waiting", CONNECTIONS) * CONNECTIONS)
                    http.close()

    def stdio(self) -> None:
        """One request at a time."""
        with ExitStack() as stack:
            sides: dict[str, Stdio] = {}
            for library in self.libraries:
                command = [self.interpreters[library], str(HERE / "server.py"), name(library), "stdio"]
                sides[library] = Stdio(command)
                stack.callback(sides[library].close)
                sides[library].run("plain", 20)
            for _ in range(self.turns):
                for tool, calls in STDIO_CALLS.items():
                    for library, stdio in sides.items():
                        self.put(f"stdio {tool}", library, stdio.run(tool, max(8, round(calls * self.scale))))

    def in_process(self) -> None:
        """A client and a server in one process, on one core; and how long it takes to get there."""
        for _ in range(self.turns):
            for library in self.libraries:
                command = [self.interpreters[library], str(HERE / "in_process.py"), name(library), str(self.scale)]
                finished = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=on_core(0))
                if finished.returncode:
                    sys.exit(f"{library} failed its own bench:\n{finished.stderr}")
                measured: dict[str, Any] = json.loads(finished.stdout)
                self.versions[library] = measured.pop("version")
                for key, value in measured.items():
                    self.put(key, library, value)


def name(library: str) -> str:
    """The library that is imported."""
    return OURS if library == NEWER else library


async def session(port: int) -> str:
    """Begin a session of 2025-11-25, and return its id."""
    client = LegacyClient(port)
    await client.begin()
    return client.session or NO_SESSION


async def begun(port: int) -> list[str]:
    """Begin sessions of 2025-11-25, and return their ids."""
    clients = [LegacyClient(port) for _ in range(CONNECTIONS)]
    await asyncio.gather(*(client.begin() for client in clients))
    return [client.session for client in clients]


def pushed(port: int, library: str, calls: int) -> float:
    """Seconds per call whose question is pushed and answered, several at a time."""
    tool = "asked_older" if library == FASTMCP else "asked"
    return seconds_per_pushed_call(port, asyncio.run(begun(port)), tool, calls, {"yes": True})


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("--peer", required=True, help="an interpreter that has the official SDK")
    parser.add_argument("--fastmcp", required=True, help="an interpreter that has FastMCP")
    parser.add_argument("--newer", action="store_true", help="measure Bespeak on Python 3.13 too, where it is found")
    parser.add_argument("--turns", type=int, default=5, help="how often each library is run, in alternation")
    parser.add_argument("--seconds", type=int, default=2, help="how long each kind of load over HTTP lasts in a turn")
    parser.add_argument("--scale", type=float, default=1.0, help="how many calls to make otherwise")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    interpreters = {OURS: sys.executable, SDK: options.peer, FASTMCP: options.fastmcp}
    python = interpreter("3.13") if options.newer else None
    if python is not None:
        interpreters[NEWER] = environment("3.13", python)
    bench = Bench({**interpreters, BARE: sys.executable}, options.turns, options.seconds, options.scale)
    bench.http()
    bench.stdio()
    bench.in_process()
    growth = grown(options.scale)
    print(", ".join(f"{library} {version}" for library, version in bench.versions.items()))
    print("\n".join([*table(bench.figures), "", *growth_table(growth)]))
    for line in missed(bench.figures):
        print(f"not reached: {line}")
    if options.json is not None:
        written = as_json(bench.figures, growth, bench.versions)
        options.json.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
