"""The HTTP endpoint for clients of older revisions: POST, GET and DELETE of a session, and resuming its streams."""

import asyncio
import logging
import secrets
import time
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from bespeak.aio.timers import after
from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.errors import HEADER_MISMATCH, INTERNAL_ERROR, INVALID_REQUEST, MCPError
from bespeak.protocol.headers import SESSION_HEADER, Headers
from bespeak.protocol.legacy import NOVEMBER, takes_batches
from bespeak.protocol.media_types import accepts_streams
from bespeak.protocol.messages import (
    Batch,
    LegacyRequest,
    MalformedMessage,
    Message,
    Notification,
    Request,
    Response,
    no_batch,
    write_error,
)
from bespeak.protocol.server_sent_events import write_event, write_first_event
from bespeak.protocol.versions import ASSUMED_VERSION
from bespeak.transports.http.asgi import JSON, Receive, Scope, Send, disconnected, respond, when_stopping
from bespeak.transports.http.event_streams import EventStream
from bespeak.transports.http.legacy.event_store import STORE_SECONDS, EventMessage, EventStore, keep
from bespeak.transports.http.legacy.http_sessions import HttpSession, HttpSessions, is_use
from bespeak.transports.http.legacy.post_streams import STOPPING, PostStream
from bespeak.transports.http.refusals import LegacyRefusal
from bespeak.transports.interfaces import CANCELLED_INSIDE, Answering, Peer, WrittenResponse
from bespeak.transports.requests_under_way import RequestsUnderWay, Responses, Task, cancel_and_wait

logger = logging.getLogger("bespeak.http")

CLOSE_SECONDS = 5.0
"""How long calls may take to end when the app stops."""
STANDING = "standing"
MOST_STANDING = 4
"""The most standing streams of one session. A client needs one."""
ENDED = MCPError(INTERNAL_ERROR, "the session has ended; whether the request was carried out is not known")
STATELESS = AskingObstacle(
    "no_session",
    "over HTTP without sessions (stateless_http=True, or several workers) a client of an older revision cannot be asked",
)
NO_STREAM = AskingObstacle(
    "no_way_back", "with json_response=True there is no stream on which to ask a client of an older revision"
)
NO_SESSION = "the header Mcp-Session-Id is missing; its value comes with the response to initialize"
NO_VERSION = (
    "the headers MCP-Protocol-Version and Mcp-Session-Id are missing: modern requests need the first, older ones need the "
    "second after initialize"
)
NO_SUCH_SESSION = "the session does not exist or has ended; initialize again without Mcp-Session-Id"
HTTP_SSE = (
    "a stream needs a session. The HTTP+SSE transport of 2024-11-05 is not supported: use Streamable HTTP, which begins with "
    "a POST of initialize to this URL"
)


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

    def __init__(self, server: Answering, options: LegacyOptions) -> None:
        self._server = server
        self._options = options
        self._sessions = HttpSessions(options.max_sessions, options.idle_seconds)
        self._closed = False
        self._tasks: set[Task] = set()
        """The requests under way, of whatever session, or of none."""
        self._unasked = NO_STREAM if options.json_only else None

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    async def close(self) -> None:
        """End all sessions, and every call that is not approved, because the app stops."""
        self._closed = True
        self._sessions.end_all(STOPPING)
        await cancel_and_wait(self._tasks, STOPPING, CLOSE_SECONDS, logger)

    # POST

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
            session = self._session(version, headers)
            if isinstance(message, Batch) and not takes_batches(session.peer.version):
                raise LegacyRefusal(400, str(no_batch()))
        except (LegacyRefusal, MCPError) as refusal:
            return await refuse(send, refusal, message)
        messages = message.messages if isinstance(message, Batch) else (message,)
        used = any(map(is_use, messages))
        if used:
            self._sessions.touch(session)
        for one in messages:
            if isinstance(one, (Notification, Response)):
                self._heard(session, one)
        wanted = [one for one in messages if not isinstance(one, (Notification, Response))]
        if not wanted:
            return await respond(send, 202, b"")
        stream = self._start(session, wanted, headers, together=isinstance(message, Batch))
        # A server that stops accepts no more connections, and the client would need one to answer a question.
        when_stopping(scope, lambda: session.peer.close(STOPPING))
        await stream.answer(session.peer.version, receive, send)
        if used:
            self._sessions.touch(session)
        return None

    async def _initialize(self, request: LegacyRequest, headers: Headers, send: Send) -> None:
        peer = self._server.peer(STATELESS if self._options.stateless else self._unasked)
        answer = await peer.answer(request, PostStream("", json_only=True, store=None, retry_ms=None), headers)
        if answer.code is not None:
            return await respond(send, 400, answer.message, JSON)
        if self._options.stateless:
            return await respond(send, 200, answer.message, JSON)
        session = self._new_session(secrets.token_urlsafe(24), peer, headers.address, principal_of(headers))
        self._sessions.admit(session)
        return await respond(send, 200, answer.message, JSON, (SESSION_HEADER.lower().encode(), session.id.encode()))

    def _new_session(
        self, id_: str, peer: Peer, address: str | None = None, principal: str | None = None
    ) -> HttpSession:
        requests = RequestsUnderWay(lambda: self._broken_off(session), all_tasks=self._tasks)
        session = HttpSession(id_, peer, requests, address, principal)
        return session

    def _broken_off(self, session: HttpSession) -> MCPError:
        """Why a request was cancelled that its client did not cancel."""
        return ENDED if self._closed or session.closed else MCPError(INTERNAL_ERROR, CANCELLED_INSIDE)

    def _session(self, version: str | None, headers: Headers) -> HttpSession:
        """The session of a message. Raises `LegacyRefusal`, or `MCPError` for headers that make no sense."""
        if self._options.stateless:
            return self._new_session("", self._server.peer(STATELESS, version or ASSUMED_VERSION))
        return self._known(headers, NO_SESSION if version else NO_VERSION)

    def _known(self, headers: Headers, without: str) -> HttpSession:
        id_ = headers.only(SESSION_HEADER)
        if id_ is None:
            raise LegacyRefusal(400, without, INVALID_REQUEST if without is not NO_VERSION else HEADER_MISMATCH)
        session = self._sessions.get(id_.decode("latin-1"))
        # Somebody else's session looks like one that does not exist.
        if session is None or session.principal != principal_of(headers):
            raise LegacyRefusal(404, NO_SUCH_SESSION)
        return session

    def _heard(self, session: HttpSession, message: Notification | Response) -> None:
        session.peer.heard(message)
        if isinstance(message, Notification):
            session.requests.heard(message)

    def _start(
        self,
        session: HttpSession,
        wanted: Sequence[LegacyRequest | Request | MalformedMessage],
        headers: Headers,
        *,
        together: bool,
    ) -> PostStream:
        """Begin to answer requests, whose responses travel together."""
        session.count += 1
        options = self._options
        stream = PostStream(
            f"{session.prefix}/{session.count}",
            json_only=options.json_only,
            store=None if options.stateless else options.event_store,
            retry_ms=options.retry_ms,
        )
        session.streams[stream.id] = stream
        stream.when_ended(lambda: session.streams.pop(stream.id, None))

        def serve(request: Request | LegacyRequest) -> Coroutine[Any, Any, WrittenResponse]:
            assert isinstance(request, LegacyRequest), (
                "modern requests are served elsewhere, and must not be part of a batch"
            )
            return session.peer.answer(request, stream, headers)

        responses = Responses(len(wanted), lambda written: stream.finish(written, together=together))
        stream.unanswered = responses.unanswered
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
            session = self._known(headers, HTTP_SSE)
            self._sessions.touch(session)
            last = headers.only("Last-Event-ID")
            if last is not None:
                return await self._resume(session, last.decode(errors="replace"), scope, headers, receive, send)
            return await self._stand(session, scope, headers, receive, send)
        except (LegacyRefusal, MCPError) as refusal:
            return await refuse(send, refusal)

    async def _stand(self, session: HttpSession, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Keep a stream open for messages that belong to no request: changes. Raises `LegacyRefusal`."""
        if len(session.standing) >= MOST_STANDING:
            raise LegacyRefusal(409, f"this session already has {MOST_STANDING} standing streams, which is the limit")
        connection = EventStream(send)
        session.standing.append(connection)
        store, version = self._options.event_store, session.peer.version
        name = f"{session.prefix}/{STANDING}"

        def tell(message: bytes) -> Coroutine[Any, Any, None] | None:
            return connection.put(write_event(message)) if store is None else kept(store, message)

        async def kept(store: EventStore, message: bytes) -> None:
            connection.add(write_event(message, await keep(store, name, message)))

        telling = asyncio.create_task(session.peer.stand(tell), name="bespeak standing stream")
        try:
            if store is not None and version is not None and version >= NOVEMBER:
                id_ = await keep(store, name, None)
                if id_ is not None:
                    connection.add(write_first_event(id_, self._options.retry_ms))
            if session.closed:  # while the store was busy
                connection.end()
            with after(headers.caller.seconds_left(time.time()) if headers.caller else None, connection.end):
                await attend(connection, scope, receive)
        finally:
            telling.cancel()
            session.standing.remove(connection)
            self._sessions.touch(session)

    async def _resume(
        self, session: HttpSession, last: str, scope: Scope, headers: Headers, receive: Receive, send: Send
    ) -> None:
        """Send the events of a stream that a client has missed, and the events that follow."""
        store = self._options.event_store
        missed: list[EventMessage] = []

        async def take(event: EventMessage) -> None:
            missed.append(event)

        connection: EventStream | None = None
        stream: PostStream | None = None
        # Only the store knows which stream the event belongs to; until then, none of them may continue.
        async with AsyncExitStack() as held:
            for one in list(session.streams.values()):
                await held.enter_async_context(one.holding)
            try:
                async with asyncio.timeout(STORE_SECONDS):
                    found = await store.replay_events_after(last, take) if store is not None else None
            except Exception:
                logger.exception("the event store failed")
                raise LegacyRefusal(500, "the event store failed", INTERNAL_ERROR) from None
            if session.closed:
                raise LegacyRefusal(404, NO_SUCH_SESSION)
            if found is None or found.partition("/")[0] != session.prefix:
                raise LegacyRefusal(400, "the Last-Event-ID is not known; the events after it are lost")
            if found != f"{session.prefix}/{STANDING}":
                connection, stream = EventStream(send), session.streams.get(found)
                go_on(connection, missed, stream)
        if connection is None:
            return await self._stand(session, scope, headers, receive, send)
        await attend(connection, scope, receive)
        if stream is not None:
            stream.leave(connection)
        self._sessions.touch(session)
        return None

    # DELETE

    async def delete(self, headers: Headers, send: Send) -> None:
        """End a session at the request of its client."""
        try:
            if self._options.stateless:
                raise LegacyRefusal(405, "this server has no sessions")
            session = self._known(headers, NO_SESSION)
        except (LegacyRefusal, MCPError) as refusal:
            return await refuse(send, refusal)
        self._sessions.end(session, "the client has ended the session")
        return await respond(send, 204, b"")


def principal_of(headers: Headers) -> str | None:
    """Who sends a request; `None` without authentication."""
    return headers.caller.principal if headers.caller is not None else None


def go_on(connection: EventStream, missed: Sequence[EventMessage], stream: PostStream | None) -> None:
    """Send a client the events it has missed, and connect it to the rest of the stream."""
    for event in missed:
        message = event.message.model_dump(mode="json", by_alias=True, exclude_none=True)
        connection.add(write_event(to_json(message), event.event_id))
    if stream is None:
        connection.end()
    else:
        stream.join(connection)


async def attend(connection: EventStream, scope: Scope, receive: Receive) -> None:
    """Keep a stream open until it is ended, or the client disconnects."""
    when_stopping(scope, connection.end)
    watching = asyncio.create_task(disconnected(receive), name="bespeak disconnect watcher")
    try:
        await connection.sent_unless(watching)
    finally:
        watching.cancel()
        connection.close()


async def refuse(send: Send, refusal: LegacyRefusal | MCPError, message: Message | Batch | None = None) -> None:
    """Refuse a request."""
    id_ = message.id if isinstance(message, LegacyRequest) else None
    if isinstance(refusal, MCPError):
        return await respond(send, 400, write_error(id_, refusal), JSON)
    return await refusal.send(send, id_)
