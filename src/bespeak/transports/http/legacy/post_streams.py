"""The response to one POST of an older client: JSON if nothing comes before it, an event stream otherwise.

A client that loses the connection does not cancel its requests. With an event store it can resume and get the rest; without
one, what it misses is lost.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from bespeak.protocol.errors import INTERNAL_ERROR, MCPError
from bespeak.protocol.legacy import NOVEMBER
from bespeak.protocol.messages import RequestId, write_error
from bespeak.protocol.server_sent_events import write_event, write_first_event
from bespeak.transports.http.asgi import JSON, Receive, Send, disconnected, respond
from bespeak.transports.http.event_streams import SILENCE_SECONDS, EventStream
from bespeak.transports.http.legacy.event_store import EventStore, keep

STOPPING = "the server is stopping"
GONE = "the client has gone"
MOST_WAITING = 16
"""How many notifications may be waiting for the event store before the call has to wait."""


class _Said(NamedTuple):
    """A message, and whether it may be dropped if the client does not read."""

    message: bytes
    optional: bool = False


class PostStream:
    """What is sent for one POST, on whatever connection the client has for it."""

    def __init__(self, id_: str, *, json_only: bool, store: EventStore | None, retry_ms: int | None) -> None:
        self.id = id_
        self._json_only = json_only
        self._store = None if json_only else store
        self._retry_ms = retry_ms
        self._open: Callable[[], EventStream] | None = None
        self._connection: EventStream | None = None
        self._waiting: deque[_Said | None] = deque()
        """On its way to the store; `None` is the end."""
        self._keeping: asyncio.Task[None] | None = None
        self.holding = asyncio.Lock()
        """Held while an event is kept and sent, or a client is brought up to date: nothing comes twice, or never."""
        self.together = False
        """Whether the responses are those of a batch, which as JSON are one array."""
        self.ready: Sequence[bytes] = ()
        """The responses so far, of those that are sent when all are there."""
        self.unanswered: Sequence[RequestId] = ()
        """The requests whose responses are still to come."""
        self.ended = False
        """Whether everything has been said."""
        self._pausing = False
        """Whether the connection is to be let go of."""
        self._placed = False
        """Whether the client on it knows where to go on."""
        self._decided: asyncio.Future[None] | None = None
        """Done when it is clear what kind of response it will be. There if somebody waits for that."""
        self._response: bytes | None = None
        self._when_ended: Callable[[], object] = lambda: None
        self._when_gone: list[Callable[[], object]] = []

    # What the server sends

    @property
    def has_reader(self) -> bool:
        return self._connection is not None or self._open is not None

    def notify(self, message: bytes) -> Awaitable[None] | None:
        if self._json_only:
            return None
        if self._store is not None:
            self._keep(_Said(message, optional=True))
            return self._kept() if len(self._waiting) > MOST_WAITING else None
        connection = self._connected()
        return connection.put(write_event(message)) if connection is not None else None

    def push(self, message: bytes) -> None:
        if self._store is not None:
            self._keep(_Said(message))
            return
        connection = None if self._json_only else self._connected()
        if connection is None:
            raise ConnectionError(GONE)
        connection.add(write_event(message))

    def pause(self) -> None:
        if self._store is not None and self._connection is not None:
            self._pausing = True
            self._let_go()

    def when_gone(self, callback: Callable[[], object]) -> None:
        if self._store is None:
            self._when_gone.append(callback)

    def _let_go(self) -> None:
        """End the connection if that is wanted, and the client knows where to go on."""
        if self._pausing and self._placed and self._connection is not None:
            connection, self._connection = self._connection, None
            self._pausing = self._placed = False
            connection.end()

    def _add(self, event: bytes, id_: str | None) -> None:
        if self._connection is not None:
            self._connection.add(event)
            self._placed = self._placed or id_ is not None
            self._let_go()

    def finish(self, responses: list[bytes]) -> None:
        """Send the responses: one after another on a stream, or together as the body of a batch's response."""
        if self._store is not None:
            for response in responses:
                self._keep(_Said(response))
            self._keep(None)
            return
        if self._connection is not None:
            self._connection.end(b"".join(map(write_event, responses)))
        elif responses:
            self._response = self._body(responses)
        self._over()

    def when_ended(self, callback: Callable[[], object]) -> None:
        """Call a function when the stream has ended."""
        self._when_ended = callback

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.end()
        self._over()

    def _over(self) -> None:
        self.ended = True
        self._decide()
        # Called once and let go of: it knows this stream, which keeps its response as long as each holds the other.
        callback, self._when_ended = self._when_ended, lambda: None
        callback()

    def _decide(self) -> None:
        if self._decided is not None and not self._decided.done():
            self._decided.set_result(None)

    def _connected(self) -> EventStream | None:
        if self._connection is None and self._open is not None:
            self._connection = self._open()
            self._open = None
            self._decide()
        return self._connection

    # Keeping events

    def _keep(self, said: "_Said | None") -> None:
        self._waiting.append(said)
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.create_task(self._keep_all(), name="bespeak event store")

    async def _kept(self) -> None:
        """Return when the store has caught up."""
        if self._keeping is not None:
            await asyncio.shield(self._keeping)

    async def _keep_all(self) -> None:
        assert self._store is not None, "events are kept only if there is a store"
        while self._waiting:
            async with self.holding:
                said = self._waiting.popleft()
                if said is None:
                    self._end()
                    continue
                id_ = await keep(self._store, self.id, said.message)
                if said.optional and self._connection is not None:
                    behind = self._connection.room()
                    if behind is not None and not await behind:
                        continue  # it can come back for it
                self._add(write_event(said.message, id_), id_)

    def join(self, connection: EventStream) -> None:
        """Continue on another connection of the client. `holding` must be held."""
        if self.ended:
            connection.end()
            return
        if self._connection is not None:
            self._connection.end()
        self._connection, self._placed = connection, True

    def leave(self, connection: EventStream) -> None:
        """The client has lost that connection, too."""
        if self._connection is connection:
            self._connection = None

    # The connection

    async def answer(self, version: str | None, receive: Receive, send: Send) -> None:
        """Respond to the POST, until everything is sent or the client goes away."""
        mine: list[EventStream] = []

        def connect() -> EventStream:
            mine.append(EventStream(send))
            return mine[0]

        if not self._json_only:
            self._open = connect
        try:
            if self._store is None:
                await asyncio.sleep(0)  # most calls never wait, and are over now
                if self.ended and not mine:
                    return await self._plain(send)
            await self._attend(mine, version, receive, send)
        except asyncio.CancelledError:
            await self._interrupted(mine, send)
            raise
        finally:
            self._open = None
            if mine:
                self.leave(mine[0])
                mine[0].close()
            for callback in self._when_gone:
                callback()
            self._when_gone.clear()

    async def _attend(self, mine: list[EventStream], version: str | None, receive: Receive, send: Send) -> None:
        """Respond to a request that takes its time: watch for a disconnect, and keep the client from giving up."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(SILENCE_SECONDS, self._connected)
        watching = loop.create_task(disconnected(receive), name="bespeak disconnect watcher")
        try:
            if self._store is not None:
                await self._begin(self._store, version)
            if not (self.ended or mine):
                self._decided = loop.create_future()
                await asyncio.wait({watching, self._decided}, return_when=asyncio.FIRST_COMPLETED)
            if mine:
                await mine[0].sent_unless(watching)
            elif self.ended:
                await self._plain(send)
            else:  # nothing reaches the client, but what lies between may insist on a response
                with contextlib.suppress(OSError):
                    await respond(send, 499, b"")
        finally:
            timer.cancel()
            watching.cancel()

    async def _interrupted(self, mine: list[EventStream], send: Send) -> None:
        """Tell the client that the server has cancelled the task that serves it."""
        error = MCPError(INTERNAL_ERROR, f"{STOPPING}; whether the request was carried out is not known")
        errors = [write_error(id_, error) for id_ in self.unanswered]
        responses = [*self.ready, *errors] if errors else []
        if mine:
            mine[0].end(b"".join(map(write_event, responses)))
            await mine[0].last_words()
        elif responses:
            await respond(send, 503, self._body(responses), JSON)

    def _body(self, responses: Sequence[bytes]) -> bytes:
        return b"[" + b",".join(responses) + b"]" if self.together else responses[0]

    async def _begin(self, store: EventStore, version: str | None) -> None:
        """What is kept is sent on a stream from the start, so that a client knows where it was when the connection broke."""
        connection = self._connected()
        if connection is not None and version is not None and version >= NOVEMBER:
            async with self.holding:
                id_ = await keep(store, self.id, None)
                if id_ is not None and connection is self._connection:
                    self._add(write_first_event(id_, self._retry_ms), id_)

    async def _plain(self, send: Send) -> None:
        if self._response is None:  # the client has cancelled it
            await respond(send, 202, b"")
        else:
            await respond(send, 200, self._response, JSON)
