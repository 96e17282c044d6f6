"""What a consumer may know of the call it serves, and say to the client while it runs."""

# Authors see `Context`; the functions at the end are the framework's side of it, and not theirs to call.
# pyright: reportPrivateUsage=false

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, cast

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
from pydantic import AnyUrl, ValidationError
from typing_extensions import TypeVar

from bespeak.protocol.input_responses import typed_answer
from bespeak.protocol.messages import LOG_LEVELS, Request, write_notification
from bespeak.protocol.methods import ELICIT
from bespeak.resolve.markers import Elicit, ListRoots, Question, Sample
from bespeak.resolve.outcomes import AcceptedElicitation, ElicitationResult
from bespeak.resolve.reading.type_hints import spell
from bespeak.server.features.progress_notifications import ProgressNotifications
from bespeak.server.features.resource_results import ReadResourceContents
from bespeak.server.legacy.pushing import Asker, ask_once, ask_request, read_as
from bespeak.state.seal import new_call_id
from bespeak.transports.interfaces import Notify

if TYPE_CHECKING:
    from bespeak.server.server import MCPServer

LifespanT = TypeVar("LifespanT", default=Any)
RequestT = TypeVar("RequestT", default=Any)
AnswerT = TypeVar("AnswerT")


class OutsideRequest(RuntimeError):
    """Something was asked of a context that only a client's request could give."""


class NoClient(RuntimeError):
    """A call made without a client has come to a question."""


class CannotPush(RuntimeError):
    """A body tried to ask the client in mid-call, which the client's protocol revision has no way for."""


@dataclass(slots=True)
class CallFacts:
    """What is known of the call beyond its current request."""

    consumer: str
    id: str | None = None
    round: int = 1
    principal: str | None = None
    address: str | None = None
    """Where the request came from, for bounds that hold for each address."""
    answers: dict[str, dict[str, Any]] | None = None
    request_state: str | None = None
    """What the author returned as the state of a question made by hand."""
    completes: bool = False
    """Whether an argument is being completed, which never asks."""


@dataclass(frozen=True, slots=True)
class RequestContext(Generic[LifespanT, RequestT]):
    """The request and what surrounds it."""

    lifespan_context: LifespanT
    request_id: str | int | None
    meta: dict[str, Any] | None
    request: RequestT | None
    session: "Session"


class Context(Generic[LifespanT, RequestT]):
    """Handed to every parameter annotated `Context`."""

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
        """Which wire request of the call this is, from 1."""
        return self._facts.round

    @property
    def principal(self) -> str | None:
        """Who the request's authentication says is calling; `None` without authentication."""
        return self._facts.principal

    @property
    def input_responses(self) -> InputResponses | None:
        """The client's answers to questions made by hand, by key; `None` if it sent none."""
        if self._facts.answers is None:
            return None
        return {key: typed_answer(key, answer) for key, answer in self._facts.answers.items()}

    @property
    def request_state(self) -> str | None:
        """The state returned with the last question made by hand; it travelled sealed."""
        return self._facts.request_state

    # The request

    @property
    def mcp_server(self) -> "MCPServer[LifespanT]":
        if self._server is None:
            raise OutsideRequest("this context was created by hand and has no server")
        return self._server

    @property
    def request_id(self) -> str | int:
        return self._asked().id

    @property
    def protocol_version(self) -> str | None:
        """The revision the client speaks; `None` when there is no client."""
        return self._request.meta.protocol_version if self._request else None

    @property
    def client_capabilities(self) -> ClientCapabilities | None:
        return ClientCapabilities.model_validate(self._request.meta.capabilities) if self._request else None

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The request's HTTP headers, `None` on other transports. Client-supplied: never an identity."""
        return self._headers

    @property
    def session(self) -> "Session":
        return Session(self)

    @property
    def request_context(self) -> RequestContext[LifespanT, RequestT]:
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

    async def read_resource(self, uri: str | AnyUrl) -> list[ReadResourceContents]:
        """Read a resource of this server. It sees this request, but not the answers to this call's questions.

        Raises `MCPError` if there is none or it fails, and `CannotPush` if it asks.
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
            return await self.mcp_server.read_resource(uri, context)
        except NoClient:
            raise CannotPush(
                f"{self._facts.consumer!r} read the resource {str(uri)!r}, which asks the client, but only a request of the "
                "client itself can ask. Ask here instead, with the resolver that the resource uses: "
                "Annotated[..., Resolve(fn)]"
            ) from None

    # Saying something to the client

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the call is, if it wants to know.

        Progress that does not grow is not sent; the next after a heartbeat is, just above the last if it is not higher.
        """
        if self._request is None:
            return
        if self._progress is None:
            asker = self._asker
            self._progress = asker.progress if asker is not None else ProgressNotifications(self._request.meta)
        notification = self._progress.report(progress, total, message)
        if notification is not None:
            await self._send(notification)

    async def log(self, level: LoggingLevel, data: Any, *, logger_name: str | None = None) -> None:
        """Send a log entry, if the request asked for entries of this level. Deprecated by the protocol.

        Raises `ValueError` for a level that the protocol does not know, whatever the request asked for.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"unknown log level {level!r}; use one of {', '.join(LOG_LEVELS)}")
        wanted = self._request.meta.log_level if self._request else None
        if wanted is None or self._notify is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(wanted):
            return
        named = {"logger": logger_name} if logger_name else {}
        await self._send(write_notification("notifications/message", {"level": level, **named, "data": data}))

    async def debug(self, data: Any, *, logger_name: str | None = None) -> None:
        await self.log("debug", data, logger_name=logger_name)

    async def info(self, data: Any, *, logger_name: str | None = None) -> None:
        await self.log("info", data, logger_name=logger_name)

    async def warning(self, data: Any, *, logger_name: str | None = None) -> None:
        await self.log("warning", data, logger_name=logger_name)

    async def error(self, data: Any, *, logger_name: str | None = None) -> None:
        await self.log("error", data, logger_name=logger_name)

    async def _send(self, notification: bytes) -> None:
        if self._notify is not None:
            behind = self._notify(notification)
            if behind is not None:
                await behind

    # Asking in mid-call: only older clients have a way to take such a question

    async def elicit(self, message: str, schema: type[AnswerT]) -> ElicitationResult[AnswerT]:
        """Push a form. Only clients of 2025-11-25 and earlier take pushed questions."""
        if self._asker is None:
            wanted = spell(schema)
            raise self._cannot_push("elicit", wanted, f"Elicit({message!r}, {wanted})")
        return await ask_once(self._asker, self._facts.consumer, Elicit(message, schema))

    async def elicit_url(self, message: str, url: str, elicitation_id: str | None = None) -> ElicitResult:
        """Push a URL question. Only clients of 2025-11-25 take those."""
        if self._asker is None:
            if self._facts.completes:
                raise CannotPush(self._nobody("elicit_url"))
            instead = "return an InputRequiredResult with the URL question instead"
            raise CannotPush(f"{self._nobody('elicit_url')}; {instead}")
        params = {"mode": "url", "message": message, "url": url}
        if elicitation_id is not None:
            params["elicitationId"] = elicitation_id
        answer = await ask_request(self._asker, self._facts.consumer, {"method": ELICIT, "params": params})
        return read_as(ElicitResult, self._facts.consumer, answer)

    async def close_sse_stream(self) -> None:
        """Let an older client's connection go while a long call goes on: it comes back for the rest, if there is an event store.

        Does nothing for other clients.
        """
        if self._asker is not None:
            self._asker.pause()

    def _nobody(self, what: str) -> str:
        called = f"{self._facts.consumer!r} called ctx.{what}()"
        if self._facts.completes:
            return f"The completion of {self._facts.consumer} called ctx.{what}(), but a completion cannot ask"
        if self._request is None:
            return f"{called}, but the tool was called without a client. In a test, connect one: `async with Client(mcp, ...)`"
        return f"{called}, but a client of {self.protocol_version} cannot be asked during a call"

    def _cannot_push(self, what: str, wanted: str, question: str) -> CannotPush:
        """The error for a question asked in mid-call, with the resolver to write instead."""
        if self._facts.completes:
            return CannotPush(self._nobody(what))
        return CannotPush(
            f"{self._nobody(what)}. Ask in a resolver, which works at every revision:\n\n"
            f"    async def ask() -> {question.partition('(')[0]}"
            f"{f'[{wanted}]' if what == 'elicit' else ''}:\n"
            f"        return {question}\n\n"
            f"    async def {self._facts.consumer}(..., answer: Annotated[{wanted}, Resolve(ask)]): ..."
        )


def facts_of(context: Context[Any, Any]) -> CallFacts:
    """The framework's side of a context: what it knows of the call."""
    return context._facts


def request_of(context: Context[Any, Any]) -> Request | None:
    """The framework's side of a context: the client's request."""
    return context._request


def asker_of(context: Context[Any, Any]) -> Asker | None:
    """The framework's side of a context: how an older client is asked; `None` for others."""
    return context._asker


def end(context: Context[Any, Any]) -> None:
    """The request is answered: nothing more is said about it."""
    context._notify = None


class Session:
    """The client behind a request, under the names of the official SDK."""

    def __init__(self, context: Context[Any, Any]) -> None:
        self._context = context

    @property
    def client_capabilities(self) -> ClientCapabilities | None:
        return self._context.client_capabilities

    @property
    def client_info(self) -> Implementation | None:
        """What the client says of itself: for display and logs, never for decisions."""
        info = self._context._asked().meta.client_info
        try:
            return Implementation.model_validate(info) if info else None
        except ValidationError:
            return None

    @property
    def protocol_version(self) -> str | None:
        return self._context.protocol_version

    async def send_log_message(self, level: LoggingLevel, data: Any, logger: str | None = None) -> None:
        await self._context.log(level, data, logger_name=logger)

    async def create_message(
        self, messages: Any, *, max_tokens: int, **options: Any
    ) -> CreateMessageResult | CreateMessageResultWithTools:
        """Push a sampling request, with the options of `Sample`. Only clients of 2025-11-25 and earlier take it."""
        if self._context._asker is None:
            raise self._context._cannot_push(
                "session.create_message", "CreateMessageResult", f"Sample(messages, max_tokens={max_tokens})"
            )
        return await self._ask(Sample(messages, max_tokens=max_tokens, **options))

    async def list_roots(self) -> ListRootsResult:
        """Push a roots request. Only clients of 2025-11-25 and earlier take pushed questions."""
        if self._context._asker is None:
            raise self._context._cannot_push("session.list_roots", "ListRootsResult", "ListRoots()")
        return await self._ask(ListRoots())

    async def _ask(self, marker: Question) -> Any:
        """The answer to what cannot be declined."""
        assert self._context._asker is not None, "whoever calls this has seen to it"
        outcome = await ask_once(self._context._asker, self._context._facts.consumer, marker)
        return outcome.data if isinstance(outcome, AcceptedElicitation) else None
