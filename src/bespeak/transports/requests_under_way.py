"""The requests of one client that are under way: their ids, tasks and cancellations, and which responses travel together."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from bespeak.protocol.errors import INVALID_REQUEST, MCPError
from bespeak.protocol.messages import (
    NOT_FOR_A_BATCH,
    LegacyRequest,
    MalformedMessage,
    Notification,
    Request,
    RequestId,
    is_id,
    not_for_a_batch,
    write_error,
)
from bespeak.transports.interfaces import WrittenResponse

Task = asyncio.Task[None]
Serve = Callable[[Request | LegacyRequest], Coroutine[Any, Any, WrittenResponse]]

ID_IN_USE = "a request with this id is still under way"


class Responses:
    """Collects the responses to messages that were sent together."""

    def __init__(self, expected: int, send: Callable[[list[bytes]], None]) -> None:
        self._expected = expected
        self._send = send
        self.ready: list[bytes] = []
        """The responses so far."""
        self.unanswered: list[RequestId] = []
        """The requests that are still being served."""

    def add(self, response: bytes | None) -> None:
        """Take the response to one message; `None` if there is to be none. After the last one, all are sent."""
        self._expected -= 1
        if response is not None:
            self.ready.append(response)
        if not self._expected:
            self._send(self.ready)


class RequestsUnderWay:
    """The requests of one client, or of one session, that are being served."""

    def __init__(
        self,
        broken_off: Callable[[], MCPError | None],
        at_once: Callable[[Request | LegacyRequest], WrittenResponse | None] = lambda request: None,
        all_tasks: set[Task] | None = None,
    ) -> None:
        self._broken_off = broken_off
        """Says why a request was cancelled that its client did not cancel; `None` if nobody waits for its response."""
        self._at_once = at_once
        """Gives the response to a request that needs no task; `None` for any other."""
        self._all_tasks = all_tasks if all_tasks is not None else set[Task]()
        """Gets the tasks as well, beside those of other clients."""
        self._tasks: dict[RequestId, Task] = {}
        self._cancelled: set[RequestId] = set()
        """Requests that their client has cancelled. They get no response, however they end."""

    @property
    def tasks(self) -> set[Task]:
        return set(self._tasks.values())

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def __contains__(self, id_: RequestId) -> bool:
        return id_ in self._tasks

    def start(
        self, message: LegacyRequest | Request | MalformedMessage, serve: Serve, responses: Responses, *, batch: bool
    ) -> None:
        """Begin to serve a message. Its response goes to `responses`, unless its client cancels it."""
        if isinstance(message, MalformedMessage):
            responses.add(write_error(message.id, message.error))
        elif batch and not_for_a_batch(message):
            responses.add(write_error(message.id, MCPError(INVALID_REQUEST, NOT_FOR_A_BATCH)))
        elif (response := self._at_once(message)) is not None:
            responses.add(response.message)
        elif message.id in self._tasks:
            responses.add(write_error(message.id, MCPError(INVALID_REQUEST, ID_IN_USE)))
        else:
            self._run(message, serve, responses)

    def _run(self, request: Request | LegacyRequest, serve: Serve, responses: Responses) -> None:
        async def run() -> None:
            response = await serve(request)
            if self._tasks.get(request.id) is task:
                finish(None if request.id in self._cancelled else response.message)

        def finish(response: bytes | None) -> None:
            del self._tasks[request.id]
            self._cancelled.discard(request.id)
            responses.unanswered.remove(request.id)
            responses.add(response)

        def done(task: Task) -> None:
            self._all_tasks.discard(task)
            if self._tasks.get(request.id) is task:  # it did not come to its end
                finish(None if request.id in self._cancelled else self._broken(request.id, task))

        task = asyncio.create_task(run(), name=f"bespeak request {request.method}")
        self._tasks[request.id] = task
        self._all_tasks.add(task)
        responses.unanswered.append(request.id)
        task.add_done_callback(done)

    def _broken(self, id_: RequestId, task: Task) -> bytes | None:
        """The response to a request whose task was cancelled. Raises what the task raised."""
        if not task.cancelled():
            task.result()
        error = self._broken_off()
        return write_error(id_, error) if error is not None else None

    def heard(self, notification: Notification) -> None:
        """Cancel a request, if that is what a notification of its client says."""
        id_: Any = notification.params.get("requestId")
        if notification.method == "notifications/cancelled" and is_id(id_) and id_ in self._tasks:
            self._cancelled.add(id_)
            self._tasks[id_].cancel("the client cancelled the request")

    def is_cancelled(self, id_: RequestId) -> bool:
        """Whether the client has cancelled a request that is under way."""
        return id_ in self._cancelled

    def cancel_all(self, reason: str) -> None:
        """Cancel everything that is under way."""
        for task in self._tasks.values():
            task.cancel(reason)


async def cancel_and_wait(tasks: set[Task], reason: str, seconds: float, logger: logging.Logger) -> None:
    """Cancel requests and wait for their end. Those that take longer than this are left behind, and logged."""
    for task in tasks:
        task.cancel(reason)
    if tasks:
        _, late = await asyncio.wait(set(tasks), timeout=seconds)
        for task in late:
            logger.error("%s ignored its cancellation and is abandoned", task.get_name())
