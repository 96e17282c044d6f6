"""Event stores: the events of a stream, kept for clients of older revisions that lose the connection and resume."""

import asyncio
import logging
import re
import secrets
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pydantic_core import from_json

from bespeak.aio.tasks import is_cancelled

if TYPE_CHECKING:
    from mcp_types.jsonrpc import JSONRPCMessage

logger = logging.getLogger("bespeak.http")

STORE_SECONDS = 5.0
"""How long a store may take for one event."""
_ID = re.compile(r"[^\x00\r\n]+")

EventId = str
StreamId = str


@dataclass(frozen=True, slots=True)
class EventMessage:
    """One message, and the id under which it can be asked for again."""

    message: "JSONRPCMessage"
    event_id: EventId | None = None


EventCallback = Callable[[EventMessage], Awaitable[None]]


class EventStore(Protocol):
    """Keeps the events of streams. The names are the official SDK's, so its stores serve here too.

    It is shared by all clients of a server, and sees everything they are sent.
    """

    async def store_event(self, stream_id: StreamId, message: "JSONRPCMessage | None") -> EventId:
        """Keep an event, and return its id, which is unique among all streams.

        `None` is a first event without a message.
        """
        ...

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """Pass on what was sent after an event on the same stream, and return the stream's id; `None` if the event is
        unknown.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    id: EventId
    message: "JSONRPCMessage | None"
    size: int


class MemoryEventStore:
    """Keeps the last events of each stream, and the last streams, in this process."""

    def __init__(self, *, max_events: int = 100, max_streams: int = 1_000, max_bytes: int = 64 * 1024 * 1024) -> None:
        if min(max_events, max_streams, max_bytes) < 1:
            raise ValueError("max_events, max_streams and max_bytes must be at least 1")
        self._max_events = max_events
        self._max_streams = max_streams
        self._max_bytes = max_bytes
        self._bytes = 0
        self._streams: OrderedDict[StreamId, deque[_Kept]] = OrderedDict()
        self._numbers: dict[str, StreamId] = {}
        self._prefixes: dict[StreamId, str] = {}

    async def store_event(self, stream_id: StreamId, message: "JSONRPCMessage | None") -> EventId:
        """Keep an event, and return its id."""
        events = self._streams.get(stream_id)
        if events is None:
            events = self._streams[stream_id] = deque(maxlen=self._max_events)
            prefix = secrets.token_hex(8)
            self._numbers[prefix], self._prefixes[stream_id] = stream_id, prefix
        self._streams.move_to_end(stream_id)
        count = int(events[-1].id.rpartition("-")[2]) + 1 if events else 1
        id_ = f"{self._prefixes[stream_id]}-{count}"
        if len(events) == self._max_events:
            self._bytes -= events[0].size
        kept = _Kept(id_, message, len(message.model_dump_json()) if message is not None else 0)
        events.append(kept)
        self._bytes += kept.size
        self._make_room()
        return id_

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """Pass on what was sent after an event on the same stream."""
        stream_id = self._numbers.get(last_event_id.rpartition("-")[0])
        if stream_id is None:
            return None
        events = list(self._streams[stream_id])
        places = [place for place, event in enumerate(events) if event.id == last_event_id]
        if not places:
            return None
        for event in events[places[0] + 1 :]:
            if event.message is not None:
                await send_callback(EventMessage(event.message, event.id))
        return stream_id

    def _make_room(self) -> None:
        """Forget the streams without a new event for longest, but never the one that has just got one."""
        while len(self._streams) > 1 and (len(self._streams) > self._max_streams or self._bytes > self._max_bytes):
            stream_id, events = self._streams.popitem(last=False)
            self._bytes -= sum(event.size for event in events)
            del self._numbers[self._prefixes.pop(stream_id)]


async def keep(store: EventStore, stream: str, message: bytes | None) -> str | None:
    """Keep an event, and return its id. If the store fails, return `None`: a client cannot resume from this event."""
    try:
        async with asyncio.timeout(STORE_SECONDS):
            id_: Any = await store.store_event(stream, _whole(message) if message else None)
        if isinstance(id_, str) and _ID.fullmatch(id_):
            return id_
        logger.error(
            "the event store returned an event id that is not one line of text; the client cannot resume from this event"
        )
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        logger.exception("the event store was cancelled; the client cannot resume from this event")
    except Exception:
        logger.exception("the event store failed; the client cannot resume from this event")
    return None


def _whole(message: bytes) -> "JSONRPCMessage":
    from mcp_types.jsonrpc import jsonrpc_message_adapter  # slow to import; see protocol/wire_types.py

    read = from_json(message)
    if "error" in read:
        read.setdefault("id", None)  # it is left out where the id of a request could not be read
    return jsonrpc_message_adapter.validate_python(read)
