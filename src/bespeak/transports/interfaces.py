"""The types through which transports reach a server, and clients reach a transport."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pydantic_core import to_json

from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import LegacyRequest, Notification, Request, RequestId, Response
from bespeak.protocol.session_facts import Delivery, SessionFacts, SessionLimits

if TYPE_CHECKING:
    from bespeak.protocol.callers import Caller

Notify = Callable[[bytes], Awaitable[None] | None]
"""Takes one notification of the request that is being served. If it returns an awaitable, the reader is behind: await
it before the next notification."""

MESSAGE_LIMIT = 4 * 1024 * 1024
"""The size in bytes of the largest message that a server accepts."""
ANSWER_LIMIT = 64 * 1024 * 1024
"""The size in bytes of the largest message that a client accepts."""


class WrittenResponse(NamedTuple):
    """The response to one request, and its error code if it is an error."""

    message: bytes
    code: int | None = None


class StraightCall(NamedTuple):
    """A call that sends no notifications."""

    work: Coroutine[Any, Any, WrittenResponse]
    id: RequestId


class Channel(Protocol):
    """Sends messages to an older client while one of its requests is being served."""

    @property
    def has_reader(self) -> bool:
        """Whether the client is connected. A client that lost its connection may return."""
        ...

    def notify(self, message: bytes, /) -> Awaitable[None] | None:
        """Send a notification, as `Notify` does."""
        ...

    def push(self, message: bytes, /) -> None:
        """Send a message that must arrive. Raises `ConnectionError` if the client is not connected."""
        ...

    def pause(self) -> None:
        """Close the connection, if the client can resume and get the rest."""
        ...

    def when_gone(self, callback: Callable[[], object], /) -> None:
        """Call a function when the connection is lost, the session continues, and the client cannot resume."""
        ...


class OpenQuestions(Protocol):
    """Tells other workers which questions this one has asked, because an answer may arrive at any of them."""

    async def open(self, question: str) -> None:
        """Have answers to a question sent here. Raises `ConnectionError` if the others cannot be told."""
        ...

    def close(self, question: str) -> None:
        """Nobody waits for its answer any more."""
        ...


class Peer(Protocol):
    """A server's side of one handshake: one client of an older revision."""

    @property
    def version(self) -> str | None:
        """The revision that client and server agreed on; `None` before the handshake."""
        ...

    def answer(
        self,
        request: LegacyRequest,
        channel: Channel,
        headers: Headers | None = None,
        *,
        raise_exceptions: bool = False,
    ) -> Coroutine[Any, Any, WrittenResponse]:
        """Answer one request."""
        ...

    def at_once(self, request: LegacyRequest) -> WrittenResponse | None:
        """Return the response to a request that needs no waiting, such as the handshake; `None` for any other."""
        ...

    def heard(self, message: Notification | Response) -> None:
        """Take a notification or a response."""
        ...

    def stand(self, notify: Notify) -> Coroutine[Any, Any, None]:
        """Send what belongs to no request, such as changes of lists, as long as this runs."""
        ...

    def close(self, reason: str) -> None:
        """End everything that waits for answers from this client."""
        ...


class LocalSession(Protocol):
    """The part of a shared session that is on this worker."""

    def answered(self, response: Response) -> None:
        """Take an answer that arrived at another worker."""
        ...

    def cancelled(self, id_: RequestId) -> None:
        """Cancel a request, because another worker got its cancellation."""
        ...

    def ended(self, reason: str) -> None:
        """End everything, because the session was ended at another worker."""
        ...

    def refresh(self, facts: SessionFacts) -> None:
        """Take what another worker has changed."""
        ...


class SharedSessions(Protocol):
    """The sessions of older clients that all workers of a server share. Every method may raise `SessionsUnavailable`."""

    @property
    def name(self) -> str:
        """The name of this worker."""
        ...

    async def add(self, id_: str, facts: SessionFacts, address: str | None, limits: SessionLimits) -> None:
        """Add a session. Raises `TooManySessions` or `TooManyOfOne`."""
        ...

    async def use(
        self, id_: str, requests: Sequence[RequestId], *, used: bool, idle_seconds: float | None
    ) -> SessionFacts | None:
        """Return what is known of a session; `None` if it does not exist or has ended. Its requests belong to this worker then."""
        ...

    def attach(self, id_: str, session: LocalSession) -> None:
        """Have mail for a session handed to its part on this worker."""
        ...

    def detach(self, id_: str) -> None:
        """The session has nothing under way on this worker any more."""
        ...

    def release(self, id_: str, requests: Sequence[RequestId]) -> None:
        """Record in the background that requests of a session are over."""
        ...

    async def change(self, id_: str, change: Callable[[SessionFacts], SessionFacts]) -> None:
        """Change what all workers know of a session."""
        ...

    async def end(self, id_: str, reason: str) -> None:
        """End a session on all workers."""
        ...

    async def cancel(self, id_: str, request: RequestId) -> None:
        """Cancel a request that another worker serves."""
        ...

    async def is_served_by(self, id_: str, worker: str) -> bool:
        """Return whether another worker is alive and serves requests of a session."""
        ...

    async def open_question(self, id_: str, question: str) -> None:
        """Have answers to a question sent to this worker."""
        ...

    def close_question(self, id_: str, question: str) -> None:
        """Record in the background that this worker waits no longer."""
        ...

    async def answer(self, id_: str, response: Response) -> Delivery:
        """Hand an answer to the worker that asked, and return when it has it."""
        ...


class Answering(Protocol):
    """A server, as a transport sees it."""

    def peer(self, unaskable: AskingObstacle | None = None, assumed: str | None = None) -> Peer:
        """Return the server's side of a new connection, for clients of older revisions.

        `unaskable` says why questions cannot be sent over it, if they cannot. `assumed` is the revision to serve without
        a handshake.
        """
        ...

    def answer(
        self, request: Request, notify: Notify, headers: Headers | None = None, *, raise_exceptions: bool = False
    ) -> Coroutine[Any, Any, WrittenResponse]:
        """Answer one request."""
        ...

    def running(self) -> AbstractAsyncContextManager[Any]:
        """Return a context manager for the server's lifespan, which all users share."""
        ...

    def end_subscriptions(self) -> None:
        """End the streams of modern clients that listen for changes, because the server stops."""
        ...

    @property
    def ready(self) -> bool:
        """Whether it can serve: it has no lifespan, or its lifespan is running."""
        ...

    @property
    def attended(self) -> bool:
        """Whether its lifespan is running and will wait, at its end, for calls that outlive their requests."""
        ...


class SessionPeer(Peer, Protocol):
    """A peer with which another worker can continue."""

    async def listen(self) -> None:
        """Have the client told of changes from now on. Returns when all other workers know. Raises `SessionsUnavailable`."""
        ...

    def waits_for(self, response: Response) -> bool:
        """Return whether a response answers a question that was sent over this connection."""
        ...

    def facts(self) -> SessionFacts:
        """Return what was agreed with the client, for another worker to continue with."""
        ...

    def restore(self, facts: SessionFacts) -> None:
        """Continue with what was agreed with another worker, unless something newer is known here."""
        ...

    def applied(self, request: LegacyRequest, facts: SessionFacts) -> SessionFacts:
        """Return what is agreed after a request that changes it. Raises `MCPError` if that is more than a client may have."""
        ...


class SessionServer(Answering, Protocol):
    """A server whose older clients have sessions, which several workers may share."""

    def peer(
        self,
        unaskable: AskingObstacle | None = None,
        assumed: str | None = None,
        other_workers: OpenQuestions | None = None,
    ) -> SessionPeer:
        """As for any server. `other_workers` are told of its questions, if a client's answers may arrive at them."""
        ...

    def straight(self, message: Any, headers: Headers) -> StraightCall | None:
        """Return a call that needs nothing but its arguments, ready to be run; `None` for any other message.

        Its response is the one that `answer` would give. Only for servers without authentication.
        """
        ...

    def straight_older(
        self, request: LegacyRequest, version: str, headers: Headers
    ) -> Coroutine[Any, Any, WrittenResponse | LegacyRequest] | None:
        """Return a call of an older revision that never waits, ready to be run; `None` for any other request.

        Its response is the one that its peer would give. It returns the request to be answered by the peer if its tool asks.
        """
        ...

    @property
    def shared_sessions(self) -> SharedSessions | None:
        """The sessions that the workers of the server share; `None` if this process is alone."""
        ...


@dataclass(frozen=True, slots=True)
class Challenge:
    """Why a request is not authenticated or not authorized, and what its client needs."""

    status: int
    reason: str
    header: bytes | None = None
    """The value of `WWW-Authenticate`."""


@dataclass(frozen=True, slots=True)
class PublicDocument:
    """A JSON document that everybody may read."""

    paths: frozenset[str]
    body: bytes


class Authenticator(Protocol):
    """Finds out who sends an HTTP request."""

    @property
    def metadata(self) -> PublicDocument:
        """Where clients get access tokens."""
        ...

    async def authenticate(self, headers: Headers) -> "Caller | Challenge":
        """The caller, or why there is none. Called before the body is read."""
        ...

    def step_up(self, caller: "Caller | None", method: str, params: Mapping[str, Any]) -> Challenge | None:
        """The challenge for a request that needs more than its caller may do; `None` if it may be served."""
        ...


@dataclass(frozen=True, slots=True)
class Shutdown:
    """What a program does with calls that outlive their requests when its HTTP server stops.

    These are functions of a module, so that they can be sent to another process."""

    cut_off: Callable[[str], Awaitable[None]]
    """Ends the calls of the running event loop now. Takes the reason."""
    were_cut_off: Callable[[], Sequence[str]]
    """Returns the names of the approved calls of the running event loop that were cut off."""
    end_program: Callable[[Sequence[str]], None]
    """Called with these names when the server of a process has ended."""


CANCELLED_INSIDE = "the request was cancelled inside the server; whether it was carried out is not known"
"""Sent to a client whose request was cancelled by the code that served it."""


class Outgoing(NamedTuple):
    """One request as a client sends it."""

    id: int
    method: str
    message: bytes
    headers: Mapping[str, str]
    """The headers that repeat parts of it; empty where `Transport.sends_headers` is not set."""


class CannotStart(Exception):
    """A server cannot be started. The message says what it needs."""


class MissingExtra(ImportError):
    """A feature needs an optional dependency that is not installed. The message says how to install it."""


class Lost(ConnectionError):
    """A request was sent, but its response was lost. Whether it was carried out is not known."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{reason} before the response arrived; whether {what} was carried out is not known")


class SessionGone(ConnectionError):
    """The server no longer knows this client and has not served its request. A new handshake is needed."""


class Transport(Protocol):
    """How a client reaches a server: it sends a request, and receives the notifications and the response."""

    @property
    def sends_headers(self) -> bool:
        """Whether requests are sent with headers that repeat parts of them."""
        ...

    async def __aenter__(self) -> "Transport": ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: "Ask | None" = None) -> bytes:
        """Send a request and return the response. Cancelling the wait cancels the request.

        `notify` gets the notifications that come with it, `ask` the requests: servers of older revisions push some.
        Raises `SessionGone` if a handshake has been made, and has to be made again.
        """
        ...

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        """Send a message that has no response."""
        ...

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: "Ask") -> None:
        """Called after a handshake. `notify` and `ask` get messages that do not belong to a request.

        `headers` are sent with the request that asks for these messages, if there is one.
        """
        ...


class Witness(Protocol):
    """Gets to know what a client has no use for, to check servers."""

    def responded(self, request: int, status: int, headers: Mapping[str, str], *, streamed: bool) -> None:
        """Called when the response to a request begins, over HTTP."""
        ...

    def unclaimed(self, message: bytes) -> None:
        """Called with a message that arrives when nothing waits for it: after a response, or between requests."""
        ...


Ask = Callable[[dict[str, Any]], None]
"""Takes a request that a server sends to the client, and answers it."""


def cancellation(id_: int) -> bytes:
    """Return the notification that cancels a request."""
    params = {"requestId": id_, "reason": "the client no longer waits"}
    return to_json({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
