"""A bounded queue of bytes to send to one reader, who may be slow."""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger("bespeak.transports")

UNREAD_BYTES = 256 * 1024
"""How many unread bytes are held before a sender of notifications has to wait for room."""
PATIENCE_SECONDS = 5.0
"""How long a sender waits for room. Then notifications are dropped until there is room, so that a reader who does not read
cannot block a call."""


class Outbox:
    """Collects bytes to send, in order. `offer` takes what may be dropped, `add` what must be sent."""

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
        """Add bytes that must be sent."""
        self._waiting.append(data)
        self._held += len(data)
        self._stirred.set()
        if self._held > UNREAD_BYTES and not self._released:
            self._room.clear()

    def abandon(self) -> None:
        """Called when the reader is gone. Drops what is offered from now on, and ends every wait for room."""
        self._abandoned = True
        self.release()

    def offer(self, data: bytes) -> Coroutine[Any, Any, None] | None:
        """Add bytes that may be dropped. If there is no room, return a coroutine that waits for room and adds them."""
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
        """Return `None` if there is room, else a coroutine that waits for room and returns whether there is some."""
        return None if self._room.is_set() else self._has_room_soon()

    async def _has_room_soon(self) -> bool:
        if self._dropping:
            return False
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self._room.is_set():  # another sender may have been faster
                    await self._room.wait()
        except TimeoutError:
            if not self._dropping:
                logger.warning("The client is not reading. Notifications to it are dropped until it does.")
            self._dropping = True
            return False
        return True

    async def has_room(self) -> None:
        """Return when the reader has caught up, or when `release` was called."""
        await self._room.wait()

    def release(self) -> None:
        """End every wait for room, now and in the future."""
        self._released = True
        self._room.set()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._waiting

    async def something(self, seconds: float | None = None) -> None:
        """Return when there is something to send, or the time is up."""
        try:
            async with asyncio.timeout(seconds):
                await self._stirred.wait()
        except TimeoutError:
            pass

    def stir(self) -> None:
        """Make `something` return, even if there is nothing to send."""
        self._stirred.set()

    def take(self) -> bytes:
        """Return everything there is to send. Call `sent` when it has been written."""
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._stirred.clear()
        return data

    def sent(self) -> None:
        """Called when everything that was taken has been written."""
        self._held = sum(map(len, self._waiting))
        if self._held <= UNREAD_BYTES:
            self._dropping = False
            self._room.set()
