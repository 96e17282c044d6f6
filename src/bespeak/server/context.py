"""The context of a call: what a consumer can know about the call, and what it can send to the client while it runs."""

# Authors see `Context`; the functions at the end are the framework's side of it, and not theirs to call.
# pyright: reportPrivateUsage=false

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, cast

from pydantic import ValidationError
from typing_extensions import TypeVar

from bespeak.protocol import wire_types
from bespeak.protocol.headers import Headers
from bespeak.protocol.input_responses import typed_answer
from bespeak.protocol.messages import Request, write_notification
from bespeak.protocol.methods import ELICIT
from bespeak.resolve.markers import Elicit, ListRoots, Question, Sample
from bespeak.resolve.outcomes import AcceptedElicitation, ElicitationResult
from bespeak.resolve.reading.type_hints import spell
from bespeak.server.calls.held_calls import HeldCalls
from bespeak.server.context_errors import NoClient, OutsideRequest, Unaskable
from bespeak.server.features.logging import log_entry
from bespeak.server.features.progress_notifications import ProgressNotifications
from bespeak.server.features.resource_results import ReadResourceContents
from bespeak.server.legacy.pushing import Asker, ask_once, ask_request, read_as
from bespeak.state.seal import new_call_id
from bespeak.transports.interfaces import Notify

if TYPE_CHECKING:
    from mcp_types import (
        ClientCapabilities,
        CreateMessageResult,
        CreateMessageResultWithTools,
        ElicitResult,
        Implementation,
        InputResponses,
        ListRootsResult,
        LoggingLevel,
    )
    from pydantic import AnyUrl

    from bespeak.protocol.callers import AccessToken
    from bespeak.server.server import MCPServer

LifespanT = TypeVar("LifespanT", default=Any)
RequestT = TypeVar("RequestT", default=Any)
AnswerT = TypeVar("AnswerT")


@dataclass(slots=True)
class CallFacts:
    """What is known about the call besides its current request."""

    consumer: str
    home: Any = None
    """The server whose function is called, if that is included in the one that serves the call."""
    id: str | None = None
    round: int = 1
    principal: str | None = None
    address: str | None = None
    """Where the request came from, for limits per address."""
    answers: dict[str, dict[str, Any]] | None = None
    request_state: str | None = None
    """The state that the author returned with a question made by hand."""
    completes: bool = False
    """Whether an argument is being completed. A completion never asks."""
    held: HeldCalls | None = None
    """Counts the calls that are held because a page was opened; `None` if nobody does."""

    def hold(self) -> AbstractContextManager[bool]:
        """Count the call as held while the block is open. Gives whether there is room for it."""
        return self.held.hold(self.principal or self.address) if self.held is not None else nullcontext(True)


@dataclass(frozen=True, slots=True)
class RequestContext(Generic[LifespanT, RequestT]):
    """The current request, its session and the server's lifespan value."""

    lifespan_context: LifespanT
    request_id: str | int | None
    meta: dict[str, Any] | None
    request: RequestT | None
    session: "Session"


class Context(Generic[LifespanT, RequestT]):
    """The context of a call, passed to every parameter that is annotated `Context`."""

    _progress: ProgressNotifications | None = None

    def __init__(
        self,
        *,
        server: "MCPServer[LifespanT] | None" = None,
        lifespan_context: LifespanT | None = None,
        facts: CallFacts | None = None,
        request: Request | None = None,
        notify: Notify | None = None,
        headers: Mapping[str, str] | None = None,
        asker: Asker | None = None,
    ) -> None:
        self._server = server
        self._lifespan_context = lifespan_context
        self._facts = facts or CallFacts("a call without a server")
        self._request = request
        self._notify = notify
        self._headers = headers
        self._asker = asker

    # The call

    @property
    def call_id(self) -> str:
        """An id for this call, the same in all its rounds: an idempotency key for your own back ends."""
        if self._facts.id is None:
            self._facts.id = new_call_id()
        return self._facts.id

    @property
    def round(self) -> int:
        """The number of this wire request within the call, starting at 1."""
        return self._facts.round

    @property
    def principal(self) -> str | None:
        """The caller according to the request's authentication; `None` without authentication."""
        return self._facts.principal

    @property
    def access_token(self) -> "AccessToken | None":
        """The verified access token of the request; `None` without authentication."""
        caller = self._headers.caller if isinstance(self._headers, Headers) else None
        return caller.access_token if caller is not None else None

    @property
    def input_responses(self) -> "InputResponses | None":
        """The client's answers to questions made by hand, by key; `None` if it sent none."""
        if self._facts.answers is None:
            return None
        return {key: typed_answer(key, answer) for key, answer in self._facts.answers.items()}

    @property
    def request_state(self) -> str | None:
        """The state that was returned with the last question made by hand. The client has it only in sealed form."""
        return self._facts.request_state

    # The request

    @property
    def mcp_server(self) -> "MCPServer[LifespanT]":
        """The server that the function is registered on."""
        if self._server is None:
            raise OutsideRequest("this context was created by hand and has no server")
        return self._server

    @property
    def request_id(self) -> str | int:
        """The id of the request. Each round of a call has another one."""
        return self._asked().id

    @property
    def protocol_version(self) -> str | None:
        """The protocol revision of the client; `None` if there is no client."""
        return self._request.meta.protocol_version if self._request else None

    @property
    def client_capabilities(self) -> "ClientCapabilities | None":
        """What the client has declared that it can do; `None` without a client."""
        return wire_types.ClientCapabilities.model_validate(self._request.meta.capabilities) if self._request else None

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The request's HTTP headers; `None` on other transports. The client sets them: they are not an identity.

        Each round of a call has its own. What must stay the same belongs in a resolver with `once=True`.
        """
        return self._headers

    @property
    def session(self) -> "Session":
        """The connection to the client, under the names of the official SDK."""
        return Session(self)

    @property
    def request_context(self) -> RequestContext[LifespanT, RequestT]:
        """The lifespan's value and the facts of the request, under the names of the official SDK."""
        request = self._request
        return RequestContext(
            lifespan_context=cast("LifespanT", self._lifespan_context),
            request_id=request.id if request else None,
            meta=request.meta.raw if request else None,
            request=None,
            session=self.session,
        )

    def _asked(self) -> Request:
        """The client's request. Raises `OutsideRequest` if there is none."""
        if self._request is None:
            raise OutsideRequest(f"{self._facts.consumer!r} was called without a client, so there is no request")
        return self._request

    async def read_resource(self, uri: "str | AnyUrl") -> list[ReadResourceContents]:
        """Read a resource of the server that this function is registered on.

        The resource sees this request, but not the answers to this call's questions. Raises `MCPError` if there is none or it
        fails, and `CannotPush` if it asks.
        """
        facts = replace(self._facts, consumer=str(uri), answers=None, request_state=None)
        context = Context[LifespanT, RequestT](
            server=self._server,
            lifespan_context=self._lifespan_context,
            facts=facts,
            request=self._request,
            notify=self._notify,
            headers=self._headers,
            asker=self._asker,
        )
        try:
            return await (facts.home or self.mcp_server).read_resource(uri, context)
        except NoClient:
            raise self._unaskable.resource(str(uri)) from None

    # Sending something to the client

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the call is, if the client has asked for progress.

        Progress that does not increase is not sent. The first value after a heartbeat is sent, raised to just above the
        heartbeat's value if it is not higher.
        """
        if self._request is None:
            return
        if self._progress is None:
            asker = self._asker
            self._progress = asker.progress if asker is not None else ProgressNotifications(self._request.meta)
        notification = self._progress.report(progress, total, message)
        if notification is not None:
            await self._send(notification)

    async def log(self, level: "LoggingLevel", data: Any, *, logger_name: str | None = None) -> None:
        """Send a log entry, if the request asked for entries of this level. Deprecated by the protocol.

        Raises `ValueError` for a level that the protocol does not define, even if nothing would be sent.
        """
        wanted = self._request.meta.log_level if self._request and self._notify else None
        entry = log_entry(wanted, level, data, logger_name)
        if entry is not None:
            await self._send(entry)

    async def debug(self, data: Any, *, logger_name: str | None = None) -> None:
        """Send the client a log message of the level `debug`."""
        await self.log("debug", data, logger_name=logger_name)

    async def info(self, data: Any, *, logger_name: str | None = None) -> None:
        """Send the client a log message of the level `info`."""
        await self.log("info", data, logger_name=logger_name)

    async def warning(self, data: Any, *, logger_name: str | None = None) -> None:
        """Send the client a log message of the level `warning`."""
        await self.log("warning", data, logger_name=logger_name)

    async def error(self, data: Any, *, logger_name: str | None = None) -> None:
        """Send the client a log message of the level `error`."""
        await self.log("error", data, logger_name=logger_name)

    async def _send(self, notification: bytes) -> None:
        if self._notify is not None:
            behind = self._notify(notification)
            if behind is not None:
                await behind

    # Telling clients what has changed

    async def notify_tools_changed(self) -> None:
        """Tell clients that the list of tools has changed. Adding and removing tools does that already."""
        self.mcp_server.notify_tools_changed()

    async def notify_prompts_changed(self) -> None:
        """Tell clients that the list of prompts has changed. Adding and removing prompts does that already."""
        self.mcp_server.notify_prompts_changed()

    async def notify_resources_changed(self) -> None:
        """Tell clients that the list of resources has changed. Adding and removing resources does that already."""
        self.mcp_server.notify_resources_changed()

    async def notify_resource_updated(self, uri: "str | AnyUrl") -> None:
        """Tell the clients that subscribe to a resource that its contents have changed."""
        self.mcp_server.notify_resource_updated(uri)

    # Asking during a call: only older clients support it

    async def elicit(self, message: str, schema: type[AnswerT]) -> ElicitationResult[AnswerT]:
        """Ask for a form during the call, and return the outcome. Works only with clients of 2025-11-25 and earlier."""
        if self._asker is None:
            wanted = spell(schema)
            raise self._unaskable.question("elicit", wanted, f"Elicit({message!r}, {wanted})")
        return await ask_once(self._asker, self._facts.consumer, Elicit(message, schema))

    async def elicit_url(self, message: str, url: str, elicitation_id: str | None = None) -> "ElicitResult":
        """Ask a URL question during the call, and return the answer. Works only with clients of 2025-11-25."""
        if self._asker is None:
            raise self._unaskable.url(message)
        params = {"mode": "url", "message": message, "url": url}
        if elicitation_id is not None:
            params["elicitationId"] = elicitation_id
        answer = await ask_request(self._asker, self._facts.consumer, {"method": ELICIT, "params": params})
        return read_as(wire_types.ElicitResult, self._facts.consumer, answer)

    async def close_sse_stream(self) -> None:
        """Close an older client's connection while a long call continues. The client reconnects for the rest.

        Does nothing for other clients, and nothing without an event store.
        """
        if self._asker is not None:
            self._asker.pause()

    @property
    def _unaskable(self) -> Unaskable:
        return Unaskable(self._facts.consumer, self.protocol_version, completes=self._facts.completes)


def facts_of(context: Context[Any, Any]) -> CallFacts:
    """Return what the framework knows about the call of a context."""
    return context._facts


def request_of(context: Context[Any, Any]) -> Request | None:
    """Return the client's request of a context; `None` if there is none."""
    return context._request


def headers_of(context: Context[Any, Any] | None) -> Headers | None:
    """The framework's side of a context: the headers of the client's request, with who sent it."""
    headers = context._headers if context is not None else None
    return headers if isinstance(headers, Headers) else None


def asker_of(context: Context[Any, Any]) -> Asker | None:
    """Return what sends questions to the older client of a context; `None` for other clients."""
    return context._asker


def end(context: Context[Any, Any]) -> None:
    """Called when the request is answered: nothing more is sent for it."""
    context._notify = None


class Session:
    """The client behind a request, under the names of the official SDK."""

    def __init__(self, context: Context[Any, Any]) -> None:
        self._context = context

    @property
    def client_capabilities(self) -> "ClientCapabilities | None":
        return self._context.client_capabilities

    @property
    def client_info(self) -> "Implementation | None":
        """The name and version of the client, for display and logs. Do not base decisions on it."""
        info = self._context._asked().meta.client_info
        try:
            return wire_types.Implementation.model_validate(info) if info else None
        except ValidationError:
            return None

    @property
    def protocol_version(self) -> str | None:
        return self._context.protocol_version

    async def send_log_message(self, level: "LoggingLevel", data: Any, logger: str | None = None) -> None:
        await self._context.log(level, data, logger_name=logger)

    async def send_elicit_complete(self, elicitation_id: str) -> None:
        """Tell an older client that the page of a URL question was completed. Does nothing for other clients."""
        if self._context._asker is not None:
            params = {"elicitationId": elicitation_id}
            await self._context._send(write_notification("notifications/elicitation/complete", params))

    async def send_tool_list_changed(self) -> None:
        await self._context.notify_tools_changed()

    async def send_prompt_list_changed(self) -> None:
        await self._context.notify_prompts_changed()

    async def send_resource_list_changed(self) -> None:
        await self._context.notify_resources_changed()

    async def send_resource_updated(self, uri: "str | AnyUrl") -> None:
        await self._context.notify_resource_updated(uri)

    async def create_message(
        self, messages: Any, *, max_tokens: int, **options: Any
    ) -> "CreateMessageResult | CreateMessageResultWithTools":
        """Ask the client's model during the call, with the options of `Sample`.

        Works only with clients of 2025-11-25 and earlier.
        """
        if self._context._asker is None:
            raise self._context._unaskable.question(
                "session.create_message", "CreateMessageResult", f"Sample(messages, max_tokens={max_tokens})"
            )
        return await self._ask(Sample(messages, max_tokens=max_tokens, **options))

    async def list_roots(self) -> "ListRootsResult":
        """Ask the client for its roots during the call. Works only with clients of 2025-11-25 and earlier."""
        if self._context._asker is None:
            raise self._context._unaskable.question("session.list_roots", "ListRootsResult", "ListRoots()")
        return await self._ask(ListRoots())

    async def _ask(self, marker: Question) -> Any:
        """Return the answer to a question that cannot be declined."""
        assert self._context._asker is not None, "the caller has checked it"
        outcome = await ask_once(self._context._asker, self._context._facts.consumer, marker)
        return outcome.data if isinstance(outcome, AcceptedElicitation) else None
