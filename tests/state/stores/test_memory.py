"""The memory store: what only it has, which is the memory it takes and its own way to wake those who wait."""

import asyncio
import tracemalloc

import pytest

from bespeak.state.stores.memory import MemoryStore
from tests.state.stores.claiming import claim, done, found, purge


async def test_the_claims_that_are_kept_can_be_counted() -> None:
    store = MemoryStore(max_result_bytes=0)
    await claim(store, "running")
    await done(store, "evicted", kept_until=50.0)
    assert store.claims == 2
    await purge(store, 61.0)
    assert store.claims == 2


async def test_room_is_made_when_it_is_asked_for() -> None:
    store = MemoryStore(max_claims=1)
    await done(store, "call", kept_until=100.0)
    await store.check_room(None, 100.0)
    assert store.claims == 0


@pytest.mark.long
async def test_a_claim_takes_about_100_bytes_once_its_result_is_evicted() -> None:
    store = MemoryStore(max_result_bytes=0)
    await done(store, "first")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(40_000):
            await done(store, f"call {number}", kept_until=100.0 + number // 1000, holder=f"somebody {number}")
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken / 40_000 < 120


async def test_nothing_is_left_of_those_who_gave_up_waiting() -> None:
    store = MemoryStore()
    await claim(store, "call")
    patient = asyncio.create_task(store.changed("call", 60))
    await asyncio.sleep(0)
    await store.changed("call", 0.001)
    await store.finish("call", "me", b"result")
    await asyncio.wait_for(patient, 5)


async def test_a_loop_that_was_closed_while_somebody_waited_disturbs_nobody() -> None:
    store = MemoryStore()
    await claim(store, "call")

    def abandon() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(store.changed("call", 60))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        abandoned.append(task)  # it is never resumed

    abandoned: list[asyncio.Task[None]] = []
    await asyncio.to_thread(abandon)
    await store.finish("call", "me", b"result")
    assert (await found(store, "call")).done
