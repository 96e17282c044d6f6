"""The ledger in this process's memory: the default, and enough for one process."""

import asyncio
import heapq
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace

from bespeak.state.stores.store import Claim, Forgotten, StoreFull

MAX_CLAIMS = 100_000
MAX_RESULT_BYTES = 64 * 1024 * 1024


class MemoryStore:
    """Claims in a dict. Nothing in it suspends, so each method is atomic in its event loop."""

    def __init__(self, *, max_claims: int = MAX_CLAIMS, max_result_bytes: int = MAX_RESULT_BYTES) -> None:
        self._max_claims = max_claims
        self._max_result_bytes = max_result_bytes
        self._claims: dict[str, Claim] = {}
        self._deadlines: list[tuple[float, str]] = []
        self._results: OrderedDict[str, int] = OrderedDict()
        self._result_bytes = 0
        self._forgotten_until = float("-inf")
        self._waiting: dict[str, asyncio.Event] = {}

    async def claim(self, call: str, claim: Claim, now: float) -> Claim | None:
        self._purge(now)
        there = self._claims.get(call)
        if there is not None:
            return there
        if claim.deadline <= self._forgotten_until:
            raise Forgotten
        if len(self._claims) >= self._max_claims:
            raise StoreFull
        self._claims[call] = claim
        heapq.heappush(self._deadlines, (claim.deadline, call))
        return None

    async def take_over(self, call: str, lapsed_owner: str, claim: Claim) -> bool:
        there = self._claims.get(call)
        if there is None or there.done or there.owner != lapsed_owner:
            return False
        self._claims[call] = claim
        return True

    async def renew(self, call: str, owner: str, lease_until: float) -> None:
        there = self._claims.get(call)
        if there is not None and there.owner == owner:
            self._claims[call] = replace(there, lease_until=lease_until)

    async def finish(self, call: str, owner: str, result: bytes) -> None:
        there = self._claims.get(call)
        if there is None or there.owner != owner:
            return
        self._claims[call] = replace(there, done=True, result=result)
        self._results[call] = len(result)
        self._result_bytes += len(result)
        while self._result_bytes > self._max_result_bytes:
            self._evict(next(iter(self._results)))
        self._notify(call)

    async def read(self, call: str) -> Claim | None:
        return self._claims.get(call)

    async def changed(self, call: str, timeout: float) -> None:
        if call not in self._claims:
            return
        event = self._waiting.setdefault(call, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await event.wait()

    async def has_room(self, now: float) -> bool:
        self._purge(now)
        return len(self._claims) < self._max_claims

    def _notify(self, call: str) -> None:
        event = self._waiting.pop(call, None)
        if event is not None:
            event.set()

    def _evict(self, call: str) -> None:
        self._result_bytes -= self._results.pop(call)
        self._claims[call] = replace(self._claims[call], result=None)

    def _drop(self, call: str) -> None:
        if call in self._results:
            self._result_bytes -= self._results.pop(call)
        self._claims.pop(call, None)

    def _purge(self, now: float) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            _, call = heapq.heappop(self._deadlines)
            there = self._claims.get(call)
            self._forgotten_until = now
            if there is not None and there.deadline <= now:
                self._drop(call)
                self._notify(call)
