"""Notifications of a server: those of one request are handled in order, and before its result is returned."""

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from bespeak.client.callbacks import LoggingCallback, MessageHandler, ProgressCallback
from bespeak.protocol import wire_types
from bespeak.protocol.methods import CHANGES

logger = logging.getLogger("bespeak.client")

Handle = Callable[[dict[str, Any]], Awaitable[None]]
Changed = Callable[[str, Mapping[str, Any]], Awaitable[None]]
"""Takes the method and the params of a notification that something on the server has changed."""

HELD_BYTES = 16 * 1024 * 1024
"""How much of one request's notifications is kept for a handler that is too slow."""


class Inbox:
    """The notifications of one request. Each request has its own, so that a handler may send requests itself."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._waiting: deque[bytes] = deque()
        self._handling: asyncio.Task[None] | None = None
        self._held = 0
        self._dropping = False

    def put(self, notification: bytes) -> None:
        """Take a notification to be handled soon. If too many are waiting, it is dropped."""
        if self._held > HELD_BYTES:
            if not self._dropping:
                logger.warning("Notifications arrive faster than they are handled. Some are dropped.")
            self._dropping = True
            return
        self._waiting.append(notification)
        self._held += len(notification)
        if self._handling is None or self._handling.done():
            self._handling = asyncio.create_task(self._work(), name="bespeak notifications")

    @property
    def busy(self) -> bool:
        """Whether something has arrived that may not be handled yet."""
        return self._handling is not None

    async def settled(self) -> None:
        """Return when all notifications that have arrived are handled."""
        if self._handling is not None:
            await asyncio.shield(self._handling)

    def discard(self) -> None:
        """Drop the notifications that are not handled yet: the request has failed."""
        self._waiting.clear()
        if self._handling is not None:
            self._handling.cancel()

    async def _work(self) -> None:
        while self._waiting:
            try:
                notification = self._waiting.popleft()
                self._held -= len(notification)
                await self._handle(from_json(notification))
            except Exception:
                logger.exception("A notification handler failed")


@dataclass(frozen=True, slots=True)
class Handlers:
    """What a client calls when notifications arrive."""

    message: MessageHandler | None
    """Called with every notification."""
    logging: LoggingCallback | None
    cancelled: Callable[[Mapping[str, Any]], None]
    """Called with the params of `notifications/cancelled`."""
    changed: Changed | None = None
    """Called before any other, so that what has changed is not taken from the cache any more."""

    def inbox(
        self, request_id: int | None = None, progress: ProgressCallback | None = None, also: Handle | None = None
    ) -> Inbox:
        """Return an inbox for one request, or without an id for what belongs to no request. `also` gets each of them, too."""
        return Inbox(functools.partial(self._handle, request_id, progress, also))

    async def _handle(
        self,
        request_id: int | None,
        progress: ProgressCallback | None,
        also: Handle | None,
        message: dict[str, Any],
    ) -> None:
        params: dict[str, Any] = message.get("params", {})
        if self.changed is not None and message["method"] in CHANGES:
            await self.changed(message["method"], params)
        if also is not None:
            await also(message)
        if self.message is not None:
            await self.message(message)
        if message["method"] == "notifications/cancelled":
            self.cancelled(params)
        elif message["method"] == "notifications/progress":
            if progress is not None and params.get("progressToken") == request_id:
                await progress(params["progress"], params.get("total"), params.get("message"))
        elif message["method"] == "notifications/message" and self.logging is not None:
            await self.logging(wire_types.LoggingMessageNotificationParams.model_validate(params))
