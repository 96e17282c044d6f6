"""uvicorn as the HTTP server of a process: its options, the signals it handles, how it stops, and its worker processes.

Relies on the insides of uvicorn, as do `uvicorn_connections` and `uvicorn_httptools`, and nothing else in this package.
"""

import asyncio
import contextlib
import functools
import importlib.util
import logging
import signal
import socket
import sys
import threading
from collections.abc import Generator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

import uvicorn
from uvicorn.server import HANDLED_SIGNALS, ServerState
from uvicorn.supervisors import multiprocess

from bespeak.transports.http.client_addresses import ClientAddresses
from bespeak.transports.http.connection_limits import ConnectionLimits, Connections
from bespeak.transports.http.large_bodies import give_large_blocks_back
from bespeak.transports.http.uvicorn_connections import H11Connection
from bespeak.transports.interfaces import Shutdown

if TYPE_CHECKING:
    from bespeak.transports.http.uvicorn_httptools import HttptoolsConnection

GRACE_SECONDS = 10
"""How long requests under way may still run when the server is told to stop; claimed calls are waited for longer."""
KEEP_ALIVE_SECONDS = 65
"""Longer than clients keep an idle connection, so that it is they who close it, and never in the middle of a request."""
FORCED_SECONDS = 1.0
"""How long everything else may take to end when a second interrupt has cut approved calls off."""
INTERRUPT = "a second interrupt"

_log = logging.getLogger("uvicorn.error")


class HttpProtocols:
    """Makes the protocol of each connection, in place of a class of uvicorn. In each worker its table begins empty."""

    def __init__(self, limits: ConnectionLimits, parser: Literal["h11", "httptools"] | None = None) -> None:
        self._limits = limits
        self._parser: Literal["h11", "httptools"] | None = parser
        self._class = _parser_class(parser)
        self._addresses = ClientAddresses(limits.trusted_proxies)
        self._table: Connections | None = None

    def __reduce__(self) -> Any:
        return HttpProtocols, (self._limits, self._parser)

    @property
    def table(self) -> Connections:
        """The connections there are, and what is known about them."""
        if self._table is None:  # not earlier: the limit on open files is that of the process that serves
            self._table = Connections(self._limits)
        return self._table

    def __call__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> asyncio.Protocol:
        protocol = self._class(config, server_state, app_state, _loop)
        protocol.attach(self.table, self._addresses)
        return protocol


def _parser_class(parser: Literal["h11", "httptools"] | None) -> "type[HttptoolsConnection | H11Connection]":
    """The class for a parser; if none is named, the fast one where it is installed."""
    if parser != "h11":
        try:
            from bespeak.transports.http.uvicorn_httptools import HttptoolsConnection
        except ImportError:
            if parser is not None:
                raise
        else:
            return HttptoolsConnection
    return H11Connection


def uvicorn_options(
    host: str, port: int, more: dict[str, Any], limits: ConnectionLimits | None = None
) -> dict[str, Any]:
    """The options of uvicorn for these apps. Those in `more`, which come from its user, take precedence."""
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
    """Whether an event loop, as uvicorn names it, accepts all waiting connections before it serves the first."""
    return loop != "uvloop" and not (loop == "auto" and importlib.util.find_spec("uvloop"))


def _no_cancellation(record: logging.LogRecord) -> bool:
    """Keep tracebacks of requests that were cancelled at the end out of the log: the app is not at fault."""
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


class HttpServer(uvicorn.Server):
    """Ends in order at the first signal, approved calls included, and soon at a second interrupt.

    A second SIGTERM changes nothing: a supervisor and a terminal may send one each.
    """

    cut_off: Sequence[str] = ()
    """The approved calls that were not waited for to their end."""
    ended_by: int | None = None
    """The signal that ended it, if without this server the signal would have ended the process."""
    last = False
    """Whether its process ends with it. Then a SIGTERM that comes later changes nothing: a supervisor sends one to each of
    its workers, those included that a terminal has interrupted already, and their exit handlers are to run."""
    _forced = False
    _hurry: asyncio.Event | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    def __init__(self, config: uvicorn.Config, shutdown: Shutdown) -> None:
        super().__init__(config)
        self._shutdown = shutdown

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._captured_signals.append(sig)
        if not (self.should_exit and sig == signal.SIGINT):
            self.should_exit = True
            return
        if not self.started:  # an app that does not start is not worth waiting for
            raise KeyboardInterrupt
        self._forced = True
        if self._loop is not None and self._hurry is not None:
            self._loop.call_soon_threadsafe(self._hurry.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        give_large_blocks_back()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop, self._hurry = asyncio.get_running_loop(), asyncio.Event()
        if self._forced:
            self._hurry.set()
        ending = asyncio.create_task(super().shutdown(sockets), name="bespeak http, ending")
        hurrying = asyncio.create_task(self._hurry.wait())
        _log.addFilter(_no_cancellation)
        try:
            await asyncio.wait({ending, hurrying}, return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                await self._end_soon(ending)
            if ending.done() and not ending.cancelled():
                ending.result()
        finally:
            hurrying.cancel()
            ending.cancel()
            self.cut_off = self._shutdown.were_cut_off()
            _log.removeFilter(_no_cancellation)

    async def _end_soon(self, ending: asyncio.Task[None]) -> None:
        await self._shutdown.cut_off(INTERRUPT)
        for task in list(self.server_state.tasks):
            task.cancel(INTERRUPT)
        # With nothing left to wait for, what ends in order does so quickly: connections, and the app's own lifespan.
        _, late = await asyncio.wait({ending}, timeout=FORCED_SECONDS)
        if late:
            self.force_exit = True
            ending.cancel()
            await asyncio.wait({ending}, timeout=FORCED_SECONDS)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Handle signals while the block is open, and pass them on to the handlers that were there before.

        Unlike uvicorn, without killing the process, so that exit handlers and the rest of the program can run.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_IGN if self.last and handler is signal.SIG_DFL else handler)
        for number in reversed(self._captured_signals):
            if before[signal.Signals(number)] is signal.SIG_DFL:
                self.ended_by = number
            else:
                signal.raise_signal(number)


class Worker(multiprocess.Process):
    """One of several processes that share a port."""

    def __init__(
        self,
        shutdown: Shutdown,
        statuses: set[int | None],
        config: uvicorn.Config,
        sockets: list[socket.socket],
    ) -> None:
        self._shutdown = shutdown
        self._statuses = statuses
        """Gets the exit status: the supervisor forgets a worker that it replaces."""
        super().__init__(config, sockets)

    def join(self) -> None:
        super().join()
        self._statuses.add(self.exitcode)

    @property
    def server(self) -> HttpServer:
        if not isinstance(self._server, HttpServer):
            self._server = HttpServer(self.config, self._shutdown)
            self._server.last = True
        return self._server

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, in the process itself. Raises `SystemExit` if an approved call was cut off."""
        with contextlib.suppress(KeyboardInterrupt):
            super().target(sockets)
        if sys.stdin is not None:
            sys.stdin.close()  # uvicorn has opened it for this process, and would leave it open
        self._shutdown.end_program(self.server.cut_off)


def run_workers(config: uvicorn.Config, listening: socket.socket, shutdown: Shutdown) -> set[int | None]:
    """Run workers until told to stop. Returns their exit statuses."""
    statuses: set[int | None] = set()
    # uvicorn makes its workers in several places, and has no option for their class.
    multiprocess.Process = functools.partial(Worker, shutdown, statuses)
    multiprocess.Multiprocess(config, sockets=[listening]).run()
    return statuses
