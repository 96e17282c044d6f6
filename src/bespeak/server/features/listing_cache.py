"""Pages of lists as JSON: each is written once, and sent to everybody who may see the same until something changes."""

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bespeak.protocol.headers import Headers
from bespeak.server.auth.scopes import scopes_of
from bespeak.server.features.registered import Registered, Registry

MOST_PAGES = 1024
"""How many pages are kept."""
MOST_BYTES = 16 * 1024 * 1024
"""How many bytes they may have together; a single page may have more."""


class PageKey(NamedTuple):
    """Everything that a page depends on."""

    method: str
    version: str
    scopes: frozenset[str] = frozenset()
    """Those of the caller that make a difference."""
    after: str | None = None
    """The name after which it begins; `None` for the first page."""


class Listing:
    """One list in one edition of the server. What a caller sees of it depends on the caller's scopes, and on nothing else."""

    def __init__(self, all_: Iterable[Registered]) -> None:
        self._all = tuple(all_)
        self._scopes = frozenset(scope for one in self._all for scope in one.scopes)

    @property
    def depends_on_caller(self) -> bool:
        return bool(self._scopes)

    def scopes_of(self, headers: Headers | None) -> frozenset[str]:
        """The scopes of a request's sender that make a difference: whatever else is in a token adds no page."""
        scopes = scopes_of(headers)
        return self._scopes if scopes is None else self._scopes & scopes

    def seen_with(self, scopes: frozenset[str]) -> Sequence[Registered]:
        """What a caller with these scopes may use."""
        return [one for one in self._all if scopes.issuperset(one.scopes)] if self._scopes else self._all


class ListingCache:
    """The lists and their pages in one edition of a server. May be used from any thread."""

    def __init__(self, edition: object) -> None:
        self.edition = edition
        self._listings: dict[str, Listing] = {}
        self._pages: dict[PageKey, bytes] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def listing(self, method: str, registry: Registry[Registered]) -> Listing:
        """The list that a method shows. It stays as it is, so that all that is kept of this edition is of one piece."""
        listing = self._listings.get(method)
        if listing is None:
            listing = self._listings[method] = Listing(registry.all())
        return listing

    def page(self, key: PageKey) -> bytes | None:
        return self._pages.get(key)

    def keep(self, key: PageKey, page: bytes) -> None:
        """Keep a page, and drop all others if there are too many."""
        with self._lock:
            if len(self._pages) >= MOST_PAGES or self._bytes + len(page) > MOST_BYTES:
                self._pages.clear()
                self._bytes = 0
            self._bytes += len(page) - len(self._pages.get(key, b""))
            self._pages[key] = page
