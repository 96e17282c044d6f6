"""The cache of pages: what decides who sees what, and its bounds."""

import pytest

from bespeak.server.features import listing_cache
from bespeak.server.features.listing_cache import ListingCache, PageKey


def kept(cache: ListingCache, count: int) -> list[int]:
    return [number for number in range(count) if cache.page(PageKey("tools/list", str(number))) is not None]


def test_a_page_too_many_drops_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_cache, "MOST_PAGES", 3)
    cache = ListingCache(object())
    for number in range(3):
        cache.keep(PageKey("tools/list", str(number)), b"{}")
    assert kept(cache, 4) == [0, 1, 2]
    cache.keep(PageKey("tools/list", "3"), b"{}")
    assert kept(cache, 4) == [3]


def test_so_does_one_with_too_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_cache, "MOST_BYTES", 10)
    cache = ListingCache(object())
    for number, size in enumerate((5, 5)):
        cache.keep(PageKey("tools/list", str(number)), b"x" * size)
    assert kept(cache, 5) == [0, 1]
    cache.keep(PageKey("tools/list", "2"), b"x" * 20)
    assert kept(cache, 5) == [2]
    cache.keep(PageKey("tools/list", "3"), b"x" * 4)
    cache.keep(PageKey("tools/list", "4"), b"x" * 6)
    assert kept(cache, 5) == [3, 4]


def test_a_page_that_two_threads_have_written_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_cache, "MOST_BYTES", 10)
    cache = ListingCache(object())
    for _ in range(2):
        cache.keep(PageKey("tools/list", "0"), b"x" * 5)
    cache.keep(PageKey("tools/list", "1"), b"x" * 5)
    assert kept(cache, 2) == [0, 1]
