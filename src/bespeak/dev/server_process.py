"""The process of a server: it is started with the listening socket, reports once, and ends with the process that started it."""

import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol

from bespeak.dev.supervisor import Report

LEAVE_SECONDS = 30.0
"""How long a process may take to end: approved calls are waited for."""


class ParentPipe(Protocol):
    """A process's end of the pipe to the one that started it."""

    def send(self, obj: Any, /) -> None: ...

    def recv(self) -> Any: ...


class ServerProcess:
    """A child that runs a function of a module: it gets the socket, where it reports, and further arguments."""

    def __init__(self, main: Callable[..., None], listening: socket.socket, *more: Any) -> None:
        context = get_context("spawn")  # a fork would have the modules of this process
        self._pipe, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(
            target=main, args=(listening, theirs, *more), name="bespeak dev server"
        )
        self._process.start()
        theirs.close()
        self._reported = False

    @property
    def exit_code(self) -> int | None:
        return self._process.exitcode

    def wait(self, seconds: float) -> Report | None:
        on = [self._process.sentinel] if self._reported else [self._pipe, self._process.sentinel]
        if self._process.exitcode is not None:
            on = []
            threading.Event().wait(seconds)
        if self._pipe in wait(on, seconds):
            self._reported = True
            with suppress(EOFError, OSError):  # it ended without a word
                report = self._pipe.recv()
                assert isinstance(report, Report)
                return report
        return None

    def stop(self) -> None:
        self._process.terminate()
        self._process.join(LEAVE_SECONDS)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        self._pipe.close()


def end_with_parent(pipe: ParentPipe) -> None:
    """Have this process told to end when the one that started it is gone."""

    def until_gone() -> None:
        with suppress(EOFError, OSError):
            pipe.recv()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=until_gone, name="bespeak dev parent", daemon=True).start()
