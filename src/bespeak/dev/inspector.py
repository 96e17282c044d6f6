"""Starts the official MCP Inspector, which is a program for node, with the endpoint filled in."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence

LEAVE_SECONDS = 5.0
PACKAGE = "@modelcontextprotocol/inspector@2"
"""Older ones do not know these options, and are what npx takes for an older node unless the version is named."""
NO_NODE = (
    "--inspector needs node 22.19 or newer, and there is no command npx; install node from https://nodejs.org, or leave out "
    "--inspector: the page of bespeak dev needs nothing"
)


class NoInspector(Exception):
    """The Inspector cannot be started. The message says why."""


def find_npx() -> str:
    """Return the program that runs packages of node. Raises `NoInspector`."""
    found = shutil.which("npx")
    if found is None:
        raise NoInspector(NO_NODE)
    return found


def has_npx() -> bool:
    """Return whether there is the program that runs packages of node."""
    return shutil.which("npx") is not None


def inspector_command(npx: str, url: str) -> Sequence[str]:
    """Return the command that starts the Inspector for an endpoint."""
    return [npx, "--yes", PACKAGE, "--transport", "http", "--server-url", url]


class Inspector:
    """The Inspector while it runs. What it prints goes to this terminal: it has a URL of its own."""

    def __init__(self, npx: str, url: str) -> None:
        # In a session of its own: npx starts further processes, and all of them are told to end.
        self._process = subprocess.Popen(inspector_command(npx, url), stdin=subprocess.DEVNULL, start_new_session=True)

    def stop(self) -> None:
        """Tell it to end, if it still runs."""
        if self._process.poll() is not None:
            return
        if os.name == "posix":
            os.killpg(self._process.pid, signal.SIGTERM)
        else:
            self._process.terminate()
        try:
            self._process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
