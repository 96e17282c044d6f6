"""uvicorn as the HTTP server of a process: its options, its connections, the signals it handles, how it stops, and its workers.

The only module that imports uvicorn, and all that relies on its insides. What is decided about connections and about the end
of a server is in `bounded_connections` and `graceful_shutdown`; here it is said in uvicorn's words.
"""

import asyncio
import contextlib
import functools
import importlib.util
import logging
import signal
import socket
import sys
from collections.abc import Callable, Generator
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import HANDLED_SIGNALS, ServerState
from uvicorn.supervisors import multiprocess

from bespeak.transports.http.asgi import ASGIApp, end_stream
from bespeak.transports.http.bounded_connections import BoundedConnection
from bespeak.transports.http.client_addresses import ClientAddresses
from bespeak.transports.http.connection_limits import ConnectionLimits, Connections
from bespeak.transports.http.endpoint_line import EndpointLine
from bespeak.transports.http.framing import HEAD_BYTES
from bespeak.transports.http.graceful_shutdown import GRACE_SECONDS, GracefulShutdown
from bespeak.transports.http.large_bodies import give_large_blocks_back
from bespeak.transports.http.listening_address import listening_problem
from bespeak.transports.http.refusals import read_first
from bespeak.transports.http.worker_startup import Announcement, accepts, interrupts_held, release_interrupts
from bespeak.transports.interfaces import Shutdown

if TYPE_CHECKING:
    from uvicorn.protocols.http.flow_control import FlowControl

KEEP_ALIVE_SECONDS = 65
"""Longer than clients keep an idle connection, so that it is they who close it, and never in the middle of a request."""
STARTUP_FAILURE = 3
"""The exit status of a worker that cannot start."""

_log = logging.getLogger("uvicorn.error")


# Options


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


# Connections


class HttpProtocols:
    """Makes the protocol of each connection, in place of a class of uvicorn. In each worker its table begins empty."""

    def __init__(self, limits: ConnectionLimits, parser: Literal["h11", "httptools"] | None = None) -> None:
        self._limits = limits
        self._parser: Literal["h11", "httptools"] | None = parser
        self._class = _protocol_class(parser)
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


class BoundedProtocol(asyncio.Protocol):
    """A mixin before uvicorn's own protocol class, for both parsers: what happens goes to a `BoundedConnection`, and what that
    needs to know or do is read and done here."""

    if TYPE_CHECKING:  # uvicorn's own, in both
        app: Any
        client: tuple[str, int] | None
        config: uvicorn.Config
        cycle: Any
        flow: FlowControl
        scope: Any
        timeout_keep_alive_task: asyncio.TimerHandle | None
        transport: asyncio.Transport

    _table: Connections
    _addresses: ClientAddresses
    _connection: BoundedConnection

    def attach(self, table: Connections, addresses: ClientAddresses) -> None:
        """Set the table that this connection is counted in."""
        self._table, self._addresses = table, addresses

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        raw = cast("asyncio.Transport", transport)
        self._connection = BoundedConnection(raw, self, self._table)
        super().connection_made(_UvicornTransport(raw, self._connection))
        self._connection.begin(self.client[0] if self.client else None, self._addresses)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.lose()
        super().connection_lost(exc)
        self._connection.forget()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._connection.stalled()

    def resume_writing(self) -> None:
        self._connection.flowing()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._connection.deaf:
            return self._connection.discard(data)
        if self._table.pressed:
            self._choose_app()
        return self._connection.receive(data)

    # What uvicorn calls

    def shutdown(self) -> None:
        """Called when uvicorn stops."""
        if self._connection.stop():
            cast("Any", super()).shutdown()
            end_stream(self.scope)

    def send_400_response(self, msg: str) -> None:
        """Called when the parser gives up."""
        self._connection.malformed()
        cast("Any", super()).send_400_response(msg)

    # What the connection needs of a `RequestHandler`

    def parse(self, data: bytes) -> None:
        super().data_received(data)

    def in_request(self) -> bool:
        return False

    def busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def has_whole_body(self) -> bool:
        return not self.cycle.more_body

    def is_responding(self) -> bool:
        return self.cycle.response_started

    def waits_for_next(self) -> bool:
        return self.timeout_keep_alive_task is not None

    def reading_paused(self) -> bool:
        return self.flow.read_paused

    def pause_reading(self) -> None:
        self.flow.pause_reading()

    def resume_reading(self) -> None:
        self.flow.resume_reading()

    def lose_client(self) -> None:
        self.cycle.disconnected = True
        self.cycle.message_event.set()

    def close_after_response(self) -> None:
        self.cycle.keep_alive = False

    def mute(self) -> None:
        cast("_UvicornTransport", self.transport).mute()

    def _choose_app(self) -> None:
        self.app = read_first if self._connection.must_read_first() else cast("Any", self.config).loaded_app


class _UvicornTransport(asyncio.Transport):
    """A transport as uvicorn sees it; closing it is left to the connection."""

    def __init__(self, raw: asyncio.Transport, connection: BoundedConnection) -> None:
        super().__init__()
        self._raw = raw
        self._muted = False
        self.close = connection.finish
        self.write = raw.write
        self.get_extra_info = raw.get_extra_info
        self.pause_reading = raw.pause_reading
        self.resume_reading = raw.resume_reading

    def is_closing(self) -> bool:
        return self._muted or self._raw.is_closing()

    def mute(self) -> None:
        self._muted = True
        self.write = _ignore


def _ignore(data: Any) -> None:
    pass


class H11Connection(BoundedProtocol, H11Protocol):
    """A connection with h11, the parser that is always installed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # What is too long is for the connection to say: h11 counts what it happens to hold.
        self.conn = h11.Connection(h11.SERVER, 2 * HEAD_BYTES)
        super().connection_made(transport)


MakeProtocol = Callable[
    [uvicorn.Config, ServerState, dict[str, Any], asyncio.AbstractEventLoop | None], BoundedProtocol
]


def _protocol_class(parser: Literal["h11", "httptools"] | None) -> MakeProtocol:
    """The class for a parser; if none is named, the fast one where it is installed."""
    if parser != "h11":
        try:
            return _httptools_class()
        except ImportError:
            if parser is not None:
                raise
    return H11Connection


def _httptools_class() -> MakeProtocol:
    """The class for httptools, the fast parser, which is not installed everywhere. Raises `ImportError`."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class HttptoolsConnection(BoundedProtocol, HttpToolsProtocol):
        """Follows what arrives only where a request comes in pieces."""

        _between = True
        """Whether the parser is between two requests."""

        def data_received(self, data: bytes) -> None:
            connection = self._connection
            if connection.framing is not None or connection.deaf or len(data) > HEAD_BYTES:
                return super().data_received(data)
            if self._table.pressed:
                self._choose_app()
            self.parse(data)  # every head in it is short enough
            if self._between and self.busy():
                return connection.arrived()
            return connection.follow_up(data)

        def in_request(self) -> bool:
            return not self._between

        def on_message_begin(self) -> None:
            self._between = False
            super().on_message_begin()

        def on_message_complete(self) -> None:
            self._between = True
            super().on_message_complete()

    return HttptoolsConnection


# The server


def _no_cancellation(record: logging.LogRecord) -> bool:
    """Keep tracebacks of requests that were cancelled at the end out of the log: the app is not at fault."""
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


class HttpServer(uvicorn.Server):
    """Ends in order at the first signal, approved calls included, and soon at a second interrupt.

    A second SIGTERM changes nothing: a supervisor and a terminal may send one each.
    """

    def __init__(self, config: uvicorn.Config, shutdown: Shutdown, path: str = "") -> None:
        """`path` is that of the MCP endpoint, for the line that says where the server listens."""
        super().__init__(config)
        self.ending = GracefulShutdown(shutdown)
        self._line = EndpointLine(_log, path)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._captured_signals.append(sig)
        if not (self.should_exit and sig == signal.SIGINT):
            self.should_exit = True
        elif self.started:
            self.ending.hurry()
        else:  # an app that does not start is not worth waiting for
            raise KeyboardInterrupt

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        if sockets is None:
            _check_address(self.config)
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        give_large_blocks_back()
        with self._line.shown():
            await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _log.addFilter(_no_cancellation)
        try:
            await self.ending.run(super().shutdown(sockets), self._cancel_requests, self._force)
        finally:
            _log.removeFilter(_no_cancellation)

    def _cancel_requests(self, reason: str) -> None:
        for task in list(self.server_state.tasks):
            task.cancel(reason)

    def _force(self) -> None:
        self.force_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Unlike uvicorn, without killing the process, so that exit handlers and the rest of the program can run."""
        with self.ending.handled_signals(HANDLED_SIGNALS, self.handle_exit, self._captured_signals):
            yield


def _check_address(config: uvicorn.Config) -> None:
    """Raises `SystemExit` if the address is in use: before the app's lifespan, where uvicorn would find out after it."""
    if config.uds is None and config.fd is None and (problem := listening_problem(config.host, config.port)):
        _log.error(problem)
        sys.exit(STARTUP_FAILURE)


def make_server(
    app: ASGIApp,
    host: str,
    port: int,
    more: dict[str, Any],
    limits: ConnectionLimits | None,
    shutdown: Shutdown,
    path: str,
) -> HttpServer:
    """A server of one app. `more` are options of uvicorn; `path` is that of the MCP endpoint."""
    return HttpServer(uvicorn.Config(app, **uvicorn_options(host, port, more, limits)), shutdown, path)


# Workers


class WorkerServer(HttpServer):
    """The server of a worker. From here on, interrupts are handled."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        with super().capture_signals():
            release_interrupts()
            yield


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

    def start(self) -> None:
        # An interrupt at a terminal reaches workers too. One that is still being imported would print a traceback.
        with interrupts_held():
            super().start()
        if sys.platform != "win32":
            # The worker has its own. While this one is open, a ping does not notice that the worker has ended.
            self.child_conn.close()

    def join(self) -> None:
        super().join()
        self._statuses.add(self.exitcode)

    @property
    def server(self) -> HttpServer:
        if not isinstance(self._server, HttpServer):
            self._server = WorkerServer(self.config, self._shutdown)
            self._server.ending.is_last = True
        return self._server

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, in the process itself. Raises `SystemExit` if an approved call was cut off."""
        with contextlib.suppress(KeyboardInterrupt):
            super().target(sockets)
        if sys.stdin is not None:
            sys.stdin.close()  # uvicorn has opened it for this process, and would leave it open
        self._shutdown.end_program(self.server.ending.cut_off)


def run_workers(
    factory: str, number: int, host: str, port: int, limits: ConnectionLimits, shutdown: Shutdown, path: str
) -> set[int | None]:
    """Run workers until told to stop; `factory` names what makes the app of each, `path` is that of its MCP endpoint.

    Returns their exit statuses.
    """
    options = uvicorn_options(host, port, {"workers": number, "factory": True}, limits)
    config = uvicorn.Config(factory, **options)
    statuses: set[int | None] = set()
    # uvicorn makes its workers in several places, and has no option for their class.
    multiprocess.Process = functools.partial(Worker, shutdown, statuses)

    announcement = Announcement(_log)

    class Supervisor(multiprocess.Multiprocess):
        def keep_subprocess_alive(self) -> None:
            super().keep_subprocess_alive()
            stops = self.signal_queue or self.should_exit.is_set()
            if not stops and all(map(accepts, self.sockets)):
                announcement.make()

        def terminate_all(self) -> None:
            # Otherwise connections would be accepted that no worker serves any more.
            for one in self.sockets:
                one.close()
            super().terminate_all()

    _check_address(config)
    with EndpointLine(_log, path).shown(), announcement.kept():
        listening = config.bind_socket()
    with listening:
        Supervisor(config, sockets=[listening]).run()
    return statuses
