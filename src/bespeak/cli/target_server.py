"""The Python server of a command that loads one, without what its file prints."""

import sys
from contextlib import redirect_stdout
from typing import Any

from bespeak.server.server import MCPServer
from bespeak.server.targets import load


def server_of(target: str) -> MCPServer[Any]:
    """Return the server at a target. What its file prints goes to stderr: stdout is for results. Raises `NoServer`."""
    with redirect_stdout(sys.stderr):
        return load(target)
