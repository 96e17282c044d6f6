"""The store of cached results in memory: what it returns, and its bounds."""

import pytest
from mcp_types import ListToolsResult, Tool

from bespeak.client import CacheEntry, CacheKey, InMemoryResponseCacheStore


def entry(text: str = "") -> CacheEntry:
    tool = Tool(name="tool", description=text, input_schema={"type": "object"})
    return CacheEntry(ListToolsResult(tools=[tool]), "private", 1.0)


KEYS = [CacheKey("tools/list", str(number)) for number in range(4)]


async def test_an_entry_is_returned_until_it_is_deleted_or_everything_is_cleared() -> None:
    store = InMemoryResponseCacheStore()
    first, second = entry(), entry()
    await store.set(KEYS[0], first)
    await store.set(KEYS[1], second)
    assert await store.get(KEYS[0]) is first
    await store.delete(KEYS[0])
    await store.delete(KEYS[0])
    assert await store.get(KEYS[0]) is None
    assert await store.get(KEYS[1]) is second
    await store.clear()
    assert await store.get(KEYS[1]) is None


async def test_the_entry_that_was_not_used_for_longest_makes_room() -> None:
    store = InMemoryResponseCacheStore(max_entries=2)
    await store.set(KEYS[0], entry())
    await store.set(KEYS[1], entry())
    await store.get(KEYS[0])
    await store.set(KEYS[2], entry())
    assert [await store.get(key) is not None for key in KEYS[:3]] == [True, False, True]


async def test_the_bytes_of_all_entries_are_bounded() -> None:
    store = InMemoryResponseCacheStore(max_bytes=3000)
    for key in KEYS[:3]:
        await store.set(key, entry("x" * 1000))
    assert [await store.get(key) is not None for key in KEYS[:3]] == [False, True, True]
    await store.set(KEYS[1], entry())  # a smaller one instead
    await store.set(KEYS[0], entry("x" * 1000))
    assert [await store.get(key) is not None for key in KEYS[:3]] == [True, True, True]
    await store.set(KEYS[3], entry("x" * 5000))
    assert [await store.get(key) is not None for key in KEYS] == [False] * 4


async def test_zero_means_no_bound() -> None:
    store = InMemoryResponseCacheStore(max_entries=0, max_bytes=0)
    for key in KEYS:
        await store.set(key, entry("x" * 1000))
    assert [await store.get(key) is not None for key in KEYS] == [True] * 4


@pytest.mark.parametrize("bounds", [{"max_entries": -1}, {"max_bytes": -1}])
def test_a_negative_bound_is_refused(bounds: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="max_entries and max_bytes cannot be negative; 0 means no limit"):
        InMemoryResponseCacheStore(**bounds)
