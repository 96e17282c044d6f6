"""Commands at a terminal: in this process, with what is typed typed ahead, or in one of their own that can be interrupted."""

import os
import pty
import select
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from unittest import mock

from bespeak.cli.commands import app

SECONDS = 20
"""How long anything here may take before the test gives up."""
PROGRAM = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that its keys send signals
from bespeak.cli import main
main()
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a command at a terminal."""

    code: int
    out: str
    """Its standard output; if that is the terminal too, it is on the screen."""
    screen: str


def _mute(fd: int) -> None:
    """What is typed ahead would show before its questions."""
    attributes = termios.tcgetattr(fd)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, attributes)


def at_terminal(
    *words: str, typed: str = "", after: float = 0.0, output: bool = False, lacking: str | None = None
) -> Ended:
    """A command in this process. `typed` is there from the start, or comes after so many seconds.

    With `output`, the terminal is its standard output too; `lacking` names the stream that is something else.
    """
    ours, its = pty.openpty()
    _mute(its)
    seen = bytearray()

    def watch() -> None:
        try:
            while piece := os.read(ours, 65536):
                seen.extend(piece)
        except OSError:
            pass  # nobody has the other end any more

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    fingers = threading.Timer(after, os.write, (ours, typed.encode()))
    out = StringIO()
    with (
        os.fdopen(os.dup(its)) as stdin,
        os.fdopen(its, "w") as stderr,
        mock.patch.object(sys, "stdin", stdin),
        redirect_stderr(stderr),
        redirect_stdout(stderr if output else out),
        mock.patch.object(sys, lacking, StringIO()) if lacking else nullcontext(),
    ):
        fingers.start()
        code = _code(words)
        fingers.join()
    watching.join(SECONDS)
    os.close(ours)
    return Ended(code, out.getvalue(), seen.decode().replace("\r\n", "\n"))


def _code(words: tuple[str, ...]) -> int:
    try:
        app(list(words))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    raise AssertionError("a command ends its program")


class Terminal:
    """A command in a process of its own, at a terminal of its own, seen from the other side."""

    def __init__(self, program: "subprocess.Popen[str]", fd: int) -> None:
        self.program = program
        self.fd = fd
        self.seen = ""
        self._known = 0

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_for(self, text: str) -> None:
        """Until the terminal shows it, after all that was waited for before."""
        until = time.monotonic() + SECONDS
        while (found := self.seen.find(text, self._known)) < 0:
            assert time.monotonic() < until, f"{text!r} did not come after {self.seen!r}"
            self._look(0.05)
        self._known = found + len(text)

    def _look(self, seconds: float) -> bool:
        ready = bool(select.select([self.fd], [], [], seconds)[0])
        if ready:
            self.seen += os.read(self.fd, 65536).decode()
        return ready

    def ended(self) -> tuple[int, str]:
        """Its exit code and its standard output."""
        out, _ = self.program.communicate(timeout=SECONDS)
        while self._look(0):
            pass
        return self.program.returncode, out


@contextmanager
def in_a_process(*words: str) -> Generator[Terminal]:
    ours, its = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, *words]
    program = subprocess.Popen(
        command, stdin=its, stderr=its, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield Terminal(program, ours)
    finally:
        program.kill()
        program.communicate()
        os.close(ours)
        os.close(its)


def is_gone(pid: Path) -> bool:
    """Whether the process has ended whose number is in that file."""
    try:
        os.kill(int(pid.read_text()), 0)
    except ProcessLookupError:
        return True
    return False
