"""Answers the requests that find out what a server has: its lists, in pages, and `server/discover`.

These answers depend on little, so each is written once, as the client's revision knows it, and used until the server changes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bespeak.protocol.messages import write_result_alone
from bespeak.protocol.versions import SPOKEN
from bespeak.server.catalogue import Catalogue
from bespeak.server.features.listing_cache import ListingCache, PageKey
from bespeak.server.features.listings import CacheableMethod, CacheHint, hint_fields, page, page_after
from bespeak.server.features.registered import Registry
from bespeak.server.incoming import Incoming


class Discovery:
    """The lists of one server, and what it says of itself, as JSON."""

    def __init__(
        self,
        catalogue: Catalogue,
        hints: Mapping[CacheableMethod, CacheHint],
        page_size: int | None,
        instructions: Mapping[str, Any],
        finished: Callable[[Incoming, dict[str, Any]], dict[str, Any]],
    ) -> None:
        """`finished` returns a result as the revision of a request's client knows it."""
        self._catalogue = catalogue
        self._hints = hints
        self._page_size = page_size
        self._instructions = instructions
        self._finished = finished
        self._cache = ListingCache(catalogue.edition)

    async def discover(self, incoming: Incoming) -> bytes:
        cache, key = self._current(), PageKey("server/discover", incoming.request.meta.protocol_version)
        known = cache.page(key)
        if known is not None:
            return known
        result: dict[str, Any] = {
            "supportedVersions": list(SPOKEN),
            "capabilities": self._catalogue.capabilities(),
            **self._instructions,
            **hint_fields(self._hints, "server/discover"),
        }
        written = write_result_alone(self._finished(incoming, result))
        cache.keep(key, written)
        return written

    async def tools(self, incoming: Incoming) -> bytes:
        return self._listed("tools/list", "tools", self._catalogue.tools, incoming)

    async def prompts(self, incoming: Incoming) -> bytes:
        return self._listed("prompts/list", "prompts", self._catalogue.prompts, incoming)

    async def resources(self, incoming: Incoming) -> bytes:
        return self._listed("resources/list", "resources", self._catalogue.resources.fixed, incoming)

    async def templates(self, incoming: Incoming) -> bytes:
        templates = self._catalogue.resources.templates
        return self._listed("resources/templates/list", "resourceTemplates", templates, incoming)

    def _listed(self, method: CacheableMethod, member: str, registry: Registry[Any], incoming: Incoming) -> bytes:
        cache, request = self._current(), incoming.request
        listing = cache.listing(method, registry)
        after, size = page_after(request.params), self._page_size
        key = PageKey(method, request.meta.protocol_version, listing.scopes_of(incoming.headers), after)
        known = cache.page(key)
        if known is not None:
            return known
        seen = listing.seen_with(key.scopes)
        chosen, more = page([one.name for one in seen], after, size)
        hint = hint_fields(self._hints, method, private=listing.depends_on_caller)
        result = {member: [one.wire for one in seen[chosen]], **more, **hint}
        written = write_result_alone(self._finished(incoming, result))
        # A client may go on after any name, but only as many pages are kept as the list has.
        if chosen.start % (size or len(seen) or 1) == 0:
            cache.keep(key, written)
        return written

    def _current(self) -> ListingCache:
        """The cache for the catalogue as it is now."""
        edition = self._catalogue.edition  # read before anything else of the catalogue, which another thread may change
        cache = self._cache
        if cache.edition is not edition:
            cache = self._cache = ListingCache(edition)
        return cache
