"""Calls of older clients that are waiting for an answer: how many there may be, and how much memory their requests may
use.

Since 2026-07-28 a request ends when it asks, and the client keeps the state. An older client's call stays in memory
until somebody answers. So that nobody can fill the server with such calls, they are counted per session, per address
and for the whole server, and the memory of their requests is measured.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import repeat
from threading import Lock
from typing import Any, cast

from bespeak.resolve.errors import NotAnswered

PRESSURE = 2
"""Once 1 / `PRESSURE` of a limit is used, each address is limited to its share."""
SHARE = 10
"""The share of one address: 1 / `SHARE` of the limit, but at least one call."""
SHARE_TAKEN = "too many calls from your address are waiting for answers; answer one of them, or try again later"
MANY = 1000
"""How many members of a container are measured at a time, so that measuring a very large one stops early."""


@dataclass(frozen=True, slots=True)
class WaitingLimits:
    """Limits on calls that are waiting for an answer."""

    server: int = 1024
    session: int = 32
    bytes: int = 64 * 1024 * 1024
    """How much memory the requests of all these calls may use together."""
    gone_seconds: float = 30.0
    """How long a call waits for an answer after its client's connection is lost, if nothing has been approved yet."""


class WaitingCalls:
    """The waiting calls of one server, which may run in several event loops."""

    def __init__(self, limits: WaitingLimits) -> None:
        self.limits = limits
        self._lock = Lock()
        self.calls = 0
        self.bytes = 0
        self._of_address: dict[str, tuple[int, int]] = {}
        """The calls of each address, and their bytes."""

    def of_session(self) -> "SessionCalls":
        """Return a counter for the waiting calls of a new session."""
        return SessionCalls(self)

    def enter(self, weigh: Callable[[int], int], address: str | None) -> int:
        """Count a call, and return the bytes it uses. `weigh` may stop at the size it is given. Raises `NotAnswered`."""
        limits = self.limits
        self._check_number(address)  # first, because measuring takes time
        weight = weigh(limits.bytes)
        with self._lock:
            self._check_number(address)
            if self.bytes + weight > limits.bytes:
                raise NotAnswered(
                    "with this call, the arguments of all calls that are waiting for answers would take more than "
                    f"{limits.bytes} bytes of memory, which is the limit of this server; send less, or try again later"
                )
            _, held = self._held(address)
            if held and self.bytes * PRESSURE > limits.bytes and (held + weight) * SHARE > limits.bytes:
                raise NotAnswered(SHARE_TAKEN)
            self._count(address, 1, weight)
            return weight

    def _check_number(self, address: str | None) -> None:
        limits = self.limits
        if self.calls >= limits.server:
            raise NotAnswered(
                f"{self.calls} calls are already waiting for answers, which is the limit of this server; try again later"
            )
        calls, _ = self._held(address)
        if calls and self.calls * PRESSURE > limits.server and (calls + 1) * SHARE > limits.server:
            raise NotAnswered(SHARE_TAKEN)

    def _held(self, address: str | None) -> tuple[int, int]:
        return self._of_address.get(address, (0, 0)) if address is not None else (0, 0)

    def _count(self, address: str | None, calls: int, weight: int) -> None:
        self.calls += calls
        self.bytes += weight
        if address is None:
            return
        before, held = self._held(address)
        if before + calls:
            self._of_address[address] = before + calls, held + weight
        else:
            del self._of_address[address]

    def leave(self, weight: int, address: str | None) -> None:
        """Called when a counted call continues, or has ended."""
        with self._lock:
            self._count(address, -1, -weight)


class SessionCalls:
    """The waiting calls of one session."""

    def __init__(self, server: WaitingCalls) -> None:
        self._server = server
        self.limits = server.limits
        self.calls = 0

    def enter(self, weigh: Callable[[int], int], address: str | None) -> int:
        """Count a call for the session and the server, and return the bytes it uses. Raises `NotAnswered`."""
        if self.calls >= self.limits.session:
            raise NotAnswered(
                f"{self.calls} calls of this session are already waiting for answers, which is the limit; "
                "answer or cancel one of them"
            )
        weight = self._server.enter(weigh, address)
        self.calls += 1
        return weight

    def leave(self, weight: int, address: str | None) -> None:
        self.calls -= 1
        self._server.leave(weight, address)


def weigh(values: Iterable[Any], most: int) -> int:
    """Return about how many bytes some values use in memory, including their contents. Stops above `most`."""
    total, seen = 0, set[int]()
    left = [list(values)]
    while left:
        held = left.pop()
        for start in range(0, len(held), MANY):
            piece = held[start : start + MANY]
            total += sum(map(sys.getsizeof, piece, repeat(64)))
            if total > most:
                return total
            if _PLAIN.issuperset(map(type, piece)):
                continue
            for value in piece:
                if type(value) in _PLAIN or id(value) in seen:
                    continue
                held_by_it = _held(value)
                if held_by_it:
                    seen.add(id(value))
                    left.append(held_by_it)
    return total


_PLAIN = frozenset({str, bytes, int, float, bool, type(None)})


def _held(value: Any) -> list[Any]:
    """Return the contents of a container, or the attributes of an object."""
    if type(value) is list:
        return cast("list[Any]", value)
    if isinstance(value, dict):
        plain = cast("dict[Any, Any]", value)
        return [*plain, *plain.values()]
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return list(cast("list[Any]", value))
    attributes: list[Any] = [vars(value)] if hasattr(value, "__dict__") else []
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                attributes.append(getattr(value, name))
    return attributes
