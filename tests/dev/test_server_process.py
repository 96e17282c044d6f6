"""A server's process: what it reports, how it ends, and that it does not outlive the one that started it."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Generator
from multiprocessing import get_context

import pytest

from bespeak.dev import server_process
from bespeak.dev.server_process import ParentPipe, ServerProcess, end_with_parent
from bespeak.dev.supervisor import Loaded, Report
from tests.cli.programs import SECONDS

pytestmark = [pytest.mark.timing, pytest.mark.long]


@pytest.fixture
def listening() -> Generator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def greet(listening: socket.socket, pipe: ParentPipe, word: str) -> None:
    """Report the port and a word, and greet whoever connects, until told to end."""
    pipe.send(Report(Loaded.SERVES, [word, str(listening.getsockname()[1])]))
    end_with_parent(pipe)
    while True:
        accepted, _ = listening.accept()
        with accepted:
            accepted.send(str(os.getpid()).encode())


def end_at_once(listening: socket.socket, pipe: ParentPipe) -> None:
    """Load nothing, and report nothing."""
    sys.exit(3)


def ignore_signals(listening: socket.socket, pipe: ParentPipe) -> None:
    """Do not end when told to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pipe.send(Report(Loaded.SERVES))
    time.sleep(SECONDS)


def reported(child: ServerProcess) -> Report | None:
    """What the process reports, or `None` if it has ended."""
    while child.exit_code is None:
        report = child.wait(0.1)
        if report is not None:
            return report
    return None


def test_a_process_gets_the_socket_and_reports_once_and_ends_when_told(listening: socket.socket) -> None:
    child = ServerProcess(greet, listening, "hello")
    assert reported(child) == Report(Loaded.SERVES, ["hello", str(listening.getsockname()[1])])
    assert child.wait(0.0) is None
    with socket.create_connection(listening.getsockname(), SECONDS) as connection:
        assert int(connection.recv(100)) != os.getpid()
    child.stop()
    assert child.exit_code == -signal.SIGTERM
    assert child.wait(0.0) is None


def test_a_process_that_ends_without_a_word_has_its_exit_code(listening: socket.socket) -> None:
    child = ServerProcess(end_at_once, listening)
    assert reported(child) is None
    assert child.exit_code == 3
    child.stop()


def test_a_process_that_does_not_end_is_killed(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "LEAVE_SECONDS", 0.1)
    child = ServerProcess(ignore_signals, listening)
    assert reported(child) == Report(Loaded.SERVES)
    child.stop()
    assert child.exit_code == -signal.SIGKILL


def test_a_process_is_told_to_end_when_the_one_that_started_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()
    ours, theirs = get_context("spawn").Pipe()

    def kill(process: int, number: int) -> None:
        told.set()

    monkeypatch.setattr(os, "kill", kill)
    end_with_parent(theirs)
    assert not told.is_set()
    ours.close()
    assert told.wait(SECONDS)
    theirs.close()
