"""Redis for tests: the server that the environment names, or one that is started here."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "BESPEAK_TEST_REDIS"
SKIPPED = "redis-server is not installed: the Redis tests are skipped"
MISSING = f"redis-server is not installed, and CI is set. Install it, or set {VARIABLE} to the URL of a server"
_SECONDS = 20


class RedisServer:
    """A server of its own, on a free port of this machine. It can be stopped, and started again on the same port."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._directory = directory
        self._options = options
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        """Return when it answers."""
        give_up = time.monotonic() + _SECONDS
        while time.monotonic() < give_up:
            if self._process is None or self._process.poll() is not None:  # another program may have taken the port
                self._process = self._launch()
            if self._answers():
                return
            time.sleep(0.01)
        raise TimeoutError(f"redis-server did not start within {_SECONDS} s")

    def _launch(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                *("redis-server", "--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"),
                *("--dir", str(self._directory), *self._options),
            ],
            stdout=subprocess.DEVNULL,
        )

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(100).startswith(b"+PONG")
        except OSError:
            return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait(_SECONDS)
            self._process = None

    def freeze(self) -> None:
        """Let it accept connections and answer nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def own_server(directory: Path, *options: str) -> Generator[RedisServer]:
    """A server that nobody else uses. Skips the test where there is none; fails it in CI."""
    if shutil.which("redis-server") is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(SKIPPED)
    server = RedisServer(directory, *options)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextmanager
def shared_server(directory: Path) -> Generator[str]:
    """The URL of a server whose settings must be left alone: others may use it at the same time, with other prefixes."""
    named = os.environ.get(VARIABLE)
    if named:
        yield named
    else:
        with own_server(directory) as server:
            yield server.url


def client(url: str) -> Any:
    """A client that looks at the keys themselves. The redis package has no complete types."""
    return import_module("redis").Redis.from_url(url)


def keys_of(url: str, prefix: str) -> list[str]:
    """Return the names of all keys that begin so."""
    with client(url) as redis:
        return sorted(key.decode() for key in redis.scan_iter(f"{prefix}*", 1000))
