"""The memory store of design section 7: claims kept to their deadline, results that may go earlier, and waiting."""

import asyncio
import time

import pytest

from bespeak.state.stores.memory import MemoryStore
from bespeak.state.stores.store import Claim, Forgotten, StoreFull


def claim(owner: str = "me", *, deadline: float = 100.0, lease_until: float = 15.0) -> Claim:
    return Claim("digest", "sent", owner, lease_until, deadline)


async def done(store: MemoryStore, call: str, result: bytes = b"result", *, deadline: float = 100.0) -> None:
    assert await store.claim(call, claim(deadline=deadline), 0.0) is None
    await store.finish(call, "me", result)


async def test_the_first_claim_is_entered_and_the_second_sees_it() -> None:
    store = MemoryStore()
    assert await store.claim("call", claim("first"), 0.0) is None
    assert await store.claim("call", claim("second"), 0.0) == claim("first")
    assert await store.read("call") == claim("first")


async def test_claims_on_different_calls_do_not_meet() -> None:
    store = MemoryStore()
    assert await store.claim("one", claim("first"), 0.0) is None
    assert await store.claim("two", claim("second"), 0.0) is None


async def test_a_call_nobody_claimed_has_no_claim() -> None:
    assert await MemoryStore().read("call") is None


async def test_a_finished_claim_holds_its_result() -> None:
    store = MemoryStore()
    await done(store, "call")
    there = await store.claim("call", claim("second"), 0.0)
    assert there is not None
    assert (there.owner, there.done, there.result) == ("me", True, b"result")


async def test_only_the_owner_renews_and_finishes() -> None:
    store = MemoryStore()
    await store.claim("call", claim("owner"), 0.0)
    await store.renew("call", "other", 99.0)
    await store.finish("call", "other", b"forged")
    assert await store.read("call") == claim("owner")


async def test_a_claim_that_is_gone_can_be_neither_renewed_nor_finished() -> None:
    store = MemoryStore()
    await store.renew("call", "me", 99.0)
    await store.finish("call", "me", b"result")
    assert await store.read("call") is None


async def test_a_renewed_lease_lasts_longer() -> None:
    store = MemoryStore()
    await store.claim("call", claim(), 0.0)
    await store.renew("call", "me", 30.0)
    there = await store.read("call")
    assert there is not None
    assert there.lease_until == 30.0


async def test_a_running_claim_can_be_taken_over_from_the_owner_that_was_seen() -> None:
    store = MemoryStore()
    await store.claim("call", claim("dead"), 0.0)
    assert await store.take_over("call", "dead", claim("alive"))
    assert not await store.take_over("call", "dead", claim("late"))
    assert await store.read("call") == claim("alive")


async def test_a_done_or_missing_claim_cannot_be_taken_over() -> None:
    store = MemoryStore()
    await done(store, "call")
    assert not await store.take_over("call", "me", claim("other"))
    assert not await store.take_over("nothing", "me", claim("other"))


async def test_an_owner_whose_claim_was_taken_over_cannot_finish_it() -> None:
    store = MemoryStore()
    await store.claim("call", claim("dead"), 0.0)
    await store.take_over("call", "dead", claim("alive"))
    await store.finish("call", "dead", b"late")
    there = await store.read("call")
    assert there is not None
    assert not there.done


# Room


async def test_a_full_store_refuses_new_claims_and_still_knows_the_old_ones() -> None:
    store = MemoryStore(max_claims=2)
    await done(store, "one")
    await store.claim("two", claim(), 0.0)
    assert not await store.has_room(0.0)
    with pytest.raises(StoreFull):
        await store.claim("three", claim(), 0.0)
    assert await store.claim("one", claim("other"), 0.0) is not None


async def test_claims_are_kept_until_their_deadline_and_purged_then() -> None:
    store = MemoryStore(max_claims=1)
    await done(store, "one", deadline=100.0)
    assert not await store.has_room(99.9)
    assert await store.has_room(100.0)
    assert await store.read("one") is None


async def test_purging_drops_only_what_is_past_its_own_deadline() -> None:
    store = MemoryStore()
    for call, deadline in {"late": 300.0, "early": 100.0, "middle": 200.0}.items():
        await done(store, call, deadline=deadline)
    assert await store.has_room(200.0)
    assert [call for call in ("early", "middle", "late") if await store.read(call)] == ["late"]


async def test_results_go_the_oldest_first_and_their_claims_stay() -> None:
    store = MemoryStore(max_result_bytes=10)
    for call in ("one", "two", "three"):
        await done(store, call, b"12345")
    kept = {call: await store.read(call) for call in ("one", "two", "three")}
    assert {call: there.result for call, there in kept.items() if there} == {
        "one": None,
        "two": b"12345",
        "three": b"12345",
    }
    assert all(there is not None and there.done for there in kept.values())


async def test_a_result_larger_than_the_whole_room_is_not_kept_and_its_claim_is() -> None:
    store = MemoryStore(max_result_bytes=3)
    await done(store, "call", b"12345")
    there = await store.read("call")
    assert there is not None
    assert (there.done, there.result) == (True, None)


async def test_a_purged_result_gives_its_bytes_back() -> None:
    store = MemoryStore(max_result_bytes=10)
    await done(store, "old", b"1234567890", deadline=50.0)
    await store.has_room(50.0)
    await done(store, "new", b"1234567890")
    there = await store.read("new")
    assert there is not None
    assert there.result == b"1234567890"


# Waiting


async def test_waiting_ends_after_its_timeout() -> None:
    store = MemoryStore()
    await store.claim("call", claim(), 0.0)
    before = time.monotonic()
    await store.changed("call", 0.01)
    assert 0.005 < time.monotonic() - before < 5


@pytest.mark.parametrize("end", ["finish", "purge"])
async def test_everybody_who_waits_wakes_when_the_claim_ends(end: str) -> None:
    store = MemoryStore()
    await store.claim("call", claim(), 0.0)
    waiting = [asyncio.create_task(store.changed("call", 60)) for _ in range(3)]
    await asyncio.sleep(0)
    if end == "finish":
        await store.finish("call", "me", b"result")
    else:
        await store.has_room(100.0)
    await asyncio.wait_for(asyncio.gather(*waiting), 5)


async def test_what_may_have_been_forgotten_cannot_be_claimed_though_the_clock_goes_back() -> None:
    store = MemoryStore()
    await done(store, "call", deadline=100.0)
    await store.has_room(200.0)
    with pytest.raises(Forgotten):
        await store.claim("call", claim(deadline=100.0), 50.0)
    assert await store.claim("another", claim(deadline=300.0), 50.0) is None


async def test_waiting_for_a_call_nobody_has_claimed_ends_at_once() -> None:
    await asyncio.wait_for(MemoryStore().changed("call", 60), 1)
