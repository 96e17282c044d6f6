"""`Client`: calls the tools of a server, and answers their questions with callbacks."""

from collections.abc import Collection
from importlib.metadata import version
from types import TracebackType
from typing import Any, cast

from mcp_types import (
    CallToolResult,
    Implementation,
    InputResponses,
    ListToolsResult,
    LoggingLevel,
    SamplingCapability,
    ServerCapabilities,
)

from bespeak.client.callbacks import (
    Callbacks,
    ElicitationCallback,
    ListRootsCallback,
    LoggingCallback,
    MessageHandler,
    ProgressCallback,
    SamplingCallback,
)
from bespeak.client.driver import Driver
from bespeak.client.negotiation import MODES, ServerDescription, negotiate
from bespeak.client.pushed_questions import MAX_QUESTIONS
from bespeak.client.question_answers import CallbackAnswers
from bespeak.client.server_responses import typed
from bespeak.client.session import ClientSession, retry_params
from bespeak.client.urls import read_schemes
from bespeak.protocol.capabilities import lacking
from bespeak.protocol.errors import MISSING_REQUIRED_CLIENT_CAPABILITY, MCPError
from bespeak.protocol.question_urls import WEB
from bespeak.transports.http.client import HttpTransport
from bespeak.transports.interfaces import Answering, Transport
from bespeak.transports.memory import MemoryTransport
from bespeak.transports.stdio.client import StdioServerParameters, StdioTransport


class Client:
    """A connection to one server, used as an async context manager.

    `server` is a URL, the `StdioServerParameters` of a command, or a server object in this process. For more control over
    the connection, pass the result of `streamable_http_client(...)` or `stdio_client(...)`.

    `input_required_max_questions` limits the questions of one round, and the questions that an older server asks at the
    same time. Only URLs with one of the `elicitation_url_schemes` reach the `elicitation_callback`.
    """

    def __init__(
        self,
        server: Answering | Transport | StdioServerParameters | str,
        *,
        raise_exceptions: bool = False,
        read_timeout_seconds: float | None = None,
        sampling_callback: SamplingCallback | None = None,
        sampling_capabilities: SamplingCapability | None = None,
        list_roots_callback: ListRootsCallback | None = None,
        logging_callback: LoggingCallback | None = None,
        log_level: LoggingLevel | None = None,
        message_handler: MessageHandler | None = None,
        client_info: Implementation | None = None,
        mode: str = "auto",
        elicitation_callback: ElicitationCallback | None = None,
        input_required_max_rounds: int = 10,
        input_required_max_questions: int = MAX_QUESTIONS,
        elicitation_url_schemes: Collection[str] = WEB,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, not {mode!r}")
        if input_required_max_rounds < 0:
            raise ValueError("input_required_max_rounds cannot be negative")
        if input_required_max_questions < 0:
            raise ValueError("input_required_max_questions cannot be negative")
        self._transport = _transport(server, raise_exceptions)
        callbacks = Callbacks(
            elicitation_callback,
            sampling_callback,
            sampling_capabilities,
            list_roots_callback,
            read_schemes(elicitation_url_schemes),
        )
        self._capabilities = callbacks.capabilities()
        answers = CallbackAnswers(callbacks)
        self._session = ClientSession(
            self._transport,
            answers=answers,
            capabilities=self._capabilities,
            client_info=client_info or Implementation(name="bespeak", version=version("bespeak")),
            log_level=log_level or ("debug" if logging_callback else None),
            read_timeout_seconds=read_timeout_seconds,
            logging_callback=logging_callback,
            message_handler=message_handler,
            max_questions=input_required_max_questions,
        )
        self._driver = Driver(self._session, answers, input_required_max_rounds, input_required_max_questions)
        self._mode = mode
        self._server: ServerDescription | None = None

    async def __aenter__(self) -> "Client":
        await self._transport.__aenter__()
        try:
            self._server = await negotiate(self._session, self._mode)
        except BaseException as error:
            await self._leave(type(error), error, error.__traceback__)
            raise
        return self

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
    def server_info(self) -> Implementation | None:
        """The name and version of the server, for display and logs. Do not base decisions on it."""
        return self._connected().info

    @property
    def server_capabilities(self) -> ServerCapabilities:
        return self._connected().capabilities

    @property
    def instructions(self) -> str | None:
        return self._connected().instructions

    def _connected(self) -> ServerDescription:
        if self._server is None:
            raise RuntimeError("the client is not connected; use it as `async with Client(...) as client:`")
        return self._server

    # Requests

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressCallback | None = None,
        *,
        input_responses: InputResponses | dict[str, Any] | None = None,
        request_state: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> CallToolResult:
        """Call a tool, and answer its questions. The timeout applies to each request, without the time a callback takes."""
        self._connected()
        params = {"name": name, "arguments": arguments or {}}

        async def send(extra: dict[str, Any]) -> dict[str, Any]:
            return await self._session.request(
                "tools/call",
                {**params, **extra},
                read_timeout_seconds=read_timeout_seconds,
                progress_callback=progress_callback,
                meta=meta,
            )

        try:
            result = await self._driver.drive(send, retry_params(input_responses, request_state))
        except MCPError as error:
            if error.code == MISSING_REQUIRED_CLIENT_CAPABILITY and self._lacks(error.data):
                error.add_note(
                    "a Client declares the capabilities it has callbacks for: pass elicitation_callback=, sampling_callback=, ..."
                )
            raise
        return typed(CallToolResult, result)

    def _lacks(self, data: Any) -> bool:
        """Whether this client has not declared a capability that the server requires."""
        required: Any = cast("dict[str, Any]", data).get("requiredCapabilities") if isinstance(data, dict) else None
        return not isinstance(required, dict) or bool(lacking(cast("dict[str, Any]", required), self._capabilities))

    async def list_tools(self, *, cursor: str | None = None, meta: dict[str, Any] | None = None) -> ListToolsResult:
        """Return one page of the server's tools."""
        self._connected()
        return await self._session.list_tools(cursor=cursor, meta=meta)


def _transport(server: Any, raise_exceptions: bool) -> Transport:
    if isinstance(server, str):
        return HttpTransport(server)
    if isinstance(server, StdioServerParameters):
        return StdioTransport(server)
    if not isinstance(server, type):
        if hasattr(server, "answer") and hasattr(server, "running"):
            return MemoryTransport(server, raise_exceptions=raise_exceptions)
        if hasattr(server, "exchange"):
            return server
    raise TypeError(
        f"a client connects to a URL, StdioServerParameters, an MCPServer or a transport, not to {type(server).__name__}"
    )
