"""One client's requests to one server: what each leg must carry in its era, fresh ids, notifications in order."""

import asyncio
import contextlib
import functools
import itertools
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, cast, overload

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    CallToolResult,
    DiscoverResult,
    Implementation,
    InitializeResult,
    InputRequiredResult,
    InputResponses,
    ListToolsResult,
    LoggingLevel,
    LoggingMessageNotificationParams,
)
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from bespeak.client.callbacks import LoggingCallback, MessageHandler, ProgressCallback
from bespeak.client.errors import InvalidServerResponse
from bespeak.client.notifications import Inbox
from bespeak.client.pushed_questions import MAX_QUESTIONS, Leg, PushedQuestions
from bespeak.client.result_reading import read_result
from bespeak.protocol.errors import HEADER_MISMATCH, MCPError
from bespeak.protocol.headers import routing_headers
from bespeak.protocol.legacy import JUNE, capabilities_at, declared_at, info_at
from bespeak.protocol.messages import write_request
from bespeak.protocol.parameter_headers import InvalidMirror, Mirror, mirror_headers, mirrors
from bespeak.protocol.quoting import one_line
from bespeak.protocol.versions import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION
from bespeak.transports.interfaces import Lost, Outgoing, SessionGone, Transport

logger = logging.getLogger("bespeak.client")

READING = frozenset({"server/discover", "tools/list", "ping"})
"""Methods that change nothing, and may be sent again when their response is lost."""
PAGES = 100
"""How many pages of tools are read to learn their headers."""

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A request's id, and the response to it as it came."""

    id: int
    response: bytes


class Answerer(Protocol):
    """What answers the questions that a server of an older revision pushes."""

    def check_declared(self, key: str, question: Mapping[str, Any], pushed_to: Mapping[str, Any] | None = None) -> None:
        """Raises `Undeclared` for a question of a kind that this client never said it can answer."""
        ...

    async def answer(self, session: "ClientSession", key: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one question. Raises `CallbackFailed` or `InvalidServerResponse`."""
        ...


class ClientSession:
    """Sends requests and reads results. Does not answer questions: the driver does."""

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
        self._read_timeout = read_timeout_seconds
        self._logging_callback = logging_callback
        self._message_handler = message_handler
        self._max_questions = max_questions
        self._ids = itertools.count(1)
        self._mirrors: dict[str, tuple[Mirror, ...]] = {}
        self._meta: dict[str, Any] = {}
        self._declared: dict[str, Any] = {}
        self._pushed: PushedQuestions | None = None
        """Set when the server is of an older revision."""
        self._shaking = asyncio.Lock()
        self._shaken = 0
        self.version = LATEST_MODERN_VERSION

    @property
    def transport(self) -> Transport:
        return self._transport

    # Which revision is spoken

    def speak(self, version: str) -> None:
        """Speak a modern revision from now on: every request carries what it needs itself."""
        self.version, self._pushed = version, None
        self._meta = {
            PROTOCOL_VERSION_META_KEY: version,
            CLIENT_CAPABILITIES_META_KEY: self._capabilities,
            CLIENT_INFO_META_KEY: self._client_info,
        }
        if self._log_level is not None:
            self._meta[LOG_LEVEL_META_KEY] = self._log_level

    async def initialize(self, version: str, *, exactly: bool = False) -> InitializeResult:
        """Make the handshake of an older revision, and speak what comes of it from now on."""
        self.version, self._meta = version, {}
        await self.close()  # whatever was asked before, nobody waits there for its answer
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
            raise ConnectionError(f"the server wants to speak {agreed!r}, and this client {spoken}")
        self.version = agreed
        await self._say(to_json({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        unbound = Inbox(functools.partial(self._handle, None, None))
        await self._transport.begin(self._headers("", {}), unbound.put, functools.partial(self._pushed.take, None))
        if self._log_level is not None and result.capabilities.logging is not None:
            try:
                await send("logging/setLevel", {"level": self._log_level}, self._headers("logging/setLevel", {}))
            except MCPError as error:
                logger.warning("the server does not let its log level be set: %s", one_line(error.message))
        return result

    async def _shake_again(self, before: int) -> None:
        """Make the handshake anew, unless somebody else just did."""
        async with self._shaking:
            if self._shaken == before:
                logger.warning("the server no longer knows this client; the handshake is made again")
                await self.initialize(self.version, exactly=True)
                self._shaken += 1

    async def close(self) -> None:
        """Stop answering: the connection is about to end."""
        if self._pushed is not None:
            await self._pushed.close()

    async def _say(self, message: bytes) -> None:
        await self._transport.say(message, self._headers("", {}))

    async def _answer_pushed(self, key: str, question: Mapping[str, Any]) -> dict[str, Any]:
        self._answers.check_declared(key, question, capabilities_at(self.version, self._declared))
        return await self._answers.answer(self, key, question)

    async def request(
        self,
        method: str,
        params: dict[str, Any],
        *,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressCallback | None = None,
        meta: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send one request; its raw result. Raises `MCPError` for the server's error, `TimeoutError` for none in time.

        A request that only reads is sent again, once, if its response is lost on the way. One that acts is not: nobody
        knows whether it was carried out.
        """
        timeout = self._read_timeout if read_timeout_seconds is None else read_timeout_seconds
        headers = self._headers(method, params)
        shaken = self._shaken
        send = functools.partial(
            self._send, method, params, timeout=timeout, progress_callback=progress_callback, meta=meta
        )
        lost = gone = relearnt = False
        while True:
            try:
                return await send(headers)
            except Lost:
                if method not in READING or lost:
                    raise
                lost = True
            except SessionGone:  # and so the server has not even looked at the request
                if gone:
                    raise
                gone = True
                await self._shake_again(shaken)
                headers = self._headers(method, params)
            except MCPError as error:
                learnt = None if relearnt else await self._relearnt(error, method, params, headers)
                if learnt is None:
                    raise
                relearnt, headers = True, learnt

    async def _relearnt(
        self, error: MCPError, method: str, params: dict[str, Any], headers: dict[str, str]
    ) -> dict[str, str] | None:
        """The headers to send instead, if those were wrong because a tool has changed; `None` if they were not."""
        if error.code != HEADER_MISMATCH or method != "tools/call":
            return None
        if not self._transport.mirrors or self._pushed is not None:
            return None
        with contextlib.suppress(
            MCPError, OSError, InvalidServerResponse
        ):  # if that fails too, the first failure is the one to know
            await self.learn_mirrors()
        learnt = self._headers(method, params)
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
        sent = await self._sent(
            method, params, headers, timeout=timeout, progress_callback=progress_callback, meta=meta
        )
        return _result(sent.response, sent.id)

    async def exchange(
        self,
        method: str,
        params: dict[str, Any],
        *,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressCallback | None = None,
    ) -> "Exchanged":
        """Send one request, once, and return its response unread: for those who want to see what a server really says."""
        return await self._sent(
            method,
            params,
            self._headers(method, params),
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
    ) -> "Exchanged":
        id_ = next(self._ids)
        stamped = {**(meta or {}), **self._meta}
        if progress_callback is not None:
            stamped["progressToken"] = id_
        try:
            message = write_request(id_, method, {**params, "_meta": stamped} if stamped else params)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"the arguments of {method} are not JSON: {error}") from None
        inbox = Inbox(functools.partial(self._handle, id_, progress_callback))
        try:
            if self._pushed is None:
                response = await self._exchange(Outgoing(id_, method, message, headers), inbox, timeout)
            else:
                response = await self._converse(self._pushed, Outgoing(id_, method, message, headers), inbox, timeout)
            await inbox.settled()
        except BaseException:
            inbox.discard()
            raise
        return Exchanged(id_, response)

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
        """An exchange with a server that may push questions into it."""
        leg = Leg(timeout)
        pushed.legs.add(leg)
        try:
            work = self._transport.exchange(request, inbox.put, functools.partial(pushed.take, leg))
            return await leg.run(work, request.method)
        finally:
            pushed.ended(leg)

    # What HTTP repeats in headers

    def _headers(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        if not self._transport.mirrors:
            return {}
        if self._pushed is not None:
            return {"MCP-Protocol-Version": self.version} if self.version >= JUNE else {}
        headers = routing_headers(self.version, method, params)
        if method == "tools/call":
            headers |= mirror_headers(self._mirrors.get(params.get("name", ""), ()), params.get("arguments") or {})
        return headers

    async def learn_mirrors(self) -> None:
        """Read the tools, and so what their requests repeat in headers."""
        cursor: str | None = None
        for _ in range(PAGES):
            cursor = (await self.list_tools(cursor=cursor)).next_cursor
            if cursor is None:
                return

    def _usable(self, tool: Any) -> bool:
        """Whether a listed tool can be called over this transport; what its headers repeat is remembered."""
        if not isinstance(tool, dict):
            return True  # which is said where the whole list is checked
        listed = cast("dict[str, Any]", tool)
        schema: Any = listed.get("inputSchema")
        known = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
        try:
            self._mirrors[str(listed.get("name"))] = mirrors(known)
        except InvalidMirror as error:
            logger.warning("the tool %.200r is left out: %s", listed.get("name"), one_line(str(error)))
            self._mirrors.pop(str(listed.get("name")), None)
            return False
        return True

    # By hand, one request at a time

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
        """One `tools/call` request, without answering what it asks."""
        params = {"name": name, "arguments": arguments or {}, **retry_params(input_responses, request_state)}
        result = await self.request(
            "tools/call",
            params,
            read_timeout_seconds=read_timeout_seconds,
            progress_callback=progress_callback,
            meta=meta,
        )
        if read_result(result) is None:
            return typed(CallToolResult, result)
        if not allow_input_required:
            raise RuntimeError(f"{name!r} asks for input; pass allow_input_required=True, or use Client.call_tool")
        return typed(InputRequiredResult, result)

    async def list_tools(self, *, cursor: str | None = None, meta: dict[str, Any] | None = None) -> ListToolsResult:
        """One page of tools."""
        params = {"cursor": cursor} if cursor is not None else {}
        result = await self.request("tools/list", params, meta=meta)
        tools = result.get("tools")
        if self._transport.mirrors and self._pushed is None and isinstance(tools, list):
            result["tools"] = [tool for tool in cast("list[Any]", tools) if self._usable(tool)]
        return typed(ListToolsResult, result)

    async def probe(self) -> dict[str, Any]:
        """What the server makes of a modern request, raw. It is sent once, whatever happens: a server may not survive it."""
        headers = self._headers("server/discover", {})
        return await self._send(
            "server/discover", {}, headers, timeout=self._read_timeout, progress_callback=None, meta=None
        )

    async def discover(self) -> DiscoverResult:
        """What the server says it supports."""
        return typed(DiscoverResult, await self.request("server/discover", {}))

    async def _handle(
        self, id_: int | None, progress_callback: ProgressCallback | None, message: dict[str, Any]
    ) -> None:
        if self._message_handler is not None:
            await self._message_handler(message)
        params: dict[str, Any] = message.get("params", {})
        if message["method"] == "notifications/cancelled" and self._pushed is not None:
            self._pushed.take_back(params)
        elif message["method"] == "notifications/progress":
            if progress_callback is not None and params.get("progressToken") == id_:
                await progress_callback(params["progress"], params.get("total"), params.get("message"))
        elif message["method"] == "notifications/message" and self._logging_callback is not None:
            await self._logging_callback(LoggingMessageNotificationParams.model_validate(params))


def retry_params(responses: InputResponses | dict[str, Any] | None, state: str | None) -> dict[str, Any]:
    """The members a retry adds. An empty state is a state; an absent one is none."""
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


def typed(model: type[ModelT], result: dict[str, Any]) -> ModelT:
    """A raw result as a wire type."""
    try:
        return model.model_validate(result)
    except ValidationError as error:
        places = ", ".join(sorted({".".join(map(str, detail["loc"])) for detail in error.errors()}))
        raise InvalidServerResponse(f"the server's {model.__name__} is malformed: see {places}") from None


def _result(response: bytes, id_: int) -> dict[str, Any]:
    try:
        message = from_json(response)
    except ValueError:
        raise InvalidServerResponse("the server's response is not JSON") from None
    if not isinstance(message, dict):
        raise InvalidServerResponse("the server's response is no object")
    body = cast("dict[str, Any]", message)
    error = body.get("error")
    answered: Any = body.get("id")
    # An error may come without an id: the server could not read it.
    if (answered != id_ or isinstance(answered, bool)) and not (answered is None and isinstance(error, dict)):
        raise InvalidServerResponse(f"the server answered request {answered!r} instead of {id_!r}")
    if isinstance(error, dict):
        raised = cast("dict[str, Any]", error)
        raise MCPError(raised.get("code", 0), str(raised.get("message", "")), raised.get("data"))
    result = body.get("result")
    if not isinstance(result, dict):
        raise InvalidServerResponse("the server's response has no result")
    return cast("dict[str, Any]", result)
