"""`ClientSession`: one client's requests to one server, sent one at a time, in the version they have agreed on."""

import asyncio
import contextlib
import functools
import itertools
import logging
from collections.abc import Mapping
from typing import Any, Literal, Protocol, cast, overload

from mcp_types import (
    CallToolResult,
    DiscoverResult,
    Implementation,
    InitializeResult,
    InputRequiredResult,
    InputResponses,
    ListToolsResult,
    LoggingLevel,
)
from pydantic import BaseModel
from pydantic_core import to_json

from bespeak.client.callbacks import LoggingCallback, MessageHandler, ProgressCallback
from bespeak.client.errors import InvalidServerResponse
from bespeak.client.notifications import Handlers, Inbox
from bespeak.client.open_request import OpenRequest
from bespeak.client.pushed_questions import MAX_QUESTIONS, PushedQuestions
from bespeak.client.request_metadata import RequestMetadata
from bespeak.client.server_responses import RawResponse, read_input_required, read_response, typed
from bespeak.protocol.errors import HEADER_MISMATCH, MCPError
from bespeak.protocol.legacy import capabilities_at, declared_at, info_at
from bespeak.protocol.messages import write_request
from bespeak.protocol.methods import READ_ONLY
from bespeak.protocol.quoting import one_line
from bespeak.protocol.versions import HANDSHAKE_PROTOCOL_VERSIONS
from bespeak.transports.interfaces import Lost, Outgoing, SessionGone, Transport

logger = logging.getLogger("bespeak.client")

PAGES = 100
"""How many pages of tools are read to learn their headers."""


class Answerer(Protocol):
    """Answers the questions that an older server sends to its client."""

    def check_declared(self, key: str, question: Mapping[str, Any], pushed_to: Mapping[str, Any] | None = None) -> None:
        """Raises `Undeclared` for a question whose capability this client has not declared."""
        ...

    async def answer(self, session: "ClientSession", key: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to one question. Raises `CallbackFailed` or `InvalidServerResponse`."""
        ...


class ClientSession:
    """Sends requests and reads results. It does not answer the questions in a result: `Client` does."""

    def __init__(
        self,
        transport: Transport,
        *,
        answers: Answerer,
        capabilities: dict[str, Any],
        client_info: Implementation,
        log_level: LoggingLevel | None = None,
        read_timeout_seconds: float | None = None,
        logging_callback: LoggingCallback | None = None,
        message_handler: MessageHandler | None = None,
        max_questions: int = MAX_QUESTIONS,
    ) -> None:
        self._transport = transport
        self._answers = answers
        self._capabilities = capabilities
        self._client_info = client_info.model_dump(mode="json", by_alias=True, exclude_none=True)
        self._log_level = log_level
        self._metadata = RequestMetadata(
            capabilities, self._client_info, log_level, sends_headers=transport.sends_headers
        )
        self._read_timeout = read_timeout_seconds
        self._handlers = Handlers(message_handler, logging_callback, self._take_back)
        self._max_questions = max_questions
        self._ids = itertools.count(1)
        self._declared: dict[str, Any] = {}
        self._pushed: PushedQuestions | None = None
        """Set if the server is of the legacy era."""
        self._handshake = asyncio.Lock()
        self._handshakes = 0

    @property
    def transport(self) -> Transport:
        return self._transport

    @property
    def version(self) -> str:
        """The protocol version that is used; before the negotiation, the newest one."""
        return self._metadata.version

    # The protocol version

    def speak(self, version: str) -> None:
        """Use a modern version from now on: every request carries its own metadata."""
        self._pushed = None
        self._metadata.use_modern(version)

    async def initialize(self, version: str, *, exactly: bool = False) -> InitializeResult:
        """Make the handshake of the legacy era, and use the version that it agrees on from now on."""
        self._metadata.use_legacy(version)
        await self.close()  # nobody waits for answers to questions of an earlier handshake
        self._pushed = PushedQuestions(self._answer_pushed, self._say, self._max_questions)
        self._declared = declared_at(version, self._capabilities)
        params = {
            "protocolVersion": version,
            "capabilities": self._declared,
            "clientInfo": info_at(version, self._client_info),
        }
        send = functools.partial(self._send, timeout=self._read_timeout, progress_callback=None, meta=None)
        result = typed(InitializeResult, await send("initialize", params, {}))
        agreed = result.protocol_version
        if agreed not in HANDSHAKE_PROTOCOL_VERSIONS or (exactly and agreed != version):
            spoken = version if exactly else ", ".join(HANDSHAKE_PROTOCOL_VERSIONS)
            raise ConnectionError(
                f"the server chose the protocol version {agreed!r}, but this client supports {spoken}"
            )
        self._metadata.use_legacy(agreed)
        await self._say(to_json({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        notify = self._handlers.inbox().put
        ask = functools.partial(self._pushed.take, None)
        await self._transport.begin(self._metadata.message_headers(), notify, ask)
        if self._log_level is not None and result.capabilities.logging is not None:
            try:
                await send("logging/setLevel", {"level": self._log_level}, self._metadata.message_headers())
            except MCPError as error:
                logger.warning("The server refused to set its log level: %s", one_line(error.message))
        return result

    async def _repeat_handshake(self, before: int) -> None:
        """Make the handshake again, unless another request has just done so."""
        async with self._handshake:
            if self._handshakes == before:
                logger.warning("The server has forgotten this session. The client repeats the handshake.")
                await self.initialize(self.version, exactly=True)
                self._handshakes += 1

    async def close(self) -> None:
        """Stop answering questions: the connection is about to end."""
        if self._pushed is not None:
            await self._pushed.close()

    async def _say(self, message: bytes) -> None:
        await self._transport.say(message, self._metadata.message_headers())

    async def _answer_pushed(self, key: str, question: Mapping[str, Any]) -> dict[str, Any]:
        self._answers.check_declared(key, question, capabilities_at(self.version, self._declared))
        return await self._answers.answer(self, key, question)

    def _take_back(self, params: Mapping[str, Any]) -> None:
        if self._pushed is not None:
            self._pushed.take_back(params)

    # Requests

    async def request(
        self,
        method: str,
        params: dict[str, Any],
        *,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressCallback | None = None,
        meta: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send one request and return its raw result. Raises `MCPError` for an error response, `TimeoutError` for none in time.

        If the response is lost, a request that only reads is sent again, once. Any other request is not, because it may
        have been carried out.
        """
        timeout = self._read_timeout if read_timeout_seconds is None else read_timeout_seconds
        headers = self._metadata.headers(method, params)
        handshakes = self._handshakes
        send = functools.partial(
            self._send, method, params, timeout=timeout, progress_callback=progress_callback, meta=meta
        )
        lost = gone = relearnt = False
        while True:
            try:
                return await send(headers)
            except Lost:
                if method not in READ_ONLY or lost:
                    raise
                lost = True
            except SessionGone:  # the server has not processed the request
                if gone:
                    raise
                gone = True
                await self._repeat_handshake(handshakes)
                headers = self._metadata.headers(method, params)
            except MCPError as error:
                learnt = None if relearnt else await self._relearnt(error, method, params, headers)
                if learnt is None:
                    raise
                relearnt, headers = True, learnt

    async def _relearnt(
        self, error: MCPError, method: str, params: dict[str, Any], headers: dict[str, str]
    ) -> dict[str, str] | None:
        """Return new headers if the old ones are wrong because the tool has changed; `None` if they are not."""
        if error.code != HEADER_MISMATCH or method != "tools/call":
            return None
        if not self._metadata.repeats_arguments:
            return None
        with contextlib.suppress(MCPError, OSError, InvalidServerResponse):  # the first error is the one to report
            await self.learn_parameter_headers()
        learnt = self._metadata.headers(method, params)
        return None if learnt == headers else learnt

    async def _send(
        self,
        method: str,
        params: dict[str, Any],
        headers: dict[str, str],
        *,
        timeout: float | None,
        progress_callback: ProgressCallback | None,
        meta: dict[str, Any] | None,
    ) -> dict[str, Any]:
        return read_response(
            await self._sent(method, params, headers, timeout=timeout, progress_callback=progress_callback, meta=meta)
        )

    async def exchange(
        self,
        method: str,
        params: dict[str, Any],
        *,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressCallback | None = None,
    ) -> RawResponse:
        """Send one request, once, and return its response without reading it."""
        return await self._sent(
            method,
            params,
            self._metadata.headers(method, params),
            timeout=self._read_timeout if read_timeout_seconds is None else read_timeout_seconds,
            progress_callback=progress_callback,
            meta=None,
        )

    async def _sent(
        self,
        method: str,
        params: dict[str, Any],
        headers: dict[str, str],
        *,
        timeout: float | None,
        progress_callback: ProgressCallback | None,
        meta: dict[str, Any] | None,
    ) -> RawResponse:
        id_ = next(self._ids)
        stamped = {**(meta or {}), **self._metadata.meta}
        if progress_callback is not None:
            stamped["progressToken"] = id_
        try:
            message = write_request(id_, method, {**params, "_meta": stamped} if stamped else params)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"the arguments of {method} are not JSON: {error}") from None
        inbox = self._handlers.inbox(id_, progress_callback)
        try:
            if self._pushed is None:
                response = await self._exchange(Outgoing(id_, method, message, headers), inbox, timeout)
            else:
                response = await self._converse(self._pushed, Outgoing(id_, method, message, headers), inbox, timeout)
            await inbox.settled()
        except BaseException:
            inbox.discard()
            raise
        return RawResponse(id_, response)

    async def _exchange(self, request: Outgoing, inbox: Inbox, timeout: float | None) -> bytes:
        if timeout is None:
            return await self._transport.exchange(request, inbox.put)
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await self._transport.exchange(request, inbox.put)
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimeoutError(f"no answer to {request.method} within {timeout:g} s") from None

    async def _converse(self, pushed: PushedQuestions, request: Outgoing, inbox: Inbox, timeout: float | None) -> bytes:
        """Exchange with an older server, which may ask questions meanwhile."""
        open_request = OpenRequest(timeout)
        pushed.requests.add(open_request)
        try:
            work = self._transport.exchange(request, inbox.put, functools.partial(pushed.take, open_request))
            return await open_request.run(work, request.method)
        finally:
            pushed.ended(open_request)

    # Single requests

    async def learn_parameter_headers(self) -> None:
        """Read the list of tools, which says what their requests must repeat in headers."""
        cursor: str | None = None
        for _ in range(PAGES):
            cursor = (await self.list_tools(cursor=cursor)).next_cursor
            if cursor is None:
                return

    @overload
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
        allow_input_required: Literal[False] = False,
    ) -> CallToolResult: ...
    @overload
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
        allow_input_required: bool,
    ) -> CallToolResult | InputRequiredResult: ...
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
        allow_input_required: bool = False,
    ) -> CallToolResult | InputRequiredResult:
        """Send one `tools/call` request, without answering the questions in its result."""
        params = {"name": name, "arguments": arguments or {}, **retry_params(input_responses, request_state)}
        result = await self.request(
            "tools/call",
            params,
            read_timeout_seconds=read_timeout_seconds,
            progress_callback=progress_callback,
            meta=meta,
        )
        if read_input_required(result) is None:
            return typed(CallToolResult, result)
        if not allow_input_required:
            raise RuntimeError(f"{name!r} requires input; pass allow_input_required=True or use Client.call_tool")
        return typed(InputRequiredResult, result)

    async def list_tools(self, *, cursor: str | None = None, meta: dict[str, Any] | None = None) -> ListToolsResult:
        """Return one page of the server's tools."""
        params = {"cursor": cursor} if cursor is not None else {}
        result = await self.request("tools/list", params, meta=meta)
        tools = result.get("tools")
        if self._metadata.repeats_arguments and isinstance(tools, list):
            result["tools"] = self._metadata.tool_headers.learn(cast("list[Any]", tools))
        return typed(ListToolsResult, result)

    async def probe(self) -> dict[str, Any]:
        """Send `server/discover` once, and return the raw result. Some older servers do not survive it."""
        headers = self._metadata.headers("server/discover", {})
        return await self._send(
            "server/discover", {}, headers, timeout=self._read_timeout, progress_callback=None, meta=None
        )

    async def discover(self) -> DiscoverResult:
        """Return what the server supports."""
        return typed(DiscoverResult, await self.request("server/discover", {}))


def retry_params(responses: InputResponses | dict[str, Any] | None, state: str | None) -> dict[str, Any]:
    """Return the params that a retry adds. An empty state is sent, an absent one is not."""
    extra: dict[str, Any] = {}
    if responses is not None:
        extra["inputResponses"] = {
            key: answer.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"result_type", "meta"})
            if isinstance(answer, BaseModel)
            else answer
            for key, answer in responses.items()
        }
    if state is not None:
        extra["requestState"] = state
    return extra
