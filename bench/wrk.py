"""Load over HTTP from `wrk`, on a core of its own, so that the server is what is measured."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from bench.load import until_it_listens

HERE = Path(__file__).parent
CONNECTIONS = 8
"""Requests in flight, one a connection: the server always has something to do."""
NO_SESSION = "-"


def on_core(number: int) -> Callable[[], None]:
    """Return what a new process runs first to stay on one core. With one core only, everything shares it."""
    cores = sorted(os.sched_getaffinity(0))
    mine = {cores[number % len(cores)]}
    return lambda: os.sched_setaffinity(0, mine)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def listening(python: str, library: str, kind: str = "json", *, core: int | None = 0) -> Generator[tuple[int, int]]:
    """A library behind uvicorn: its port, and the id of its process."""
    port = free_port()
    command = [python, str(HERE / "server.py"), library, str(port), kind]
    # The child sets its own core before it becomes a server; no other thread runs in this process.
    server = subprocess.Popen(command, preexec_fn=None if core is None else on_core(core))  # noqa: PLW1509
    try:
        until_it_listens(port, lambda: server.poll() is None)
        yield port, server.pid
    finally:
        server.terminate()
        server.wait(20)


def seconds_per_call(port: int, tool: str, seconds: int, session: str = NO_SESSION) -> float:
    """Return how long a server takes for one whole call of a tool."""
    calls, took = loaded(port, tool, seconds, session)
    return took / calls


def loaded(port: int, tool: str, seconds: int, session: str = NO_SESSION) -> tuple[int, float]:
    """Return how many whole calls a server answered, and in how many seconds. Ends the program if an answer was wrong."""
    wrk = shutil.which("wrk")
    if wrk is None:
        sys.exit("wrk is not installed: install Debian's package `wrk`")
    command = [wrk, "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(HERE / "load.lua")]
    command += [f"http://127.0.0.1:{port}/mcp", "--", tool, f"127.0.0.1:{port}", session]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=on_core(1))
    figures = re.search(r"^calls (\d+) seconds ([\d.]+) wrong (\d+) ?(.*)", finished.stdout, re.MULTILINE)
    if figures is None or finished.returncode:
        sys.exit(f"wrk failed: {finished.stdout}{finished.stderr}")
    calls, took, wrong, example = int(figures[1]), float(figures[2]), int(figures[3]), figures[4]
    if wrong or not calls:
        sys.exit(f"{wrong} requests of {tool} were not answered as they should be: {example}")
    return calls, took
