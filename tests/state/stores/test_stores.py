"""Design section 7 for every store: who gets a claim, how long it is kept, results that may go earlier, shares, and waiting."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from bespeak.state.stores.memory import MemoryStore
from bespeak.state.stores.store import Claim, ClaimLimits, Entry, Forgotten, ShareTaken, Store, StoreFull
from tests.state.stores.claiming import (
    LEASE,
    Kind,
    Memory,
    Redis,
    Shared,
    SQLite,
    claim,
    done,
    entry,
    found,
    incarnation_of,
    is_running,
    purge,
    read,
)

SHARED = ["sqlite", "redis"]


@pytest.fixture(params=["memory", *SHARED])
async def kind(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Kind]:
    match request.param:
        case "memory":
            kind = Memory()
        case "sqlite":
            kind = SQLite(tmp_path / "store.db")
        case _:
            kind = Redis(request.getfixturevalue("redis_url"))
    yield kind
    await kind.close()


@pytest.fixture
async def store(kind: Kind) -> Store:
    return await kind.open()


async def test_the_first_claim_is_entered_and_the_second_sees_it(store: Store) -> None:
    assert await store.claim("call", entry("first"), LEASE) is None
    there = await store.claim("call", entry("second"), LEASE)
    assert is_running(there, "first")
    assert is_running(await read(store, "call"), "first")
    assert isinstance(there, Claim)
    assert (there.answers, there.request, there.result) == (b"answers.", b"request.", None)


async def test_claims_on_different_calls_do_not_meet(store: Store) -> None:
    assert await store.claim("one", entry("first"), LEASE) is None
    assert await store.claim("two", entry("second"), LEASE) is None


async def test_a_call_nobody_claimed_has_no_claim(store: Store) -> None:
    assert await read(store, "call") is None


@pytest.mark.parametrize("result", [b"result", b"", bytes(range(256))])
async def test_a_finished_claim_holds_its_result(store: Store, result: bytes) -> None:
    await done(store, "call", result)
    there = await store.claim("call", entry("second"), LEASE)
    assert there is not None
    assert (there.owner, there.done, there.result) == ("me", True, result)


async def test_only_the_owner_renews_and_finishes(store: Store) -> None:
    await claim(store, "call", "owner")
    await store.renew("call", "other", 2 * LEASE)
    await store.finish("call", "other", b"forged")
    assert is_running(await read(store, "call"), "owner")


async def test_a_claim_that_is_gone_can_be_neither_renewed_nor_finished(store: Store) -> None:
    await store.renew("call", "me", LEASE)
    await store.finish("call", "me", b"result")
    assert await read(store, "call") is None


async def test_a_claim_is_finished_once(store: Store) -> None:
    await done(store, "call", b"first")
    await store.finish("call", "me", b"second")
    assert (await found(store, "call")).result == b"first"


async def test_a_renewed_lease_lasts_longer_and_another_one_lapses(kind: Kind, store: Store) -> None:
    await claim(store, "call")
    await kind.pass_lease_time(1000.0)
    assert is_running(await read(store, "call"), left=LEASE - 1000)
    await store.renew("call", "me", LEASE)
    assert is_running(await read(store, "call"))
    await kind.pass_lease_time(LEASE)
    assert (await found(store, "call")).lease_left <= 0


async def test_a_running_claim_can_be_taken_over_from_the_owner_that_was_seen(store: Store) -> None:
    await claim(store, "call", "dead")
    assert await store.take_over("call", "dead", entry("alive"), LEASE)
    assert not await store.take_over("call", "dead", entry("late"), LEASE)
    assert is_running(await read(store, "call"), "alive")


async def test_a_done_or_missing_claim_cannot_be_taken_over(store: Store) -> None:
    await done(store, "call")
    assert not await store.take_over("call", "me", entry("other"), LEASE)
    assert not await store.take_over("nothing", "me", entry("other"), LEASE)


async def test_an_owner_whose_claim_was_taken_over_cannot_finish_it(store: Store) -> None:
    await claim(store, "call", "dead")
    await store.take_over("call", "dead", entry("alive"), LEASE)
    await store.finish("call", "dead", b"late")
    assert not (await found(store, "call")).done


@pytest.mark.parametrize("kind", SHARED, indirect=True)
async def test_an_owner_whose_answer_was_lost_may_claim_or_take_over_again(store: Store) -> None:
    for _ in range(2):
        assert await store.claim("call", entry("dead"), LEASE) is None
    for _ in range(2):
        assert await store.take_over("call", "dead", entry("alive"), LEASE)


@pytest.mark.parametrize("kind", SHARED, indirect=True)
async def test_a_claim_that_was_taken_over_is_kept_for_the_longer_time(store: Store) -> None:
    for call, later in {"longer": 300.0, "shorter": 50.0}.items():
        await claim(store, call, "dead", kept_until=100.0)
        assert await store.take_over(call, "dead", entry("me", claimed=70.0, kept_until=later), LEASE)
        await store.finish(call, "me", b"result")
    await purge(store, 99.0)
    assert (await found(store, "shorter")).done
    await purge(store, 200.0)
    assert (await found(store, "longer")).done
    with pytest.raises(Forgotten):
        await store.read("shorter", 70.0 + 60.0, 1000.0, None)
    assert await store.read("shorter", 70.0 + 60.1, 1000.0, None) is None


# How long claims are kept


async def test_claims_are_kept_for_their_time_and_purged_then(kind: Kind) -> None:
    store = await kind.open(max_claims=1)
    await done(store, "one", kept_until=100.0)
    with pytest.raises(StoreFull):
        await store.check_room(None, 99.9)
    await store.check_room(None, 100.0)
    await purge(store, 100.0)
    assert await store.read("one", 100.0, 1000.0, None) is None


async def test_purging_drops_only_what_has_been_kept_for_its_own_time(store: Store) -> None:
    for call, kept_until in {"late": 300.0, "early": 100.0, "middle": 199.5}.items():
        await done(store, call, kept_until=kept_until)
    await purge(store, 200.0)
    known = [call for call in ("early", "middle", "late") if await store.read(call, 200.0, 1000.0, None)]
    assert known == ["late"]


async def test_a_claim_is_never_dropped_while_its_lease_is_renewed(kind: Kind, store: Store) -> None:
    await claim(store, "call", kept_until=100.0)
    for now in range(100, 10_000, 1000):
        await kind.pass_lease_time(1000.0)
        await store.renew("call", "me", LEASE)
        await purge(store, float(now))
        assert is_running(await read(store, "call"))
    await store.finish("call", "me", b"result")
    await purge(store, 20_000.0)
    assert await store.read("call", 20_000.0, 30_000.0, None) is None


async def test_a_claim_whose_lease_has_lapsed_is_dropped_after_its_time(kind: Kind, store: Store) -> None:
    await claim(store, "call", kept_until=100.0)
    await kind.pass_lease_time(LEASE)
    await purge(store, 100.0)
    assert await store.read("call", 100.0, 1000.0, None) is None


@pytest.mark.long
async def test_after_a_long_silence_room_is_made_step_by_step_and_nobody_is_refused_meanwhile(kind: Kind) -> None:
    store = await kind.open(max_claims=750)
    for number in range(600):
        await claim(store, f"old {number}", holder=f"gateway {number % 8}")
        await store.finish(f"old {number}", "me", b"")
    with pytest.raises(StoreFull):
        await store.check_room("somebody", 50.0)
    await store.check_room("gateway 1", 100.0)
    first, *others = range(10)
    later: dict[str, Any] = {"issued": 100.0, "claimed": 100.0, "kept_until": 200.0, "holder": "gateway 1"}
    await done(store, f"new {first}", **later)
    left = [number for number in range(600) if await _is_known(store, f"old {number}")]
    assert 0 < len(left) < 600, "one request must not wait for all of it"
    for number in others:
        await done(store, f"new {number}", **later)
    assert not [number for number in left if await _is_known(store, f"old {number}")]


async def _is_known(store: Store, call: str) -> bool:
    return await store.read(call, 100.0, 1000.0, None) is not None


async def test_what_may_have_been_forgotten_cannot_be_claimed_though_the_clock_goes_back(store: Store) -> None:
    await done(store, "call", issued=5.0, claimed=10.0, kept_until=100.0)
    await purge(store, 200.0)
    for issued in (5.0, 10.0, 70.0):
        with pytest.raises(Forgotten):
            await store.claim("call", entry(issued=issued, claimed=50.0), LEASE)
        with pytest.raises(Forgotten):
            await store.read("call", issued, 1000.0, None)
    assert await store.claim("another", entry(issued=70.1, claimed=80.0), LEASE) is None


async def test_what_was_forgotten_at_its_deadline_cannot_be_claimed_though_the_clock_goes_back(store: Store) -> None:
    await done(store, "call", claimed=95.0, kept_until=100.0, deadline=100.0)
    await purge(store, 100.0)
    with pytest.raises(Forgotten):
        await store.claim("call", entry(issued=90.0, claimed=96.0, deadline=100.0), LEASE)
    await store.check_room(None, 90.0)
    other = entry(issued=90.0, claimed=96.0, kept_until=110.0, deadline=110.0)
    assert await store.claim("another", other, LEASE) is None, "calls that end later are not in doubt"


async def test_nobody_is_asked_while_the_clock_is_behind_what_was_forgotten(store: Store) -> None:
    await done(store, "call", claimed=500.0, kept_until=600.0)
    await purge(store, 600.0)
    with pytest.raises(Forgotten):
        await store.check_room(None, 560.0)
    await store.check_room(None, 560.1)


# Room


async def test_a_full_store_refuses_new_claims_and_still_knows_the_old_ones(kind: Kind) -> None:
    store = await kind.open(max_claims=2)
    await done(store, "one")
    await claim(store, "two")
    with pytest.raises(StoreFull):
        await store.check_room(None, 0.0)
    with pytest.raises(StoreFull):
        await store.claim("three", entry(), LEASE)
    assert await store.claim("one", entry("other"), LEASE) is not None


async def test_new_questions_are_refused_at_80_percent_and_claims_at_100(kind: Kind) -> None:
    store = await kind.open(max_claims=10)
    for number in range(8):
        await store.check_room(None, 0.0)
        await done(store, f"call {number}")
    with pytest.raises(StoreFull):
        await store.check_room(None, 0.0)
    for number in range(8, 10):
        await done(store, f"call {number}")
    with pytest.raises(StoreFull):
        await store.claim("one more", entry(), LEASE)


async def test_above_half_full_one_holder_has_at_most_a_tenth_and_below_nobody_is_limited(kind: Kind) -> None:
    store = await kind.open(max_claims=100)
    for number in range(51):
        await store.check_room("flood", 0.0)
        await done(store, f"flood {number}", holder="flood", kept_until=100.0 + number)
    with pytest.raises(ShareTaken):
        await store.check_room("flood", 0.0)
    with pytest.raises(ShareTaken):
        await store.claim("x", entry(holder="flood"), LEASE)
    for number in range(10):
        await store.check_room("somebody", 0.0)
        await claim(store, f"somebody {number}", holder="somebody")
    with pytest.raises(ShareTaken):
        await store.check_room("somebody", 0.0)
    await store.check_room("another", 0.0)
    await store.check_room(None, 0.0)
    await store.check_room("flood", 120.0)  # by now there is no pressure any more


@pytest.mark.parametrize("kept", [0, 1_000_000], ids=["evicted", "with its result"])
async def test_a_claim_that_is_dropped_gives_its_share_back(kind: Kind, kept: int) -> None:
    store = await kind.open(max_claims=10, pressure=0, share=0.1, max_result_bytes=kept)
    await done(store, "old", holder="somebody", kept_until=50.0)
    with pytest.raises(ShareTaken):
        await store.check_room("somebody", 0.0)
    await purge(store, 61.0)
    await store.check_room("somebody", 61.0)


@pytest.mark.parametrize("how", ["asks", "claims"])
async def test_claims_that_need_not_be_kept_take_no_share_while_others_fill_the_store(kind: Kind, how: str) -> None:
    store = await kind.open(max_claims=20)
    for number in range(3):
        await done(store, f"old {number}", holder="somebody", kept_until=50.0)
    for number in range(11):
        await done(store, f"new {number}", holder=f"another {number}", kept_until=500.0)
    with pytest.raises(ShareTaken):
        await store.check_room("somebody", 49.0)
    if how == "asks":
        await store.check_room("somebody", 100.0)
    else:
        await claim(store, "call", holder="somebody", issued=100.0, claimed=100.0, kept_until=200.0)


@pytest.mark.parametrize("kind", SHARED, indirect=True)
async def test_what_was_dropped_stays_dropped_though_the_claim_that_did_it_is_refused(kind: Kind) -> None:
    store = await kind.open()
    await done(store, "old", kept_until=50.0, claimed=5.0)
    with pytest.raises(Forgotten):
        await store.claim("old", entry(claimed=60.0), LEASE)
    with pytest.raises(Forgotten):
        await read(store, "old")


FRACTIONS = "question_limit, pressure and share must be fractions of max_claims, between 0 and 1"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"max_claims": 0}, "max_claims must be at least 1"),
        ({"max_result_bytes": -1}, "max_result_bytes must not be negative"),
        ({"share": 0}, FRACTIONS),
        ({"question_limit": 1.5}, FRACTIONS),
        ({"pressure": -1}, FRACTIONS),
        ({"share": float("nan")}, FRACTIONS),
    ],
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ClaimLimits(**options)


# Results


async def test_results_go_the_oldest_first_and_their_claims_stay(kind: Kind) -> None:
    store = await kind.open(max_result_bytes=2 * (kind.result_overhead + 5))
    for call in ("one", "two", "three"):
        await done(store, call, b"12345")
    there = [await found(store, call) for call in ("one", "two", "three")]
    assert [one.result for one in there] == [None, b"12345", b"12345"]
    assert all(one.done for one in there)


async def test_a_result_larger_than_the_whole_room_is_not_kept_and_its_claim_is(kind: Kind) -> None:
    store = await kind.open(max_result_bytes=3)
    await done(store, "call", b"12345")
    there = await found(store, "call")
    assert (there.answers, there.request, there.done, there.result) == (b"answers.", b"request.", True, None)


async def test_a_purged_result_gives_its_bytes_back(kind: Kind) -> None:
    store = await kind.open(max_result_bytes=kind.result_overhead + 10)
    await done(store, "old", b"1234567890", kept_until=50.0)
    await purge(store, 61.0)
    for call in ("new", "newer"):
        await done(store, call, b"1234567890", issued=61.0, claimed=61.0)
    assert [(await found(store, call)).result for call in ("new", "newer")] == [None, b"1234567890"]


# Waiting


@pytest.mark.timing
async def test_waiting_ends_after_its_timeout(store: Store) -> None:
    await claim(store, "call")
    before = time.monotonic()
    await store.changed("call", 0.05)
    assert 0.04 < time.monotonic() - before < 10


@pytest.mark.timing
@pytest.mark.parametrize("end", ["finish", "purge"])
async def test_everybody_who_waits_wakes_when_the_claim_ends(kind: Kind, store: Store, end: str) -> None:
    await claim(store, "call")
    waiting = [asyncio.create_task(store.changed("call", 60)) for _ in range(3)]
    await asyncio.sleep(0)
    if end == "finish":
        await store.finish("call", "me", b"result")
    else:
        await kind.pass_lease_time(LEASE)
        await purge(store, 100.0)
    await asyncio.wait_for(asyncio.gather(*waiting), 20)


@pytest.mark.parametrize("state", ["missing", "done"])
async def test_waiting_for_what_does_not_run_ends_at_once(store: Store, state: str) -> None:
    if state == "done":
        await done(store, "call")
    await asyncio.wait_for(store.changed("call", 60), 20)


# Several event loops


async def test_of_many_concurrent_claims_from_two_loops_in_two_threads_one_wins(store: Store) -> None:
    start = threading.Barrier(2)
    won: list[str] = []

    async def claim_all(thread: int) -> None:
        async def one(number: int) -> None:
            owner = f"{thread}.{number}"
            if await store.claim("call", entry(owner), LEASE) is None:
                won.append(owner)

        await store.start()
        start.wait(10)
        await asyncio.gather(*(one(number) for number in range(50)))
        await store.close()

    await asyncio.gather(*(asyncio.to_thread(asyncio.run, claim_all(thread)) for thread in range(2)))
    assert len(won) == 1
    assert is_running(await read(store, "call"), won[0]), "the store is still open in the first loop"


@pytest.mark.timing
async def test_who_waits_in_one_loop_is_woken_by_another(store: Store) -> None:
    await claim(store, "call")
    waiting = asyncio.create_task(store.changed("call", 60))
    await asyncio.sleep(0)

    async def finish() -> None:
        await store.start()
        await store.finish("call", "me", b"result")
        await store.close()

    await asyncio.to_thread(asyncio.run, finish())
    await asyncio.wait_for(waiting, 20)


# Incarnations


@pytest.mark.parametrize("kind", ["sqlite", "redis"], indirect=True)
async def test_a_shared_store_refuses_every_state_from_another_incarnation_whatever_the_clocks_say(
    kind: Shared,
) -> None:
    store = kind.raw()
    for incarnation in ("another", None):
        with pytest.raises(Forgotten):
            await store.read("call", 1e9, 2e9, incarnation)
        with pytest.raises(Forgotten):
            await store.claim("call", entry(issued=1e9, deadline=2e9, incarnation=incarnation), LEASE)
    mine = await store.check_room(None, 101.0)
    assert await store.read("call", 1.0, 1000.0, mine) is None
    assert await store.claim("call", entry(issued=1.0, incarnation=mine), LEASE) is None
    await store.close()


@pytest.mark.parametrize("kind", ["sqlite", "redis"], indirect=True)
async def test_a_shared_store_keeps_its_incarnation_for_all_who_use_it(kind: Shared) -> None:
    one, other = kind.raw(), kind.raw()
    names = {await store.check_room(None, now) for store in (one, other) for now in (100.0, 99.99, 40.0)}
    assert len(names) == 1
    await one.close()
    await other.close()


async def test_the_memory_store_has_no_incarnation_and_refuses_states_from_a_store_that_has() -> None:
    store = MemoryStore()
    assert await store.check_room(None, 1.0) is None
    with pytest.raises(Forgotten):
        await store.read("call", 1.0, 1000.0, "a shared store's")
    with pytest.raises(Forgotten):
        await store.claim("call", entry(incarnation="a shared store's"), LEASE)


# Claims that are withdrawn


async def test_a_withdrawn_claim_can_be_made_again_and_gives_its_share_back(kind: Kind) -> None:
    store = await kind.open(max_claims=10, pressure=0.0, share=0.1)
    assert await store.claim("call", entry("lost", holder="me"), LEASE) is None
    await store.withdraw("call", "another")
    assert is_running(await read(store, "call"), "lost")
    await store.withdraw("call", "lost")
    await store.withdraw("call", "lost")
    assert await read(store, "call") is None
    assert await store.claim("call", entry("again", holder="me"), LEASE) is None
    await store.finish("call", "again", b"result")
    await store.withdraw("call", "again")
    there = await read(store, "call")
    assert there is not None
    assert there.result == b"result"


# Tries


def a_try(answers: str, **options: Any) -> Entry:
    return entry("", kept_until=1000.0, **options)._replace(answers=f"{answers:8}".encode())


async def take(store: Store, answers: str, most: int = 2, **options: Any) -> int | None:
    incarnation = await incarnation_of(store)
    tries = [f"call/{number}" for number in range(most)]
    return await store.take_try(tries, a_try(answers, incarnation=incarnation, **options))


async def test_each_answer_gets_a_try_of_its_own_and_no_other_time(store: Store) -> None:
    for _ in range(2):
        assert [await take(store, answers) for answers in ("one", "two", "three")] == [1, 2, None]
    assert await take(store, "three", most=3) == 3


async def test_a_try_is_a_claim_that_is_done_and_has_no_result(kind: Kind) -> None:
    store = await kind.open(max_claims=1)
    assert await take(store, "one") == 1
    there = await found(store, "call/0")
    assert (there.answers, there.done, there.result) == (b"one     ", True, None)
    with pytest.raises(StoreFull):
        await take(store, "two")
    assert await take(store, "one") == 1
    with pytest.raises(StoreFull):
        await store.claim("another", entry(), LEASE)


async def test_a_try_counts_for_its_holder_and_is_given_back_after_its_time(kind: Kind) -> None:
    store = await kind.open(max_claims=10, pressure=0.0, share=0.1)
    await claim(store, "another")
    assert await take(store, "one", holder="me") == 1
    with pytest.raises(ShareTaken):
        await take(store, "two", holder="me")
    assert await take(store, "two", holder="you") == 2
    later = a_try(
        "x", issued=2000.0, claimed=2000.0, deadline=9000.0, holder="me", incarnation=await incarnation_of(store)
    )
    assert await store.take_try(["later"], later) == 1


async def test_no_try_is_taken_for_a_state_that_could_belong_to_a_dropped_claim(store: Store) -> None:
    await done(store, "call", kept_until=1000.0)
    await purge(store, 1000.0)
    with pytest.raises(Forgotten):
        await take(store, "one")


async def test_of_many_answers_at_once_from_two_loops_as_many_as_there_are_tries_get_one(store: Store) -> None:
    incarnation = await incarnation_of(store)
    tries = [f"call/{number}" for number in range(3)]

    async def several(first: int) -> list[int | None]:
        await store.start()
        entries = [a_try(str(number), incarnation=incarnation) for number in range(first, first + 20)]
        taken = await asyncio.gather(*(store.take_try(tries, one) for one in entries))
        await store.close()
        return taken

    there, here = await asyncio.gather(*(asyncio.to_thread(asyncio.run, several(first)) for first in (0, 100)))
    assert sorted(one for one in [*there, *here] if one is not None) == [1, 2, 3]
