"""`ClientSession`: single requests to a server, with typed results. It does not answer the questions in a result: `Client` does."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

from pydantic import BaseModel

from bespeak.client.callbacks import LoggingCallback, MessageHandler, ProgressCallback
from bespeak.client.errors import NotAtThisVersion
from bespeak.client.notifications import Changed
from bespeak.client.pushed_questions import MAX_QUESTIONS, AnswerOutside, Dropped
from bespeak.client.raw_session import RawSession
from bespeak.client.server_responses import read_input_required, typed
from bespeak.protocol import wire_types
from bespeak.protocol.legacy import capabilities_at
from bespeak.protocol.versions import is_modern
from bespeak.transports.interfaces import Transport

if TYPE_CHECKING:
    from mcp_types import (
        CallToolResult,
        CompleteResult,
        DiscoverResult,
        EmptyResult,
        GetPromptResult,
        Implementation,
        InputRequiredResult,
        InputResponses,
        ListPromptsResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        ListToolsResult,
        LoggingLevel,
        PaginatedRequestParams,
        PromptReference,
        ReadResourceResult,
        ResourceTemplateReference,
    )

    Answers = InputResponses | dict[str, Any] | None

ResultT = TypeVar("ResultT", bound=BaseModel)
Meta = dict[str, Any] | None

LISTS = {
    "ListToolsResult": "tools/list",
    "ListPromptsResult": "prompts/list",
    "ListResourcesResult": "resources/list",
    "ListResourceTemplatesResult": "resources/templates/list",
}
"""The method that requests each list, by the name of its result."""


class Answerer(Protocol):
    """Answers the questions that an older server sends to its client."""

    def check_declared(self, key: str, question: Mapping[str, Any], pushed_to: Mapping[str, Any] | None = None) -> None:
        """Raises `Undeclared` for a question whose capability this client has not declared."""
        ...

    async def answer(self, session: "ClientSession", key: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to one question. Raises `CallbackFailed` or `InvalidServerResponse`."""
        ...


class ClientSession(RawSession):
    """Sends single requests, and returns their results as `mcp_types` models."""

    def __init__(
        self,
        transport: Transport,
        *,
        answers: Answerer,
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
        async def answer_pushed(key: str, question: Mapping[str, Any]) -> dict[str, Any]:
            answers.check_declared(key, question, capabilities_at(self.version, self._declared))
            return await answers.answer(self, key, question)

        super().__init__(
            transport,
            answer_pushed=answer_pushed,
            capabilities=capabilities,
            client_info=client_info,
            log_level=log_level,
            read_timeout_seconds=read_timeout_seconds,
            logging_callback=logging_callback,
            message_handler=message_handler,
            max_questions=max_questions,
            changed=changed,
            answer_outside=answer_outside,
            dropped=dropped,
        )

    # Requests that may require input

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressCallback | None = None,
        *,
        input_responses: "Answers" = None,
        request_state: str | None = None,
        meta: Meta = None,
        allow_input_required: Literal[False] = False,
    ) -> "CallToolResult": ...
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressCallback | None = None,
        *,
        input_responses: "Answers" = None,
        request_state: str | None = None,
        meta: Meta = None,
        allow_input_required: bool,
    ) -> "CallToolResult | InputRequiredResult": ...
    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressCallback | None = None,
        *,
        input_responses: "Answers" = None,
        request_state: str | None = None,
        meta: Meta = None,
        allow_input_required: bool = False,
    ) -> "CallToolResult | InputRequiredResult":
        """Send one `tools/call` request, without answering the questions in its result."""
        result = await self.request(
            "tools/call",
            {"name": name, "arguments": arguments or {}, **retry_params(input_responses, request_state)},
            read_timeout_seconds=read_timeout_seconds,
            progress_callback=progress_callback,
            meta=meta,
        )
        return _asked(wire_types.CallToolResult, result, name, "call_tool" if not allow_input_required else None)

    @overload
    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, str] | None = None,
        *,
        input_responses: "Answers" = None,
        request_state: str | None = None,
        meta: Meta = None,
        allow_input_required: Literal[False] = False,
    ) -> "GetPromptResult": ...
    @overload
    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, str] | None = None,
        *,
        input_responses: "Answers" = None,
        request_state: str | None = None,
        meta: Meta = None,
        allow_input_required: bool,
    ) -> "GetPromptResult | InputRequiredResult": ...
    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, str] | None = None,
        *,
        input_responses: "Answers" = None,
        request_state: str | None = None,
        meta: Meta = None,
        allow_input_required: bool = False,
    ) -> "GetPromptResult | InputRequiredResult":
        """Send one `prompts/get` request, without answering the questions in its result."""
        params = {**prompt_params(name, arguments), **retry_params(input_responses, request_state)}
        result = await self.request("prompts/get", params, meta=meta)
        return _asked(wire_types.GetPromptResult, result, name, "get_prompt" if not allow_input_required else None)

    @overload
    async def read_resource(
        self,
        uri: str,
        *,
        input_responses: "Answers" = None,
        request_state: str | None = None,
        meta: Meta = None,
        allow_input_required: Literal[False] = False,
    ) -> "ReadResourceResult": ...
    @overload
    async def read_resource(
        self,
        uri: str,
        *,
        input_responses: "Answers" = None,
        request_state: str | None = None,
        meta: Meta = None,
        allow_input_required: bool,
    ) -> "ReadResourceResult | InputRequiredResult": ...
    async def read_resource(
        self,
        uri: str,
        *,
        input_responses: "Answers" = None,
        request_state: str | None = None,
        meta: Meta = None,
        allow_input_required: bool = False,
    ) -> "ReadResourceResult | InputRequiredResult":
        """Send one `resources/read` request, without answering the questions in its result."""
        params = {"uri": str(uri), **retry_params(input_responses, request_state)}
        result = await self.request("resources/read", params, meta=meta)
        return _asked(
            wire_types.ReadResourceResult, result, str(uri), "read_resource" if not allow_input_required else None
        )

    # Lists and completions

    async def list_tools(self, *, params: "PaginatedRequestParams | None" = None) -> "ListToolsResult":
        """Return one page of the server's tools."""
        return await self.list_page(wire_types.ListToolsResult, *_page(params))

    async def list_prompts(self, *, params: "PaginatedRequestParams | None" = None) -> "ListPromptsResult":
        """Return one page of the server's prompts."""
        return await self.list_page(wire_types.ListPromptsResult, *_page(params))

    async def list_resources(self, *, params: "PaginatedRequestParams | None" = None) -> "ListResourcesResult":
        """Return one page of the server's resources."""
        return await self.list_page(wire_types.ListResourcesResult, *_page(params))

    async def list_resource_templates(
        self, *, params: "PaginatedRequestParams | None" = None
    ) -> "ListResourceTemplatesResult":
        """Return one page of the server's resource templates."""
        return await self.list_page(wire_types.ListResourceTemplatesResult, *_page(params))

    async def list_page(self, model: type[ResultT], cursor: str | None = None, meta: Meta = None) -> ResultT:
        """Return one page of the list that `model` belongs to. An empty cursor is sent, an absent one is not."""
        if LISTS[model.__name__] == "tools/list":
            return typed(model, await self.read_tools(cursor, meta))
        return typed(
            model, await self.request(LISTS[model.__name__], {} if cursor is None else {"cursor": cursor}, meta=meta)
        )

    async def complete(
        self,
        ref: "ResourceTemplateReference | PromptReference",
        argument: dict[str, str],
        context_arguments: dict[str, str] | None = None,
    ) -> "CompleteResult":
        """Return suggestions for an argument of a prompt or a resource template."""
        params: dict[str, Any] = {"ref": _dump(ref), "argument": argument}
        if context_arguments is not None:
            params["context"] = {"arguments": context_arguments}
        return typed(wire_types.CompleteResult, await self.request("completion/complete", params))

    async def probe(self) -> dict[str, Any]:
        """Send `server/discover` once, and return the raw result. Some older servers do not survive it."""
        headers = self._metadata.headers("server/discover", {})
        return await self._send(
            "server/discover", {}, headers, timeout=self._read_timeout, progress_callback=None, meta=None
        )

    async def discover(self) -> "DiscoverResult":
        """Return what the server supports."""
        return typed(wire_types.DiscoverResult, await self.request("server/discover", {}))

    # What only the legacy era has

    async def subscribe_resource(self, uri: str, *, meta: Meta = None) -> "EmptyResult":
        """Ask the server to notify the message handler when a resource changes."""
        self._require_legacy("resources/subscribe", "use `async with client.listen(resource_subscriptions=[uri]):`")
        result = typed(wire_types.EmptyResult, await self.request("resources/subscribe", {"uri": str(uri)}, meta=meta))
        self._subscribed.add(str(uri))
        return result

    async def unsubscribe_resource(self, uri: str, *, meta: Meta = None) -> "EmptyResult":
        """Ask the server not to notify about a resource any longer."""
        self._require_legacy("resources/unsubscribe", "leave the block of `async with client.listen(...):`")
        self._subscribed.discard(str(uri))
        return typed(wire_types.EmptyResult, await self.request("resources/unsubscribe", {"uri": str(uri)}, meta=meta))

    async def set_logging_level(self, level: "LoggingLevel", *, meta: Meta = None) -> "EmptyResult":
        """Set the lowest level of the log messages that the server sends."""
        self._require_legacy("logging/setLevel", "pass log_level= to Client(...), which sends it with each request")
        result = typed(wire_types.EmptyResult, await self.request("logging/setLevel", {"level": level}, meta=meta))
        self._log_level = level
        return result

    async def send_ping(self, *, meta: Meta = None) -> "EmptyResult":
        """Send a request that only shows whether the server responds."""
        self._require_legacy("ping", "any other request shows whether the server responds, such as session.discover()")
        return typed(wire_types.EmptyResult, await self.request("ping", {}, meta=meta))

    async def send_progress_notification(
        self, progress_token: str | int, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the server how far this client is with one of its requests."""
        self._require_legacy("notifications/progress", "servers send no requests that a client could make progress on")
        said = {"progressToken": progress_token, "progress": progress, "total": total, "message": message}
        await self.notify("notifications/progress", {name: value for name, value in said.items() if value is not None})

    async def send_roots_list_changed(self) -> None:
        """Tell the server that the roots have changed."""
        self._require_legacy(
            "notifications/roots/list_changed", "a server asks list_roots_callback whenever it needs the roots"
        )
        await self.notify("notifications/roots/list_changed")

    def _require_legacy(self, method: str, instead: str) -> None:
        if is_modern(self.version):
            raise NotAtThisVersion(method, self.version, instead)


def retry_params(responses: "Answers", state: str | None) -> dict[str, Any]:
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


def prompt_params(name: str, arguments: dict[str, str] | None) -> dict[str, Any]:
    """Return the params of `prompts/get`."""
    return {"name": name} if arguments is None else {"name": name, "arguments": arguments}


def _asked(
    model: type[ResultT], result: dict[str, Any], target: str, refused_by: str | None
) -> "ResultT | InputRequiredResult":
    """Return a result. Raises `RuntimeError` if it requires input and the caller does not expect that."""
    if read_input_required(result) is None:
        return typed(model, result)
    if refused_by is not None:
        raise RuntimeError(f"{target!r} requires input; pass allow_input_required=True or use Client.{refused_by}")
    return typed(wire_types.InputRequiredResult, result)


def _page(params: "PaginatedRequestParams | None") -> tuple[str | None, dict[str, Any] | None]:
    if params is None:
        return None, None
    sent = _dump(params)
    return params.cursor, sent.get("_meta")


def _dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
