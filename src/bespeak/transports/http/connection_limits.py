"""Limits on the connections of one process: how many there may be, how many per address, and how long each may take.

One client must not be able to keep the others out. Up to half of all connections no address is limited, since many users may share
one. Above that, an address may have a tenth. Where there is no room, a connection that has sent no request yet is
closed first, then one that waits for its next request. A request under way is never cut off for a new connection.

A request that arrives in one piece and whose response is read costs nothing here.
"""

import asyncio
import heapq
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bespeak.transports.http.refusals import Refusal

logger = logging.getLogger("bespeak.http")

MOST_CONNECTIONS = 16_384
"""The most connections by default, however many files the process may open."""
WITHOUT_FILE_LIMIT = 1024
"""The most connections by default, on systems without a limit on open files."""
BACKLOG = 2048
SWEEP_SECONDS = 1.0
LINGER_SECONDS = 2.0
"""How long a refused client may take to read the reason. What it sends in this time is discarded."""
YOUNG_SECONDS = 1.0
"""A younger connection is not closed to make room, or for its unread output: its client must have a chance to send."""
HOPELESS_SECONDS = 0.25
"""How long to wait before the next search for a connection to close, when none was found."""
READ_BYTES = 32 * 1024
"""How many bytes of its response a client must read within the read timeout."""
LAST_RESORT = 4
"""At this many times the limit on unread output, young connections are closed too."""
BODY_MARGIN = 1.2
"""How much longer than the app a connection waits for a body: the app's error says more."""
WARN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of one listening process. Times are in seconds."""

    max_connections: int | None = None
    """`None` means two thirds of the files that the process may open, at most 16,384."""
    head_timeout: float = 20.0
    """The time for the head of a request, from its first byte, and for the first request of a connection to begin."""
    body_timeout: float = 30.0
    read_timeout: float = 30.0
    """The time in which a client must read 32 KiB of what is sent to it, or all of it."""
    max_unread_bytes: int = 64 * 1024 * 1024
    """How many bytes may wait, in total, for clients that do not read."""
    trusted_proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.max_connections is not None and self.max_connections < 1:
            raise ValueError("max_connections must be at least 1, or None for what the limit on open files allows")
        for name, value in (
            ("request_head_timeout", self.head_timeout),
            ("request_body_timeout", self.body_timeout),
            ("response_read_timeout", self.read_timeout),
        ):
            if not value > 0:
                raise ValueError(f"{name} must be a positive number of seconds")
        if self.max_unread_bytes < 1:
            raise ValueError("max_unread_output must be a positive number of bytes")

    def connections(self) -> int:
        """Return how many connections there may be."""
        return self.max_connections or _allowed_by_files()

    def backlog(self, *, at_once: bool) -> int:
        """Return how many connections may wait to be accepted. If all are accepted at once, each needs an open file."""
        return min(max(self.connections() // 5, 16), BACKLOG) if at_once else BACKLOG


FULL = Refusal(503, "the server has reached its limit of connections; try again soon")
TOO_MANY = Refusal(429, "there are too many connections from this address; try again soon")


class Connection(Protocol):
    """A connection, as the table of connections sees it."""

    address: str | None
    """The address for which it is counted; `None` if it is not counted, such as the connection of a proxy."""
    silent: bool
    """Whether no complete head of a request has arrived yet."""

    def idle(self) -> bool:
        """Return whether it waits for its next request."""
        ...

    def overdue(self) -> None:
        """Called when the client did not send or read in time."""
        ...

    def turn_out(self, refusal: Refusal) -> None:
        """Called when it must be closed to make room for another connection."""
        ...

    def hang_up(self) -> None:
        """Called when the time for a refused client to read the reason is over."""
        ...

    def unread(self) -> int:
        """Return how many bytes wait to be read by the client."""
        ...

    def abort(self) -> None:
        """Called when it must be closed immediately."""
        ...


@dataclass(slots=True)
class _Group:
    """The connections of one address, in the order they were made, with the time."""

    members: dict[Connection, float]
    hopeless_until: float = 0.0


@dataclass(slots=True)
class _Unread:
    since: float
    """When the client last read."""
    size: int


class Connections:
    """The table of connections. `pressed` is true while there is more unread output than allowed: see `must_wait`."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.most = limits.connections()
        self.half = self.most // 2
        self.share = max(self.most // 10, 1)
        self.pressed = False
        self._count = 0
        self._hopeless_until = 0.0
        self._groups: dict[str | None, _Group] = {}
        self._deadlines: dict[Connection, float] = {}
        self._lingering: dict[Connection, float] = {}
        self.most_lingering = max(self.most // 8, 1)
        self._unread: dict[Connection, _Unread] = {}
        self._held: dict[object, int] = {}
        """Unread output by address, when it was last too much."""
        self._sweeping: asyncio.TimerHandle | None = None
        self._warned: dict[Refusal, float] = {}
        shortest = min(limits.head_timeout, limits.body_timeout, limits.read_timeout)
        self._pause = min(SWEEP_SECONDS, shortest / 4)

    def __len__(self) -> int:
        return self._count

    # Coming and going

    def admit(self, connection: Connection) -> Refusal | None:
        """Add a connection. Returns the reason if it is refused, otherwise `None`."""
        now = _now()
        group = self._groups.get(connection.address)
        if group is None:
            group = _Group({})
        limited = connection.address is not None and self._count >= self.half and len(group.members) >= self.share
        if limited and not self._make_room(group, now, TOO_MANY):
            return self._refused(TOO_MANY, now)
        if self._count >= self.most and not self._make_room_anywhere(now):
            return self._refused(FULL, now)
        self._groups[connection.address] = group
        group.members[connection] = now
        self._count += 1
        self._expect(connection, now + self.limits.head_timeout)
        return None

    def leave(self, connection: Connection) -> None:
        """Remove a connection."""
        group = self._groups.get(connection.address)
        if group is not None and group.members.pop(connection, None) is not None:
            self._count -= 1
            if not group.members:
                del self._groups[connection.address]
        self._deadlines.pop(connection, None)
        self._lingering.pop(connection, None)
        self.flowing(connection)

    def linger(self, connection: Connection) -> None:
        """Keep a refused connection for a moment, so that its client can read the reason.

        If there are many, drop the oldest.
        """
        self.leave(connection)
        self._lingering[connection] = _now() + LINGER_SECONDS
        self._watch()
        if len(self._lingering) > self.most_lingering:
            oldest = next(iter(self._lingering))
            del self._lingering[oldest]
            oldest.hang_up()

    def _make_room(self, group: _Group, now: float, refusal: Refusal) -> bool:
        if now < group.hopeless_until:
            return False
        found: Connection | None = None
        for connection, since in group.members.items():
            if now - since < YOUNG_SECONDS:
                break  # those that follow are younger
            if connection.silent:
                found = connection
                break
            if found is None and connection.idle():
                found = connection
        if found is None:
            group.hopeless_until = now + HOPELESS_SECONDS
            return False
        self.leave(found)
        found.turn_out(refusal)
        return True

    def _make_room_anywhere(self, now: float) -> bool:
        if now < self._hopeless_until:
            return False
        crowded = heapq.nlargest(8, self._groups.items(), key=lambda item: (item[0] is not None, len(item[1].members)))
        if any(self._make_room(group, now, FULL) for _, group in crowded):
            return True
        self._hopeless_until = now + HOPELESS_SECONDS
        return False

    def _refused(self, refusal: Refusal, now: float) -> Refusal:
        if now - self._warned.get(refusal, -WARN_SECONDS) >= WARN_SECONDS:
            self._warned[refusal] = now
            logger.warning(
                "connections are refused: %s (%d of %d are open; logged once a minute)",
                refusal.reason,
                self._count,
                self.most,
            )
        return refusal

    # What is expected of clients

    def expect_head(self, connection: Connection) -> None:
        self._expect(connection, _now() + self.limits.head_timeout)

    def expect_body(self, connection: Connection) -> None:
        self._expect(connection, _now() + self.limits.body_timeout * BODY_MARGIN)

    def received(self, connection: Connection) -> None:
        """Called when nothing more is expected from the client."""
        self._deadlines.pop(connection, None)

    def _expect(self, connection: Connection, deadline: float) -> None:
        self._deadlines[connection] = deadline
        self._watch()

    # Unread output

    def stalled(self, connection: Connection) -> None:
        """Called when a client does not read as fast as data is written to it."""
        if connection not in self._unread:
            self._unread[connection] = _Unread(_now(), connection.unread())
            self._watch()
        self._relieve(_now())

    def flowing(self, connection: Connection) -> None:
        """Called when the client has caught up."""
        if self._unread.pop(connection, None) is not None and self.pressed:
            self._relieve(_now())

    def must_wait(self, connection: Connection) -> bool:
        """Return whether a client must first read its responses before it may send more requests."""
        return self.pressed and self._held.get(_holder(connection), 0) > self.limits.max_unread_bytes // 10

    def _relieve(self, now: float) -> None:
        """Drop the output that has been unread longest, of those first who hold the most, while there is too much."""
        total = 0
        for connection, unread in self._unread.items():
            size = connection.unread()
            if size <= unread.size - READ_BYTES:
                unread.since, unread.size = now, size
            elif size > unread.size:  # more was written
                unread.size = size
            total += size
        most = self.limits.max_unread_bytes
        self.pressed = total > most
        if not self.pressed:
            self._held = {}
            return
        held: dict[object, int] = {}
        for connection, unread in self._unread.items():
            held[_holder(connection)] = held.get(_holder(connection), 0) + unread.size
        order = sorted(self._unread.items(), key=lambda item: (-held[_holder(item[0])], item[1].since))
        for connection, unread in order:
            if total <= most:
                break
            if now - unread.since >= YOUNG_SECONDS or total > LAST_RESORT * most:
                total -= unread.size
                held[_holder(connection)] -= unread.size
                del self._unread[connection]
                connection.abort()
        self.pressed, self._held = total > most, held

    # Timeouts

    def _watch(self) -> None:
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(self._pause, self._sweep)

    def _sweep(self) -> None:
        """One look at all of them now and then is cheaper than a timer for each."""
        self._sweeping = None
        now = _now()
        _each_due(self._lingering, now, lambda connection: connection.hang_up())
        _each_due(self._deadlines, now, lambda connection: connection.overdue())
        if self._unread:
            self._relieve(now)
            for connection, unread in list(self._unread.items()):
                if now - unread.since >= self.limits.read_timeout:
                    self._unread.pop(connection, None)
                    connection.abort()
        if self._lingering or self._deadlines or self._unread:
            self._watch()


def _each_due(deadlines: dict[Connection, float], now: float, tell: Callable[[Connection], None]) -> None:
    for connection in [one for one, deadline in deadlines.items() if deadline <= now]:
        if deadlines.pop(connection, None) is not None:  # unless one before it took it along
            tell(connection)


def _holder(connection: Connection) -> object:
    """What unread output counts for: the address, or the connection itself if it has none."""
    return connection if connection.address is None else connection.address


def _now() -> float:
    return asyncio.get_running_loop().time()


def _allowed_by_files() -> int:
    """Two thirds of the files. With what lingers, a quarter is left to the author's own use."""
    try:
        import resource
    except ImportError:  # not on Windows
        return WITHOUT_FILE_LIMIT
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return min(max(files * 2 // 3, 8), MOST_CONNECTIONS)
