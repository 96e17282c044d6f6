"""A client's requests over stdio: many at a time, each matched with its response and its notifications."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import from_json, to_json

from bespeak.protocol.messages import MOST_IN_A_BATCH
from bespeak.protocol.methods import SUBSCRIPTION_ID_META
from bespeak.transports.interfaces import Ask, Lost, Outgoing, Witness, cancellation
from bespeak.transports.stdio.lines import LineCutter, LineTooLong

logger = logging.getLogger("bespeak.client")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that is under way."""

    response: asyncio.Future[bytes]
    notify: Callable[[bytes], None]
    ask: Ask | None


class ClientRequests:
    """The requests of one client over a pair of line-delimited streams."""

    def __init__(
        self,
        write: Callable[[bytes], Awaitable[None]],
        limit: int,
        stray: Callable[[bytes], None] | None = None,
        witness: Witness | None = None,
    ) -> None:
        self._write = write
        self._limit = limit
        self._stray = stray
        """Gets each line that does not belong there; if not given, they are logged."""
        self._witness = witness
        self._cutter = LineCutter(limit)
        self._waiting: dict[int, Waiting] = {}
        self._parting: set[asyncio.Task[None]] = set()
        self._elsewhere: tuple[Callable[[bytes], None], Ask] | None = None
        self.answered = False
        """Whether the other end has ever answered anything."""
        self.over: ConnectionError | None = None
        """Why nothing can be sent any more."""

    def begin(self, notify: Callable[[bytes], None], ask: Ask) -> None:
        """Set the callbacks for messages that do not belong to a known request."""
        self._elsewhere = notify, ask

    async def say(self, message: bytes) -> None:
        """Send a message that has no response."""
        if self.over is not None:
            raise self.over
        await self._say(message + b"\n")

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        """Send a request and wait for its response. If the wait is cancelled, so is the request."""
        if self.over is not None:
            raise self.over
        waiting = Waiting(asyncio.get_running_loop().create_future(), notify, ask)
        self._waiting[request.id] = waiting
        writing = asyncio.create_task(self._say(request.message + b"\n"), name="bespeak request")
        try:
            # The other end may go, or even answer, before it has read everything.
            await asyncio.wait({writing, waiting.response}, return_when=asyncio.FIRST_COMPLETED)
            return await waiting.response
        except asyncio.CancelledError:
            # A handshake cannot be cancelled, and before it there is nothing else that an older server knows.
            if request.method not in ("initialize", "server/discover"):
                self._cancel(request.id)
            raise
        finally:
            writing.cancel()
            del self._waiting[request.id]

    def _cancel(self, id_: int) -> None:
        if self.over is not None:
            return
        task = asyncio.create_task(self._say(cancellation(id_) + b"\n"), name="bespeak cancellation")
        self._parting.add(task)
        task.add_done_callback(self._parting.discard)

    async def _say(self, line: bytes) -> None:
        try:
            await self._write(line)
        except OSError as error:
            self.end(ConnectionError(f"cannot write to the server: {error}"))

    def end(self, reason: ConnectionError) -> None:
        """Called when the server is gone. Fails all requests that wait for a response."""
        if self.over is None:
            self.over = reason
        for waiting in self._waiting.values():
            if not waiting.response.done():
                waiting.response.set_exception(Lost("the request", str(self.over)))
        for task in self._parting:
            task.cancel()

    def feed(self, piece: bytes) -> None:
        """Take bytes that the server has sent."""
        for line in self._cutter.feed(piece):
            if isinstance(line, LineTooLong):
                self._too_long(line)
            elif line and not line.isspace():
                self._line(line)

    def _too_long(self, line: LineTooLong) -> None:
        if line.head.lstrip().startswith(b"{"):  # and it is not known whose response it was
            self.end(ConnectionError(f"the server sent a message of more than {self._limit} bytes"))
        else:
            logger.error("the server sent a line of more than %d bytes; skipping it", self._limit)

    def _line(self, line: bytes) -> None:
        try:
            read = from_json(line)
        except ValueError:
            read = None
        if isinstance(read, list) and 0 < len(cast("list[Any]", read)) <= MOST_IN_A_BATCH:
            if self._stray is not None:
                self._stray(line)
            for one in cast("list[Any]", read):  # several at once, which some older revisions allow
                self._message(one, to_json(one))
        else:
            self._message(read, line)

    def _message(self, read: Any, line: bytes) -> None:
        if not isinstance(read, dict):
            self._misplaced(f"the server wrote a line that is not a message: {line!r:.80}", line)
            return
        message = cast("dict[str, Any]", read)
        if "method" in message:
            self._said(message, line)
            return
        if "result" not in message and "error" not in message:
            self._misplaced(f"the server wrote a line that is not a message: {line!r:.80}", line)
            return
        self.answered = True
        id_: Any = message.get("id")
        if id_ is None and len(self._waiting) == 1:
            (id_,) = self._waiting  # an error about a message it could not read: there is only one it can mean
        waiting = self._waiting.get(cast("int", id_)) if _is_number(id_) else None
        if waiting is not None and not waiting.response.done():
            waiting.response.set_result(line)
        elif self._witness is not None:
            self._witness.unclaimed(line)
        elif waiting is None and self._stray is not None:
            self._stray(line)
        elif waiting is None:
            logger.debug("the server answered request %.80r, which is not waiting for a response", id_)

    def _misplaced(self, what: str, line: bytes) -> None:
        if self._stray is not None:
            self._stray(line)
        else:
            logger.warning("%s", what)

    def _said(self, message: dict[str, Any], line: bytes) -> None:
        if "id" in message:
            self._asked(message, line)
            return
        token = _request_named_in(message)
        waiting = self._waiting.get(cast("int", token)) if _is_number(token) else None
        if waiting is None and (token is None or message["method"] == "notifications/cancelled"):
            # Nothing in it says which request it is about; any of them hands it to the same callbacks.
            waiting = next(iter(self._waiting.values()), None)
        if self._witness is not None and self._is_late(token):
            self._witness.unclaimed(line)
            if self._elsewhere is None:
                return
        if waiting is not None:
            waiting.notify(line)
        elif self._elsewhere is not None:
            self._elsewhere[0](line)

    def _is_late(self, token: Any) -> bool:
        """Return whether a notification belongs to no request that still waits."""
        open_ = [id_ for id_, one in self._waiting.items() if not one.response.done()]
        return not open_ if token is None else not (_is_number(token) and token in open_)

    def _asked(self, message: dict[str, Any], line: bytes) -> None:
        """Take a request of the server. Which of ours it belongs to is only known if there is just one."""
        waiting = next(iter(self._waiting.values())) if len(self._waiting) == 1 else None
        ask = waiting.ask if waiting is not None and waiting.ask is not None else self._elsewhere and self._elsewhere[1]
        if ask is None:
            self._misplaced("the server sent a request, which this revision does not allow", line)
        else:
            ask(message)


def _request_named_in(message: dict[str, Any]) -> Any:
    """Return the id of the request that a notification belongs to; `None` if it does not say."""
    params: Any = message.get("params")
    if not isinstance(params, dict):
        return None
    named = cast("dict[str, Any]", params)
    if message["method"] == "notifications/cancelled":
        return named.get("requestId")  # of a subscription; in the legacy era, of a request of the server
    meta: Any = named.get("_meta")
    listening: Any = cast("dict[str, Any]", meta).get(SUBSCRIPTION_ID_META) if isinstance(meta, dict) else None
    return named.get("progressToken") if listening is None else listening


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
