"""GET of a session: a standing stream for what belongs to no request, and the rest of a stream whose connection broke."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

from mcp_types import JSONRPCError, JSONRPCResponse
from pydantic_core import to_json

from bespeak.aio.timers import after
from bespeak.protocol.errors import INTERNAL_ERROR
from bespeak.protocol.headers import Headers
from bespeak.protocol.legacy import NOVEMBER
from bespeak.protocol.server_sent_events import write_event, write_first_event
from bespeak.transports.http.asgi import Receive, Scope, Send, disconnected, when_stopping
from bespeak.transports.http.event_streams import EventStream
from bespeak.transports.http.legacy.event_store import STORE_SECONDS, EventMessage, EventStore, keep
from bespeak.transports.http.legacy.http_sessions import HttpSession
from bespeak.transports.http.legacy.post_streams import PostStream
from bespeak.transports.http.refusals import LegacyRefusal

logger = logging.getLogger("bespeak.http")

STANDING = "standing"
MOST_STANDING = 4
"""The most standing streams of one session. A client needs one."""
FOLLOW_SECONDS = 0.25
"""How often the event store is asked for more of a stream that another worker writes."""
NO_SUCH_SESSION = "the session does not exist or has ended; initialize again without Mcp-Session-Id"


class GetStreams:
    """The streams that the client of a session reads with GET."""

    def __init__(self, session: HttpSession, store: EventStore | None, retry_ms: int | None) -> None:
        self._session = session
        self._store = store
        self._retry_ms = retry_ms

    async def stand(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Keep a stream open for messages that belong to no request: changes.

        Raises `LegacyRefusal`, or `SessionsUnavailable` if other workers cannot be told that changes are wanted here.
        """
        session, store = self._session, self._store
        if len(session.standing) >= MOST_STANDING:
            raise LegacyRefusal(409, f"this session already has {MOST_STANDING} standing streams, which is the limit")
        await session.peer.listen()
        connection = EventStream(send)
        session.standing.append(connection)
        version = session.peer.version
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
                    connection.add(write_first_event(id_, self._retry_ms))
            if session.closed:  # while the store was busy
                connection.end()
            with after(headers.caller.seconds_left(time.time()) if headers.caller else None, connection.end):
                await attend(connection, scope, receive)
        finally:
            telling.cancel()
            session.standing.remove(connection)

    async def resume(
        self,
        last: str,
        written_elsewhere: Callable[[str], Awaitable[bool]],
        scope: Scope,
        headers: Headers,
        receive: Receive,
        send: Send,
    ) -> None:
        """Send the events of a stream that a client has missed, and the events that follow. Raises `LegacyRefusal`.

        If another worker may still write to the stream, what follows is read from the event store.
        """
        session = self._session
        connection: EventStream | None = None
        stream: PostStream | None = None
        following: asyncio.Task[None] | None = None
        # Only the store knows which stream the event belongs to; until then, none of them may continue.
        async with AsyncExitStack() as held:
            for one in list(session.streams.values()):
                await held.enter_async_context(one.holding)
            found, missed = await self._missed(last)
            if session.closed:
                raise LegacyRefusal(404, NO_SUCH_SESSION)
            if found is None or found.partition("/")[0] != session.prefix:
                raise LegacyRefusal(400, "the Last-Event-ID is not known; the events after it are lost")
            if found != f"{session.prefix}/{STANDING}":
                connection, stream = EventStream(send), session.streams.get(found)
                _add(connection, missed)
                if stream is not None:
                    stream.join(connection)
                else:
                    last = missed[-1].event_id or last if missed else last
                    follow = self._follow(connection, last, found, written_elsewhere, answered=_has_response(missed))
                    following = asyncio.create_task(follow, name="bespeak stream of another worker")
        if connection is None:
            return await self.stand(scope, headers, receive, send)
        try:
            await attend(connection, scope, receive)
        finally:
            if following is not None:
                following.cancel()
        if stream is not None:
            stream.leave(connection)
        return None

    async def _missed(self, last: str) -> tuple[str | None, list[EventMessage]]:
        """Return the stream of an event, and what came after it. Raises `LegacyRefusal` if the store fails."""
        missed: list[EventMessage] = []

        async def take(event: EventMessage) -> None:
            missed.append(event)

        try:
            async with asyncio.timeout(STORE_SECONDS):
                found = await self._store.replay_events_after(last, take) if self._store is not None else None
        except Exception:
            logger.exception("the event store failed")
            raise LegacyRefusal(500, "the event store failed", INTERNAL_ERROR) from None
        return found, missed

    async def _follow(
        self,
        connection: EventStream,
        last: str,
        stream: str,
        written_elsewhere: Callable[[str], Awaitable[bool]],
        *,
        answered: bool,
    ) -> None:
        """Send what another worker writes, until it has answered and nothing more comes, or is gone, or the store fails."""
        try:
            while True:
                more_to_come = await written_elsewhere(stream)  # asked before the last look, so that nothing is missed
                _, missed = await self._missed(last)
                _add(connection, missed)
                if missed:
                    last = missed[-1].event_id or last
                elif answered or not more_to_come:
                    return
                answered = answered or _has_response(missed)
                await asyncio.sleep(FOLLOW_SECONDS)
        except (LegacyRefusal, ConnectionError):  # logged already; the client may come back
            return
        finally:
            connection.end()


def _add(connection: EventStream, events: Sequence[EventMessage]) -> None:
    """Send a client events that it has missed."""
    for event in events:
        message = event.message.model_dump(mode="json", by_alias=True, exclude_none=True)
        connection.add(write_event(to_json(message), event.event_id))


def _has_response(events: Sequence[EventMessage]) -> bool:
    return any(isinstance(event.message, (JSONRPCResponse, JSONRPCError)) for event in events)


async def attend(connection: EventStream, scope: Scope, receive: Receive) -> None:
    """Keep a stream open until it is ended, or the client disconnects."""
    when_stopping(scope, connection.end)
    watching = asyncio.create_task(disconnected(receive), name="bespeak disconnect watcher")
    try:
        await connection.sent_unless(watching)
    finally:
        watching.cancel()
        connection.close()
