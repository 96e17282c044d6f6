"""Workers of `bespeak run --workers`, loaded by wrk: they scale if calls take no more CPU time with many workers than with one."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.load import until_it_listens
from bench.wrk import free_port, loaded

SERVER = Path(__file__).parent / "worker_server.py"
SECONDS = 3
TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def workers(count: int) -> Generator[tuple[int, int]]:
    """So many workers on all cores: their port, and the id of their parent process."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "bespeak",
        "run",
        str(SERVER),
        "--http",
        "--port",
        str(port),
        "--workers",
        str(count),
    ]
    parent = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        until_it_listens(port, lambda: parent.poll() is None)
        yield port, parent.pid
    finally:
        parent.terminate()
        parent.wait(20)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and of its children."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (int(user) + int(system)) / TICKS + sum(cpu_seconds(int(child)) for child in children)


def cpu_seconds_per_call(tool: str, count: int) -> float:
    """Return the CPU time that one whole call takes of so many workers together."""
    with workers(count) as (port, parent):
        loaded(port, tool, 1)  # to warm up
        before = cpu_seconds(parent)
        calls, _ = loaded(port, tool, SECONDS)
        return (cpu_seconds(parent) - before) / calls
