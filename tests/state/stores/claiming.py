"""Claims for tests, and stores of every kind to make them in."""

from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from bespeak.state.stores.memory import RESULT_OVERHEAD, MemoryStore
from bespeak.state.stores.redis import RedisStore
from bespeak.state.stores.sqlite import SQLiteStore
from bespeak.state.stores.store import Claim, ClaimLimits, Entry, Store, StoreFull
from tests.state.stores.redis_servers import client, keys_of

LEASE = 1500.0
"""So long that it does not matter how busy the machine is: Redis measures it with its own clock."""
_NEARLY = 60.0


class Steady:
    """A clock for leases."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class KnownSQLiteStore(SQLiteStore):
    """Every call began under its incarnation."""

    async def claim(self, call: str, entry: Entry, lease: float) -> Claim | None:
        return await super().claim(call, entry._replace(incarnation=await incarnation_of(self)), lease)

    async def read(self, call: str, issued: float, deadline: float, incarnation: str | None = None) -> Claim | None:
        return await super().read(call, issued, deadline, await incarnation_of(self))


class KnownRedisStore(RedisStore):
    """The same in Redis."""

    async def claim(self, call: str, entry: Entry, lease: float) -> Claim | None:
        return await super().claim(call, entry._replace(incarnation=await incarnation_of(self)), lease)

    async def read(self, call: str, issued: float, deadline: float, incarnation: str | None = None) -> Claim | None:
        return await super().read(call, issued, deadline, await incarnation_of(self))


class Kind:
    """Opens stores of one kind at one place, and lets the time of their leases pass."""

    result_overhead = 0
    """What a result counts for, besides its own bytes."""

    def __init__(self) -> None:
        self.steady = Steady()
        self.server = f"test {uuid4()}"
        self._opened: list[Store] = []

    def make(self, limits: dict[str, Any]) -> Store:
        raise NotImplementedError

    async def open(self, **limits: Any) -> Store:
        store = self.make(limits)
        await store.start()
        with suppress(StoreFull):
            await store.check_room(None, 0.0)  # from now on it knows the server
        self._opened.append(store)
        return store

    async def pass_lease_time(self, seconds: float) -> None:
        self.steady.now += seconds

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


class Memory(Kind):
    result_overhead = RESULT_OVERHEAD

    def make(self, limits: dict[str, Any]) -> Store:
        return MemoryStore(**limits, steady=self.steady)


class Shared(Kind):
    """A kind of store that several processes share."""

    def raw(self) -> Store:
        """Return a store as it is: who uses it has to say under which incarnation a call began."""
        raise NotImplementedError


class SQLite(Shared):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def raw(self) -> Store:
        return SQLiteStore(self.path, server=self.server)

    def make(self, limits: dict[str, Any]) -> Store:
        return KnownSQLiteStore(
            self.path, server=self.server, limits=ClaimLimits(**limits), durable=False, steady=self.steady
        )


class Redis(Shared):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.prefix = f"bespeak:{{{self.server.replace(' ', '%20')}}}:"

    def raw(self) -> Store:
        return RedisStore(self.url, server=self.server)

    def make(self, limits: dict[str, Any]) -> Store:
        return KnownRedisStore(self.url, server=self.server, limits=ClaimLimits(**limits))

    async def pass_lease_time(self, seconds: float) -> None:
        """Redis has its own clock, so all leases are put back instead."""
        with client(self.url) as redis:
            for key in keys_of(self.url, f"{self.prefix}c:"):
                redis.hincrby(key, "lease", -round(seconds * 1000))

    async def close(self) -> None:
        await super().close()
        with client(self.url) as redis:
            for key in keys_of(self.url, self.prefix):
                redis.delete(key)


async def incarnation_of(store: Store) -> str | None:
    """Return the incarnation of a shared store, which is made if it has none yet. So late, no claim takes room."""
    return await store.check_room(None, 1e12) if store.shared else None


def entry(owner: str = "me", **options: Any) -> Entry:
    given: dict[str, Any] = {"issued": 0.0, "claimed": 0.0, "kept_until": 100.0, "deadline": 1000.0, **options}
    return Entry(b"answers.", b"request.", owner, **given)


async def read(store: Store, call: str) -> Claim | None:
    return await store.read(call, 0.0, 1000.0, None)


async def found(store: Store, call: str) -> Claim:
    """Return a claim that must be there."""
    there = await read(store, call)
    assert there is not None
    return there


async def claim(store: Store, call: str, owner: str = "me", **options: Any) -> None:
    """Make a claim that must be ours."""
    assert await store.claim(call, entry(owner, **options), LEASE) is None


async def done(store: Store, call: str, result: bytes = b"result", **options: Any) -> None:
    await claim(store, call, **options)
    await store.finish(call, "me", result)


async def purge(store: Store, now: float) -> None:
    """Let a store drop what it need not keep: every claim makes it do that. The claim itself is kept for very long."""
    await claim(store, f"purge at {now}", issued=now, claimed=now, kept_until=1e9, deadline=2e9)


def is_running(there: Claim | None, owner: str = "me", left: float = LEASE) -> bool:
    return there is not None and not there.done and there.owner == owner and left - _NEARLY < there.lease_left <= left
