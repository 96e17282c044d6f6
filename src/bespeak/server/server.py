"""`MCPServer`: what an author writes against."""

import logging
import warnings
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, Generic, Literal, TypeVar, cast, overload

from mcp_types import SERVER_INFO_META_KEY, CallToolResult, Icon, Implementation, ToolAnnotations
from mcp_types import Tool as WireTool
from pydantic_core import from_json

from bespeak.protocol.asking import read_answers, read_state
from bespeak.protocol.envelopes import Malformed, Notification, Request, read_message, write_error, write_result
from bespeak.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, MCPError
from bespeak.protocol.versions import MODERN_PROTOCOL_VERSIONS
from bespeak.resolve.errors import ToolError
from bespeak.resolve.signature import calling_frame
from bespeak.server.calls import Call, Calls, NoClient
from bespeak.server.context import CallFacts, Context, LifespanT
from bespeak.server.lifespan import Lifespan
from bespeak.server.listing import CacheableMethod, CacheHint, hint_fields, page
from bespeak.server.overrides import UNSET, Overrides
from bespeak.server.tools import Tool, ToolRegistry, wire_tool
from bespeak.state.ledger import Ledger
from bespeak.state.seal import RequestStateSecurity
from bespeak.state.stores.memory import MemoryStore
from bespeak.state.stores.store import Store
from bespeak.transports.memory import Notify

logger = logging.getLogger("bespeak.server")

FnT = TypeVar("FnT", bound=Callable[..., Any])
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class MCPServer(Generic[LifespanT]):
    """A server: tools are registered on it, and messages are served by it."""

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
    ) -> None:
        if page_size is not None and page_size < 1:
            raise ValueError("page_size must be at least 1")
        self.name = name or "bespeak"
        self.instructions = instructions
        self._info = Implementation(
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
                "state keys are given but no store: approvals are remembered in this process only, so after a restart, or on "
                "another worker, one could be spent twice. Give MCPServer(store=...) a shared store",
                RuntimeWarning,
                stacklevel=2,
            )
        self._calls = Calls(security, Ledger(store or MemoryStore(), security.clock), self.name)
        self._cache_hints = dict(cache_hints or {})
        self._page_size = page_size
        self._lifespan = Lifespan((lambda: lifespan(self)) if lifespan else None)
        self._tools = ToolRegistry()
        self._overrides = Overrides(self._tools)
        for tool in tools or ():
            self._register(tool)
        self._methods: dict[str, Callable[[Request, Notify, bool], Any]] = {
            "tools/call": self._call,
            "tools/list": self._list,
            "server/discover": self._discover,
        }

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
        """Register a function as a tool, with or without parentheses. Raises `InvalidSignature`, all faults at once.

        `idempotent` says that running the body twice does no harm, so a call whose worker died may be run again.
        `input_schema` replaces the derived schema; arguments are read by the function's own parameters all the same.
        """
        if callable(name):
            self._register(Tool(name, frame=calling_frame()))
            return name

        def register(fn: FnT) -> FnT:
            self._register(
                Tool(
                    fn,
                    frame=calling_frame(),
                    name=name,
                    title=title,
                    description=description,
                    annotations=annotations,
                    icons=icons,
                    meta=meta,
                    structured_output=structured_output,
                    idempotent=idempotent,
                    input_schema=input_schema,
                )
            )
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
        self._register(
            Tool(
                fn,
                frame=calling_frame(),
                name=name,
                title=title,
                description=description,
                annotations=annotations,
                icons=icons,
                meta=meta,
                structured_output=structured_output,
                idempotent=idempotent,
                input_schema=input_schema,
            )
        )

    def remove_tool(self, name: str) -> None:
        """Take a tool away. Raises `ToolError` if there is none of that name."""
        self._tools.remove(name)

    def _register(self, tool: Tool) -> None:
        self._overrides.adopt(tool)
        self._tools.add(tool)

    @contextmanager
    def override(
        self, fn: Callable[..., Any], replacement: Callable[..., Any] | None = None, *, value: Any = UNSET
    ) -> Generator[None]:
        """Replace a resolver on this server while the block is open: by another function, or by a value."""
        # Two frames up: contextmanager's own lies between the caller and this generator.
        ticket = self._overrides.open(fn, replacement, value, calling_frame(2))
        try:
            yield
        finally:
            self._overrides.close(ticket)

    # Calling without a client

    async def list_tools(self) -> list[WireTool]:
        """The tools as a client would see them."""
        return [wire_tool(tool) for tool in self._tools.all()]

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> CallToolResult:
        """Call a tool without a client. Raises `ToolError` if it fails, and an error that says how to test it if it asks."""
        tool = self._find(name)
        async with self.running():
            facts = CallFacts(tool.name)
            context = self._context(facts)
            call = Call(self._calls, tool, arguments or {}, context, facts, declared=None)
            try:
                result = await call.outcome()
            except (NoClient, MCPError):
                raise
            except Exception as error:
                raise ToolError(tool.failure_text(error)) from error
        return CallToolResult.model_validate(result)

    # Serving

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[LifespanT]:
        """The server's lifespan. When the last user leaves, claimed calls are waited for first."""
        async with self._lifespan.running() as value:
            try:
                yield value
            finally:
                await self._calls.drain()

    async def serve(self, message: bytes, notify: Notify, *, raise_exceptions: bool = False) -> bytes | None:
        """Answer one message; `None` if it wants no answer."""
        try:
            request = read_message(message)
        except Malformed as malformed:
            return write_error(malformed.id, malformed.error)
        if isinstance(request, Notification):
            return None
        try:
            method = self._methods.get(request.method)
            if method is None:
                raise MCPError(METHOD_NOT_FOUND, f"unknown method {request.method!r}")
            result = await method(request, notify, raise_exceptions)
        except MCPError as error:
            return write_error(request.id, error)
        except Exception:
            logger.exception("request %r (%s) failed", request.id, request.method)
            if raise_exceptions:
                raise
            return write_error(request.id, MCPError(INTERNAL_ERROR, "internal error"))
        result.setdefault("resultType", "complete")
        result["_meta"] = {**result.get("_meta", {}), SERVER_INFO_META_KEY: self._info}
        return write_result(request.id, result)

    async def _discover(self, request: Request, notify: Notify, raise_exceptions: bool) -> dict[str, Any]:
        instructions = {"instructions": self.instructions} if self.instructions else {}
        return {
            "supportedVersions": list(MODERN_PROTOCOL_VERSIONS),
            "capabilities": {"tools": {}, "logging": {}},
            **instructions,
            **hint_fields(self._cache_hints, "server/discover"),
        }

    async def _list(self, request: Request, notify: Notify, raise_exceptions: bool) -> dict[str, Any]:
        tools = self._tools.all()
        chosen, more = page([tool.name for tool in tools], request.params, self._page_size)
        return {
            "tools": [tool.wire for tool in tools[chosen]],
            **more,
            **hint_fields(self._cache_hints, "tools/list"),
        }

    async def _call(self, request: Request, notify: Notify, raise_exceptions: bool) -> dict[str, Any]:
        params = request.params
        name, sent = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise MCPError(INVALID_PARAMS, "params.name must be the name of a tool")
        if sent is not None and not isinstance(sent, dict):
            raise MCPError(INVALID_PARAMS, "params.arguments must be an object")
        tool = self._find(name)
        facts = CallFacts(tool.name, answers=read_answers(params))
        context = self._context(facts, request, notify)
        arguments = cast("dict[str, Any]", sent or {})
        token, state = read_state(params), None
        if token is not None:
            binding = self._calls.binding(tool, arguments, context)
            state = self._calls.open(token, binding, request.id)
            if state.by_hand == bool(tool.graph.nodes):
                raise self._calls.refusal(tool.name, request.id, "made by hand, or not, unlike the tool")
            facts.id, facts.round = state.call_id, state.round + 1
            facts.request_state = from_json(state.body) if state.by_hand else None
        call = Call(
            self._calls,
            tool,
            arguments,
            context,
            facts,
            declared=request.meta.capabilities,
            state=state,
            raise_exceptions=raise_exceptions,
        )
        try:
            if state is None and not tool.graph.has_generators:
                return await call.run()
            return await self._calls.shelter(call)
        finally:
            context.end()

    def _find(self, name: str) -> Tool:
        tool = self._tools.get(name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"unknown tool {name!r}")
        return tool

    def _context(
        self, facts: CallFacts, request: Request | None = None, notify: Notify | None = None
    ) -> Context[LifespanT, Any]:
        return Context(server=self, lifespan_context=self._lifespan.value, facts=facts, request=request, notify=notify)
