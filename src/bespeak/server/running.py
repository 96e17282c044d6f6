"""Runs a server: as a program over stdio or HTTP, until it is stopped, or as an ASGI app."""

import asyncio
import contextlib
import difflib
import importlib.util
import inspect
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from bespeak.protocol.origins import TransportSecuritySettings
from bespeak.server.calls.call_tasks import cut_off_here, were_cut_off_here
from bespeak.server.leftover_threads import leave_threads_behind
from bespeak.server.loading import refuse_running
from bespeak.server.never_run import used
from bespeak.transports.interfaces import (
    MESSAGE_LIMIT,
    Answering,
    Authenticator,
    MissingExtra,
    SessionServer,
    Shutdown,
)

if TYPE_CHECKING:
    import socket

    from bespeak.transports.http.app import HttpApp
    from bespeak.transports.http.asgi import ASGIApp
    from bespeak.transports.http.connection_limits import ConnectionLimits
    from bespeak.transports.http.custom_routes import Route
    from bespeak.transports.http.legacy.event_store import EventStore
    from bespeak.transports.http.uvicorn_server import HttpServer
    from bespeak.transports.stdio.private_stdio import PrivateFiles

# What only one transport needs is imported where that transport is started: most servers run over one.

FnT = TypeVar("FnT", bound=Callable[..., Any])

HIGHEST_PORT = 65535
CUT_OFF_STATUS = 1
"""The exit status of a program whose server could not wait for an approved call."""


def run_stdio(make: Callable[[], Answering]) -> None:
    """Serve the client at the other end of stdin and stdout until it leaves or a signal ends the server.

    `make` is called here, so that nothing it prints gets between the messages. Raises `SystemExit` if an approved call
    was cut off.
    """
    from bespeak.transports.stdio.private_stdio import private_stdio

    cut_off: list[str] = []
    with contextlib.suppress(KeyboardInterrupt), private_stdio() as files:
        cut_off = asyncio.run(_serve_stdio(make(), files, signals=True))
    end_program(cut_off)


def run_http(server: "HttpServer", listening: "list[socket.socket] | None" = None) -> None:
    """Listen until a signal ends the server, at its address or at sockets that are given. Raises `SystemExit` if an approved call
    was cut off.
    """
    with contextlib.suppress(KeyboardInterrupt):  # which comes again when the server has ended in order
        server.run(listening)
    end_program(server.ending.cut_off)


def end_program(cut_off: Sequence[str]) -> None:
    """Called when the server of a program has ended. Raises `SystemExit` if approved calls were cut off."""
    leave_threads_behind()
    if cut_off:
        sys.exit(CUT_OFF_STATUS)


SHUTDOWN = Shutdown(cut_off_here, were_cut_off_here, end_program)


async def serve_stdio(server: Answering) -> None:
    """Serve the client at the other end of stdin and stdout until it leaves."""
    from bespeak.transports.stdio.private_stdio import private_stdio

    with private_stdio() as files:
        await _serve_stdio(server, files, signals=False)


async def _serve_stdio(server: Answering, files: "PrivateFiles", *, signals: bool) -> list[str]:
    """Serve until the client leaves. Return the names of approved calls that were cut off."""
    from bespeak.transports.stdio.stdio_server import StdioServer

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
    app: "ASGIApp", host: str, port: int, more: dict[str, Any], limits: "ConnectionLimits | None" = None, path: str = ""
) -> "HttpServer":
    """Return a uvicorn server for an app, with the options that these apps need. Raises `MissingExtra`.

    It says that it listens at the `path` of the MCP endpoint.
    """
    require_uvicorn()
    from bespeak.transports.http.uvicorn_server import make_server

    return make_server(app, host, port, more, limits, SHUTDOWN, path)


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
    if server.ending.ended_by is not None:
        sys.exit(128 + server.ending.ended_by)


def require_uvicorn() -> None:
    """Raises `MissingExtra` if uvicorn is not installed."""
    if importlib.util.find_spec("uvicorn") is None:
        raise MissingExtra("serving over HTTP needs uvicorn: pip install 'bespeak[http]'")


def _refuse_in_async_code(transport: str) -> None:
    """Raises `RuntimeError` if an event loop runs already: a second one cannot be started in its thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    name = "run_stdio_async" if transport == "stdio" else "run_streamable_http_async"
    raise RuntimeError(
        f"run() starts an event loop of its own, so it cannot be called in async code; write `await mcp.{name}(...)` here, or "
        "call run() outside of async functions"
    )


def _check_http_options(port: object, options: Mapping[str, Any]) -> None:
    """Raises `ValueError` for a port that does not exist, and `TypeError` for an option that does not."""
    if not isinstance(port, int) or not 0 <= port <= HIGHEST_PORT:
        raise ValueError(f"port must be a whole number from 0 to {HIGHEST_PORT}, not {port!r}")
    functions = (RunnableServer.run_streamable_http_async, RunnableServer.streamable_http_app)
    names = sorted({name for fn in functions for name in inspect.signature(fn).parameters} - {"self", "options"})
    for name in options.keys() - names:
        near = difflib.get_close_matches(name, names, 1)
        told = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(names)}"
        raise TypeError(f"run('streamable-http') does not accept the option {name!r}; {told}")


class RunnableServer(SessionServer):
    """A server that can run itself over every transport."""

    store_is_shared = False
    """Whether other processes may use the same store."""

    def __init__(self) -> None:
        self._routes: list[Route] = []
        self._authenticator: Authenticator | None = None

    def _all_routes(self) -> "list[Route]":
        """Return the custom routes to serve."""
        return self._routes

    def custom_route(
        self,
        path: str,
        methods: list[str],
        name: str | None = None,
        include_in_schema: bool = True,
        *,
        protected: bool = False,
    ) -> Callable[[FnT], FnT]:
        """Register a handler for your own HTTP path, next to the MCP endpoint.

        Everybody can reach it, including web pages, even if the server has authentication.

        With `protected=True` the `Host` and `Origin` headers are checked first, as for the MCP endpoint. That keeps web
        pages out, but it does not authenticate the client.

        The handler takes one request and returns an `HttpResponse` or any ASGI app, such as one of Starlette's
        responses. `name` and `include_in_schema` exist for compatibility with the official SDK and have no effect.
        """

        from bespeak.transports.http.custom_routes import Route

        def register(handler: FnT) -> FnT:
            self._routes.append(Route.of(path, methods, handler, protected=protected))
            return handler

        return register

    def streamable_http_app(
        self,
        *,
        streamable_http_path: str = "/mcp",
        json_response: bool = False,
        stateless_http: bool = False,
        event_store: "EventStore | None" = None,
        retry_interval: int | None = None,
        max_request_body_size: int = MESSAGE_LIMIT,
        session_idle_timeout: float | None = 1800.0,
        max_sessions: int | None = 10_000,
        transport_security: TransportSecuritySettings | None = None,
        host: str = "127.0.0.1",
        health_path: str | None = "/health",
        request_body_timeout: float = 30.0,
        max_incoming_bytes: int = 64 * 1024 * 1024,
        trusted_proxies: Sequence[str] = (),
    ) -> "HttpApp":
        """Return the server as an ASGI app, to run or to mount.

        An app that mounts it must run its lifespan: `FastAPI(lifespan=mcp.lifespan)`. `host` is the address it will
        listen on. On loopback, only requests to a loopback name are accepted.

        Only clients of 2025-11-25 and earlier have sessions. With `stateless_http` they are served without sessions and
        cannot be asked anything. With an `event_store` they can resume a broken stream, after `retry_interval`
        milliseconds. If the server has a shared store, several workers may serve it, and the event store must be shared by them
        too: it says so with an attribute `shared` that is true.

        A body may have `max_request_body_size` bytes, and must arrive within `request_body_timeout` seconds. All bodies
        above 64 KiB that arrive at the same time may have `max_incoming_bytes` together; others wait for their turn.
        These limits apply to custom routes too.

        Limits per client are counted by its address. Behind a proxy, the forwarded address counts, if `trusted_proxies`
        names the proxy by its address or network, such as `10.0.0.0/8`. Name only proxies that write `X-Forwarded-For`
        or `Forwarded` themselves, because the addresses they forward are trusted.
        """
        used(self)
        # Who serves on stdio only needs none of it.
        from bespeak.transports.http.app import HttpApp, HttpOptions
        from bespeak.transports.http.legacy.endpoint import LegacyOptions

        if session_idle_timeout is not None and session_idle_timeout <= 0:
            raise ValueError(
                "session_idle_timeout must be a positive number of seconds, or None for sessions that never expire"
            )
        if retry_interval is not None and retry_interval < 0:
            raise ValueError("retry_interval must be a number of milliseconds that is not negative")
        if max_incoming_bytes < 1:
            raise ValueError("max_incoming_bytes must be at least 1")
        if max_sessions is not None and max_sessions < 1:
            raise ValueError("max_sessions must be at least 1; for no sessions at all use stateless_http=True")
        if event_store is not None and self.store_is_shared and not getattr(event_store, "shared", False):
            raise ValueError(
                "the server has a shared store, so several workers may serve it, but event_store keeps the events of one process. "
                "Pass an event store that all workers share, with the attribute shared = True, or none"
            )
        paths = (streamable_http_path.rstrip("/"), streamable_http_path.rstrip("/") + "/")
        if any(route.match(path) is not None for route in self._all_routes() for path in paths):
            raise ValueError(f"a custom route matches the path of the MCP endpoint, {streamable_http_path!r}")
        documented = sorted(self._authenticator.metadata.paths) if self._authenticator is not None else ()
        for path in documented:
            if any(route.match(path) is not None for route in self._all_routes()):
                raise ValueError(f"a custom route matches a path of the protected-resource metadata, {path!r}")
        options = HttpOptions(
            path=streamable_http_path,
            health_path=health_path,
            json_response=json_response,
            body_limit=max_request_body_size,
            body_seconds=request_body_timeout,
            incoming_bytes=max_incoming_bytes,
            host=host,
            security=transport_security,
            trusted_proxies=trusted_proxies,
            legacy=LegacyOptions(
                stateless=stateless_http,
                json_only=json_response,
                event_store=event_store,
                retry_ms=retry_interval,
                idle_seconds=session_idle_timeout,
                max_sessions=max_sessions,
            ),
        )
        self._check_scopes()
        return HttpApp(self, options, self._all_routes, self._authenticator)

    def _check_scopes(self) -> None:
        """Raises `ValueError` if something is protected by scopes, and nothing says which scopes a client has."""

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object) -> AsyncGenerator[None]:
        """The server's lifespan, to pass to a Starlette or FastAPI app that mounts the server."""
        async with self.running():
            yield

    def run(self, transport: Literal["stdio", "streamable-http"] = "stdio", **options: Any) -> None:
        """Serve until the server is stopped. `options` are those of `run_streamable_http_async`; stdio has none.

        Raises `SystemExit` if the server cannot start, or if an approved call had to be cut off.
        """
        used(self)
        refuse_running()
        _refuse_in_async_code(transport)
        if transport == "stdio":
            if options:
                raise TypeError(
                    f"run('stdio') does not accept options, but got {', '.join(options)}; "
                    "options are for run('streamable-http')"
                )
            run_stdio(lambda: self)
        elif transport == "streamable-http":
            run_http(self._http_server(**options))
        else:
            raise ValueError(f"transport must be 'stdio' or 'streamable-http', not {transport!r}")

    async def run_stdio_async(self) -> None:
        """Serve the client that started this process, until it closes standard input."""
        refuse_running()
        await serve_stdio(self)

    async def run_streamable_http_async(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        uvicorn_config: dict[str, Any] | None = None,
        max_connections: int | None = None,
        request_head_timeout: float = 20.0,
        response_read_timeout: float = 30.0,
        max_unread_output: int = 64 * 1024 * 1024,
        **options: Any,
    ) -> None:
        """Listen until the server is stopped. `options` are those of `streamable_http_app`.

        At most `max_connections` connections are open; `None` means two thirds of the files that the process may open.
        When more than half are open, one address may hold a tenth. The head of a request must arrive within
        `request_head_timeout` seconds. A client that reads less than 32 KiB of its responses in `response_read_timeout`
        seconds is disconnected. While more than `max_unread_output` bytes in total wait to be read, clients that do not
        read are disconnected sooner.
        """
        refuse_running()
        server = self._http_server(
            host=host,
            port=port,
            uvicorn_config=uvicorn_config,
            max_connections=max_connections,
            request_head_timeout=request_head_timeout,
            response_read_timeout=response_read_timeout,
            max_unread_output=max_unread_output,
            **options,
        )
        await serve_http(server)

    def _http_server(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        uvicorn_config: dict[str, Any] | None = None,
        max_connections: int | None = None,
        request_head_timeout: float = 20.0,
        response_read_timeout: float = 30.0,
        max_unread_output: int = 64 * 1024 * 1024,
        **options: Any,
    ) -> "HttpServer":
        from bespeak.transports.http.connection_limits import ConnectionLimits

        _check_http_options(port, options)
        app = self.streamable_http_app(host=host, **options)
        limits = ConnectionLimits(
            max_connections=max_connections,
            head_timeout=request_head_timeout,
            body_timeout=options.get("request_body_timeout", 30.0),
            read_timeout=response_read_timeout,
            max_unread_bytes=max_unread_output,
            trusted_proxies=tuple(options.get("trusted_proxies", ())),
        )
        return http_server(app, host, port, uvicorn_config or {}, limits, app.path)
