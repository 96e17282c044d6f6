"""Running a server as a program: on stdio, or behind uvicorn, until it is told to stop."""

import asyncio
import contextlib
import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bespeak.transports.connections import ConnectionLimits
from bespeak.transports.stdio_server import PrivateFiles, StdioServer, private_stdio
from bespeak.transports.transport import Answering, MissingExtra

if TYPE_CHECKING:
    import uvicorn

    from bespeak.transports.http_server import HttpApp

GRACE_SECONDS = 10
"""How long requests under way may still run when the server is told to stop; claimed calls are waited for longer."""
STUCK_SECONDS = 1.0
"""How long threads may still run when a server is done."""
KEEP_ALIVE_SECONDS = 65
"""Longer than clients keep an idle connection, so that it is they who close it, and never in the middle of a request."""


def run_stdio(make: Callable[[], Answering]) -> None:
    """Serve the client at the other end of stdin and stdout until it leaves, or a signal says so.

    The server is made here, so that nothing it prints on its way gets between the messages.
    """
    with contextlib.suppress(KeyboardInterrupt), private_stdio() as files:
        asyncio.run(_serve_stdio(make(), files, signals=True))
    leave_threads_behind()


def leave_threads_behind() -> None:
    """A sync function that hangs must not keep a program alive whose server is done."""
    if any(thread.name.startswith("AnyIO worker") for thread in threading.enumerate()):
        threading.Thread(target=_end_with_the_main_thread, name="bespeak end", daemon=True).start()


def _end_with_the_main_thread() -> None:
    threading.main_thread().join()
    time.sleep(STUCK_SECONDS)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(1)  # a function that hangs is no success


async def serve_stdio(server: Answering) -> None:
    """Serve the client at the other end of stdin and stdout until it leaves."""
    with private_stdio() as files:
        await _serve_stdio(server, files, signals=False)


async def _serve_stdio(server: Answering, files: PrivateFiles, *, signals: bool) -> None:
    if os.isatty(files.stdin):
        print("Waiting for MCP messages on standard input, one a line. Ctrl-D ends.", file=sys.stderr)
    stdio = StdioServer(server, files.stdin, files.stdout)
    if signals:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError, RuntimeError):  # not everywhere, and in no other thread
                loop.add_signal_handler(number, stdio.stop)
    try:
        await stdio.run()
    finally:
        files.in_use = not stdio.idle


def http_server(
    app: "HttpApp", host: str, port: int, more: dict[str, Any], limits: ConnectionLimits | None = None
) -> "uvicorn.Server":
    """A uvicorn that serves an app the way these apps want it."""
    uvicorn = import_uvicorn()
    return uvicorn.Server(uvicorn.Config(app, **uvicorn_options(host, port, more, limits)))


async def serve_http(server: "uvicorn.Server") -> None:
    """Listen until told to stop; being cancelled is one way to be told."""
    serving = asyncio.create_task(server.serve(), name="bespeak http")
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise


def uvicorn_options(
    host: str, port: int, more: dict[str, Any], limits: ConnectionLimits | None = None
) -> dict[str, Any]:
    """What these apps want of uvicorn, and what its user wants beside."""
    from bespeak.transports.uvicorn_http import HttpProtocols  # which imports uvicorn

    bounds = limits or ConnectionLimits()
    return {
        "host": host,
        "port": port,
        "http": HttpProtocols(bounds),
        "backlog": bounds.backlog(at_once=_accepts_at_once(more.get("loop", "auto"))),
        "access_log": False,
        "lifespan": "on",
        "ws": "none",
        "proxy_headers": False,
        "server_header": False,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": GRACE_SECONDS,
        **more,
    }


def _accepts_at_once(loop: object) -> bool:
    """Whether an event loop, as uvicorn names it, accepts all connections that wait before it looks at the first."""
    return loop != "uvloop" and not (loop == "auto" and importlib.util.find_spec("uvloop"))


def import_uvicorn() -> Any:
    """The module. Raises `MissingExtra`."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("serving over HTTP needs uvicorn: pip install 'bespeak[http]'") from None
    return uvicorn
