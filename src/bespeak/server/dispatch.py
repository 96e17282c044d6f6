"""From one message to its response: which method, which target; errors become responses here."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, cast

from bespeak.protocol import wire_types
from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, URL_ELICITATION_REQUIRED, MCPError
from bespeak.protocol.headers import Headers
from bespeak.protocol.legacy import NOVEMBER, RESOURCE_NOT_FOUND, result_at
from bespeak.protocol.messages import Request, write_error, write_result, write_written_result
from bespeak.protocol.methods import LISTEN, TARGET_PARAMETERS
from bespeak.protocol.parameter_headers import check_parameter_headers
from bespeak.protocol.reserved_meta import SERVER_INFO_META_KEY
from bespeak.protocol.versions import check_version
from bespeak.server.auth.scopes import may_use
from bespeak.server.call_log import clock, log_error, log_result
from bespeak.server.calls.arguments import InvalidArguments
from bespeak.server.calls.serving import CallServing
from bespeak.server.catalogue import Catalogue
from bespeak.server.discovery import Discovery
from bespeak.server.features.completions import CompletionRequest, CompletionRun, completion_result
from bespeak.server.features.listings import CacheableMethod, CacheHint, hint_fields
from bespeak.server.features.prompts import Prompt, prompt_arguments
from bespeak.server.features.resource_errors import ResourceNotFoundError
from bespeak.server.features.resources import Resource, ResourceTemplate, TemplateRead
from bespeak.server.features.subscriptions import Listening
from bespeak.server.features.tools import Tool
from bespeak.server.incoming import Incoming
from bespeak.server.legacy.connections import LegacyConnection
from bespeak.server.legacy.pushing import Asker
from bespeak.server.legacy.waiting_calls import WaitingCalls
from bespeak.server.middleware import Around, RequestEnd, RequestHook, RequestInfo
from bespeak.server.tracing import is_tracing, traced
from bespeak.transports.interfaces import Notify, OpenQuestions, WrittenResponse

logger = logging.getLogger("bespeak.server")

NO_URL_ERROR = (
    "a page must be opened first, but this protocol revision has no error for that; ask with ElicitUrl in a resolver"
)

Result = dict[str, Any] | bytes
"""A result; bytes if it is written already, as the client's revision knows it."""
Handler = Callable[[Incoming], Awaitable[Result]]


class Dispatch:
    """Answers the messages of one server."""

    def __init__(
        self,
        *,
        info: dict[str, Any],
        instructions: str | None,
        catalogue: Catalogue,
        serving: CallServing,
        cache_hints: Mapping[CacheableMethod, CacheHint],
        page_size: int | None,
        question_seconds: float,
        question_heartbeat: float | None,
        waiting: WaitingCalls,
    ) -> None:
        self._info = info
        self._stamp = {SERVER_INFO_META_KEY: info}
        self._instructions = {"instructions": instructions} if instructions else {}
        self._catalogue = catalogue
        self._serving = serving
        self._cache_hints = dict(cache_hints)
        self._question_seconds = question_seconds
        self._question_heartbeat = question_heartbeat
        self._waiting = waiting
        self._listening = Listening(catalogue.changes)
        discovery = Discovery(catalogue, self._cache_hints, page_size, self._instructions, self._finished)
        self.hooks: list[RequestHook] = []
        self._legacy_methods: dict[str, Handler] = {
            "tools/call": self._call_tool,
            "tools/list": discovery.tools,
            "prompts/get": self._get_prompt,
            "prompts/list": discovery.prompts,
            "resources/read": self._read_resource,
            "resources/list": discovery.resources,
            "resources/templates/list": discovery.templates,
            "completion/complete": self._complete,
        }
        self._methods: dict[str, Handler] = {
            **self._legacy_methods,
            "server/discover": discovery.discover,
            LISTEN: self._listening.listen,
        }

    def end_subscriptions(self) -> None:
        """End the streams of modern clients that listen, because the server stops."""
        self._listening.end()

    def peer(
        self, unaskable: AskingObstacle | None, assumed: str | None, other_workers: OpenQuestions | None = None
    ) -> LegacyConnection:
        """Return the server's side of a connection, for clients of older revisions."""
        return LegacyConnection(
            self.answer_legacy,
            {"capabilities": self._catalogue.capabilities(), "serverInfo": self._info, **self._instructions},
            question_seconds=self._question_seconds,
            question_heartbeat=self._question_heartbeat,
            waiting=self._waiting,
            changes=self._catalogue.changes,
            unaskable=unaskable,
            assumed=assumed,
            other_workers=other_workers,
        )

    def answer(
        self, request: Request, notify: Notify, headers: Headers | None, *, raise_exceptions: bool = False
    ) -> Coroutine[Any, Any, WrittenResponse]:
        """Return the response to a request. A failure is an error response, or raised if `raise_exceptions` is set."""
        work = self._answer(request, notify, headers, raise_exceptions=raise_exceptions)
        return traced(request, work) if is_tracing() else work

    async def _answer(
        self, request: Request, notify: Notify, headers: Headers | None, *, raise_exceptions: bool
    ) -> WrittenResponse:
        incoming = Incoming(request, notify, headers, None, raise_exceptions)
        began = clock()
        try:
            check_version(request.meta.protocol_version)
            handle = self._handler(self._methods, request)
            result = await (self._around(handle, incoming) if self.hooks else handle(incoming))
            if request.method in TARGET_PARAMETERS and not isinstance(result, bytes):
                log_result(incoming, result, began)
            return self.written(incoming, result)
        except Exception as error:  # noqa: BLE001 - the last edge: whatever it was becomes a response
            return self.failed(incoming, error, began)

    def answer_legacy(
        self, request: Request, notify: Notify, headers: Headers | None, *, asker: Asker, raise_exceptions: bool
    ) -> Coroutine[Any, Any, WrittenResponse]:
        """Return the response to a request of an older client, in the same way."""
        work = self._answer_legacy(request, notify, headers, asker=asker, raise_exceptions=raise_exceptions)
        return traced(request, work) if is_tracing() else work

    async def _answer_legacy(
        self, request: Request, notify: Notify, headers: Headers | None, *, asker: Asker, raise_exceptions: bool
    ) -> WrittenResponse:
        incoming = Incoming(request, notify, headers, asker, raise_exceptions)
        began = clock()
        try:
            handle = self._handler(self._legacy_methods, request)
            result = await (self._around(handle, incoming) if self.hooks else handle(incoming))
            if request.method in TARGET_PARAMETERS and not isinstance(result, bytes):
                log_result(incoming, result, began)
            return self.written(incoming, result)
        except Exception as error:  # noqa: BLE001 - the same edge
            return self.failed(incoming, error, began)

    async def _around(self, handle: Handler, incoming: Incoming) -> Result:
        """Handle a request inside the author's hooks."""
        request = incoming.request
        target = request.params.get(TARGET_PARAMETERS[request.method]) if request.method in TARGET_PARAMETERS else None
        info = RequestInfo(
            request.method,
            target if isinstance(target, str) else None,
            request.id,
            request.meta.protocol_version,
            incoming.principal,
            incoming.address,
        )

        async def work() -> Result | MCPError:
            try:
                return await handle(incoming)
            except MCPError as error:
                return error

        def end(result: Result | MCPError) -> RequestEnd:
            return RequestEnd(result.code if isinstance(result, MCPError) else None)

        result = await Around(self.hooks, info, work, end).run()
        if isinstance(result, MCPError):
            raise result
        return result

    @staticmethod
    def _handler(methods: Mapping[str, Handler], request: Request) -> Handler:
        handle = methods.get(request.method)
        if handle is None:
            raise MCPError(METHOD_NOT_FOUND, f"unknown method {request.method!r}")
        return handle

    def failed(self, incoming: Incoming, error: Exception, began: float) -> WrittenResponse:
        """Return the response for a request that failed."""
        request = incoming.request
        if request.method in TARGET_PARAMETERS:
            log_error(incoming, error, began)
        if isinstance(error, MCPError):
            if error.code == URL_ELICITATION_REQUIRED and request.meta.protocol_version > NOVEMBER:
                logger.error(
                    "request %r (%s) raised an error of 2025-11-25: %s", request.id, request.method, NO_URL_ERROR
                )
                error = MCPError(INTERNAL_ERROR, NO_URL_ERROR)
            return WrittenResponse(self._error(request, error), error.code)
        logger.error("request %r (%s) failed", request.id, request.method, exc_info=error)
        if incoming.raise_exceptions:
            raise error
        return WrittenResponse(write_error(request.id, MCPError(INTERNAL_ERROR, "internal error")), INTERNAL_ERROR)

    def stamped(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result with what every modern result has."""
        result.setdefault("resultType", "complete")
        result["_meta"] = {**result["_meta"], **self._stamp} if "_meta" in result else self._stamp
        return result

    def _finished(self, incoming: Incoming, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result as the client's revision knows it."""
        if incoming.asker is None:
            return self.stamped(result)
        return result_at(incoming.request.meta.protocol_version, incoming.request.method, result)

    def written(self, incoming: Incoming, result: Result) -> WrittenResponse:
        """Return the response with a result."""
        request = incoming.request
        if type(result) is bytes:
            return WrittenResponse(write_written_result(request.id, result))
        unwritten: Any = result
        try:
            return WrittenResponse(write_result(request.id, self._finished(incoming, unwritten)))
        except ValueError as error:
            if request.method != "tools/call":
                raise
            # What JSON cannot carry is a failure of the tool, like any other.
            failure = self._tool(request.params).failure(error)
            return WrittenResponse(write_result(request.id, self._finished(incoming, failure)))

    @staticmethod
    def _error(request: Request, error: MCPError) -> bytes:
        try:
            return write_error(request.id, error)
        except ValueError:
            logger.exception("the error of request %r (%s) cannot be written", request.id, request.method)
            return write_error(request.id, MCPError(error.code, "the error's details cannot be sent"))

    # Calls

    def _call_tool(self, incoming: Incoming) -> Coroutine[Any, Any, dict[str, Any]]:
        params, headers = incoming.request.params, incoming.headers
        name, sent = params.get("name"), params.get("arguments")
        tool = self._catalogue.tools.get(name) if isinstance(name, str) else None
        if tool is None or tool.scopes:
            tool = self._tool(params, headers)  # which says what is wrong
        if sent is not None and not isinstance(sent, dict):
            raise MCPError(INVALID_PARAMS, "params.arguments must be an object")
        arguments = cast("dict[str, Any]", sent or {})
        if incoming.asker is None and headers is not None and tool.parameter_headers:
            check_parameter_headers(tool.parameter_headers, headers, arguments)
        return self._serving.serve(tool, arguments, incoming)

    async def _get_prompt(self, incoming: Incoming) -> dict[str, Any]:
        params = incoming.request.params
        prompt = find_prompt(self._catalogue, _named(params, "name", "a prompt"), incoming.headers)
        return await self._serving.serve(prompt, prompt_arguments(params.get("arguments")), incoming)

    async def _read_resource(self, incoming: Incoming) -> dict[str, Any]:
        params = incoming.request.params
        uri = _named(params, "uri", "a resource")
        try:
            resource, arguments = find_resource(self._catalogue, uri, incoming.headers)
            incoming.target = resource.pattern if isinstance(resource, TemplateRead) else resource.name
            result = await self._serving.serve(resource, arguments, incoming)
        except ResourceNotFoundError as error:
            if incoming.asker is None:
                raise
            raise MCPError(RESOURCE_NOT_FOUND, error.message, error.data) from None
        if incoming.asker is None and result.get("resultType") != "input_required":
            if "ttlMs" not in result:
                result |= hint_fields(self._cache_hints, "resources/read")
            if resource.scopes:
                result["cacheScope"] = "private"
            if "requestState" in params or "inputResponses" in params:
                result |= CacheHint().fields()  # it depends on a person's answers, so nobody may use it again
        return result

    async def _complete(self, incoming: Incoming) -> dict[str, Any]:
        if not self._catalogue.has_completions:
            raise MCPError(METHOD_NOT_FOUND, "this server has no completions")
        request = CompletionRequest.read(incoming.request.params)
        owner = find_completed(self._catalogue, request, incoming.headers)
        own = owner.completions.get(request.argument.name)
        handler = self._catalogue.completion_handler_of(owner.home)
        try:
            run: CompletionRun | None = None
            if own is not None:
                run = own(request)
            elif handler is not None:
                run = handler(request if owner.name_at_home is None else request.at_home(owner.name_at_home))
        except InvalidArguments as error:
            raise MCPError(INVALID_PARAMS, f"params.context.arguments: {error}") from None
        if run is None:
            return completion_result()
        run.home = owner.home
        return await self._serving.complete(run, incoming)

    def _tool(self, params: Mapping[str, Any], headers: Headers | None = None) -> Tool:
        return find_tool(self._catalogue, _named(params, "name", "a tool"), headers)


def _named(params: Mapping[str, Any], member: str, what: str) -> str:
    """Return the name of a request's target. Raises `MCPError`."""
    name = params.get(member)
    if not isinstance(name, str):
        raise MCPError(INVALID_PARAMS, f"params.{member} must be the {'URI' if member == 'uri' else member} of {what}")
    return name


def find_tool(catalogue: Catalogue, name: str, headers: Headers | None = None) -> Tool:
    """Return a tool by its name. Raises `MCPError` if there is none, or none that the sender of a request may call."""
    tool = catalogue.tools.get(name)
    if tool is None or (tool.scopes and not may_use(tool, headers)):
        raise MCPError(INVALID_PARAMS, f"unknown tool {name!r}")
    return tool


def find_prompt(catalogue: Catalogue, name: str, headers: Headers | None = None) -> Prompt:
    """Return a prompt by its name. Raises `MCPError` if there is none, or none that the sender of a request may get."""
    prompt = catalogue.prompts.get(name)
    if prompt is None or (prompt.scopes and not may_use(prompt, headers)):
        raise MCPError(INVALID_PARAMS, f"unknown prompt {name!r}")
    return prompt


def find_resource(
    catalogue: Catalogue, uri: str, headers: Headers | None = None
) -> tuple[Resource | TemplateRead, dict[str, Any]]:
    """Return what is at a URI, with its arguments.

    Raises `ResourceNotFoundError` if there is nothing that the sender of a request may read.
    """
    found = catalogue.resources.find(uri)
    if found is None or not may_use(found[0], headers):
        raise ResourceNotFoundError(f"unknown resource {uri!r}", {"uri": uri})
    return found


def find_completed(
    catalogue: Catalogue, request: CompletionRequest, headers: Headers | None = None
) -> Prompt | ResourceTemplate:
    """Return the prompt or template whose argument is completed.

    Raises `MCPError` if there is no such argument of anything that the sender may use.
    """
    ref, name = request.ref, request.argument.name
    owner = catalogue.completed(ref)
    if owner is None or not may_use(owner, headers):
        if isinstance(ref, wire_types.PromptReference):
            raise MCPError(INVALID_PARAMS, f"unknown prompt {ref.name!r}")
        raise MCPError(INVALID_PARAMS, f"unknown resource {ref.uri!r}", {"uri": ref.uri})
    if isinstance(owner, Resource) or name not in owner.argument_names:
        raise MCPError(INVALID_PARAMS, f"there is no {request.target}")
    return owner
