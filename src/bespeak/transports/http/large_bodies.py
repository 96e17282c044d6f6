"""Large request bodies: how many bytes of them may arrive at the same time, and which have to wait.

A small body is read and freed at once. A large one uses memory while it arrives, for as long as its client likes, and
far more when it is parsed: four megabytes can become a hundred. So large bodies are accepted only while there is room
for them, and their messages are parsed one after the other.
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
"""The messages of bodies that are larger than this are parsed one after the other."""
TURN_SECONDS = 0.05
"""How long the next one waits after a message is parsed, if the call has not responded yet."""
PAUSES = 5
PRESSURE = 2
"""Once 1 / `PRESSURE` of the room is used, each address is limited to its share."""
SHARE = 10
"""The share of one address: 1 / `SHARE` of the room, but at least one body."""
MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD of glibc."""
LARGE_BLOCK = 256 * 1024


class LargeBodies:
    """The large bodies of one app."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._taken = 0
        self._of_address: Counter[str] = Counter()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.turns = asyncio.Lock()
        """Held while the message of a very large body is read: they are read one after the other."""

    def body(self, address: str | None, size: int) -> "LargeBody":
        """Return a body that may turn out to be large. It then has at most this many bytes."""
        return LargeBody(self, address, size)

    def fits(self, address: str | None, size: int) -> bool:
        """Return whether there is room for a body now."""
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
        """Called when a body is freed, so that waiting bodies check again."""
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
    """The room that one body uses: none, until it turns out to be large."""

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
        """Wait until a body of this size may be parsed."""
        if not self._let_in:
            await self.let_in()
        if size > TURN_BYTES:
            await self._bodies.turns.acquire()
            self._has_turn = True

    def begun(self) -> None:
        """Called when its message has been parsed.

        The next one may follow when this one responds, or after a short time.
        """
        if self._has_turn:
            self._wait(PAUSES)
        else:
            self.let_out()

    def _wait(self, pauses: int) -> None:
        """Wait in several short pauses, because a call may keep the event loop busy for longer than one long pause."""
        if not pauses:
            self.let_out()
        elif self._has_turn:
            asyncio.get_running_loop().call_later(TURN_SECONDS / PAUSES, self._wait, pauses - 1)

    def let_out(self) -> None:
        """Free its room, so that the next one may be parsed."""
        if self._has_turn:
            self._has_turn = False
            self._bodies.turns.release()
        if self._let_in:
            self._let_in = False
            self._bodies.let_out(self._address, self._size)

    def until_answered(self, send: Send) -> Send:
        """Return a `send` that frees the room when the response begins: by then the call has dropped what it does not
        need.
        """

        async def answer(message: Message) -> None:
            self.let_out()
            await send(message)

        return answer


def give_large_blocks_back() -> None:
    """Return the memory of large bodies to the system as soon as it is free, if the C library is glibc.

    By default, after the first large blocks glibc puts further ones among small blocks, and then cannot return them.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BLOCK)
