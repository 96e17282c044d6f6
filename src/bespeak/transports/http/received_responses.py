"""Reading a response in the HTTP client: an event stream, which can be resumed, or a body."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import from_json, to_json

from bespeak.protocol.server_sent_events import EventReader
from bespeak.transports.interfaces import Ask

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger("bespeak.client")

EXCERPT = 200
REST_SECONDS = 0.2
LEAST_PAUSE, LONGEST_PAUSE = 0.05, 60.0
"""The limits on how long a server can make a client wait before it resumes a stream, in seconds."""


class Reading:
    """A stream of events that is being read, over one connection or several."""

    def __init__(
        self,
        events: EventReader,
        notify: Callable[[bytes], None],
        ask: Ask | None,
        stray: Callable[[bytes], None] | None = None,
    ) -> None:
        self.events = events
        self._notify = notify
        self._ask = ask
        self._stray = stray
        """Gets each message that does not belong there; if not given, they are logged."""

    def pause(self, otherwise: float) -> float:
        """Return how long to wait before resuming, in seconds: as long as the server says, or else `otherwise`."""
        wanted = otherwise if self.events.retry_ms is None else self.events.retry_ms / 1000
        return min(max(wanted, LEAST_PAUSE), LONGEST_PAUSE)

    @property
    def resumable(self) -> bool:
        """Whether the stream can be resumed: the server has sent an event id that a header can contain."""
        last = self.events.last_id
        return self._ask is not None and last is not None and last.isprintable() and last == last.strip()

    def go_on(self) -> dict[str, str]:
        """Return the header that asks for the events after the last one that was read."""
        last = self.events.last_id if self.resumable else None
        self.events.restart()
        return {} if last is None else {"Last-Event-ID": last}

    def take(self, data: bytes, where: str) -> bytes | None:
        """Pass on a message that is not a response, and return a response."""
        if not data:  # only there to say where to go on
            return None
        message = parsed(data)
        if isinstance(message, list) and self._ask is not None:  # several at once, which some older revisions allow
            answers = [self._one(one, to_json(one), where) for one in cast("list[Any]", message)]
            return next((answer for answer in answers if answer is not None), None)
        return self._one(message, data, where)

    def _one(self, read: Any, data: bytes, where: str) -> bytes | None:
        if not isinstance(read, dict):
            self._misplaced(f"{where} sent an event that is not a JSON object; ignoring it", data)
            return None
        message = cast("dict[str, Any]", read)
        if "method" not in message:
            return data
        if "id" not in message:
            self._notify(data)
        elif self._ask is not None:
            self._ask(message)
        else:
            self._misplaced(f"{where} sent a request, which this revision does not allow", data)
        return None

    def _misplaced(self, what: str, data: bytes) -> None:
        if self._stray is not None:
            self._stray(data)
        else:
            logger.warning("%s", what)


def media_type(response: "httpx2.Response") -> str:
    """Return the media type of a response, without parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


async def rest_of(
    pieces: AsyncIterator[bytes], events: Iterator[bytes], reader: EventReader, late: Callable[[bytes], None] | None
) -> None:
    """Read a stream to its end if that is near, so that its connection can be used again.

    `late` gets the messages that are still in it: the other ones of the last chunk, which are in `events`, and all later ones.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REST_SECONDS):
            _pass_on(events, late)
            async for piece in pieces:
                if late is not None:
                    _pass_on(reader.feed(piece), late)


def _pass_on(events: Iterator[bytes], late: Callable[[bytes], None] | None) -> None:
    if late is not None:
        for data in filter(None, events):
            late(data)


def parsed(data: bytes | bytearray) -> Any:
    """Return the JSON in some bytes; `None` if they are not JSON."""
    try:
        return from_json(data)
    except ValueError:
        return None


def error_in(body: bytes | bytearray) -> str | None:
    """Return the message of a JSON-RPC error; `None` if a body does not contain one."""
    message = parsed(body)
    error: Any = cast("dict[str, Any]", message).get("error") if isinstance(message, dict) else None
    if not isinstance(error, dict) or not isinstance(cast("dict[str, Any]", error).get("code"), int):
        return None
    return " ".join(str(cast("dict[str, Any]", error).get("message", ""))[:EXCERPT].split())


def excerpt(kind: str, body: bytearray) -> str:
    """Return the beginning of a body, if it is text."""
    if kind not in ("text/plain", "application/json"):
        return ""
    return " ".join(body[:EXCERPT].decode(errors="replace").split())
