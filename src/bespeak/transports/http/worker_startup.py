"""Workers that are starting: interrupts are held back until they serve, and the address is announced when one accepts."""

import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Generator
from multiprocessing import resource_tracker


@contextlib.contextmanager
def interrupts_held() -> Generator[None]:
    """Hold interrupts back in the block. In a process that is started in it they are held back until it releases them."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # starting it would release them
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def release_interrupts() -> None:
    """Called in a process that was started with interrupts held back. One that has arrived since takes effect now."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


class Announcement(logging.Filter):
    """What uvicorn logs about the address when it binds it, kept until a worker accepts connections."""

    def __init__(self, log: logging.Logger) -> None:
        super().__init__()
        self._log = log
        self._records: list[logging.LogRecord] = []

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.INFO:
            return True
        self._records.append(record)
        return False

    @contextlib.contextmanager
    def kept(self) -> Generator[None]:
        """Keep what is logged in the block, except warnings and errors."""
        self._log.addFilter(self)
        try:
            yield
        finally:
            self._log.removeFilter(self)

    def make(self) -> None:
        """Log what was kept, once."""
        records, self._records = self._records, []
        for record in records:
            self._log.handle(record)


def accepts(bound: socket.socket) -> bool:
    """Whether connections are accepted at a socket: another process that shares it listens."""
    try:
        return bound.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0
    except OSError:  # a system that does not say
        return True
