"""`bespeak run --workers` while it starts: when it says its address, and what an interrupt prints."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.programs import SECONDS, end, free_port, over_http
from tests.waiting import eventually

pytestmark = [pytest.mark.timing, pytest.mark.long, pytest.mark.skipif(sys.platform == "win32", reason="signals")]

SLOW = """
import os, time
from bespeak import MCPServer
if "BESPEAK_RUN_TARGET" in os.environ:  # in a worker
    time.sleep(0.7)
mcp = MCPServer("slow")
"""
AT_START = """
import pathlib, sys, time
if any("spawn_main" in word for word in sys.orig_argv):  # a worker, long before it serves
    pathlib.Path(__file__).with_name("starting").touch()
    time.sleep(1)
"""


@contextmanager
def started(folder: Path, port: int) -> Generator[subprocess.Popen[str]]:
    """Two workers, in a group of processes of their own."""
    file = folder / "slow.py"
    file.write_text(SLOW)
    command = [word.replace("PORT", str(port)) for word in over_http(file, "--workers", "2")]
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    try:
        yield process
    finally:
        end(process)


def test_the_address_is_announced_when_workers_accept_connections(tmp_path: Path) -> None:
    port = free_port()
    with started(tmp_path, port) as process:
        assert process.stderr is not None
        said: list[str] = []
        while "Uvicorn running on" not in (line := process.stderr.readline()):
            assert line, said
            said.append(line)
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b" 200 " in client.makefile("rb").readline()
        process.terminate()
        _, rest = process.communicate(timeout=SECONDS)
    assert f"http://127.0.0.1:{port}/mcp (Press CTRL+C to quit)" in line
    assert "Uvicorn running on" not in rest


async def test_an_interrupt_while_workers_start_prints_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(AT_START)
    with started(tmp_path, free_port()) as process:
        await eventually((tmp_path / "starting").exists, SECONDS)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, said = await asyncio.to_thread(process.communicate, timeout=SECONDS)
    assert process.returncode == 0
    assert "KeyboardInterrupt" not in said
    assert "Traceback" not in said
    assert "Uvicorn running on" not in said
