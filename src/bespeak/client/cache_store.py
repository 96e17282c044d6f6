"""Where a client keeps cached results: the interface of a store, and the store in memory."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic_core import to_json

MAX_ENTRIES = 1024
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CacheKey:
    """What a cached result answers."""

    method: str
    params_key: str = ""
    """The params that the result depends on, as JSON."""
    partition: str = ""
    """The protocol version, the server and the caller, as JSON."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One cached result."""

    value: Any
    """The result as its `mcp_types` model."""
    scope: Literal["public", "private"]
    expires_at: float | None
    """In seconds, on the clock of the `CacheConfig`. An entry without it is not used."""


class ResponseCacheStore(Protocol):
    """Keeps cached results. A method that raises is logged; the result is then requested from the server."""

    async def get(self, key: CacheKey) -> CacheEntry | None:
        """Return an entry; `None` if there is none."""
        ...

    async def set(self, key: CacheKey, entry: CacheEntry) -> None:
        """Keep an entry, in place of an older one."""
        ...

    async def delete(self, key: CacheKey) -> None:
        """Forget an entry, if there is one."""
        ...

    async def clear(self) -> None:
        """Forget all entries."""
        ...


class InMemoryResponseCacheStore:
    """Keeps results in memory. When it is full, the result that was not used for the longest time is dropped."""

    def __init__(self, *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        if max_entries < 0 or max_bytes < 0:
            raise ValueError("max_entries and max_bytes cannot be negative; 0 means no limit")
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: OrderedDict[CacheKey, tuple[CacheEntry, int]] = OrderedDict()
        self._bytes = 0

    async def get(self, key: CacheKey) -> CacheEntry | None:
        """Return an entry; `None` if there is none."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    async def set(self, key: CacheKey, entry: CacheEntry) -> None:
        """Keep an entry, in place of an older one."""
        self._drop(key)
        size = len(to_json(entry.value))
        self._entries[key] = entry, size
        self._bytes += size
        while self._is_over():
            self._drop(next(iter(self._entries)))

    async def delete(self, key: CacheKey) -> None:
        """Forget an entry, if there is one."""
        self._drop(key)

    async def clear(self) -> None:
        """Forget all entries."""
        self._entries.clear()
        self._bytes = 0

    def _is_over(self) -> bool:
        return 0 < self._max_entries < len(self._entries) or 0 < self._max_bytes < self._bytes

    def _drop(self, key: CacheKey) -> None:
        _, size = self._entries.pop(key, (None, 0))
        self._bytes -= size
