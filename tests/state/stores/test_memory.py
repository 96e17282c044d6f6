"""The memory store of design section 7: how long claims are kept, results that may go earlier, shares, and waiting."""

import asyncio
import threading
import time
import tracemalloc
from typing import Any

import pytest

from bespeak.state.stores.memory import RESULT_OVERHEAD, MemoryStore
from bespeak.state.stores.store import Claim, Entry, Forgotten, ShareTaken, StoreFull

LEASE = 15.0


class Steady:
    """A clock for leases."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def entry(owner: str = "me", **options: Any) -> Entry:
    given: dict[str, Any] = {"issued": 0.0, "claimed": 0.0, "kept_until": 100.0, "deadline": 1000.0, **options}
    return Entry(b"answers.", b"request.", owner, **given)


def running(owner: str = "me", left: float = LEASE) -> Claim:
    return Claim(b"answers.", b"request.", owner, left)


def a_store(**options: Any) -> MemoryStore:
    given: dict[str, Any] = {"steady": Steady(), **options}
    return MemoryStore(**given)


async def read(store: MemoryStore, call: str) -> Claim | None:
    return await store.read(call, 0.0, 1000.0)


async def done(store: MemoryStore, call: str, result: bytes = b"result", **options: Any) -> None:
    assert await store.claim(call, entry(**options), LEASE) is None
    await store.finish(call, "me", result)


async def test_the_first_claim_is_entered_and_the_second_sees_it() -> None:
    store = a_store()
    assert await store.claim("call", entry("first"), LEASE) is None
    assert await store.claim("call", entry("second"), LEASE) == running("first")
    assert await read(store, "call") == running("first")


async def test_claims_on_different_calls_do_not_meet() -> None:
    store = a_store()
    assert await store.claim("one", entry("first"), LEASE) is None
    assert await store.claim("two", entry("second"), LEASE) is None


async def test_a_call_nobody_claimed_has_no_claim() -> None:
    assert await read(a_store(), "call") is None


async def test_a_finished_claim_holds_its_result() -> None:
    store = a_store()
    await done(store, "call")
    there = await store.claim("call", entry("second"), LEASE)
    assert there is not None
    assert (there.owner, there.done, there.result) == ("me", True, b"result")


async def test_only_the_owner_renews_and_finishes() -> None:
    store = a_store()
    await store.claim("call", entry("owner"), LEASE)
    await store.renew("call", "other", 99.0)
    await store.finish("call", "other", b"forged")
    assert await read(store, "call") == running("owner")


async def test_a_claim_that_is_gone_can_be_neither_renewed_nor_finished() -> None:
    store = a_store()
    await store.renew("call", "me", 99.0)
    await store.finish("call", "me", b"result")
    assert await read(store, "call") is None


async def test_a_claim_is_finished_once() -> None:
    store = a_store()
    await done(store, "call", b"first")
    await store.finish("call", "me", b"second")
    there = await read(store, "call")
    assert there is not None
    assert there.result == b"first"


async def test_a_renewed_lease_lasts_longer() -> None:
    steady = Steady()
    store = a_store(steady=steady)
    await store.claim("call", entry(), LEASE)
    steady.now = 10.0
    assert await read(store, "call") == running(left=5.0)
    await store.renew("call", "me", LEASE)
    assert await read(store, "call") == running(left=LEASE)


async def test_a_running_claim_can_be_taken_over_from_the_owner_that_was_seen() -> None:
    store = a_store()
    await store.claim("call", entry("dead"), LEASE)
    assert await store.take_over("call", "dead", entry("alive"), LEASE)
    assert not await store.take_over("call", "dead", entry("late"), LEASE)
    assert await read(store, "call") == running("alive")


async def test_a_done_or_missing_claim_cannot_be_taken_over() -> None:
    store = a_store()
    await done(store, "call")
    assert not await store.take_over("call", "me", entry("other"), LEASE)
    assert not await store.take_over("nothing", "me", entry("other"), LEASE)


async def test_an_owner_whose_claim_was_taken_over_cannot_finish_it() -> None:
    store = a_store()
    await store.claim("call", entry("dead"), LEASE)
    await store.take_over("call", "dead", entry("alive"), LEASE)
    await store.finish("call", "dead", b"late")
    there = await read(store, "call")
    assert there is not None
    assert not there.done


# How long claims are kept


async def test_claims_are_kept_for_their_time_and_purged_then() -> None:
    store = a_store(max_claims=1)
    await done(store, "one", kept_until=100.0)
    with pytest.raises(StoreFull):
        await store.check_room(None, 99.9)
    await store.check_room(None, 100.0)
    assert await store.read("one", 100.0, 1000.0) is None


async def test_purging_drops_only_what_has_been_kept_for_its_own_time() -> None:
    store = a_store()
    for call, kept_until in {"late": 300.0, "early": 100.0, "middle": 199.5}.items():
        await done(store, call, kept_until=kept_until)
    await store.check_room(None, 200.0)
    known = [call for call in ("early", "middle", "late") if await store.read(call, 200.0, 1000.0)]
    assert known == ["late"]
    assert store.claims == 1


async def test_a_claim_is_never_dropped_while_its_lease_is_renewed() -> None:
    steady = Steady()
    store = a_store(steady=steady)
    await store.claim("call", entry(kept_until=100.0), LEASE)
    for now in range(100, 2000, 10):
        steady.now = now
        await store.renew("call", "me", LEASE)
        await store.check_room(None, now)
        assert await read(store, "call") == running()
    await store.finish("call", "me", b"result")
    steady.now = 2100.0
    await store.check_room(None, 2100.0)
    assert store.claims == 0


async def test_a_claim_whose_lease_has_lapsed_is_dropped_after_its_time() -> None:
    steady = Steady()
    store = a_store(steady=steady)
    await store.claim("call", entry(kept_until=100.0), LEASE)
    steady.now = 100.0
    await store.check_room(None, 100.0)
    assert store.claims == 0


async def test_after_a_long_silence_room_is_made_step_by_step_and_nobody_is_refused_meanwhile() -> None:
    store = a_store(max_claims=1000)
    for number in range(800):
        await done(store, f"old {number}", holder=f"gateway {number % 8}")
    with pytest.raises(StoreFull):
        await store.check_room("somebody", 50.0)
    await store.check_room("gateway 1", 100.0)
    assert 0 < store.claims < 800, "one request must not wait for all of it"
    for number in range(10):
        await done(store, f"new {number}", issued=100.0, claimed=100.0, kept_until=200.0, holder="gateway 1")
    assert store.claims == 10


async def test_what_may_have_been_forgotten_cannot_be_claimed_though_the_clock_goes_back() -> None:
    store = a_store()
    await done(store, "call", issued=5.0, claimed=10.0, kept_until=100.0)
    await store.check_room(None, 200.0)
    for issued in (5.0, 10.0, 70.0):
        with pytest.raises(Forgotten):
            await store.claim("call", entry(issued=issued, claimed=50.0), LEASE)
        with pytest.raises(Forgotten):
            await store.read("call", issued, 1000.0)
    assert await store.claim("another", entry(issued=70.1, claimed=80.0), LEASE) is None


async def test_what_was_forgotten_at_its_deadline_cannot_be_claimed_though_the_clock_goes_back() -> None:
    store = a_store()
    await done(store, "call", claimed=95.0, kept_until=100.0, deadline=100.0)
    await store.check_room(None, 100.0)
    with pytest.raises(Forgotten):
        await store.claim("call", entry(issued=90.0, claimed=96.0, deadline=100.0), LEASE)
    other = entry(issued=90.0, claimed=96.0, kept_until=110.0, deadline=110.0)
    assert await store.claim("another", other, LEASE) is None, "calls that end later are not in doubt"


async def test_nobody_is_asked_while_the_clock_is_behind_what_was_forgotten() -> None:
    store = a_store()
    await done(store, "call", claimed=500.0, kept_until=600.0)
    await store.check_room(None, 600.0)
    with pytest.raises(Forgotten):
        await store.check_room(None, 560.0)
    await store.check_room(None, 560.1)


# Room


async def test_a_full_store_refuses_new_claims_and_still_knows_the_old_ones() -> None:
    store = a_store(max_claims=2)
    await done(store, "one")
    await store.claim("two", entry(), LEASE)
    with pytest.raises(StoreFull):
        await store.check_room(None, 0.0)
    with pytest.raises(StoreFull):
        await store.claim("three", entry(), LEASE)
    assert await store.claim("one", entry("other"), LEASE) is not None


async def test_new_questions_are_refused_at_80_percent_and_claims_at_100() -> None:
    store = a_store(max_claims=10)
    for number in range(8):
        await store.check_room(None, 0.0)
        await done(store, f"call {number}")
    with pytest.raises(StoreFull):
        await store.check_room(None, 0.0)
    for number in range(8, 10):
        await done(store, f"call {number}")
    with pytest.raises(StoreFull):
        await store.claim("one more", entry(), LEASE)


async def test_above_half_full_one_holder_has_at_most_a_tenth_and_below_nobody_is_limited() -> None:
    store = a_store(max_claims=100)
    for number in range(51):
        await store.check_room("flood", 0.0)
        await done(store, f"flood {number}", holder="flood", kept_until=100.0 + number)
    for refused in ("ask", "claim"):
        with pytest.raises(ShareTaken):
            await (
                store.check_room("flood", 0.0) if refused == "ask" else store.claim("x", entry(holder="flood"), LEASE)
            )
    for number in range(10):
        await store.check_room("somebody", 0.0)
        await done(store, f"somebody {number}", holder="somebody")
    with pytest.raises(ShareTaken):
        await store.check_room("somebody", 0.0)
    await store.check_room("another", 0.0)
    await store.check_room(None, 0.0)
    await store.check_room("flood", 120.0)  # by now there is no pressure any more


@pytest.mark.parametrize("kept", [0, 1_000_000], ids=["evicted", "with its result"])
async def test_a_claim_that_is_dropped_gives_its_share_back(kept: int) -> None:
    store = a_store(max_claims=10, pressure=0, share=0.1, max_result_bytes=kept)
    await done(store, "old", holder="somebody", kept_until=50.0)
    with pytest.raises(ShareTaken):
        await store.check_room("somebody", 0.0)
    await store.check_room("somebody", 61.0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"max_claims": 0}, "max_claims must be at least 1"),
        ({"share": 0}, "question_limit, pressure and share must be fractions of max_claims, between 0 and 1"),
        (
            {"question_limit": 1.5},
            "question_limit, pressure and share must be fractions of max_claims, between 0 and 1",
        ),
        ({"pressure": -1}, "question_limit, pressure and share must be fractions of max_claims, between 0 and 1"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        MemoryStore(**options)


@pytest.mark.long
async def test_a_claim_takes_about_100_bytes_once_its_result_is_evicted() -> None:
    store = a_store(max_result_bytes=0)
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


# Results


async def test_results_go_the_oldest_first_and_their_claims_stay() -> None:
    store = a_store(max_result_bytes=2 * (RESULT_OVERHEAD + 5))
    for call in ("one", "two", "three"):
        await done(store, call, b"12345")
    kept = {call: await read(store, call) for call in ("one", "two", "three")}
    assert {call: there.result for call, there in kept.items() if there} == {
        "one": None,
        "two": b"12345",
        "three": b"12345",
    }
    assert all(there is not None and there.done for there in kept.values())
    assert store.claims == 3


async def test_a_result_larger_than_the_whole_room_is_not_kept_and_its_claim_is() -> None:
    store = a_store(max_result_bytes=3)
    await done(store, "call", b"12345")
    there = await read(store, "call")
    assert there is not None
    assert (there.answers, there.request, there.done, there.result) == (b"answers.", b"request.", True, None)


async def test_a_purged_result_gives_its_bytes_back() -> None:
    store = a_store(max_result_bytes=RESULT_OVERHEAD + 10)
    await done(store, "old", b"1234567890", kept_until=50.0)
    await store.check_room(None, 61.0)
    await done(store, "new", b"1234567890", issued=61.0, claimed=61.0)
    there = await read(store, "new")
    assert there is not None
    assert there.result == b"1234567890"


# Waiting


@pytest.mark.timing
async def test_waiting_ends_after_its_timeout() -> None:
    store = a_store()
    await store.claim("call", entry(), LEASE)
    before = time.monotonic()
    await store.changed("call", 0.01)
    assert 0.005 < time.monotonic() - before < 5


@pytest.mark.parametrize("end", ["finish", "purge"])
async def test_everybody_who_waits_wakes_when_the_claim_ends(end: str) -> None:
    steady = Steady()
    store = a_store(steady=steady)
    await store.claim("call", entry(), LEASE)
    waiting = [asyncio.create_task(store.changed("call", 60)) for _ in range(3)]
    await asyncio.sleep(0)
    if end == "finish":
        await store.finish("call", "me", b"result")
    else:
        steady.now = LEASE
        await store.check_room(None, 100.0)
    await asyncio.wait_for(asyncio.gather(*waiting), 5)


@pytest.mark.parametrize("state", ["missing", "done"])
async def test_waiting_for_what_does_not_run_ends_at_once(state: str) -> None:
    store = a_store()
    if state == "done":
        await done(store, "call")
    await asyncio.wait_for(store.changed("call", 60), 20)


async def test_nothing_is_left_of_those_who_gave_up_waiting() -> None:
    store = a_store()
    await store.claim("call", entry(), LEASE)
    patient = asyncio.create_task(store.changed("call", 60))
    await asyncio.sleep(0)
    await store.changed("call", 0.001)
    await store.finish("call", "me", b"result")
    await asyncio.wait_for(patient, 5)


# Several threads


async def test_of_1000_concurrent_claims_from_two_loops_in_two_threads_one_wins() -> None:
    store, start = MemoryStore(), threading.Barrier(2)
    won: list[str] = []

    async def claim_all(thread: int) -> None:
        async def one(number: int) -> None:
            owner = f"{thread}.{number}"
            if await store.claim("call", entry(owner), LEASE) is None:
                won.append(owner)

        start.wait(10)
        await asyncio.gather(*(one(number) for number in range(500)))

    await asyncio.gather(*(asyncio.to_thread(asyncio.run, claim_all(thread)) for thread in range(2)))
    assert len(won) == 1


async def test_who_waits_in_one_loop_is_woken_by_another() -> None:
    store = MemoryStore()
    await store.claim("call", entry(), LEASE)
    waiting = asyncio.create_task(store.changed("call", 60))
    await asyncio.sleep(0)
    await asyncio.to_thread(asyncio.run, store.finish("call", "me", b"result"))
    await asyncio.wait_for(waiting, 5)


async def test_a_loop_that_was_closed_while_somebody_waited_disturbs_nobody() -> None:
    store = MemoryStore()
    await store.claim("call", entry(), LEASE)

    def abandon() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(store.changed("call", 60))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        abandoned.append(task)  # it is never resumed

    abandoned: list[asyncio.Task[None]] = []
    await asyncio.to_thread(abandon)
    await store.finish("call", "me", b"result")
    there = await read(store, "call")
    assert there is not None
    assert there.done
