"""From one message to its answer: which method, which tool, which state; errors become responses here."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from mcp_types import SERVER_INFO_META_KEY, InputRequiredResult

from bespeak.protocol.answers import read_answers
from bespeak.protocol.envelopes import Malformed, Notification, Request, read_message, write_error, write_result
from bespeak.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, MCPError
from bespeak.protocol.headers import Headers
from bespeak.protocol.mirrors import check_mirrors
from bespeak.protocol.versions import MODERN_PROTOCOL_VERSIONS, check_version
from bespeak.server.calls import Call, Calls, run_plain
from bespeak.server.context import CallFacts, Context, end
from bespeak.server.listing import CacheableMethod, CacheHint, hint_fields, page
from bespeak.server.tools import Tool, ToolRegistry
from bespeak.transports.transport import Answer, Notify

logger = logging.getLogger("bespeak.server")


Handler = Callable[[Request, Notify, Headers | None, bool], Awaitable[dict[str, Any]]]


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
        context: Callable[[CallFacts, Request, Notify, Headers | None], Context[Any, Any]],
    ) -> None:
        self._stamp = {SERVER_INFO_META_KEY: info}
        self._instructions = instructions
        self._tools = tools
        self._calls = calls
        self._cache_hints = dict(cache_hints)
        self._page_size = page_size
        self._context = context
        self._methods: dict[str, Handler] = {
            "tools/call": self._call_tool,
            "tools/list": self._list_tools,
            "server/discover": self._discover,
        }

    async def serve(self, message: bytes, notify: Notify, *, raise_exceptions: bool) -> bytes | None:
        """The response to a request; `None` to a notification."""
        try:
            request = read_message(message)
        except Malformed as malformed:
            return write_error(malformed.id, malformed.error)
        if isinstance(request, Notification):
            return None
        return (await self.answer(request, notify, None, raise_exceptions=raise_exceptions)).message

    async def answer(
        self, request: Request, notify: Notify, headers: Headers | None, *, raise_exceptions: bool = False
    ) -> Answer:
        """The response to a request, whatever happens."""
        try:
            check_version(request.meta.protocol_version)
            handle = self._methods.get(request.method)
            if handle is None:
                raise MCPError(METHOD_NOT_FOUND, f"unknown method {request.method!r}")
            return Answer(self._write(request, await handle(request, notify, headers, raise_exceptions)), None)
        except MCPError as error:
            return Answer(self._error(request, error), error.code)
        except Exception:
            logger.exception("request %r (%s) failed", request.id, request.method)
            if raise_exceptions:
                raise
            return Answer(write_error(request.id, MCPError(INTERNAL_ERROR, "internal error")), INTERNAL_ERROR)

    def _write(self, request: Request, result: dict[str, Any]) -> bytes:
        result.setdefault("resultType", "complete")
        result["_meta"] = {**result["_meta"], **self._stamp} if "_meta" in result else self._stamp
        try:
            return write_result(request.id, result)
        except ValueError as error:
            if request.method != "tools/call":
                raise
            # What JSON cannot carry is a failure of the tool, like any other.
            failure = find_tool(self._tools, request.params["name"]).failure(error)
            return write_result(request.id, {**failure, "resultType": "complete", "_meta": self._stamp})

    @staticmethod
    def _error(request: Request, error: MCPError) -> bytes:
        try:
            return write_error(request.id, error)
        except ValueError:
            logger.exception("the error of request %r (%s) cannot be written", request.id, request.method)
            return write_error(request.id, MCPError(error.code, "the error's details cannot be sent"))

    async def _discover(self, request: Request, *_: Any) -> dict[str, Any]:
        instructions = {"instructions": self._instructions} if self._instructions else {}
        return {
            "supportedVersions": list(MODERN_PROTOCOL_VERSIONS),
            "capabilities": {"tools": {}, "logging": {}},
            **instructions,
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
        self, request: Request, notify: Notify, headers: Headers | None, raise_exceptions: bool
    ) -> dict[str, Any]:
        params = request.params
        name, sent = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise MCPError(INVALID_PARAMS, "params.name must be the name of a tool")
        if sent is not None and not isinstance(sent, dict):
            raise MCPError(INVALID_PARAMS, "params.arguments must be an object")
        tool = find_tool(self._tools, name)
        arguments = cast("dict[str, Any]", sent or {})
        if headers is not None and tool.mirrors:
            check_mirrors(tool.mirrors, headers, arguments)
        answers = read_answers(params)
        asked: InputRequiredResult | None = None
        if tool.plain and "requestState" not in params:
            result = await run_plain(tool, arguments, raise_exceptions=raise_exceptions)
            if not isinstance(result, InputRequiredResult):
                return result
            asked = result
        context = self._context(CallFacts(tool.name, answers=answers), request, notify, headers)
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


def find_tool(tools: ToolRegistry, name: str) -> Tool:
    """A tool by its name. Raises `MCPError` if there is none."""
    tool = tools.get(name)
    if tool is None:
        raise MCPError(INVALID_PARAMS, f"unknown tool {name!r}")
    return tool
