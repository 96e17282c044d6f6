"""The cache of a client: results that the server allows to be used again for a while.

A result is used again only for the same method, params, protocol version, server and caller, and only until its `ttlMs`
has passed or the server says that it has changed. Results that were obtained by answering questions are never cached.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args

from bespeak.client.cache_store import CacheEntry, CacheKey, InMemoryResponseCacheStore, ResponseCacheStore
from bespeak.protocol.errors import INVALID_PARAMS, MCPError
from bespeak.protocol.methods import PROMPTS_CHANGED, RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED

if TYPE_CHECKING:
    from mcp_types import CacheableResult

logger = logging.getLogger("bespeak.client")

MAX_TTL_MS = 24 * 60 * 60 * 1000
"""A result is requested again after a day, whatever the server says."""
MOST_PAGES = 1024
"""Cached pages of one list that a client remembers, so that it can drop them when the list changes."""

CacheMode = Literal["use", "refresh", "bypass"]
"""`use`: take a cached result if there is one. `refresh`: request it and cache it. `bypass`: do not use the cache."""
CACHE_MODES: tuple[str, ...] = get_args(CacheMode)

ResultT = TypeVar("ResultT", bound="CacheableResult")

READ = "resources/read"
_LISTS = {
    TOOLS_CHANGED: ("tools/list",),
    PROMPTS_CHANGED: ("prompts/list",),
    RESOURCES_CHANGED: ("resources/list", "resources/templates/list"),
}
"""The lists that each notification is about."""
_PAGED = {method for methods in _LISTS.values() for method in methods}


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """How a client caches results. Without a `store`, each client has its own, in memory."""

    store: ResponseCacheStore | None = None
    """A store that several clients may share."""
    partition: str = ""
    """Names the caller whose results these are, such as a user id. Required with a `store`."""
    target_id: str | None = None
    """Names the server. By default it is the URL; clients of other servers share nothing."""
    default_ttl_ms: int = 0
    """The lifetime of results that do not name one, as those of older servers."""
    clock: Callable[[], float] = time.time
    share_public: bool = False
    """Whether results that the server marks as public are shared by all partitions of the store."""

    def __post_init__(self) -> None:
        if self.store is not None and not self.partition:
            raise ValueError("a shared cache store needs partition=: it keeps the results of different callers apart")
        if self.target_id == "":
            raise ValueError("target_id cannot be empty")
        if self.default_ttl_ms < 0:
            raise ValueError("default_ttl_ms cannot be negative")


@dataclass(frozen=True, slots=True)
class Fetched(Generic[ResultT]):
    """A result that was requested from the server."""

    result: ResultT
    may_be_cached: bool = True


@dataclass(frozen=True, slots=True)
class Place:
    """Where the result of one request is cached, and what was known when the request was made."""

    private: CacheKey
    public: CacheKey
    changes: int
    """How often the result may have changed until then."""

    @property
    def method(self) -> str:
        return self.private.method


class ResponseCache:
    """The cached results of one client. `target` names its server, `version` the protocol version in use."""

    def __init__(self, config: CacheConfig, target: str, version: Callable[[], str]) -> None:
        self._config = config
        self._version = version
        self._store = config.store or InMemoryResponseCacheStore()
        self._target = config.target_id or target
        self._changes: Counter[str] = Counter()
        """How often results of each method have changed."""
        self._known: dict[str, set[CacheKey]] = {}
        """By method: the pages of a list that this client has used or stored since its last change."""

    @property
    def is_shared(self) -> bool:
        """Whether the store may have results of other clients."""
        return self._config.store is not None

    def place(self, method: str, params: Mapping[str, Any]) -> Place:
        """Return where the result of a request is cached. To be called before the request is sent."""
        asked, version = json.dumps(params, sort_keys=True), self._version()
        private = CacheKey(method, asked, json.dumps([version, self._target, self._config.partition]))
        public = CacheKey(method, asked, json.dumps([version, self._target]))
        return Place(private, public if self._config.share_public else private, self._changes[method])

    async def fetch(
        self,
        model: type[ResultT],
        method: str,
        params: Mapping[str, Any],
        request: Callable[[], Awaitable[Fetched[ResultT]]],
        *,
        refresh: bool = False,
    ) -> ResultT:
        """Return a result from the cache, or else from the server. `refresh` requests it anyway."""
        place = self.place(method, params)
        found = None if refresh else await self.get(place, model)
        if found is not None:
            return found
        try:
            fetched = await request()
        except MCPError as error:
            if error.code == INVALID_PARAMS and "cursor" in params:
                await self.drop(method)  # the pages before this one are out of date
            raise
        if fetched.may_be_cached:
            await self.put(place, fetched.result)
        return fetched.result

    async def get(self, place: Place, model: type[ResultT]) -> ResultT | None:
        """Return a copy of a cached result; `None` if there is none that is fresh."""
        for key in dict.fromkeys((place.private, place.public)):
            if self._changes[key.method] and key.method in _PAGED and key not in self._known.get(key.method, ()):
                continue  # another client may have stored it before the change
            try:
                entry = await self._store.get(key)
            except Exception:
                logger.exception("The cache store failed. The result is requested from the server.")
                continue
            if entry is not None and isinstance(entry.value, model) and self._is_fresh(entry):
                self._remember(key)
                return entry.value.model_copy(deep=True)
        return None

    def _is_fresh(self, entry: CacheEntry) -> bool:
        now = self._config.clock()
        # An entry that lives longer than allowed was stored by a clock that has been set back since.
        return entry.expires_at is not None and now < entry.expires_at <= now + MAX_TTL_MS / 1000

    async def put(self, place: Place, result: "CacheableResult") -> None:
        """Cache a result if the server allows it, and if it has not changed since it was requested."""
        named = "ttl_ms" in result.model_fields_set
        lifetime = min(result.ttl_ms if named else self._config.default_ttl_ms, MAX_TTL_MS)
        key = place.public if result.cache_scope == "public" else place.private
        await self._delete({place.private, place.public} - {key})
        if lifetime == 0 or place.changes != self._changes[place.method] or not self._remember(key):
            await self._delete({key})
            return
        expires = self._config.clock() + lifetime / 1000
        try:
            await self._store.set(key, CacheEntry(result.model_copy(deep=True), result.cache_scope, expires))
        except Exception:
            logger.exception("The cache store failed. The result is not cached.")
        if place.changes != self._changes[place.method]:  # it has changed while it was being stored
            await self._delete({key})

    async def changed(self, method: str, params: Mapping[str, Any]) -> None:
        """Drop what a notification of the server says has changed."""
        if method == RESOURCE_UPDATED:
            self._changes[READ] += 1
            place = self.place(READ, {"uri": params.get("uri")})
            await self._delete({place.private, place.public})
            return
        for one in _LISTS[method]:
            await self.drop(one)

    async def drop(self, method: str) -> None:
        """Drop all results of a method."""
        self._changes[method] += 1
        await self._delete(self._known.pop(method, set()))

    async def clear(self) -> None:
        """Drop all results, unless the store is shared."""
        self._known.clear()
        if not self.is_shared:
            await self._store.clear()

    def _remember(self, key: CacheKey) -> bool:
        """Return whether a result can be dropped when it changes, and so may be cached."""
        if key.method not in _PAGED:
            return True
        known = self._known.setdefault(key.method, set())
        if len(known) < MOST_PAGES:
            known.add(key)
        return key in known

    async def _delete(self, keys: set[CacheKey]) -> None:
        for key in keys:
            self._known.get(key.method, set[CacheKey]()).discard(key)
            try:
                await self._store.delete(key)
            except Exception:
                logger.exception("The cache store failed. A result that has changed may still be cached.")
