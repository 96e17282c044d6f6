"""`bespeak dev`: serve a server on this machine, start it again when its source changes, and show a page to try it."""

import importlib.util
import secrets
import socket
import sys
from contextlib import ExitStack
from dataclasses import dataclass

from bespeak.cli.dev_settings import HOST, DevSettings
from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.output import INDENT, complain, tell
from bespeak.cli.signals import stoppable
from bespeak.dev.inspector import Inspector, NoInspector, find_npx, has_npx
from bespeak.dev.page_gate import PREFIX
from bespeak.dev.server_process import ServerProcess
from bespeak.dev.source_files import SourceFiles
from bespeak.dev.supervisor import Supervisor
from bespeak.server.running import require_uvicorn
from bespeak.transports.http.listening_address import listening_problem
from bespeak.transports.interfaces import MissingExtra

PORT = 8000
BACKLOG = 128
"""How many connections may wait while the server is started again."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line of `bespeak dev`."""

    target: str
    port: int | None
    inspector: bool


def develop(flags: Flags) -> int:
    """Serve until an interrupt. Return the exit code."""
    port = flags.port or PORT
    try:
        _require_http()
        npx = find_npx() if flags.inspector else None
    except (MissingExtra, NoInspector) as error:
        return complain(str(error), ExitCode.BAD_USAGE, error)
    problem = listening_problem(HOST, port)
    if problem is not None:
        return complain(problem, ExitCode.UNREACHABLE)
    from bespeak.cli.dev_worker import serve_once  # imported when it is known that what it needs is installed

    settings = DevSettings(flags.target, port, secrets.token_urlsafe(24))
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server((HOST, port), backlog=BACKLOG))

        def ready() -> None:
            _welcome(settings, npx is None and has_npx())
            if npx is not None:
                stack.callback(Inspector(npx, settings.endpoint).stop)

        def start(first: bool) -> ServerProcess:
            return ServerProcess(serve_once, listening, settings, first)

        stack.enter_context(stoppable(interrupts=True))
        return Supervisor(start, tell, SourceFiles()).run(ready)


def _require_http() -> None:
    """Raises `MissingExtra`."""
    require_uvicorn()
    if importlib.util.find_spec("httpx2") is None:
        raise MissingExtra("the page of bespeak dev needs httpx2: pip install 'bespeak[http]'")


def _welcome(settings: DevSettings, suggest_inspector: bool) -> None:
    tell(f"Serving {settings.target}; it starts again when its source changes. Press Ctrl-C to stop.")
    # Not wrapped: a URL must stay in one piece, to be opened or copied.
    print(f"{INDENT}MCP endpoint: {settings.endpoint}", file=sys.stderr)
    print(f"{INDENT}Page:         http://{HOST}:{settings.port}{PREFIX}{settings.token}/", file=sys.stderr)
    if suggest_inspector:
        print(f"{INDENT}Inspector:    add --inspector to open the MCP Inspector", file=sys.stderr)
