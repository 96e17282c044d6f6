"""`bespeak run --http` as a process: what its workers leave behind, and connections beyond its limit on open files."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Timer

import pytest
import uvicorn

from bespeak.server.running import SHUTDOWN
from bespeak.transports.http.uvicorn_server import Worker

pytestmark = [pytest.mark.timing, pytest.mark.skipif(sys.platform == "win32", reason="signals and limits on files")]


@contextmanager
def listening(folder: Path, *options: str, files: int = 1024) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    program = folder / "attacked.py"
    program.write_text('from bespeak import MCPServer\n\nmcp = MCPServer("attacked")\n')
    run = [sys.executable, "-X", "dev", "-m", "bespeak.cli", "run", str(program), "--http", "--port", str(port)]
    command = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *run, *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            for _ in range(400):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield process, port
        finally:
            process.kill()


@pytest.mark.long
def test_several_workers_end_without_a_socket_left_open(tmp_path: Path) -> None:
    with listening(tmp_path, "--workers", "2") as (server, _):
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=20)
    assert b"ResourceWarning" not in said


@pytest.mark.long
def test_a_worker_that_ends_while_it_is_pinged_is_not_waited_for() -> None:
    worker = Worker(SHUTDOWN, set(), uvicorn.Config("no_such_module:app", log_level="critical"), [])
    worker.start()
    pid = worker.pid
    assert pid is not None
    Timer(0.1, os.kill, (pid, signal.SIGKILL)).start()  # long before it can answer
    began = time.monotonic()
    assert not worker.is_alive(timeout=20)
    assert time.monotonic() - began < 10
    worker.join()


def ask(port: int, address: str) -> bytes:
    """The status line of a request from an address."""
    with socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(address, 0)) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return client.makefile("rb").readline()


@pytest.mark.long
@pytest.mark.parametrize("half", [b"", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"], ids=["silent", "half a head"])
def test_more_unfinished_requests_than_there_are_files_keep_no_other_address_out(tmp_path: Path, half: bytes) -> None:
    with listening(tmp_path, files=128) as (_, port), ExitStack() as stack:
        for number in range(160):
            attacker = socket.create_connection(("127.0.0.1", port), timeout=20, source_address=("127.0.0.2", 0))
            stack.enter_context(attacker).sendall(half)
            if number % 20 == 0:
                assert b" 200 " in ask(port, "127.0.0.1")
        assert b" 200 " in ask(port, "127.0.0.1")
        answers = (ask(port, "127.0.0.2") for _ in range(50) if time.sleep(0.1) is None)
        assert any(b" 200 " in answer for answer in answers), "once the attacker's connections are no longer young"
