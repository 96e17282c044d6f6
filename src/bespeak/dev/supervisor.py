"""Keeps a server process running, and starts it again when its source changes.

The server runs in a process of its own: only a new process has nothing left of the old modules. This one does not load the
author's code. It holds the listening socket, so that requests wait during a restart instead of being refused.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from bespeak.dev.source_files import SourceFiles, State, changed

POLL_SECONDS = 0.3
STARTED_AGAIN = "{files} changed; the server starts again"
ENDED = "the server's process ended with code {code}; it starts again when a file changes"


class Loaded(Enum):
    """What became of the server's file."""

    SERVES = auto()
    FAILED = auto()
    """The page shows why, and nothing else is served."""
    GIVEN_UP = auto()
    """The first time: the process ends."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a server process says when it has loaded its file, or could not."""

    loaded: Loaded
    files: Sequence[str] = ()
    """The source files to look at."""


class Child(Protocol):
    """The process of a server."""

    @property
    def exit_code(self) -> int | None:
        """How it ended; `None` if it runs."""
        ...

    def wait(self, seconds: float) -> Report | None:
        """Wait until something happens, or for so long. Return the report of the process, once, if there is one."""
        ...

    def stop(self) -> None:
        """Tell the process to end in order, and return when it has ended."""
        ...


class Supervisor:
    """Starts processes one after the other. `start` gets whether it is the first one."""

    def __init__(self, start: Callable[[bool], Child], say: Callable[[str], None], source: SourceFiles) -> None:
        self._start = start
        self._say = say
        self._source = source
        self._loaded_before = False
        self._child: Child | None = None

    def run(self, ready: Callable[[], None]) -> int:
        """Run until an interrupt, or until the first process gives up. Return the exit code.

        `ready` is called when the server serves for the first time.
        """
        try:
            while True:
                self._child = self._start(not self._loaded_before)
                ended = self._watch(self._child, ready)
                if isinstance(ended, int):
                    return ended
                self._child.stop()
                self._say(STARTED_AGAIN.format(files=ended))  # from here on, requests wait for the next one
        except KeyboardInterrupt:
            return self._end()

    def _end(self) -> int:
        while self._child is not None and self._child.exit_code is None:
            with suppress(KeyboardInterrupt):  # a terminal has sent it to the process too, which hurries then
                self._child.stop()
        return 1 if self._child is not None and self._child.exit_code == 1 else 0

    def _watch(self, child: Child, ready: Callable[[], None]) -> str | int:
        """Return the files that have changed, once there are some, or the exit code."""
        before = self._source.state()
        told_end = False
        while True:
            report = child.wait(POLL_SECONDS)
            if report is not None:
                self._source.add(report.files)
                # What was saved while it was being loaded is a change as well; a file that was not looked at is not.
                now = self._source.state()
                before = {name: before.get(name, told) for name, told in now.items()}
                if report.loaded is Loaded.SERVES and not self._loaded_before:
                    self._loaded_before = True
                    ready()
            elif child.exit_code is not None and not told_end:
                if not self._loaded_before or child.exit_code == 0:
                    return child.exit_code
                told_end = True
                self._say(ENDED.format(code=child.exit_code))
            if files := self._changed(before):
                return files

    def _changed(self, before: State) -> str:
        """Return what has changed, in a few words, once nothing changes any more: an editor may write in several steps."""
        now = self._source.state()
        names = changed(before, now)
        if not names or self._child is None:
            return ""
        while True:
            self._child.wait(POLL_SECONDS)
            later = self._source.state()
            if later == now:
                break
            now = later
        first = names[0].rpartition("/")[2]
        return first if len(names) == 1 else f"{first} and {len(names) - 1} more"
