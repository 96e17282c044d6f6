"""Running a server as a program: on stdio, or behind uvicorn, until it is told to stop."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bespeak.transports.stdio_server import StdioServer, private_stdio
from bespeak.transports.transport import Serving

if TYPE_CHECKING:
    import uvicorn

    from bespeak.transports.http_server import HttpApp

GRACE_SECONDS = 10
"""How long requests under way may still run when the server is told to stop; claimed calls are waited for longer."""
KEEP_ALIVE_SECONDS = 65
"""Longer than clients keep an idle connection, so that it is they who close it, and never in the middle of a request."""


def run_stdio(make: Callable[[], Serving]) -> None:
    """Serve the client at the other end of stdin and stdout until it leaves, or a signal says so.

    The server is made here, so that nothing it prints on its way gets between the messages.
    """
    with private_stdio() as (stdin, stdout):
        asyncio.run(_serve_stdio(make(), stdin, stdout, signals=True))


async def serve_stdio(server: Serving) -> None:
    """Serve the client at the other end of stdin and stdout until it leaves."""
    with private_stdio() as (stdin, stdout):
        await _serve_stdio(server, stdin, stdout, signals=False)


async def _serve_stdio(server: Serving, stdin: int, stdout: int, *, signals: bool) -> None:
    if os.isatty(stdin):
        print("Waiting for MCP messages on standard input, one a line. Ctrl-D ends.", file=sys.stderr)
    stdio = StdioServer(server, stdin, stdout)
    if signals:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError, RuntimeError):  # not everywhere, and in no other thread
                loop.add_signal_handler(number, stdio.stop)
    await stdio.run()


def http_server(app: "HttpApp | str", host: str, port: int, more: dict[str, Any]) -> "uvicorn.Server":
    """A uvicorn that serves an app, or what makes one, the way these apps want it."""
    return _uvicorn().Server(_uvicorn().Config(app, **uvicorn_options(host, port, more)))


def uvicorn_options(host: str, port: int, more: dict[str, Any]) -> dict[str, Any]:
    """What these apps want of uvicorn, and what its user wants beside."""
    return {
        "host": host,
        "port": port,
        "access_log": False,
        "lifespan": "on",
        "ws": "none",
        "proxy_headers": False,
        "server_header": False,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": GRACE_SECONDS,
        **more,
    }


def _uvicorn() -> Any:
    try:
        import uvicorn
    except ImportError:
        raise ImportError("serving over HTTP needs uvicorn: pip install 'bespeak[http]'") from None
    return uvicorn
