"""A command line that begins with a tool: the file of the server was forgotten."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path


def forgotten_file(words: Sequence[str]) -> str | None:
    """Return what to write, if the words of `bespeak call` probably begin with a tool, because no command has such a name."""
    if not words or not words[0].replace("-", "_").isidentifier() or shutil.which(words[0]) is not None:
        return None
    line = shlex.join(["bespeak", "call", _server_here(), *words])
    return f"if {words[0]!r} is a tool, name its server first: {line}"


def _server_here() -> str:
    """The file in this folder that is probably meant."""
    files = sorted(one for one in Path.cwd().glob("*.py") if one.is_file())
    servers = [one.name for one in files if "MCPServer" in one.read_text("utf-8", "replace")]
    return "server.py" if "server.py" in servers or not servers else servers[0]
