"""Runs a server as a program, over stdio or HTTP, until it is stopped."""

import asyncio
import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bespeak.server.calls.call_tasks import cut_off_here, were_cut_off_here
from bespeak.server.leftover_threads import leave_threads_behind
from bespeak.transports.http.connection_limits import ConnectionLimits
from bespeak.transports.interfaces import Answering, MissingExtra, Shutdown
from bespeak.transports.stdio.private_stdio import PrivateFiles, private_stdio
from bespeak.transports.stdio.stdio_server import StdioServer

if TYPE_CHECKING:
    from bespeak.transports.http.app import HttpApp
    from bespeak.transports.http.uvicorn_server import HttpServer

CUT_OFF_STATUS = 1
"""The exit status of a program whose server could not wait for an approved call."""


def run_stdio(make: Callable[[], Answering]) -> None:
    """Serve the client at the other end of stdin and stdout until it leaves or a signal ends the server.

    `make` is called here, so that nothing it prints gets between the messages. Raises `SystemExit` if an approved call
    was cut off.
    """
    cut_off: list[str] = []
    with contextlib.suppress(KeyboardInterrupt), private_stdio() as files:
        cut_off = asyncio.run(_serve_stdio(make(), files, signals=True))
    end_program(cut_off)


def run_http(server: "HttpServer") -> None:
    """Listen until a signal ends the server. Raises `SystemExit` if an approved call was cut off."""
    with contextlib.suppress(KeyboardInterrupt):  # which comes again when the server has ended in order
        server.run()
    end_program(server.cut_off)


def end_program(cut_off: Sequence[str]) -> None:
    """Called when the server of a program has ended. Raises `SystemExit` if approved calls were cut off."""
    leave_threads_behind()
    if cut_off:
        sys.exit(CUT_OFF_STATUS)


SHUTDOWN = Shutdown(cut_off_here, were_cut_off_here, end_program)


async def serve_stdio(server: Answering) -> None:
    """Serve the client at the other end of stdin and stdout until it leaves."""
    with private_stdio() as files:
        await _serve_stdio(server, files, signals=False)


async def _serve_stdio(server: Answering, files: PrivateFiles, *, signals: bool) -> list[str]:
    """Serve until the client leaves. Return the names of approved calls that were cut off."""
    if os.isatty(files.stdin):
        print("Waiting for MCP messages on standard input, one per line. Press Ctrl-D to stop.", file=sys.stderr)
    stdio = StdioServer(server, files.stdin, files.stdout)
    if signals:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError, RuntimeError):  # not everywhere, and in no other thread
                # A second one changes nothing: a client may send several, and what is approved is waited for.
                loop.add_signal_handler(number, stdio.stop)
    try:
        await stdio.run()
    finally:
        files.in_use = not stdio.idle
    return were_cut_off_here()


def http_server(
    app: "HttpApp", host: str, port: int, more: dict[str, Any], limits: ConnectionLimits | None = None
) -> "HttpServer":
    """Return a uvicorn server for an app, with the options that these apps need. Raises `MissingExtra`."""
    require_uvicorn()
    import uvicorn

    from bespeak.transports.http.uvicorn_server import HttpServer, uvicorn_options

    return HttpServer(uvicorn.Config(app, **uvicorn_options(host, port, more, limits)), SHUTDOWN)


async def serve_http(server: "HttpServer") -> None:
    """Listen until a signal or a cancellation stops the server.

    Raises `SystemExit` after a signal that would have ended the process, so that the caller ends as well.
    """
    serving = asyncio.create_task(server.serve(), name="bespeak http")
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise
    if server.ended_by is not None:
        sys.exit(128 + server.ended_by)


def require_uvicorn() -> None:
    """Raises `MissingExtra` if uvicorn is not installed."""
    try:
        importlib.import_module("uvicorn")
    except ImportError:
        raise MissingExtra("serving over HTTP needs uvicorn: pip install 'bespeak[http]'") from None
