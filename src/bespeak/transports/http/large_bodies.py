"""Large request bodies: how many bytes of them may arrive at one time, and which have to wait.

A small body is read and forgotten at once. A large one takes memory while it arrives, for as long as its client likes, and far
more once it is parsed: four megabytes can become a hundred. So large bodies are let in only while there is room for them, and
their messages are taken up one after the other.
"""

import asyncio
import contextlib
import ctypes
from collections import Counter, deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

LARGE_BYTES = 64 * 1024
"""A body of up to this size is not counted."""
TURN_BYTES = 512 * 1024
"""The messages of bodies that are larger than this are taken up one after the other."""
TURN_SECONDS = 0.05
"""How long the next one waits after a message is read, if its call has not responded."""
PAUSES = 5
PRESSURE = 2
"""From 1 / `PRESSURE` of the room on, each address is held to its share."""
SHARE = 10
"""One address has at most 1 / `SHARE` of the room then, or one body."""
MMAP_THRESHOLD = -3
"""What glibc calls M_MMAP_THRESHOLD."""
LARGE_BLOCK = 256 * 1024


class LargeBodies:
    """Those of one app."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._taken = 0
        self._of_address: Counter[str] = Counter()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.turns = asyncio.Lock()
        """Held while the message of a very large body is read: they are read one after the other."""

    def body(self, address: str | None, size: int) -> "LargeBody":
        """A body that may turn out to be large, and then to have this many bytes at most."""
        return LargeBody(self, address, size)

    def fits(self, address: str | None, size: int) -> bool:
        """Whether there is room for a body now."""
        if not self._taken:
            return True
        if self._taken + size > self._room:
            return False
        if address is None or self._taken * PRESSURE <= self._room:
            return True
        held = self._of_address[address]
        return not held or (held + size) * SHARE <= self._room

    async def let_in(self, address: str | None, size: int) -> None:
        """Wait until there is room for a body."""
        while not self.fits(address, size):
            changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(changed)
            await changed
        self._taken += size
        if address is not None:
            self._of_address[address] += size

    def let_out(self, address: str | None, size: int) -> None:
        """A body is freed: those that wait may check again."""
        self._taken -= size
        if address is not None:
            self._of_address[address] -= size
            if not self._of_address[address]:
                del self._of_address[address]
        while self._waiting:
            changed = self._waiting.popleft()
            if not changed.done():
                changed.set_result(None)


class LargeBody:
    """The room that one body takes. Nothing, until it turns out to be large."""

    def __init__(self, bodies: LargeBodies, address: str | None, size: int) -> None:
        self._bodies = bodies
        self._address = address
        self._size = size
        self._let_in = False
        self._has_turn = False
        self.kept_waiting = False
        """Whether there is no room for it yet."""

    async def let_in(self) -> None:
        """Wait until there is room for it."""
        self.kept_waiting = True
        await self._bodies.let_in(self._address, self._size)
        self._let_in, self.kept_waiting = True, False

    async def turn(self, size: int) -> None:
        """Wait until a body of this size may become a message."""
        if not self._let_in:
            await self.let_in()
        if size > TURN_BYTES:
            await self._bodies.turns.acquire()
            self._has_turn = True

    def begun(self) -> None:
        """Its message has been read. What is not needed of it goes soon, or else the next one comes after a little while."""
        if self._has_turn:
            self._wait(PAUSES)
        else:
            self.let_out()

    def _wait(self, pauses: int) -> None:
        """Several short pauses, because a call may keep the event loop busy for longer than one long pause."""
        if not pauses:
            self.let_out()
        elif self._has_turn:
            asyncio.get_running_loop().call_later(TURN_SECONDS / PAUSES, self._wait, pauses - 1)

    def let_out(self) -> None:
        """It is forgotten, and the next one may become a message."""
        if self._has_turn:
            self._has_turn = False
            self._bodies.turns.release()
        if self._let_in:
            self._let_in = False
            self._bodies.let_out(self._address, self._size)

    def until_answered(self, send: Send) -> Send:
        """A `send` that lets it out when its answer begins: by then it is clear what its call keeps of it."""

        async def answer(message: Message) -> None:
            self.let_out()
            await send(message)

        return answer


def give_large_blocks_back() -> None:
    """Have the memory of large bodies given back to the system as soon as it is free, where the C library is glibc.

    By default, glibc puts large blocks among small ones once it has seen some, and can then not give them back.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BLOCK)
