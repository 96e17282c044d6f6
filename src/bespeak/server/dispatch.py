"""From one message to its answer: which method, which tool, which state; errors become responses here."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from mcp_types import SERVER_INFO_META_KEY, InputRequiredResult

from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, MCPError
from bespeak.protocol.headers import Headers
from bespeak.protocol.input_responses import read_answers
from bespeak.protocol.legacy import result_at
from bespeak.protocol.messages import Request, write_error, write_result
from bespeak.protocol.parameter_headers import check_parameter_headers
from bespeak.protocol.versions import SPOKEN, check_version
from bespeak.server.calls.body import run_plain
from bespeak.server.calls.call import Call, Calls
from bespeak.server.context import CallFacts, Context, end
from bespeak.server.features.listings import CacheableMethod, CacheHint, hint_fields, page
from bespeak.server.features.tools import Tool, ToolRegistry
from bespeak.server.legacy.connections import LegacyConnection
from bespeak.server.legacy.pushed_calls import PushedCall
from bespeak.server.legacy.pushing import Asker
from bespeak.server.legacy.waiting_calls import WaitingCalls
from bespeak.transports.interfaces import Notify, WrittenResponse

logger = logging.getLogger("bespeak.server")

CAPABILITIES: Mapping[str, Any] = {"tools": {}, "logging": {}}
"""The capabilities of this server, in every era."""

Handler = Callable[[Request, Notify, Headers | None, Asker | None, bool], Awaitable[dict[str, Any]]]


class Dispatch:
    """Answers the messages of one server."""

    def __init__(
        self,
        *,
        info: dict[str, Any],
        instructions: str | None,
        tools: ToolRegistry,
        calls: Calls,
        cache_hints: Mapping[CacheableMethod, CacheHint],
        page_size: int | None,
        question_seconds: float,
        question_heartbeat: float | None,
        waiting: WaitingCalls,
        context: Callable[[CallFacts, Request, Notify, Headers | None, Asker | None], Context[Any, Any]],
    ) -> None:
        self._info = info
        self._stamp = {SERVER_INFO_META_KEY: info}
        self._instructions = {"instructions": instructions} if instructions else {}
        self._tools = tools
        self._calls = calls
        self._cache_hints = dict(cache_hints)
        self._page_size = page_size
        self._question_seconds = question_seconds
        self._question_heartbeat = question_heartbeat
        self._waiting = waiting
        self._context = context
        self._legacy_methods: dict[str, Handler] = {
            "tools/call": self._call_tool,
            "tools/list": self._list_tools,
        }
        self._methods: dict[str, Handler] = {**self._legacy_methods, "server/discover": self._discover}

    def peer(self, unaskable: AskingObstacle | None, assumed: str | None) -> LegacyConnection:
        """Return the server's side of a connection, for clients of older revisions."""
        return LegacyConnection(
            self._answer_legacy,
            {"capabilities": CAPABILITIES, "serverInfo": self._info, **self._instructions},
            question_seconds=self._question_seconds,
            question_heartbeat=self._question_heartbeat,
            waiting=self._waiting,
            unaskable=unaskable,
            assumed=assumed,
        )

    async def answer(
        self, request: Request, notify: Notify, headers: Headers | None, *, raise_exceptions: bool = False
    ) -> WrittenResponse:
        """Return the response to a request. A failure is an error response, or raised if `raise_exceptions` is set."""
        try:
            check_version(request.meta.protocol_version)
            handle = self._handler(self._methods, request)
            return WrittenResponse(
                self._write(request, await handle(request, notify, headers, None, raise_exceptions)), None
            )
        except Exception as error:  # noqa: BLE001 - the last edge: whatever it was becomes a response
            return self._failed(request, error, raise_exceptions=raise_exceptions)

    async def _answer_legacy(
        self, request: Request, notify: Notify, headers: Headers | None, *, asker: Asker, raise_exceptions: bool
    ) -> WrittenResponse:
        """The response to a request of an older client, whatever happens."""
        try:
            handle = self._handler(self._legacy_methods, request)
            result = await handle(request, notify, headers, asker, raise_exceptions)
            version = request.meta.protocol_version
            return WrittenResponse(
                self._written(request, result, lambda known: result_at(version, request.method, known))
            )
        except Exception as error:  # noqa: BLE001 - the same edge
            return self._failed(request, error, raise_exceptions=raise_exceptions)

    @staticmethod
    def _handler(methods: Mapping[str, Handler], request: Request) -> Handler:
        handle = methods.get(request.method)
        if handle is None:
            raise MCPError(METHOD_NOT_FOUND, f"unknown method {request.method!r}")
        return handle

    def _failed(self, request: Request, error: Exception, *, raise_exceptions: bool) -> WrittenResponse:
        if isinstance(error, MCPError):
            return WrittenResponse(self._error(request, error), error.code)
        logger.error("request %r (%s) failed", request.id, request.method, exc_info=error)
        if raise_exceptions:
            raise error
        return WrittenResponse(write_error(request.id, MCPError(INTERNAL_ERROR, "internal error")), INTERNAL_ERROR)

    def _stamped(self, result: dict[str, Any]) -> dict[str, Any]:
        result.setdefault("resultType", "complete")
        result["_meta"] = {**result["_meta"], **self._stamp} if "_meta" in result else self._stamp
        return result

    def _write(self, request: Request, result: dict[str, Any]) -> bytes:
        return self._written(request, result, self._stamped)

    def _written(
        self, request: Request, result: dict[str, Any], finish: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> bytes:
        try:
            return write_result(request.id, finish(result))
        except ValueError as error:
            if request.method != "tools/call":
                raise
            # What JSON cannot carry is a failure of the tool, like any other.
            failure = find_tool(self._tools, request.params["name"]).failure(error)
            return write_result(request.id, finish(failure))

    @staticmethod
    def _error(request: Request, error: MCPError) -> bytes:
        try:
            return write_error(request.id, error)
        except ValueError:
            logger.exception("the error of request %r (%s) cannot be written", request.id, request.method)
            return write_error(request.id, MCPError(error.code, "the error's details cannot be sent"))

    async def _discover(self, request: Request, *_: Any) -> dict[str, Any]:
        return {
            "supportedVersions": list(SPOKEN),
            "capabilities": CAPABILITIES,
            **self._instructions,
            **hint_fields(self._cache_hints, "server/discover"),
        }

    async def _list_tools(self, request: Request, *_: Any) -> dict[str, Any]:
        tools = self._tools.all()
        chosen, more = page([tool.name for tool in tools], request.params, self._page_size)
        return {
            "tools": [tool.wire for tool in tools[chosen]],
            **more,
            **hint_fields(self._cache_hints, "tools/list"),
        }

    async def _call_tool(
        self,
        request: Request,
        notify: Notify,
        headers: Headers | None,
        asker: Asker | None,
        raise_exceptions: bool,
    ) -> dict[str, Any]:
        params = request.params
        name, sent = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise MCPError(INVALID_PARAMS, "params.name must be the name of a tool")
        if sent is not None and not isinstance(sent, dict):
            raise MCPError(INVALID_PARAMS, "params.arguments must be an object")
        tool = find_tool(self._tools, name)
        arguments = cast("dict[str, Any]", sent or {})
        if asker is not None:
            return await self._call_legacy(tool, arguments, request, notify, headers, asker, raise_exceptions)
        if headers is not None and tool.parameter_headers:
            check_parameter_headers(tool.parameter_headers, headers, arguments)
        answers = read_answers(params)
        asked: InputRequiredResult | None = None
        if tool.plain and "requestState" not in params:
            result = await run_plain(tool, arguments, raise_exceptions=raise_exceptions)
            if not isinstance(result, InputRequiredResult):
                return result
            asked = result
        address = headers.address if headers is not None else None
        facts = CallFacts(tool.name, address=address, answers=answers)
        context = self._context(facts, request, notify, headers, None)
        call = Call(
            self._calls,
            tool,
            arguments,
            context,
            declared=request.meta.capabilities,
            raise_exceptions=raise_exceptions,
        )
        try:
            if asked is not None:
                return await call.ask(asked)
            if "requestState" in params:
                call.resume(params["requestState"], request.id)
            elif not tool.graph.has_generators:
                return await call.run()
            return await self._calls.shelter(call, call.run())
        finally:
            end(context)

    async def _call_legacy(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        request: Request,
        notify: Notify,
        headers: Headers | None,
        asker: Asker,
        raise_exceptions: bool,
    ) -> dict[str, Any]:
        """A call that has one request. What later revisions send with a retry means nothing here."""
        # It may wait for a person. Nothing is kept meanwhile that it does not need.
        for name in request.params.keys() - {"name", "_meta"}:
            del request.params[name]
        asked: InputRequiredResult | None = None
        if tool.plain:
            result = await run_plain(tool, arguments, raise_exceptions=raise_exceptions)
            if not isinstance(result, InputRequiredResult):
                return result
            asked = result
        context = self._context(CallFacts(tool.name), request, notify, headers, asker)
        call = PushedCall(self._calls, tool, arguments, context, asker, raise_exceptions=raise_exceptions)
        try:
            if asked is not None:
                return await self._calls.shelter(call, call.ask(asked))
            if not (tool.may_ask or tool.graph.has_generators):
                return await call.run()
            return await self._calls.shelter(call, call.run())
        finally:
            end(context)


def find_tool(tools: ToolRegistry, name: str) -> Tool:
    """Return a tool by its name. Raises `MCPError` if there is none."""
    tool = tools.get(name)
    if tool is None:
        raise MCPError(INVALID_PARAMS, f"unknown tool {name!r}")
    return tool
