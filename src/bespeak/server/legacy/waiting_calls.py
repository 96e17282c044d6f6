"""Calls of older clients that wait at a question: how many there may be, and how much of their requests they may keep.

Since 2026-07-28 a call that asks has ended, and the client holds its state. An older client's call stays where it is until
somebody answers. So that nobody fills the server with such calls, those of a session, of an address and of the whole server are
counted, and what they keep is weighed.
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
"""From 1 / `PRESSURE` of a bound on, each address is held to its share."""
SHARE = 10
"""One address has at most 1 / `SHARE` of a bound then, or one call."""
SHARE_TAKEN = "too many calls from your address are waiting for answers; answer one of them, or try again later"
MANY = 1000
"""So many members of a container are weighed at a time, so that too heavy a one is found out early."""


@dataclass(frozen=True, slots=True)
class WaitingLimits:
    """Bounds of calls that wait at a question."""

    server: int = 1024
    session: int = 32
    bytes: int = 64 * 1024 * 1024
    """Of what all of them keep of their requests, as it lies in memory."""
    gone_seconds: float = 30.0
    """How long a call waits at its question when its client's connection is gone, and nothing has been approved."""


class WaitingCalls:
    """Those of one server, which may be served by several event loops."""

    def __init__(self, limits: WaitingLimits) -> None:
        self.limits = limits
        self._lock = Lock()
        self.calls = 0
        self.bytes = 0
        self._of_address: dict[str, tuple[int, int]] = {}
        """The calls of each address, and their bytes."""

    def of_session(self) -> "SessionCalls":
        """Those of a new session."""
        return SessionCalls(self)

    def enter(self, weigh: Callable[[int], int], address: str | None) -> int:
        """Count a call; what it keeps, in bytes. `weigh` is told where it may stop. Raises `NotAnswered`."""
        limits = self.limits
        self._check_number(address)  # before anything is weighed, which takes its time
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
        """A call that was counted goes on, or has ended."""
        with self._lock:
            self._count(address, -1, -weight)


class SessionCalls:
    """Those of one session."""

    def __init__(self, server: WaitingCalls) -> None:
        self._server = server
        self.limits = server.limits
        self.calls = 0

    def enter(self, weigh: Callable[[int], int], address: str | None) -> int:
        """As for the server."""
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
    """About how many bytes some values take in memory, with all they hold. Stops when it is more than `most`."""
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
    """What a container holds; of an object, its attributes."""
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
