"""The notifications of one request: handled in order as they come, and all of them before its result is."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_core import from_json

logger = logging.getLogger("bespeak.client")


HELD_BYTES = 16 * 1024 * 1024
"""How much of one request's notifications is kept for a handler who is behind."""


class Inbox:
    """One request's own, so that a handler may send requests itself without waiting for itself."""

    def __init__(self, handle: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        self._handle = handle
        self._waiting: deque[bytes] = deque()
        self._handling: asyncio.Task[None] | None = None
        self._held = 0
        self._dropping = False

    def put(self, notification: bytes) -> None:
        """Take in a notification and see that it is handled soon. Beyond what anybody could handle, it is dropped."""
        if self._held > HELD_BYTES:
            if not self._dropping:
                logger.warning("notifications come faster than they are handled; some are dropped")
            self._dropping = True
            return
        self._waiting.append(notification)
        self._held += len(notification)
        if self._handling is None or self._handling.done():
            self._handling = asyncio.create_task(self._work(), name="bespeak notifications")

    async def settled(self) -> None:
        """Return when everything that has come is handled."""
        if self._handling is not None:
            await asyncio.shield(self._handling)

    def discard(self) -> None:
        """Nobody waits for the result any more: what has come is not of interest either."""
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
                logger.exception("a handler of notifications failed")
