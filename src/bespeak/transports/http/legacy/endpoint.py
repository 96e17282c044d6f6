"""The HTTP endpoint for clients of older revisions: POST, GET and DELETE of a session, and resuming its streams."""

import functools
import logging
import secrets
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.errors import HEADER_MISMATCH, INTERNAL_ERROR, INVALID_REQUEST, MCPError
from bespeak.protocol.headers import SESSION_HEADER, Headers
from bespeak.protocol.legacy import takes_batches
from bespeak.protocol.media_types import accepts_streams
from bespeak.protocol.messages import (
    Batch,
    LegacyRequest,
    MalformedMessage,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    no_batch,
    write_error,
)
from bespeak.protocol.session_facts import Delivery, SessionFacts, SessionLimits, SessionsUnavailable
from bespeak.protocol.versions import ASSUMED_VERSION, HANDSHAKE_PROTOCOL_VERSIONS
from bespeak.transports.http.asgi import JSON, Receive, Scope, Send, respond, when_stopping
from bespeak.transports.http.legacy.event_store import EventStore
from bespeak.transports.http.legacy.get_streams import NO_SUCH_SESSION, GetStreams
from bespeak.transports.http.legacy.http_sessions import RETRY_SECONDS, HttpSession, HttpSessions, is_use
from bespeak.transports.http.legacy.post_streams import STOPPING, PostStream
from bespeak.transports.http.legacy.shared_http_sessions import SharedHttpSessions
from bespeak.transports.http.refusals import LegacyRefusal
from bespeak.transports.interfaces import CANCELLED_INSIDE, OpenQuestions, SessionPeer, SessionServer, WrittenResponse
from bespeak.transports.requests_under_way import RequestsUnderWay, Responses, Task, cancel_and_wait

logger = logging.getLogger("bespeak.http")

CLOSE_SECONDS = 5.0
"""How long calls may take to end when the app stops."""
ENDED = MCPError(INTERNAL_ERROR, "the session has ended; whether the request was carried out is not known")
STATELESS = AskingObstacle(
    "no_session",
    "over HTTP without sessions (stateless_http=True) a client of an older revision cannot be asked",
)
NO_STREAM = AskingObstacle(
    "no_way_back", "with json_response=True there is no stream on which to ask a client of an older revision"
)
NO_SESSION = "the header Mcp-Session-Id is missing; its value comes with the response to initialize"
NO_VERSION = (
    "the headers MCP-Protocol-Version and Mcp-Session-Id are missing: modern requests need the first, older ones need the "
    "second after initialize"
)
WORKER_GONE = (
    "the worker that asked this question is gone, and the call with it; whether anything was done is not known"
)
CHANGING = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Requests that change what is known of a session."""
HTTP_SSE = (
    "a stream needs a session. The HTTP+SSE transport of 2024-11-05 is not supported: use Streamable HTTP, which begins with "
    "a POST of initialize to this URL"
)
_SESSION = SESSION_HEADER.lower().encode()
_VERSIONS = frozenset([None, *(version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS)])
"""The values of the version's header; older clients may leave it out."""


@dataclass(frozen=True, slots=True)
class LegacyOptions:
    """How clients of older revisions are served."""

    stateless: bool = False
    json_only: bool = False
    event_store: EventStore | None = None
    retry_ms: int | None = None
    idle_seconds: float | None = 1800.0
    max_sessions: int | None = 10_000


class LegacyHttp:
    """Serves the older clients of one app."""

    def __init__(self, server: SessionServer, options: LegacyOptions) -> None:
        self._server = server
        self._options = options
        self._limits = SessionLimits(options.max_sessions, options.idle_seconds)
        self._own_sessions = HttpSessions(self._limits)
        self._shared_sessions: SharedHttpSessions | None = None
        self._closed = False
        self._tasks: set[Task] = set()
        """The requests under way, of whatever session, or of none."""
        self._opened = 0
        """How many streams have been opened, for their names."""
        self._keeps_more = options.stateless or options.event_store is not None
        """Whether there are no sessions, or every response is kept for a client that loses it."""
        self._unasked = NO_STREAM if options.json_only else None

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    @property
    def _sessions(self) -> HttpSessions | SharedHttpSessions:
        """The sessions of this process, or its parts of those that several workers share."""
        worker = None if self._options.stateless else self._server.shared_sessions
        if worker is None:
            return self._own_sessions
        if self._shared_sessions is None or self._shared_sessions.worker is not worker:
            self._shared_sessions = SharedHttpSessions(worker, self._limits, self._part)
        return self._shared_sessions

    def _part(self, id_: str, facts: SessionFacts, questions: OpenQuestions) -> HttpSession:
        """Return a new part of a session that several workers share."""
        peer = self._server.peer(self._unasked, other_workers=questions)
        session = self._new_session(id_, peer, principal=facts.principal)
        session.prefix = facts.prefix
        return session

    async def close(self) -> None:
        """End all sessions, and every call that is not approved, because the app stops."""
        self._closed = True
        self._own_sessions.end_all(STOPPING)
        if self._shared_sessions is not None:
            self._shared_sessions.end_all(STOPPING)
        await cancel_and_wait(self._tasks, STOPPING, CLOSE_SECONDS, logger)

    # POST

    def straight(
        self, request: LegacyRequest, headers: Headers
    ) -> Coroutine[Any, Any, WrittenResponse | LegacyRequest] | None:
        """Return a call that never waits, in a session that is only here; `None` for any other request.

        Nothing has to be set up for it: it cannot be cancelled, and nothing is sent before its response.
        """
        id_ = headers.last.get(_SESSION)
        if id_ is None or self._keeps_more or self._server.shared_sessions is not None:
            return None
        if len(headers.last) != len(headers.raw) or headers.last.get(b"mcp-protocol-version") not in _VERSIONS:
            return None
        session = self._own_sessions.find(id_.decode("latin-1"), principal_of(headers))
        if session is None or session.peer.version is None or request.id in session.requests:
            return None
        call = self._server.straight_older(request, session.peer.version, headers)
        if call is not None:
            self._own_sessions.touch(session)
        return call

    async def post(
        self,
        message: Message | Batch,
        version: str | None,
        scope: Scope,
        headers: Headers,
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer a POST of an older revision. `version` is the one in its header."""
        try:
            if (
                isinstance(message, LegacyRequest)
                and message.method == "initialize"
                and headers.only(SESSION_HEADER) is None
            ):
                return await self._initialize(message, headers, send)
            messages = message.messages if isinstance(message, Batch) else (message,)
            used = any(map(is_use, messages))
            requests = [one.id for one in messages if isinstance(one, LegacyRequest) and one.method != "ping"]
            sessions = self._sessions
            session = await self._session(version, headers, requests, used=used)
        except (LegacyRefusal, MCPError, SessionsUnavailable) as refusal:
            return await refuse(send, refusal, message)
        try:
            stream = await self._begin(
                sessions, session, messages, requests, headers, together=isinstance(message, Batch)
            )
            if stream is None:
                return await respond(send, 202, b"")
            # A server that stops accepts no more connections, and the client would need one to answer a question.
            when_stopping(scope, lambda: session.peer.close(STOPPING))
            await stream.answer(session.peer.version, receive, send)
        except (LegacyRefusal, SessionsUnavailable) as refusal:
            return await refuse(send, refusal, message)
        finally:
            if used:
                sessions.touch(session)
            sessions.leave(session)
        return None

    async def _begin(
        self,
        sessions: HttpSessions | SharedHttpSessions,
        session: HttpSession,
        messages: "Sequence[Message | MalformedMessage]",
        requests: Sequence[RequestId],
        headers: Headers,
        *,
        together: bool,
    ) -> PostStream | None:
        """Take what a client says, and begin to answer its requests. Return the stream of the responses; `None` without requests.

        Raises `LegacyRefusal` or `SessionsUnavailable`.
        """
        try:
            if together and not takes_batches(session.peer.version):
                raise LegacyRefusal(400, str(no_batch()))
            for one in messages:
                if isinstance(one, Notification):
                    await sessions.heard(session, one)
                elif isinstance(one, Response) and await sessions.answered(session, one) is Delivery.WORKER_GONE:
                    raise LegacyRefusal(400, WORKER_GONE, INTERNAL_ERROR)
            wanted = [one for one in messages if not isinstance(one, (Notification, Response))]
            if wanted:
                return self._start(sessions, session, wanted, headers, requests, together=together)
        except BaseException:
            sessions.over(session, requests)
            raise
        return None

    async def _initialize(self, request: LegacyRequest, headers: Headers, send: Send) -> None:
        peer = self._server.peer(STATELESS if self._options.stateless else self._unasked)
        answer = await peer.answer(request, PostStream("", json_only=True, store=None, retry_ms=None), headers)
        if answer.code is not None:
            return await respond(send, 400, answer.message, JSON)
        if self._options.stateless:
            return await respond(send, 200, answer.message, JSON)
        session = self._new_session(secrets.token_urlsafe(24), peer, headers.address, principal_of(headers))
        await self._sessions.admit(session)
        return await respond(send, 200, answer.message, JSON, (_SESSION, session.id.encode()))

    def _new_session(
        self, id_: str, peer: SessionPeer, address: str | None = None, principal: str | None = None
    ) -> HttpSession:
        requests = RequestsUnderWay(lambda: self._broken_off(session), all_tasks=self._tasks)
        session = HttpSession(id_, peer, requests, address, principal)
        return session

    def _broken_off(self, session: HttpSession) -> MCPError:
        """Why a request was cancelled that its client did not cancel."""
        return ENDED if self._closed or session.closed else MCPError(INTERNAL_ERROR, CANCELLED_INSIDE)

    async def _session(
        self, version: str | None, headers: Headers, requests: Sequence[RequestId], *, used: bool
    ) -> HttpSession:
        """The session of a message. Raises `LegacyRefusal`, or `MCPError` for headers that make no sense."""
        if self._options.stateless:
            return self._new_session("", self._server.peer(STATELESS, version or ASSUMED_VERSION))
        return await self._known(headers, NO_SESSION if version else NO_VERSION, requests, used=used)

    async def _known(
        self, headers: Headers, without: str, requests: Sequence[RequestId] = (), *, used: bool = True
    ) -> HttpSession:
        id_ = headers.only(SESSION_HEADER)
        if id_ is None:
            raise LegacyRefusal(400, without, INVALID_REQUEST if without is not NO_VERSION else HEADER_MISMATCH)
        # Somebody else's session looks like one that does not exist.
        session = await self._sessions.get(id_.decode("latin-1"), principal_of(headers), requests, used=used)
        if session is None:
            raise LegacyRefusal(404, NO_SUCH_SESSION)
        if used:
            self._sessions.touch(session)
        return session

    def _start(
        self,
        sessions: HttpSessions | SharedHttpSessions,
        session: HttpSession,
        wanted: Sequence[LegacyRequest | Request | MalformedMessage],
        headers: Headers,
        requests: Sequence[RequestId],
        *,
        together: bool,
    ) -> PostStream:
        """Begin to answer requests, whose responses travel together."""
        self._opened += 1
        options = self._options
        stream = PostStream(
            sessions.stream_name(session, self._opened),
            json_only=options.json_only,
            store=None if options.stateless else options.event_store,
            retry_ms=options.retry_ms,
        )
        session.streams[stream.id] = stream

        def ended() -> None:
            session.streams.pop(stream.id, None)
            sessions.over(session, requests)

        stream.when_ended(ended)

        def serve(request: Request | LegacyRequest) -> Coroutine[Any, Any, WrittenResponse]:
            assert isinstance(request, LegacyRequest), (
                "modern requests are served elsewhere, and must not be part of a batch"
            )
            answering = session.peer.answer(request, stream, headers)
            return answering if request.method not in CHANGING else share(request, answering)

        async def share(request: LegacyRequest, answering: Awaitable[WrittenResponse]) -> WrittenResponse:
            response = await answering
            if response.code is None:
                try:
                    await sessions.changed(session, request)
                except MCPError as error:
                    return WrittenResponse(write_error(request.id, error), error.code)
                except SessionsUnavailable as error:
                    return WrittenResponse(
                        write_error(request.id, MCPError(INTERNAL_ERROR, str(error))), INTERNAL_ERROR
                    )
            return response

        responses = Responses(len(wanted), stream.finish)
        stream.ready, stream.unanswered, stream.together = responses.ready, responses.unanswered, together
        for one in wanted:
            session.requests.start(one, serve, responses, batch=together)
        return stream

    # GET

    async def get(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Open a standing stream, or resume a broken stream."""
        try:
            if self._options.stateless:
                raise LegacyRefusal(405, f"this server has no sessions, and {HTTP_SSE}")
            if not accepts_streams(headers.joined(b"accept")):
                raise LegacyRefusal(406, "the Accept header must list text/event-stream")
            sessions, reading = self._sessions, f"stream {secrets.token_hex(8)}"
            session = await self._known(headers, HTTP_SSE, [reading])
            try:
                streams = GetStreams(session, self._options.event_store, self._options.retry_ms)
                last = headers.only("Last-Event-ID")
                if last is None:
                    return await streams.stand(scope, headers, receive, send)
                written_elsewhere = functools.partial(sessions.is_written_elsewhere, session)
                id_ = last.decode(errors="replace")
                return await streams.resume(id_, written_elsewhere, scope, headers, receive, send)
            finally:
                sessions.touch(session)
                sessions.over(session, [reading])
                sessions.leave(session)
        except (LegacyRefusal, MCPError, SessionsUnavailable) as refusal:
            return await refuse(send, refusal)

    # DELETE

    async def delete(self, headers: Headers, send: Send) -> None:
        """End a session at the request of its client."""
        try:
            if self._options.stateless:
                raise LegacyRefusal(405, "this server has no sessions")
            sessions, session = self._sessions, await self._known(headers, NO_SESSION)
            try:
                await sessions.end(session, "the client has ended the session")
            finally:
                sessions.leave(session)
        except (LegacyRefusal, MCPError, SessionsUnavailable) as refusal:
            return await refuse(send, refusal)
        return await respond(send, 204, b"")


def principal_of(headers: Headers) -> str | None:
    """Who sends a request; `None` without authentication."""
    return headers.caller.principal if headers.caller is not None else None


async def refuse(
    send: Send, refusal: LegacyRefusal | MCPError | SessionsUnavailable, message: Message | Batch | None = None
) -> None:
    """Refuse a request."""
    id_ = message.id if isinstance(message, LegacyRequest) else None
    if isinstance(refusal, SessionsUnavailable):
        refusal = LegacyRefusal(503, str(refusal), INTERNAL_ERROR, retry_seconds=RETRY_SECONDS)
    if isinstance(refusal, MCPError):
        return await respond(send, 400, write_error(id_, refusal), JSON)
    return await refusal.send(send, id_)
