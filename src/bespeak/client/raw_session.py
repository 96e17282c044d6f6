"""`RawSession`: one client's requests to one server, in the version they have agreed on. Results are returned as they were sent."""

import asyncio
import contextlib
import functools
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json

from bespeak.client.callbacks import LoggingCallback, MessageHandler, ProgressCallback
from bespeak.client.errors import InvalidServerResponse
from bespeak.client.notifications import Changed, Handlers, Inbox
from bespeak.client.open_request import OpenRequest
from bespeak.client.pushed_questions import MAX_QUESTIONS, Answer, AnswerOutside, Dropped, PushedQuestions
from bespeak.client.request_metadata import RequestMetadata
from bespeak.client.server_responses import RawResponse, read_response, typed
from bespeak.protocol import wire_types
from bespeak.protocol.errors import HEADER_MISMATCH, MCPError
from bespeak.protocol.legacy import declared_at, info_at
from bespeak.protocol.messages import write_request
from bespeak.protocol.methods import READ_ONLY
from bespeak.protocol.quoting import one_line
from bespeak.protocol.versions import HANDSHAKE_PROTOCOL_VERSIONS
from bespeak.transports.interfaces import Lost, Outgoing, SessionGone, Transport

if TYPE_CHECKING:
    from mcp_types import Implementation, InitializeResult, LoggingLevel

logger = logging.getLogger("bespeak.client")

PAGES = 100
"""How many pages of tools are read to learn their headers."""


TakeNotification = Callable[[int, dict[str, Any]], Awaitable[None]]
"""Takes the id of a request and one of its notifications."""


@dataclass(frozen=True, slots=True)
class OpenStream:
    """A request whose notifications are being received."""

    id: int
    task: asyncio.Task[dict[str, Any]]
    """Returns the result, or raises why there is none."""


class RawSession:
    """Sends requests and notifications, and makes the handshake with a server of the legacy era."""

    def __init__(
        self,
        transport: Transport,
        *,
        answer_pushed: Answer,
        capabilities: dict[str, Any],
        client_info: "Implementation",
        log_level: "LoggingLevel | None" = None,
        read_timeout_seconds: float | None = None,
        logging_callback: LoggingCallback | None = None,
        message_handler: MessageHandler | None = None,
        max_questions: int = MAX_QUESTIONS,
        changed: Changed | None = None,
        answer_outside: AnswerOutside | None = None,
        dropped: Dropped | None = None,
    ) -> None:
        self._transport = transport
        self._answer_pushed = answer_pushed
        self._answer_outside = answer_outside
        self._dropped = dropped
        self._capabilities = capabilities
        self._client_info = client_info.model_dump(mode="json", by_alias=True, exclude_none=True)
        self._log_level = log_level
        self._metadata = RequestMetadata(
            capabilities, self._client_info, log_level, sends_headers=transport.sends_headers
        )
        self._read_timeout = read_timeout_seconds
        self._handlers = Handlers(message_handler, logging_callback, self._take_back, changed)
        self._max_questions = max_questions
        self._ids = itertools.count(1)
        self._last_id = 0
        self._declared: dict[str, Any] = {}
        self._pushed: PushedQuestions | None = None
        """Set if the server is of the legacy era."""
        self._handshake = asyncio.Lock()
        self._handshakes = 0
        self._subscribed: set[str] = set()
        """The resources that a server of the legacy era was asked to watch."""
        self._streams: set[asyncio.Task[dict[str, Any]]] = set()

    @property
    def transport(self) -> Transport:
        return self._transport

    @property
    def version(self) -> str:
        """The protocol version that is used; before the negotiation, the newest one."""
        return self._metadata.version

    @property
    def last_id(self) -> int:
        """The id of the last request. The first has 1."""
        return self._last_id

    @property
    def read_timeout_seconds(self) -> float | None:
        """The time limit of a request that does not have its own."""
        return self._read_timeout

    # The protocol version

    def speak(self, version: str) -> None:
        """Use a modern version from now on: every request carries its own metadata."""
        self._pushed = None
        self._metadata.use_modern(version)

    async def initialize(self, version: str, *, exactly: bool = False) -> "InitializeResult":
        """Make the handshake of the legacy era, and use the version that it agrees on from now on."""
        self._metadata.use_legacy(version)
        await self._stop_answering()  # nobody waits for answers to questions of an earlier handshake
        self._pushed = PushedQuestions(
            self._answer_pushed, self._say, self._max_questions, self._answer_outside, self._dropped
        )
        self._declared = declared_at(version, self._capabilities)
        params = {
            "protocolVersion": version,
            "capabilities": self._declared,
            "clientInfo": info_at(version, self._client_info),
        }
        send = functools.partial(self._send, timeout=self._read_timeout, progress_callback=None, meta=None)
        result = typed(wire_types.InitializeResult, await send("initialize", params, {}))
        agreed = result.protocol_version
        if agreed not in HANDSHAKE_PROTOCOL_VERSIONS or (exactly and agreed != version):
            spoken = version if exactly else ", ".join(HANDSHAKE_PROTOCOL_VERSIONS)
            raise ConnectionError(
                f"the server chose the protocol version {agreed!r}, but this client supports {spoken}"
            )
        self._metadata.use_legacy(agreed)
        await self.notify("notifications/initialized")
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
                await self._subscribe_again()

    async def _subscribe_again(self) -> None:
        """Ask a server that has forgotten this client to watch the same resources again."""
        for uri in sorted(self._subscribed):
            try:
                await self._send(
                    "resources/subscribe",
                    {"uri": uri},
                    self._metadata.message_headers(),
                    timeout=self._read_timeout,
                    progress_callback=None,
                    meta=None,
                )
            except MCPError as error:
                logger.warning("The server does not watch %.200r any longer: %s", uri, one_line(error.message))

    async def close(self) -> None:
        """End open streams and stop answering questions: the connection is about to end."""
        streams = list(self._streams)
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        await self._stop_answering()

    async def _stop_answering(self) -> None:
        if self._pushed is not None:
            await self._pushed.close()

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification. Only the legacy era has notifications of a client, apart from cancellations."""
        await self._say(to_json({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}))

    async def _say(self, message: bytes) -> None:
        await self._transport.say(message, self._metadata.message_headers())

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
        request = self._written(method, params, headers, meta, reports_progress=progress_callback is not None)
        inbox = self._handlers.inbox(request.id, progress_callback)
        try:
            if self._pushed is not None:
                response = await self._converse(self._pushed, request, inbox, timeout)
            elif timeout is None:
                response = await self._transport.exchange(request, inbox.put)
            else:
                response = await self._exchange(request, inbox, timeout)
            if inbox.busy:
                await inbox.settled()
        except BaseException:
            inbox.discard()
            raise
        return RawResponse(request.id, response)

    def _written(
        self,
        method: str,
        params: dict[str, Any],
        headers: dict[str, str],
        meta: dict[str, Any] | None,
        *,
        reports_progress: bool = False,
    ) -> Outgoing:
        """Return a request with an id of its own and its metadata. Raises `TypeError` if it is not JSON."""
        id_ = self._last_id = next(self._ids)
        stamped = self._metadata.stamped(meta)
        if reports_progress:
            stamped["progressToken"] = id_
        message = write_request(id_, method, {**params, "_meta": stamped} if stamped else params)
        return Outgoing(id_, method, message, headers)

    def open_stream(self, method: str, params: dict[str, Any], take: TakeNotification) -> OpenStream:
        """Send a request whose notifications matter more than its result, without a time limit.

        `take` gets its notifications in order, as the handlers of this session do. Cancel the stream's task to end it.
        """
        request = self._written(method, params, self._metadata.headers(method, params), None)
        inbox = self._handlers.inbox(request.id, also=functools.partial(take, request.id))
        task = asyncio.create_task(self._stream(request, inbox), name=f"bespeak {method}")
        self._streams.add(task)
        task.add_done_callback(self._streams.discard)
        return OpenStream(request.id, task)

    async def _stream(self, request: Outgoing, inbox: Inbox) -> dict[str, Any]:
        try:
            response = await self._transport.exchange(request, inbox.put)
            await inbox.settled()
        except BaseException:
            inbox.discard()
            raise
        return read_response(RawResponse(request.id, response))

    async def _exchange(self, request: Outgoing, inbox: Inbox, timeout: float) -> bytes:
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

    # The list of tools, which says what their requests must repeat in headers

    async def read_tools(self, cursor: str | None = None, meta: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return one page of the server's tools, raw, without those that cannot be called over HTTP."""
        result = await self.request("tools/list", {} if cursor is None else {"cursor": cursor}, meta=meta)
        tools = result.get("tools")
        if self._metadata.repeats_arguments and isinstance(tools, list):
            result["tools"] = self._metadata.tool_headers.learn(cast("list[Any]", tools))
        return result

    async def learn_parameter_headers(self) -> None:
        """Read the whole list of tools."""
        cursor: str | None = None
        for _ in range(PAGES):
            cursor = typed(wire_types.ListToolsResult, await self.read_tools(cursor)).next_cursor
            if cursor is None:
                return
