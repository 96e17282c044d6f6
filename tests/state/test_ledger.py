"""The ledger of design section 7: who runs a settled call, what everybody else gets, and leases that lapse."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bespeak.resolve.errors import ToolError
from bespeak.state import ledger as ledger_module
from bespeak.state.ledger import Lease, Ledger, Spending, Ticket, short_digest
from bespeak.state.ledger_errors import (
    CallForgotten,
    LedgerFull,
    LedgerUnavailable,
    OutcomeUnknown,
    ResultGone,
    SettledOtherwise,
    ShareUsedUp,
    StillRunning,
)
from bespeak.state.stores.memory import MemoryStore
from bespeak.state.stores.store import Claim, Entry, StoreFull, StoreUnavailable
from tests.waiting import eventually, pass_time, turns

DEADLINE = 10_000.0
FORGOTTEN = (
    r"no longer knows whether this call \(id call\) took effect: .* Check whether it took effect before you start"
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Work:
    """Something to be done once: counts how often it was, and can be held up."""

    def __init__(self, result: bytes = b"result", *, held: bool = False) -> None:
        self.runs = 0
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self._result = result
        if not held:
            self.go_on.set()

    async def __call__(self) -> bytes:
        self.runs += 1
        self.started.set()
        await self.go_on.wait()
        return self._result


class Patient(MemoryStore):
    """Waiting takes no time: the clock jumps. A live worker renews its lease meanwhile, a dead one does not."""

    def __init__(self, clock: Clock, *, alive: bool) -> None:
        super().__init__(steady=clock)
        self._clock = clock
        self._alive = alive

    async def changed(self, call: str, timeout: float) -> None:
        assert timeout > 0
        self._clock.now += timeout
        there = await self.read(call, self._clock.now, DEADLINE, None)
        if self._alive and there is not None:
            await self.renew(call, there.owner, 15)


def a_ledger(store: MemoryStore, clock: Clock) -> Ledger:
    return Ledger(store, clock, steady=clock)


def a_ticket(issued: float = 0.0, deadline: float = DEADLINE, lifetime: float = 600.0) -> Ticket:
    return Ticket(issued, min(issued + lifetime, deadline), deadline, None)


def sent(digest: str) -> bytes:
    return short_digest(f"sent {digest}".encode())


async def spend(
    ledger: Ledger,
    work: Callable[[], Coroutine[Any, Any, bytes]],
    digest: str = "yes",
    *,
    call: str = "call",
    holder: str | None = None,
    idempotent: bool = False,
    ticket: Ticket | None = None,
) -> bytes:
    """Run the work if nobody has, or return what the first to run it got."""
    spending = Spending(short_digest(digest.encode()), sent(digest), ticket or a_ticket(), holder)
    found = await ledger.claim(call, spending)
    while not isinstance(found, Lease):
        settled = await ledger.outcome(call, spending, found, idempotent=idempotent)
        if isinstance(settled, bytes):
            return settled
        found = await ledger.take_over(call, settled, spending)
    result = await found.hold(work())
    await found.finish(result)
    return result


async def start(ledger: Ledger, work: Work, digest: str = "yes", **options: Any) -> "asyncio.Task[bytes]":
    """Somebody who has claimed the call and is at work."""

    async def run() -> bytes:
        return await spend(ledger, work, digest, **options)

    task = asyncio.create_task(run())
    await asyncio.wait_for(work.started.wait(), 5)
    return task


async def test_the_work_runs_once_and_its_result_is_handed_out_after() -> None:
    ledger, work = Ledger(MemoryStore(), Clock()), Work()
    assert [await spend(ledger, work) for _ in range(3)] == [b"result"] * 3
    assert work.runs == 1


async def test_the_same_claim_waits_for_the_one_that_runs() -> None:
    ledger, work = Ledger(MemoryStore(), Clock()), Work(held=True)
    first = await start(ledger, work)
    others = [asyncio.ensure_future(spend(ledger, work)) for _ in range(50)]
    await turns(50)
    assert not any(one.done() for one in others)
    work.go_on.set()
    assert await asyncio.gather(first, *others) == [b"result"] * 51
    assert work.runs == 1


async def test_other_answers_are_refused_after_the_end() -> None:
    ledger, work = Ledger(MemoryStore(), Clock()), Work()
    await spend(ledger, work)
    with pytest.raises(
        SettledOtherwise,
        match="already settled with other answers; check whether it took effect before you start a new one",
    ):
        await spend(ledger, work, "no")
    assert work.runs == 1


async def test_other_answers_are_refused_at_once_while_the_work_runs() -> None:
    ledger, work = Ledger(MemoryStore(), Clock()), Work(held=True)
    first = await start(ledger, work)
    with pytest.raises(SettledOtherwise):
        await asyncio.wait_for(asyncio.ensure_future(spend(ledger, work, "no")), 5)
    work.go_on.set()
    assert await first == b"result"


async def test_a_result_that_was_evicted_is_said_to_be_gone_and_the_work_is_not_repeated() -> None:
    ledger, work = Ledger(MemoryStore(max_result_bytes=1), Clock()), Work()
    assert await spend(ledger, work) == b"result"
    with pytest.raises(
        ResultGone,
        match="already completed, and its result is no longer kept; check whether it took effect before you repeat it",
    ):
        await spend(ledger, work)
    with pytest.raises(SettledOtherwise):
        await spend(ledger, work, "no")
    assert work.runs == 1


async def test_every_refusal_is_a_text_the_model_may_read() -> None:
    refusals = (SettledOtherwise, ResultGone, OutcomeUnknown, StillRunning, LedgerFull, ShareUsedUp)
    for error in (*refusals, LedgerUnavailable):
        assert issubclass(error, ToolError)


# Leases


async def test_a_lapsed_lease_means_the_outcome_is_unknown_and_never_a_second_run() -> None:
    clock = Clock()
    store, work = MemoryStore(steady=clock), Work(held=True)
    dead = await start(a_ledger(store, clock), work)
    clock.now = 15.0
    with pytest.raises(
        OutcomeUnknown, match=r"died or could not store the outcome: whether it took effect is unknown\. It is not run"
    ):
        await spend(a_ledger(store, clock), work)
    assert work.runs == 1
    work.go_on.set()
    await dead


async def test_a_lease_holds_for_fifteen_seconds() -> None:
    clock = Clock()
    store = MemoryStore(steady=clock)
    work = Work(held=True)
    first = await start(a_ledger(store, clock), work)
    clock.now = 14.9
    second = asyncio.ensure_future(spend(a_ledger(store, clock), work))
    await turns(50)
    work.go_on.set()
    assert await second == await first == b"result"


async def test_a_wait_ends_with_the_lease_of_a_worker_that_died_meanwhile() -> None:
    clock = Clock()
    store, work = Patient(clock, alive=False), Work(held=True)
    dead = await start(a_ledger(store, clock), work)
    with pytest.raises(OutcomeUnknown):
        await spend(a_ledger(store, clock), work)
    assert clock.now == 15.0
    work.go_on.set()
    await dead


async def test_an_idempotent_work_is_run_again_when_the_lease_lapsed() -> None:
    clock = Clock()
    store, stuck = MemoryStore(steady=clock), Work(b"late", held=True)
    dead = await start(a_ledger(store, clock), stuck)
    clock.now = 15.0
    ledger, again = a_ledger(store, clock), Work(b"again")
    assert await spend(ledger, again, idempotent=True) == b"again"
    stuck.go_on.set()
    await dead
    assert await spend(ledger, again, idempotent=True) == b"again", "a late finish must not replace the stored result"
    assert again.runs == 1


async def test_a_lapsed_idempotent_work_is_taken_over_by_one_only() -> None:
    clock = Clock()
    store, stuck = MemoryStore(steady=clock), Work(held=True)
    dead = await start(a_ledger(store, clock), stuck)
    clock.now = 15.0
    again = Work(b"again", held=True)
    takers = [asyncio.ensure_future(spend(a_ledger(store, clock), again, idempotent=True)) for _ in range(20)]
    await turns(50)
    assert again.runs == 1
    again.go_on.set()
    assert await asyncio.gather(*takers) == [b"again"] * 20
    assert again.runs == 1
    stuck.go_on.set()
    await dead


async def test_one_who_loses_the_race_to_take_over_waits_for_the_winner() -> None:
    clock = Clock()

    class Raced(MemoryStore):
        async def take_over(self, call: str, lapsed_owner: str, entry: Entry, lease: float) -> bool:
            await super().take_over(call, lapsed_owner, entry._replace(owner="winner"), lease)
            await self.finish(call, "winner", b"theirs")
            return False

    store, stuck, again = Raced(steady=clock), Work(held=True), Work()
    dead = await start(a_ledger(store, clock), stuck)
    clock.now = 15.0
    assert await spend(a_ledger(store, clock), again, idempotent=True) == b"theirs"
    assert again.runs == 0
    stuck.go_on.set()
    await dead


async def test_other_answers_do_not_take_over_a_lapsed_claim() -> None:
    clock = Clock()
    store, stuck = MemoryStore(steady=clock), Work(held=True)
    dead = await start(a_ledger(store, clock), stuck)
    clock.now = 15.0
    with pytest.raises(SettledOtherwise):
        await spend(a_ledger(store, clock), stuck, "no", idempotent=True)
    stuck.go_on.set()
    await dead


async def test_a_worker_that_was_slow_and_not_dead_still_stores_its_result() -> None:
    clock = Clock()
    store, work = MemoryStore(steady=clock), Work(held=True)
    slow = await start(a_ledger(store, clock), work)
    clock.now = 20.0
    with pytest.raises(OutcomeUnknown):
        await spend(a_ledger(store, clock), work)
    work.go_on.set()
    await slow
    assert await spend(a_ledger(store, clock), work) == b"result"


@pytest.mark.parametrize("idempotent", [False, True])
async def test_waiting_for_a_live_worker_ends_after_sixty_seconds(idempotent: bool) -> None:
    clock = Clock()
    store, work = Patient(clock, alive=True), Work(held=True)
    first = await start(a_ledger(store, clock), work)
    with pytest.raises(StillRunning, match="still running; send the same request again later to get its result"):
        await spend(a_ledger(store, clock), work, idempotent=idempotent)
    assert clock.now == 60.0
    assert work.runs == 1
    work.go_on.set()
    assert await first == b"result"
    assert await spend(a_ledger(store, clock), work) == b"result"


class Renewing(MemoryStore):
    """Counts renewals, and can fail them."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__()
        self.leases: list[float] = []
        self.renewed_thrice = asyncio.Event()
        self._failures = list(failures)

    async def renew(self, call: str, owner: str, lease: float) -> bool:
        self.leases.append(lease)
        if len(self.leases) == 3:
            self.renewed_thrice.set()
        if self._failures:
            raise self._failures.pop()
        return await super().renew(call, owner, lease)


@pytest.mark.timing
async def test_a_lease_is_renewed_while_the_work_runs_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "LEASE_SECONDS", 0.03)
    before, store, work = asyncio.all_tasks(), Renewing(), Work(held=True)
    first = await start(Ledger(store, Clock()), work)
    await asyncio.wait_for(store.renewed_thrice.wait(), 5)
    assert set(store.leases) == {0.03}
    work.go_on.set()
    await first
    await eventually(lambda: asyncio.all_tasks() == before)


@pytest.mark.timing
async def test_a_renewal_that_fails_is_logged_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ledger_module, "LEASE_SECONDS", 0.03)
    store, work = Renewing(ConnectionError("no route")), Work(held=True)
    first = await start(Ledger(store, Clock()), work)
    await asyncio.wait_for(store.renewed_thrice.wait(), 5)
    work.go_on.set()
    assert await first == b"result"
    assert "could not renew the lease of a running call; will try again" in caplog.text
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


# Withdrawn claims, and room


async def test_a_full_ledger_refuses_new_questions_and_new_claims() -> None:
    clock = Clock()
    ledger = Ledger(MemoryStore(max_claims=1), clock)
    await ledger.check_room(None)
    await spend(ledger, Work())
    with pytest.raises(LedgerFull, match="cannot take more calls that ask questions now; try again later"):
        await ledger.check_room(None)
    with pytest.raises(LedgerFull):
        await spend(ledger, Work(), call="another")
    assert await spend(ledger, Work(b"other")) == b"result", "what is settled is still known"
    clock.now = 660.0
    await ledger.check_room(None)


# A deadline that passes in the middle


async def test_a_claim_that_runs_past_its_deadline_is_not_run_again_by_one_who_waits() -> None:
    clock = Clock()
    store = MemoryStore(steady=clock)
    ledger, work = a_ledger(store, clock), Work(held=True)
    first = await start(ledger, work, ticket=a_ticket(deadline=10.0))
    clock.now = 9.0
    second = asyncio.ensure_future(spend(ledger, work, ticket=a_ticket(deadline=10.0)))
    await turns()
    clock.now = 10.0
    await store.check_room(None, clock.now)  # some other call comes to a question, and old claims are purged
    await turns(50)
    work.go_on.set()
    await asyncio.gather(first, second, return_exceptions=True)
    assert work.runs == 1


async def test_nothing_is_claimed_after_the_deadline() -> None:
    clock = Clock()
    store = MemoryStore(steady=clock)
    clock.now = 10.1  # the state was opened in time; its resolvers took a moment
    ledger, work = a_ledger(store, clock), Work()
    for _ in range(2):
        with pytest.raises(CallForgotten, match=FORGOTTEN):
            await spend(ledger, work, ticket=a_ticket(deadline=10.0))
    assert work.runs == 0


# How long a claim is kept


async def test_a_claim_is_kept_for_the_lifetime_of_a_round_and_60_seconds() -> None:
    clock, store, work = Clock(), MemoryStore(), Work()
    ledger = Ledger(store, clock, 600.0)
    clock.now = 100.0
    await spend(ledger, work, ticket=a_ticket(issued=50.0))
    clock.now = 759.9
    await ledger.check_room(None)
    assert store.claims == 1
    clock.now = 760.0
    await ledger.check_room(None)
    assert store.claims == 0


async def test_a_claim_is_kept_until_its_token_expires_though_the_lifetime_was_lowered() -> None:
    clock, store, work = Clock(), MemoryStore(), Work()
    old, new = Ledger(store, clock, 600.0), Ledger(store, clock, 60.0)
    issued_by_old = a_ticket(issued=0.0, lifetime=600.0)
    clock.now = 10.0
    await spend(new, work, ticket=issued_by_old)
    clock.now = 599.0
    for ledger in (new, old):
        await ledger.check_room(None)
        assert await spend(ledger, work, ticket=issued_by_old) == b"result"
    clock.now = 660.0
    await new.check_room(None)
    assert store.claims == 0
    assert work.runs == 1


async def test_an_earlier_token_with_a_longer_lifetime_cannot_be_spent_after_the_claim_was_dropped() -> None:
    clock, store, work = Clock(), MemoryStore(), Work()
    new = Ledger(store, clock, 60.0)
    first, second = a_ticket(issued=0.0, lifetime=600.0), a_ticket(issued=5.0, lifetime=60.0)
    clock.now = 10.0
    await spend(new, work, ticket=second)
    clock.now = 200.0
    await new.check_room(None)
    assert store.claims == 0
    with pytest.raises(CallForgotten):
        await new.settled("call", sent("yes"), first)
    with pytest.raises(CallForgotten):
        await new.check_unspent("call", first)
    with pytest.raises(CallForgotten):
        await spend(new, work, ticket=first)
    assert work.runs == 1


async def test_a_claim_is_kept_until_the_deadline_at_most() -> None:
    clock, store, work = Clock(), MemoryStore(), Work()
    ledger = Ledger(store, clock, 600.0)
    await spend(ledger, work, ticket=a_ticket(deadline=30.0))
    clock.now = 30.0
    await ledger.check_room(None)
    assert store.claims == 0
    clock.now = 20.0  # set back
    with pytest.raises(CallForgotten):
        await spend(ledger, work, ticket=a_ticket(deadline=30.0))
    assert work.runs == 1


async def test_a_clock_stepped_back_after_a_purge_cannot_revive_a_claim() -> None:
    clock, store, work = Clock(), MemoryStore(), Work()
    ledger = Ledger(store, clock, 600.0)
    clock.now = 5000.0
    await spend(ledger, work, ticket=a_ticket(issued=4990.0))
    clock.now = 5660.0
    await ledger.check_room(None)
    assert store.claims == 0
    clock.now = 5005.0
    with pytest.raises(CallForgotten, match=FORGOTTEN):
        await spend(ledger, work, ticket=a_ticket(issued=4990.0))
    assert work.runs == 1


async def test_a_clock_set_back_before_the_claim_and_forward_after_it_cannot_revive_the_claim() -> None:
    clock, work = Clock(), Work()
    ledger = Ledger(MemoryStore(), clock, 600.0)
    ticket = a_ticket(issued=5000.0, deadline=8600.0)
    clock.now = 1400.0
    await spend(ledger, work, ticket=ticket)
    clock.now = 6000.0
    await spend(ledger, Work(), call="another", ticket=a_ticket(issued=5990.0, deadline=8600.0))
    clock.now = 5100.0
    with pytest.raises(CallForgotten):
        await spend(ledger, work, "no", ticket=ticket)
    assert work.runs == 1


async def test_nobody_is_asked_while_the_clock_is_so_far_back_that_no_claim_could_follow(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, store = Clock(), MemoryStore()
    ledger = Ledger(store, clock, 600.0)
    clock.now = 5000.0
    await spend(ledger, Work(), ticket=a_ticket(issued=4990.0))
    clock.now = 5660.0
    await ledger.check_room(None)
    clock.now = 5060.0
    with pytest.raises(LedgerFull):
        await ledger.check_room(None)
    words = "the clock was set back so far that an approval could be spent again. No questions are asked until it has"
    assert words in caplog.text
    clock.now = 5061.0  # a step back of less than a round's lifetime refuses nobody
    await ledger.check_room(None)


async def test_a_body_longer_than_the_lifetime_stays_claimed_while_it_runs() -> None:
    clock = Clock()
    store, work = MemoryStore(steady=clock), Work(held=True)
    ledger = Ledger(store, clock, 60.0, steady=clock)
    first = await start(ledger, work, ticket=a_ticket(lifetime=60.0))
    for now in range(10, 5000, 10):
        clock.now = float(now)
        await store.renew("call", await owner_of(store), 15.0)
        await ledger.check_room(None)
    with pytest.raises(SettledOtherwise):
        await spend(ledger, work, "no", ticket=a_ticket(lifetime=60.0))
    work.go_on.set()
    assert await first == b"result"
    assert work.runs == 1


async def owner_of(store: MemoryStore) -> str:
    there = await store.read("call", 0.0, DEADLINE, None)
    assert there is not None
    return there.owner


async def test_a_step_of_the_wall_clock_lapses_no_lease_and_nothing_runs_twice_at_once() -> None:
    wall, steady = Clock(), Clock()
    store, work = MemoryStore(steady=steady), Work(held=True)
    ledger = Ledger(store, wall, steady=steady)
    first = await start(ledger, work)
    for step in (16.0, 3000.0, -5000.0):
        wall.now += step
        second = asyncio.ensure_future(spend(ledger, work, idempotent=True))
        await turns(50)
        assert not second.done()
        second.cancel()
    work.go_on.set()
    assert await first == b"result"
    assert work.runs == 1


async def test_one_holder_is_told_that_its_share_is_used_up_and_another_is_served() -> None:
    store = MemoryStore(max_claims=10)
    ledger = Ledger(store, Clock())
    for number in range(6):
        await spend(ledger, Work(), call=f"call {number}", holder="address 10.0.0.1")
    words = (
        "the server is busy, and too many recent calls that asked questions came from you or your address; try again"
    )
    with pytest.raises(ShareUsedUp, match=words):
        await ledger.check_room("address 10.0.0.1")
    with pytest.raises(ShareUsedUp):
        await spend(ledger, Work(), call="one more", holder="address 10.0.0.1")
    await ledger.check_room("address 10.0.0.2")
    assert await spend(ledger, Work(), call="another", holder="address 10.0.0.2") == b"result"


# A store that cannot be reached


class Away(MemoryStore):
    """Can be away, for some or all of its methods."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(steady=clock)
        self.away: tuple[str, ...] = ()
        self.error: Exception = StoreUnavailable("the store is away")
        self.finished = 0
        """How often it was tried to store a result."""

    def _go(self, method: str) -> None:
        if method in self.away:
            raise self.error

    async def check_room(self, holder: str | None, now: float) -> None:
        self._go("check_room")
        return await super().check_room(holder, now)

    async def claim(self, call: str, entry: Entry, lease: float) -> Claim | None:
        self._go("claim")
        return await super().claim(call, entry, lease)

    async def take_over(self, call: str, lapsed_owner: str, entry: Entry, lease: float) -> bool:
        self._go("take_over")
        return await super().take_over(call, lapsed_owner, entry, lease)

    async def read(self, call: str, issued: float, deadline: float, incarnation: str | None) -> Claim | None:
        self._go("read")
        return await super().read(call, issued, deadline, incarnation)

    async def changed(self, call: str, timeout: float) -> None:
        self._go("changed")
        await super().changed(call, timeout)

    async def finish(self, call: str, owner: str, result: bytes) -> bool:
        self.finished += 1
        self._go("finish")
        return await super().finish(call, owner, result)


async def ask(ledger: Ledger) -> object:
    return await ledger.check_room(None)


async def look_up(ledger: Ledger) -> object:
    return await ledger.settled("call", sent("yes"), a_ticket())


async def look_up_unspent(ledger: Ledger) -> object:
    return await ledger.check_unspent("another", a_ticket())


async def spend_again(ledger: Ledger) -> object:
    return await spend(ledger, Work(b"again"), idempotent=True)


@pytest.mark.parametrize(
    ("method", "send", "lapsed"),
    [
        ("check_room", ask, False),
        ("read", look_up, False),
        ("read", look_up_unspent, False),
        ("changed", look_up, False),
        ("claim", spend_again, False),
        ("changed", spend_again, False),
        ("take_over", spend_again, True),
    ],
)
async def test_a_sendthat_needs_a_store_that_is_away_can_be_sent_again_later(
    method: str,
    send: Callable[[Ledger], Coroutine[Any, Any, object]],
    lapsed: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    store, work = Away(clock), Work(held=True)
    running = await start(a_ledger(store, clock), work)
    clock.now = 15.0 if lapsed else 0.0
    ledger, store.away = a_ledger(store, clock), (method,)
    words = (
        "the server cannot use the store that remembers which calls were approved, so this request ran nothing, and whether an "
        "earlier one took effect cannot be read now. Send the same request again later"
    )
    with pytest.raises(LedgerUnavailable, match=f"^{words}$"):
        await send(ledger)
    assert [(record.levelno, record.message) for record in caplog.records] == [(logging.ERROR, "the store is away")]
    store.away = ()
    work.go_on.set()
    assert await running == b"result"
    assert await send(ledger) in (None, b"result")
    assert work.runs == 1


async def spend_while_away(ledger: Ledger, store: Away) -> None:
    store.away = ("finish",)
    assert await spend(ledger, Work()) == b"result"
    await turns()


@pytest.mark.parametrize("error", [StoreUnavailable("the store is away"), StoreFull("the store has no memory left")])
async def test_a_result_that_cannot_be_stored_at_once_is_stored_when_the_store_is_back(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    before, store = asyncio.all_tasks(), Away(Clock())
    store.error = error
    ledger = Ledger(store, Clock())
    await spend_while_away(ledger, store)
    await pass_time(0.5)
    assert [record.message for record in caplog.records] == [
        f"the result of a call could not be stored; will try again: {error}"
    ]
    store.away = ()
    await pass_time(1.0)
    assert await ledger.settled("call", sent("yes"), a_ticket()) == b"result"
    assert store.finished == 3
    assert asyncio.all_tasks() == before


async def test_a_result_that_cannot_be_stored_for_a_minute_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    before, store = asyncio.all_tasks(), Away(Clock())
    await spend_while_away(Ledger(store, Clock()), store)
    await pass_time(57.5, steps=115)
    assert store.finished == 1 + 14, "at once, then after 0.5, 1, 2 and 4 seconds, and from then on after 5"
    await pass_time(5.0)
    words = "the result of a call could not be stored within 60 s; if the same request is sent again, its outcome is unknown"
    assert [record.message for record in caplog.records][1:] == [words]
    assert asyncio.all_tasks() == before


async def test_the_end_of_a_server_waits_for_results_that_are_not_stored_yet() -> None:
    store = Away(Clock())
    ledger = Ledger(store, Clock())
    await ledger.close()
    await spend_while_away(ledger, store)
    closing = asyncio.create_task(ledger.close())
    await turns()
    assert not closing.done()
    store.away = ()
    await pass_time(0.5)
    await asyncio.wait_for(closing, 5)
    assert await ledger.settled("call", sent("yes"), a_ticket()) == b"result"


async def test_the_end_of_a_server_waits_five_seconds_for_a_store_that_is_away() -> None:
    before, store = asyncio.all_tasks(), Away(Clock())
    ledger = Ledger(store, Clock())
    await spend_while_away(ledger, store)
    closing = asyncio.create_task(ledger.close())
    await turns()
    await pass_time(4.5, steps=9)
    assert not closing.done()
    await pass_time(0.6)
    await asyncio.wait_for(closing, 5)
    assert asyncio.all_tasks() == before


async def test_the_end_in_one_event_loop_does_not_wait_for_the_results_of_another() -> None:
    store = Away(Clock())
    ledger = Ledger(store, Clock())
    await spend_while_away(ledger, store)
    await asyncio.to_thread(asyncio.run, ledger.close())
    store.away = ()
    await pass_time(0.5)
    assert await ledger.settled("call", sent("yes"), a_ticket()) == b"result"
