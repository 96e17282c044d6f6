"""`Client`: what users call. It sends requests, answers the questions in their results, and caches what may be cached."""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bespeak.client.cache import CACHE_MODES, CacheConfig, CacheMode, Fetched, ResponseCache
from bespeak.client.callbacks import (
    Callbacks,
    ElicitationCallback,
    ListRootsCallback,
    LoggingCallback,
    MessageHandler,
    ProgressCallback,
    SamplingCallback,
)
from bespeak.client.driver import Driver, Send
from bespeak.client.extensions import ClientExtension, declared_extensions
from bespeak.client.negotiation import MODES, ServerDescription, negotiate
from bespeak.client.pushed_questions import MAX_QUESTIONS
from bespeak.client.question_answers import CallbackAnswers
from bespeak.client.server_responses import typed
from bespeak.client.session import LISTS, ClientSession, prompt_params, retry_params
from bespeak.client.subscriptions import Subscription, listen
from bespeak.client.trace_context import TRACE_CONTEXT
from bespeak.client.transport_choice import cache_target, transport_to
from bespeak.client.urls import read_schemes
from bespeak.protocol import wire_types
from bespeak.protocol.capabilities import lacking
from bespeak.protocol.errors import MISSING_REQUIRED_CLIENT_CAPABILITY, MCPError
from bespeak.protocol.question_urls import WEB
from bespeak.protocol.versions import LATEST_MODERN_VERSION
from bespeak.transports.interfaces import Answering, Transport
from bespeak.transports.stdio.client import StdioServerParameters

if TYPE_CHECKING:
    from mcp_types import (
        CacheableResult,
        CallToolResult,
        CompleteResult,
        EmptyResult,
        GetPromptResult,
        Implementation,
        InputResponses,
        ListPromptsResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        ListToolsResult,
        LoggingLevel,
        PromptReference,
        ReadResourceResult,
        ResourceTemplateReference,
        SamplingCapability,
        ServerCapabilities,
    )

ResultT = TypeVar("ResultT", bound="CacheableResult")
DEFAULT_CACHE = CacheConfig()


class Client:
    """A connection to one server, used as an async context manager.

    `server` is a URL, the `StdioServerParameters` of a command, or a server object in this process. For more control over
    the connection, pass the result of `streamable_http_client(...)` or `stdio_client(...)`.

    `input_required_max_questions` limits the questions of one round, and the questions that an older server asks at the
    same time. Only URLs with one of the `elicitation_url_schemes` reach the `elicitation_callback`. `cache=None` turns the
    cache off.
    """

    def __init__(
        self,
        server: Answering | Transport | StdioServerParameters | str,
        *,
        raise_exceptions: bool = False,
        read_timeout_seconds: float | None = None,
        sampling_callback: SamplingCallback | None = None,
        sampling_capabilities: "SamplingCapability | None" = None,
        list_roots_callback: ListRootsCallback | None = None,
        logging_callback: LoggingCallback | None = None,
        log_level: "LoggingLevel | None" = None,
        message_handler: MessageHandler | None = None,
        client_info: "Implementation | None" = None,
        mode: str = "auto",
        elicitation_callback: ElicitationCallback | None = None,
        input_required_max_rounds: int = 10,
        input_required_max_questions: int = MAX_QUESTIONS,
        elicitation_url_schemes: Collection[str] = WEB,
        extensions: Sequence[ClientExtension] | None = None,
        cache: CacheConfig | None = DEFAULT_CACHE,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, not {mode!r}")
        if input_required_max_rounds < 0:
            raise ValueError("input_required_max_rounds cannot be negative")
        if input_required_max_questions < 0:
            raise ValueError("input_required_max_questions cannot be negative")
        self._transport = transport_to(server, raise_exceptions)
        callbacks = Callbacks(
            elicitation_callback,
            sampling_callback,
            sampling_capabilities,
            list_roots_callback,
            read_schemes(elicitation_url_schemes),
        )
        self._capabilities = callbacks.capabilities()
        if extensions:
            self._capabilities["extensions"] = declared_extensions(extensions)
        answers = CallbackAnswers(callbacks)
        self._cache = (
            None if cache is None else ResponseCache(cache, cache_target(server), lambda: self._session.version)
        )
        self._session = ClientSession(
            self._transport,
            answers=answers,
            capabilities=self._capabilities,
            client_info=client_info or wire_types.Implementation(name="bespeak", version=version("bespeak")),
            log_level=log_level or ("debug" if logging_callback else None),
            read_timeout_seconds=read_timeout_seconds,
            logging_callback=logging_callback,
            message_handler=message_handler,
            max_questions=input_required_max_questions,
            changed=self._cache.changed if self._cache is not None else None,
        )
        self._driver = Driver(self._session, answers, input_required_max_rounds, input_required_max_questions)
        self._mode = mode
        self._server: ServerDescription | None = None

    async def __aenter__(self) -> "Client":
        await self._transport.__aenter__()
        try:
            self._server = await self._negotiate()
        except BaseException as error:
            await self._leave(type(error), error, error.__traceback__)
            raise
        return self

    async def _negotiate(self) -> ServerDescription:
        """Agree on a version. A store that clients share may already have the server's description."""
        if self._cache is None or not self._cache.is_shared:
            return await negotiate(self._session, self._mode)
        self._session.speak(LATEST_MODERN_VERSION)
        place = self._cache.place("server/discover", {})
        known = await self._cache.get(place, wire_types.DiscoverResult)
        described = await negotiate(self._session, self._mode, known)
        if described.discovered is not None and described.discovered is not known:
            await self._cache.put(place, described.discovered)
        return described

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server = None
        await self._leave(kind, error, traceback)

    async def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._session.close()
            if self._cache is not None:
                await self._cache.clear()
        finally:
            await self._transport.__aexit__(kind, error, traceback)

    # About the server

    @property
    def session(self) -> ClientSession:
        """The session, which sends single requests and does not answer questions."""
        self._connected()
        return self._session

    @property
    def protocol_version(self) -> str:
        """The protocol version in use; before the client is connected, the newest one it supports."""
        return self._session.version

    @property
    def server_info(self) -> "Implementation | None":
        """The name and version of the server, for display and logs. Do not base decisions on it."""
        return self._connected().info

    @property
    def server_capabilities(self) -> "ServerCapabilities":
        """What the server has declared that it can do."""
        return self._connected().capabilities

    @property
    def instructions(self) -> str | None:
        """What the server tells a model about its use, if it tells anything."""
        return self._connected().instructions

    def _connected(self) -> ServerDescription:
        if self._server is None:
            raise RuntimeError("the client is not connected; use it as `async with Client(...) as client:`")
        return self._server

    # Requests that may ask

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressCallback | None = None,
        *,
        input_responses: "InputResponses | dict[str, Any] | None" = None,
        request_state: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> "CallToolResult":
        """Call a tool, and answer its questions. The timeout applies to each request, without the time a callback takes."""
        send = self._sender(
            "tools/call",
            {"name": name, "arguments": arguments or {}},
            read_timeout_seconds=read_timeout_seconds,
            progress_callback=progress_callback,
            meta=meta,
        )
        return typed(wire_types.CallToolResult, await self._drive(send, retry_params(input_responses, request_state)))

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, str] | None = None,
        *,
        input_responses: "InputResponses | dict[str, Any] | None" = None,
        request_state: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> "GetPromptResult":
        """Get a prompt, and answer its questions."""
        send = self._sender("prompts/get", prompt_params(name, arguments), meta=meta)
        return typed(wire_types.GetPromptResult, await self._drive(send, retry_params(input_responses, request_state)))

    async def read_resource(
        self,
        uri: str,
        *,
        input_responses: "InputResponses | dict[str, Any] | None" = None,
        request_state: str | None = None,
        meta: dict[str, Any] | None = None,
        cache_mode: CacheMode = "use",
    ) -> "ReadResourceResult":
        """Read a resource, and answer its questions. A result that answers were needed for is not cached."""
        params = {"uri": str(uri)}
        send = self._sender("resources/read", params, meta=meta)
        seed = retry_params(input_responses, request_state)

        async def read() -> "Fetched[ReadResourceResult]":
            rounds: list[dict[str, Any]] = []

            async def counted(extra: dict[str, Any]) -> dict[str, Any]:
                rounds.append(extra)
                return await send(extra)

            result = typed(wire_types.ReadResourceResult, await self._drive(counted, seed))
            return Fetched(result, may_be_cached=rounds == [{}])

        return await self._fetch(
            wire_types.ReadResourceResult, "resources/read", params, read, meta, "bypass" if seed else cache_mode
        )

    def _sender(self, method: str, params: dict[str, Any], **options: Any) -> Send:
        """Return what sends each round of a call."""
        self._connected()

        def send(extra: dict[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]:
            return self._session.request(method, {**params, **extra}, **options)

        return send

    async def _drive(self, send: Send, extra: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._driver.drive(send, extra)
        except MCPError as error:
            if error.code == MISSING_REQUIRED_CLIENT_CAPABILITY and self._lacks(error.data):
                error.add_note(
                    "a Client declares the capabilities it has callbacks for: pass elicitation_callback=, sampling_callback=, ..."
                )
            raise

    def _lacks(self, data: Any) -> bool:
        """Whether this client has not declared a capability that the server requires."""
        required: Any = cast("dict[str, Any]", data).get("requiredCapabilities") if isinstance(data, dict) else None
        return not isinstance(required, dict) or bool(lacking(cast("dict[str, Any]", required), self._capabilities))

    # Lists

    async def list_tools(
        self, *, cursor: str | None = None, meta: dict[str, Any] | None = None, cache_mode: CacheMode = "use"
    ) -> "ListToolsResult":
        """Return one page of the server's tools."""
        return await self._list(wire_types.ListToolsResult, cursor, meta, cache_mode)

    async def list_prompts(
        self, *, cursor: str | None = None, meta: dict[str, Any] | None = None, cache_mode: CacheMode = "use"
    ) -> "ListPromptsResult":
        """Return one page of the server's prompts."""
        return await self._list(wire_types.ListPromptsResult, cursor, meta, cache_mode)

    async def list_resources(
        self, *, cursor: str | None = None, meta: dict[str, Any] | None = None, cache_mode: CacheMode = "use"
    ) -> "ListResourcesResult":
        """Return one page of the server's resources."""
        return await self._list(wire_types.ListResourcesResult, cursor, meta, cache_mode)

    async def list_resource_templates(
        self, *, cursor: str | None = None, meta: dict[str, Any] | None = None, cache_mode: CacheMode = "use"
    ) -> "ListResourceTemplatesResult":
        """Return one page of the server's resource templates."""
        return await self._list(wire_types.ListResourceTemplatesResult, cursor, meta, cache_mode)

    async def _list(
        self, model: type[ResultT], cursor: str | None, meta: dict[str, Any] | None, mode: CacheMode
    ) -> ResultT:
        self._connected()

        async def read() -> Fetched[ResultT]:
            return Fetched(await self._session.list_page(model, cursor, meta))

        params = {} if cursor is None else {"cursor": cursor}
        return await self._fetch(model, LISTS[model.__name__], params, read, meta, mode)

    async def _fetch(
        self,
        model: type[ResultT],
        method: str,
        params: dict[str, Any],
        request: Callable[[], Awaitable[Fetched[ResultT]]],
        meta: dict[str, Any] | None,
        mode: CacheMode,
    ) -> ResultT:
        if mode not in CACHE_MODES:
            raise ValueError(f"cache_mode must be one of {', '.join(map(repr, CACHE_MODES))}, not {mode!r}")
        # The result may depend on metadata that the protocol does not know.
        if self._cache is None or mode == "bypass" or not {*(meta or ())} <= {*TRACE_CONTEXT}:
            return (await request()).result
        return await self._cache.fetch(model, method, params, request, refresh=mode == "refresh")

    async def complete(
        self,
        ref: "ResourceTemplateReference | PromptReference",
        argument: dict[str, str],
        context_arguments: dict[str, str] | None = None,
    ) -> "CompleteResult":
        """Return suggestions for an argument of a prompt or a resource template."""
        return await self.session.complete(ref, argument, context_arguments)

    # Changes

    def listen(
        self,
        *,
        tools_list_changed: bool = False,
        prompts_list_changed: bool = False,
        resources_list_changed: bool = False,
        resource_subscriptions: Sequence[str] = (),
    ) -> AbstractAsyncContextManager[Subscription]:
        """Subscribe to changes on the server. See `bespeak.client.subscriptions.listen` for what it raises."""
        return listen(
            self.session,
            tools_list_changed=tools_list_changed,
            prompts_list_changed=prompts_list_changed,
            resources_list_changed=resources_list_changed,
            resource_subscriptions=resource_subscriptions,
        )

    # What only the legacy era has

    async def subscribe_resource(self, uri: str, *, meta: dict[str, Any] | None = None) -> "EmptyResult":
        """Ask an older server to notify the message handler when a resource changes."""
        return await self.session.subscribe_resource(uri, meta=meta)

    async def unsubscribe_resource(self, uri: str, *, meta: dict[str, Any] | None = None) -> "EmptyResult":
        """Ask an older server not to notify about a resource any longer."""
        return await self.session.unsubscribe_resource(uri, meta=meta)

    async def set_logging_level(self, level: "LoggingLevel", *, meta: dict[str, Any] | None = None) -> "EmptyResult":
        """Set the lowest level of the log messages that an older server sends."""
        return await self.session.set_logging_level(level, meta=meta)

    async def send_ping(self, *, meta: dict[str, Any] | None = None) -> "EmptyResult":
        """Send a request that only shows whether an older server responds."""
        return await self.session.send_ping(meta=meta)

    async def send_progress_notification(
        self, progress_token: str | int, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell an older server how far this client is with one of its requests."""
        await self.session.send_progress_notification(progress_token, progress, total, message)

    async def send_roots_list_changed(self) -> None:
        """Tell an older server that the roots have changed."""
        await self.session.send_roots_list_changed()
