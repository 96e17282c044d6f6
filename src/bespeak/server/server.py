"""`MCPServer`: the server object on which an author registers tools."""

import contextlib
import copy
import logging
import math
import types
import warnings
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from mcp_types import CallToolResult, Icon, Implementation, ToolAnnotations
from mcp_types import Tool as WireTool

from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.errors import MCPError
from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import Request
from bespeak.protocol.origins import TransportSecuritySettings
from bespeak.resolve.errors import ToolError
from bespeak.resolve.reading.callables import calling_frame
from bespeak.server.calls.call import Call, Calls, NoClient
from bespeak.server.context import CallFacts, Context, LifespanT
from bespeak.server.dispatch import Dispatch, find_tool
from bespeak.server.features.listings import CacheableMethod, CacheHint
from bespeak.server.features.tools import Tool, ToolOptions, ToolRegistry, wire_tool
from bespeak.server.legacy.pushing import Asker
from bespeak.server.legacy.waiting_calls import WaitingCalls, WaitingLimits
from bespeak.server.lifespan import Lifespan
from bespeak.server.overrides import UNSET, Overrides
from bespeak.server.running import http_server, run_http, run_stdio, serve_http, serve_stdio
from bespeak.state.ledger import Ledger
from bespeak.state.seal import RequestStateSecurity
from bespeak.state.stores.memory import MemoryStore
from bespeak.state.stores.store import Store
from bespeak.transports.http.connection_limits import ConnectionLimits
from bespeak.transports.http.custom_routes import Route
from bespeak.transports.interfaces import MESSAGE_LIMIT, Notify, Peer, WrittenResponse

if TYPE_CHECKING:
    from bespeak.transports.http.app import HttpApp
    from bespeak.transports.http.legacy.event_store import EventStore
    from bespeak.transports.http.uvicorn_server import HttpServer

FnT = TypeVar("FnT", bound=Callable[..., Any])
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class MCPServer(Generic[LifespanT]):
    """An MCP server: register tools on it, and run it or mount it."""

    def __init__(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: list[Icon] | None = None,
        version: str = "",
        *,
        tools: Sequence[Tool] | None = None,
        lifespan: "Callable[[MCPServer[LifespanT]], AbstractAsyncContextManager[LifespanT]] | None" = None,
        request_state_security: RequestStateSecurity | None = None,
        cache_hints: Mapping[CacheableMethod, CacheHint] | None = None,
        store: Store | None = None,
        log_level: LogLevel = "INFO",
        page_size: int | None = None,
        question_timeout: float = 600.0,
        question_heartbeat: float | None = 15.0,
        max_waiting_calls: int = 1024,
        max_waiting_calls_per_session: int = 32,
        max_waiting_bytes: int = 64 * 1024 * 1024,
        disconnect_grace: float = 30.0,
    ) -> None:
        """A server. `question_timeout` is how long, in seconds, a question pushed to a client of 2025-11-25 and earlier waits
        for its answer.

        `question_heartbeat` is how many seconds of silence such a client hears while its question is open: then a progress
        notification tells it that the call is alive, if it asked for progress. `None` sends none.

        A call of such a client stays in memory while it waits at a question. `max_waiting_calls` bounds how many do, and
        `max_waiting_bytes` what they keep of their requests; a question too many is a tool error. If the client's connection
        is gone for `disconnect_grace` seconds and nothing was approved, the call ends, unless there is an event store.
        """
        if question_timeout <= 0:
            raise ValueError("question_timeout must be a positive number of seconds")
        if question_heartbeat is not None and not _is_seconds(question_heartbeat):
            raise ValueError("question_heartbeat must be a positive number of seconds, or None for no heartbeats")
        if min(max_waiting_calls, max_waiting_calls_per_session, max_waiting_bytes) < 1:
            raise ValueError(
                "max_waiting_calls, max_waiting_calls_per_session and max_waiting_bytes must be at least 1"
            )
        if not _is_seconds(disconnect_grace):
            raise ValueError("disconnect_grace must be a positive number of seconds")
        if page_size is not None and page_size < 1:
            raise ValueError("page_size must be at least 1")
        self.name = name or "bespeak"
        self.title = title
        self.description = description
        self.instructions = instructions
        self.website_url = website_url
        self.icons = icons
        self.version = version
        info = Implementation(
            name=self.name,
            title=title,
            description=description,
            website_url=website_url,
            icons=icons,
            version=version,
        ).model_dump(mode="json", by_alias=True, exclude_none=True)
        logging.getLogger("bespeak").setLevel(log_level)
        security = request_state_security or RequestStateSecurity()
        if store is None and security.shared:
            warnings.warn(
                "state keys are configured, but no shared store is: approvals are remembered in this process only. "
                "After a restart, or on another worker, the same approval could be spent again. Pass a shared store: "
                "MCPServer(store=...)",
                RuntimeWarning,
                stacklevel=2,
            )
        kept = store if store is not None else MemoryStore()
        self._calls = Calls(security, Ledger(kept, security.clock, security.ttl), self.name)
        self._lifespan = Lifespan((lambda: lifespan(self)) if lifespan else None, self._calls.tasks.drain)
        self._tools = ToolRegistry()
        self._overrides = Overrides(self._tools)
        self._routes: list[Route] = []
        for tool in tools or ():
            self._register(copy.copy(tool))  # an override here must not reach another server
        self._dispatch = Dispatch(
            info=info,
            instructions=instructions,
            tools=self._tools,
            calls=self._calls,
            cache_hints=cache_hints or {},
            page_size=page_size,
            question_seconds=question_timeout,
            question_heartbeat=question_heartbeat,
            waiting=WaitingCalls(
                WaitingLimits(
                    server=max_waiting_calls,
                    session=max_waiting_calls_per_session,
                    bytes=max_waiting_bytes,
                    gone_seconds=disconnect_grace,
                )
            ),
            context=self._context,
        )

    # Registering

    @overload
    def tool(self, name: FnT, /) -> FnT: ...
    @overload
    def tool(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        *,
        idempotent: bool = False,
        input_schema: dict[str, Any] | None = None,
    ) -> Callable[[FnT], FnT]: ...
    def tool(
        self,
        name: Any = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        *,
        idempotent: bool = False,
        input_schema: dict[str, Any] | None = None,
    ) -> Any:
        """Register a function as a tool, with or without parentheses.

        Raises `InvalidSignature` with all faults at once.

        `idempotent` says that running the body twice does no harm, so a call whose worker died may be run again.
        `input_schema` replaces the derived schema. The arguments are still validated by the function's own parameters.
        """
        if callable(title):
            raise TypeError("tool() is a decorator; to register a function directly, use add_tool(fn, name)")
        if callable(name):
            self._register(Tool(name, ToolOptions(), calling_frame()))
            return name
        options = ToolOptions(
            name, title, description, annotations, icons, meta, structured_output, idempotent, input_schema
        )

        def register(fn: FnT) -> FnT:
            self._register(Tool(fn, options, calling_frame()))
            return fn

        return register

    def add_tool(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        *,
        idempotent: bool = False,
        input_schema: dict[str, Any] | None = None,
    ) -> None:
        """Register a function as a tool. See `tool`."""
        options = ToolOptions(
            name, title, description, annotations, icons, meta, structured_output, idempotent, input_schema
        )
        self._register(Tool(fn, options, calling_frame()))

    def remove_tool(self, name: str) -> None:
        """Remove a tool. Raises `ToolError` if there is no tool with that name."""
        self._tools.remove(name)

    def _register(self, tool: Tool) -> None:
        self._overrides.adopt(tool)
        self._tools.add(tool)

    def override(
        self, fn: Callable[..., Any], replacement: Callable[..., Any] | None = None, *, value: Any = UNSET
    ) -> AbstractContextManager[None]:
        """Replace a resolver on this server with another function or a value, while the block is open."""
        return self._overridden(fn, replacement, value, calling_frame())

    @contextmanager
    def _overridden(
        self, fn: Callable[..., Any], replacement: Callable[..., Any] | None, value: Any, frame: types.FrameType | None
    ) -> Generator[None]:
        ticket = self._overrides.open(fn, replacement, value, frame)
        try:
            yield
        finally:
            self._overrides.close(ticket)

    # Calling without a client

    async def list_tools(self) -> list[WireTool]:
        """Return the tools as a client would see them."""
        return [wire_tool(tool) for tool in self._tools.all()]

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[LifespanT, Any] | None = None,
    ) -> CallToolResult:
        """Call a tool without a client, in a new context or in the given one, and return its result.

        Raises `ToolError` if the call fails. If the tool asks something, the error says how to test such a tool.
        """
        tool = find_tool(self._tools, name)
        async with self.running():
            call = Call(
                self._calls, tool, arguments or {}, context or self._context(CallFacts(tool.name)), declared=None
            )
            try:
                result = await self._calls.shelter(call, call.outcome())
            except (NoClient, MCPError):
                raise
            except Exception as error:
                raise ToolError(tool.failure_text(error)) from error
        return CallToolResult.model_validate(result)

    # Over a transport

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

        Everybody can reach it, including web pages.

        With `protected=True` the `Host` and `Origin` headers are checked first, as for the MCP endpoint. That keeps web
        pages out, but it does not authenticate the client.

        The handler takes one request and returns an `HttpResponse` or any ASGI app, such as one of Starlette's
        responses. `name` and `include_in_schema` exist for compatibility with the official SDK and have no effect.
        """

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
        milliseconds.

        A body may have `max_request_body_size` bytes, and must arrive within `request_body_timeout` seconds. All bodies
        above 64 KiB that arrive at the same time may have `max_incoming_bytes` together; others wait for their turn.
        These limits apply to custom routes too.

        Limits per client are counted by its address. Behind a proxy, the forwarded address counts, if `trusted_proxies`
        names the proxy by its address or network, such as `10.0.0.0/8`. Name only proxies that write `X-Forwarded-For`
        or `Forwarded` themselves, because the addresses they forward are trusted.
        """
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
        paths = (streamable_http_path.rstrip("/"), streamable_http_path.rstrip("/") + "/")
        if any(route.match(path) is not None for route in self._routes for path in paths):
            raise ValueError(f"a custom route matches the path of the MCP endpoint, {streamable_http_path!r}")
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
        return HttpApp(self, options, self._routes)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object) -> AsyncGenerator[None]:
        """The server's lifespan, to pass to a Starlette or FastAPI app that mounts the server."""
        async with self.running():
            yield

    def run(self, transport: Literal["stdio", "streamable-http"] = "stdio", **options: Any) -> None:
        """Serve until the server is stopped. `options` are those of `run_streamable_http_async`; stdio has none.

        Raises `SystemExit` if the server cannot start, or if an approved call had to be cut off.
        """
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
        app = self.streamable_http_app(host=host, **options)
        limits = ConnectionLimits(
            max_connections=max_connections,
            head_timeout=request_head_timeout,
            body_timeout=options.get("request_body_timeout", 30.0),
            read_timeout=response_read_timeout,
            max_unread_bytes=max_unread_output,
            trusted_proxies=tuple(options.get("trusted_proxies", ())),
        )
        return http_server(app, host, port, uvicorn_config or {}, limits)

    # Serving

    def running(self) -> AbstractAsyncContextManager[LifespanT]:
        """Return a context manager for the server's lifespan.

        When the last user leaves, it first waits for claimed calls.
        """
        return self._lifespan.running()

    def peer(self, unaskable: AskingObstacle | None = None, assumed: str | None = None) -> Peer:
        """Return the server's side of a new connection, for clients of older revisions. See `Answering.peer`."""
        return self._dispatch.peer(unaskable, assumed)

    def answer(
        self, request: Request, notify: Notify, headers: Headers | None = None, *, raise_exceptions: bool = False
    ) -> Coroutine[Any, Any, WrittenResponse]:
        """Return the response to one request that a transport has read."""
        return self._dispatch.answer(request, notify, headers, raise_exceptions=raise_exceptions)

    @property
    def attended(self) -> bool:
        """Whether its lifespan is running and will wait, at its end, for calls whose approval is spent."""
        return self._lifespan.attended

    @property
    def ready(self) -> bool:
        """Whether it can serve: it has no lifespan, or its lifespan is running."""
        return self._lifespan.ready

    def _context(
        self,
        facts: CallFacts,
        request: Request | None = None,
        notify: Notify | None = None,
        headers: Headers | None = None,
        asker: Asker | None = None,
    ) -> Context[LifespanT, Any]:
        return Context(
            server=self,
            lifespan_context=self._lifespan.value,
            facts=facts,
            request=request,
            notify=notify,
            headers=headers,
            asker=asker,
        )


def _is_seconds(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.001 <= value < math.inf
