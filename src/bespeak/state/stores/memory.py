"""The ledger in this process's memory: the default, and enough for one process."""

import asyncio
import heapq
import math
import secrets
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from threading import Lock

from bespeak.state.forks import OfOneProcess
from bespeak.state.stores.spent_claims import Spent, SpentClaims
from bespeak.state.stores.store import (
    KEY_BYTES,
    MAX_CLAIMS,
    MAX_RESULT_BYTES,
    PURGED_AT_ONCE,
    Claim,
    ClaimLimits,
    Entry,
    Forgotten,
    Horizon,
    ShareTaken,
    StoreFull,
    key_of,
)

RESULT_OVERHEAD = 832
"""The bytes of a claim with a result, without the result itself."""
_SHARES = 1 << 16


@dataclass(slots=True)
class _Live:
    """A claim that is running, or whose result is still kept."""

    entry: Entry
    share: int
    lease_until: float
    result: bytes | None = None


@dataclass(slots=True)
class _Due:
    """The claims that may be dropped from a given second on, and the horizon after that."""

    keys: bytearray = field(default_factory=bytearray)
    claimed: float = -math.inf
    deadline: float = -math.inf


class MemoryStore(OfOneProcess):
    """Keeps claims in the memory of this process. A forked process begins without any.

    It may be used by several event loops in several threads. Up to `max_claims` claims are kept, and results of up to
    `max_result_bytes` in total. The other options are fractions of `max_claims`: above `question_limit`, new questions
    are refused, but claims only when the store is full; above `pressure`, each principal (or each address, without a
    principal) may hold at most `share`.
    """

    shared = False
    may_wait = False
    sessions = None

    def __init__(
        self,
        *,
        max_claims: int = MAX_CLAIMS,
        max_result_bytes: int = MAX_RESULT_BYTES,
        question_limit: float = 0.8,
        pressure: float = 0.5,
        share: float = 0.1,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        limits = ClaimLimits(max_claims, max_result_bytes, question_limit, pressure, share)
        self._max_claims = max_claims
        self._max_result_bytes = max_result_bytes
        self._most_for_questions = limits.most_for_questions
        self._pressure = limits.most_without_shares
        self._share = limits.most_of_one
        self._steady = steady
        self.name = secrets.token_hex(8)
        """Tells it from the stores of other servers in this process."""
        self.begin_anew()
        super().__init__()

    def begin_anew(self) -> None:
        self._lock = Lock()
        self._live: dict[bytes, _Live] = {}
        self._spent = SpentClaims()
        self._results: dict[bytes, int] = {}
        """The bytes that each kept result counts for, the oldest first."""
        self._result_bytes = 0
        self._due: dict[int, _Due] = {}
        self._seconds: list[int] = []
        """The keys of `_due`, as a heap."""
        self._horizon = Horizon()
        self._waiting: dict[bytes, list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}
        self._held = array("I", [0]) * _SHARES
        """How many claims count for each share. Two holders rarely have the same one, and no client can bring that
        about."""
        self._salt = secrets.token_bytes(16)
        self._share_of = lru_cache(1024)(self._share_number)

    @property
    def claims(self) -> int:
        """The number of claims that are kept."""
        return len(self._live) + len(self._spent)

    async def start(self) -> None:
        """Nothing has to be opened."""

    async def close(self) -> None:
        """Nothing has to be closed."""

    async def claim(self, call: str, entry: Entry, lease: float) -> Claim | None:
        key = key_of(call)
        with self._lock:
            if self._seconds and self._seconds[0] <= entry.claimed:
                self._purge(entry.claimed)
            there = self._read(key)
            if there is not None:
                return there
            share = self._admit(key, entry)
            self._live[key] = _Live(entry, share, self._steady() + lease)
            return None

    async def take_try(self, tries: Sequence[str], entry: Entry) -> int | None:
        with self._lock:
            if self._seconds and self._seconds[0] <= entry.claimed:
                self._purge(entry.claimed)
            for number, name in enumerate(tries, 1):
                key = key_of(name)
                there = self._spent.get(key)
                if there is None:
                    share = self._admit(key, entry)
                    self._spent.add(key, Spent(entry.answers, entry.request, share))
                    return number
                if there.answers == entry.answers:
                    return number
            return None

    def _admit(self, key: bytes, entry: Entry) -> int:
        """Make room for a new claim, and return the share it counts for. Raises `StoreFull`, `ShareTaken` or `Forgotten`."""
        self._check_known(entry.issued, entry.deadline, entry.incarnation)
        taken = self._taken(entry.claimed)
        if taken >= self._max_claims:
            raise StoreFull
        share = self._check_share(entry.holder, taken)
        self._held[share] += 1
        self._schedule(key, entry, entry.kept_until)
        return share

    async def take_over(self, call: str, lapsed_owner: str, entry: Entry, lease: float) -> bool:
        with self._lock:
            there = self._live.get(key_of(call))
            if there is None or there.result is not None or there.entry.owner != lapsed_owner:
                return False
            there.entry, there.lease_until = entry, self._steady() + lease
            return True

    async def withdraw(self, call: str, owner: str) -> None:
        key = key_of(call)
        with self._lock:
            there = self._live.get(key)
            if there is not None and there.entry.owner == owner and there.result is None:
                del self._live[key]
                self._held[there.share] -= 1
                self._notify(key)

    async def renew(self, call: str, owner: str, lease: float) -> bool:
        with self._lock:
            there = self._live.get(key_of(call))
            if there is None or there.entry.owner != owner:
                return False
            there.lease_until = self._steady() + lease
            return True

    async def finish(self, call: str, owner: str, result: bytes) -> bool:
        key = key_of(call)
        with self._lock:
            there = self._live.get(key)
            if there is None or there.entry.owner != owner:
                return False
            if there.result is not None:
                return True
            there.result = result
            self._results[key] = len(result) + RESULT_OVERHEAD
            self._result_bytes += self._results[key]
            while self._result_bytes > self._max_result_bytes:
                self._evict(next(iter(self._results)))
            if self._waiting:
                self._notify(key)
            return True

    async def read(self, call: str, issued: float, deadline: float, incarnation: str | None) -> Claim | None:
        with self._lock:
            there = self._read(key_of(call))
            if there is None:
                self._check_known(issued, deadline, incarnation)
            return there

    async def changed(self, call: str, timeout: float) -> None:
        key, event = key_of(call), asyncio.Event()
        mine = asyncio.get_running_loop(), event
        with self._lock:
            there = self._live.get(key)
            if there is None or there.result is not None:
                return
            self._waiting.setdefault(key, []).append(mine)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await event.wait()
        finally:
            with self._lock:
                waiting = self._waiting.get(key, [])
                if mine in waiting:
                    waiting.remove(mine)
                    if not waiting:
                        del self._waiting[key]

    async def check_room(self, holder: str | None, now: float) -> None:
        with self._lock:
            if self._seconds and self._seconds[0] <= now:
                self._purge(now)
            self._horizon.check_asking(now)
            taken = self._taken(now)
            if taken >= self._most_for_questions:
                raise StoreFull
            self._check_share(holder, taken)

    def _check_known(self, issued: float, deadline: float, incarnation: str | None) -> None:
        """Raises `Forgotten` for a state that could belong to a claim which is not known here."""
        if incarnation is not None:  # that of a shared store, which knows what was spent
            raise Forgotten
        self._horizon.check(issued, deadline)

    def _read(self, key: bytes) -> Claim | None:
        there = self._live.get(key)
        if there is not None:
            entry, left = there.entry, there.lease_until - self._steady()
            return Claim(entry.answers, entry.request, entry.owner, left, there.result is not None, there.result)
        spent = self._spent.get(key) if self._spent.count else None
        return Claim(spent.answers, spent.request, "", 0.0, done=True) if spent is not None else None

    def _taken(self, now: float) -> int:
        """How many claims there are, without those that wait to be dropped."""
        taken = len(self._live) + self._spent.count
        if self._seconds and self._seconds[0] <= now:
            taken -= sum(len(due.keys) for second, due in self._due.items() if second <= now) // KEY_BYTES
        return taken

    def _check_share(self, holder: str | None, taken: int) -> int:
        """The share a holder's claims count for. Raises `ShareTaken`. Claims that nobody holds are never limited."""
        if holder is None:
            return 0
        share = self._share_of(holder)
        if self._held[share] >= self._share and taken > self._pressure:
            raise ShareTaken
        return share

    def _share_number(self, holder: str) -> int:
        digest = blake2b(holder.encode(), digest_size=4, key=self._salt).digest()
        return 1 + int.from_bytes(digest, "big") % (_SHARES - 1)

    # Making room

    def _schedule(self, key: bytes, entry: Entry, when: float) -> None:
        second = math.ceil(when)
        due = self._due.get(second)
        if due is None:
            due = self._due[second] = _Due()
            heapq.heappush(self._seconds, second)
        due.keys += key
        if entry.kept_until >= entry.deadline:
            due.deadline = max(entry.deadline, due.deadline)
        else:
            due.claimed = max(entry.claimed, due.claimed)

    def _purge(self, now: float) -> None:
        """Drop some of what need not be kept any longer."""
        left = PURGED_AT_ONCE
        while left and self._seconds and self._seconds[0] <= now:
            due = self._due[self._seconds[0]]
            self._horizon.move(due.claimed, due.deadline)
            while left and due.keys:
                left -= 1
                key = bytes(due.keys[-KEY_BYTES:])
                del due.keys[-KEY_BYTES:]
                self._drop(key, now)
            if not due.keys:
                del self._due[heapq.heappop(self._seconds)]

    def _drop(self, key: bytes, now: float) -> None:
        there = self._live.get(key)
        if there is None:
            spent = self._spent.pop(key)
            if spent is not None:
                self._held[spent.share] -= 1
            return
        if there.result is None and there.lease_until > self._steady():
            self._schedule(key, there.entry, now + max(1.0, there.lease_until - self._steady()))
            return
        del self._live[key]
        self._held[there.share] -= 1
        self._result_bytes -= self._results.pop(key, 0)
        self._notify(key)

    def _evict(self, key: bytes) -> None:
        self._result_bytes -= self._results.pop(key)
        there = self._live.pop(key)
        self._spent.add(key, Spent(there.entry.answers, there.entry.request, there.share))

    def _notify(self, key: bytes) -> None:
        for loop, event in self._waiting.pop(key, ()):
            with suppress(RuntimeError):  # its loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(event.set)
