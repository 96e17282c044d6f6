"""The response to one modern request: plain JSON if possible, an event stream if there is something to send before it.

A call that never suspends runs to its end in the request's own task, without another task, a timer or a watch on the
connection. If a call suspends for more than a moment, the connection is watched, so that a disconnect cancels the task.
After a while of silence the response becomes an event stream with keep-alives. The first notification makes it one at
once.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from bespeak.aio.in_place import Begun, begin
from bespeak.protocol.errors import INTERNAL_ERROR, MCPError, http_status
from bespeak.protocol.messages import RequestId, write_error
from bespeak.protocol.server_sent_events import write_event
from bespeak.transports.http.asgi import JSON, Receive, Send, disconnected, respond
from bespeak.transports.http.event_streams import SILENCE_SECONDS, EventStream
from bespeak.transports.interfaces import WrittenResponse

QUICK_SECONDS = 0.005
"""A call that suspends for no longer than this is not worth watching."""


async def respond_at_once(send: Send, answer: WrittenResponse) -> None:
    """Send the response to a request that never waited. `respond`, written out: every plain call passes here."""
    status = 200 if answer.code is None else http_status(answer.code)
    headers = [JSON, (b"content-length", b"%d" % len(answer.message))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.message})


class ModernResponse:
    """Sends the response to one request."""

    _answering = False
    _cancellations = 0
    _gone = False
    _stream: EventStream | None = None
    _task: asyncio.Task[Any] | None = None
    _watcher: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, id_: RequestId, receive: Receive, send: Send, *, json_only: bool) -> None:
        self._id = id_
        self._receive = receive
        self._send = send
        self._json_only = json_only

    def notify(self, notification: bytes) -> Coroutine[Any, Any, None] | None:
        """Send a notification of this request before its response."""
        if self._json_only or self._gone:
            return None
        return self._streaming().put(write_event(notification))

    async def run(self, work: Coroutine[Any, Any, WrittenResponse]) -> None:
        """Do the work and send its response. If the client disconnects, the work is cancelled."""
        try:
            answer = begin(work)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                await self.interrupted()
            if self._stream is not None:
                self._stream.close()
            raise
        if self._stream is None and not isinstance(answer, Begun):
            return await respond_at_once(self._send, answer)
        return await self.finish(answer)

    async def finish(self, work: Begun[WrittenResponse] | WrittenResponse) -> None:
        """Continue work that waits, and send its response; or send the response that follows what was sent before."""
        try:
            answer = work
            if isinstance(answer, Begun):
                self._suspended()
                answer = await answer
            if self._only_gone():  # it took the cancellation and went on all the same
                await self._end_for_nobody()
                return
            self._answering = True
            if self._timer is not None:
                self._timer.cancel()
            if self._stream is None:
                status = 200 if answer.code is None else http_status(answer.code)
                await respond(self._send, status, answer.message, JSON)
            else:
                await self._stream.finish(write_event(answer.message))
        except asyncio.CancelledError:
            if not self._only_gone():
                if not self._answering:
                    await self.interrupted()
                elif self._stream is not None:
                    await self._stream.last_words()
                raise
            await self._end_for_nobody()
        finally:
            if self._watcher is not None:
                self._watcher.cancel()
            if self._timer is not None:
                self._timer.cancel()
            if self._stream is not None:
                self._stream.close()

    async def _end_for_nobody(self) -> None:
        """The client has gone. Nothing reaches it, but middleware may expect a response."""
        if self._stream is None and not self._answering:
            with contextlib.suppress(OSError):
                await respond(self._send, 499, b"")

    def _only_gone(self) -> bool:
        """Whether the task was cancelled only because the client has gone; that cancellation is undone."""
        if not self._gone or self._task is None:
            return False
        return self._task.uncancel() <= self._cancellations

    def _suspended(self) -> None:
        self._task = asyncio.current_task()
        self._cancellations = self._task.cancelling() if self._task else 0
        self._timer = asyncio.get_running_loop().call_later(QUICK_SECONDS, self._attend)

    def _attend(self) -> None:
        """The call takes its time: watch for a disconnect, and keep the client from taking the server for dead."""
        loop = asyncio.get_running_loop()
        self._watcher = loop.create_task(self._watch(), name="bespeak disconnect watcher")
        if not self._json_only and self._stream is None:
            self._timer = loop.call_later(SILENCE_SECONDS, self._streaming)

    async def _watch(self) -> None:
        await disconnected(self._receive)
        self._gone = True
        if self._task is not None:
            self._task.cancel("the client went away")

    def _streaming(self) -> EventStream:
        if self._stream is None:
            self._stream = EventStream(self._send)
        return self._stream

    async def interrupted(self) -> None:
        """Tell the client that the server has cancelled the task that serves it."""
        message = write_error(self._id, MCPError(INTERNAL_ERROR, BROKEN_OFF))
        if self._stream is None:
            await respond(self._send, 503, message, JSON)
        else:
            self._stream.end(write_event(message))
            await self._stream.last_words()


BROKEN_OFF = (
    "the server cancelled this request, perhaps because it is stopping; whether it was carried out is not known"
)
