"""What waits to be sent to one reader, who may be slow."""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger("bespeak.transports")

UNREAD_BYTES = 256 * 1024
"""How much is held for a reader who is behind before a call that notifies has to wait for room."""
PATIENCE_SECONDS = 5.0
"""How long it waits. Then notifications are dropped until there is room: a reader who does not read stops no call."""


class Outbox:
    """Takes what is to be sent, and hands it over in order."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._held = 0
        self._stirred = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._dropping = False
        self._abandoned = False
        self._released = False

    def add(self, data: bytes) -> None:
        """Take what must be sent."""
        self._waiting.append(data)
        self._held += len(data)
        self._stirred.set()
        if self._held > UNREAD_BYTES and not self._released:
            self._room.clear()

    def abandon(self) -> None:
        """Nobody will read any more: what comes is dropped, and nobody waits for room."""
        self._abandoned = True
        self.release()

    def offer(self, data: bytes) -> Coroutine[Any, Any, None] | None:
        """Take what may be dropped if nobody reads it. What is returned waits for room."""
        if self._abandoned:
            return None
        if self._room.is_set():
            self.add(data)
            return None
        return None if self._dropping else self._add_when_there_is_room(data)

    async def _add_when_there_is_room(self, data: bytes) -> None:
        if await self._has_room_soon():
            self.add(data)

    def room(self) -> Coroutine[Any, Any, bool] | None:
        """`None` if there is room for what may be dropped; else what waits for it, and says whether there is."""
        return None if self._room.is_set() else self._has_room_soon()

    async def _has_room_soon(self) -> bool:
        if self._dropping:
            return False
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self._room.is_set():  # somebody else may have been faster
                    await self._room.wait()
        except TimeoutError:
            if not self._dropping:
                logger.warning("the client reads nothing; notifications are dropped until it does")
            self._dropping = True
            return False
        return True

    async def has_room(self) -> None:
        """Return when the reader has caught up, or there is no more use in waiting for it."""
        await self._room.wait()

    def release(self) -> None:
        """Whoever waits for room need not any more."""
        self._released = True
        self._room.set()

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be taken."""
        return not self._waiting

    async def something(self, seconds: float | None = None) -> None:
        """Return when there is something to send, or the time is up."""
        try:
            async with asyncio.timeout(seconds):
                await self._stirred.wait()
        except TimeoutError:
            pass

    def stir(self) -> None:
        """Have `something` return, whatever there is."""
        self._stirred.set()

    def take(self) -> bytes:
        """Everything there is. `sent` must follow when it has left."""
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._stirred.clear()
        return data

    def sent(self) -> None:
        """What was taken has left."""
        self._held = sum(map(len, self._waiting))
        if self._held <= UNREAD_BYTES:
            self._dropping = False
            self._room.set()
