"""The ledger, which lets each approval be spent once: the first request runs the call, all others get its result."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from bespeak.aio.in_place import await_in_place
from bespeak.aio.tasks import cancel_all
from bespeak.state.ledger_errors import (
    CallForgotten,
    LedgerFull,
    LedgerUnavailable,
    NoTriesLeft,
    OutcomeUnknown,
    ResultGone,
    SettledOtherwise,
    ShareUsedUp,
    StillRunning,
)
from bespeak.state.stores.memory import MemoryStore
from bespeak.state.stores.store import (
    CLOCK_DIFFERENCE,
    DIGEST_BYTES,
    Claim,
    Entry,
    Forgotten,
    ShareTaken,
    Store,
    StoreFull,
    StoreUnavailable,
)

logger = logging.getLogger("bespeak.state")

T = TypeVar("T")

CLOCK_BACK = (
    "the clock was set back so far that an approval could be spent again. No questions are asked until it has caught up, "
    "or the server is started again with new state keys"
)
LEASE_SECONDS = 15.0
WAIT_SECONDS = 60.0
FINISH_SECONDS = 60.0
"""How long it is tried to store a result while the store cannot be reached."""
FINISH_PAUSES = (0.5, 5.0)
"""The first and the longest pause between two tries, in seconds."""
CLOSE_SECONDS = 5.0
"""How long the end of a server waits for results that could not be stored yet."""


class Ticket(NamedTuple):
    """The times of the state with which a call is resumed."""

    issued: float
    expiry: float
    deadline: float
    """The deadline of the whole call."""
    incarnation: str | None
    """The incarnation of the store under which the call began."""


class Spending(NamedTuple):
    """The details of a claim."""

    answers: bytes
    """A short digest of the settled answers. Other answers would make another claim."""
    request: bytes
    """A short digest of the request, to recognise the same request when it is sent again."""
    ticket: Ticket
    holder: str | None
    """The principal or address for which the claim is counted; `None` if it is not counted."""


class Ledger:
    """The claims of one server, in a store."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        lifetime: float = 600.0,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lifetime = lifetime
        """The lifetime of the states that are issued here, in seconds."""
        self._steady = steady
        """A monotonic clock, for waiting."""
        self._late: set[asyncio.Task[None]] = set()
        """Results that could not be stored yet, and claims that could not be withdrawn yet."""

    @property
    def place(self) -> str | None:
        """A name for the memory in which claims are kept; `None` for a store of another kind."""
        return self._store.name if isinstance(self._store, MemoryStore) else None

    @property
    def may_wait(self) -> bool:
        """Whether claiming a call, or storing its result, may wait for something."""
        return self._store.may_wait

    def _lease(self, call: str, owner: str) -> "Lease":
        return Lease(self._store, call, owner, self._later)

    def _later(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Do in the background what could not be done because the store was away."""
        task = asyncio.create_task(work, name=name)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def close(self) -> None:
        """Give results that could not be stored a last chance. Called before the store of this event loop is closed."""
        loop = asyncio.get_running_loop()
        late = {task for task in self._late if task.get_loop() is loop}
        if late:
            _, left = await asyncio.wait(late, timeout=CLOSE_SECONDS)
            await cancel_all(left)

    async def check_room(self, holder: str | None) -> str | None:
        """Return the incarnation of the store. Raises `LedgerFull` or `ShareUsedUp` if a call that asks could not be claimed."""
        try:
            return await self._store.check_room(holder, self._clock())
        except StoreUnavailable as error:
            raise _unavailable(error) from None
        except StoreFull:
            raise LedgerFull from None
        except ShareTaken:
            raise ShareUsedUp from None
        except Forgotten:
            logger.error(CLOCK_BACK)
            raise LedgerFull from None

    async def check_unspent(self, call: str, ticket: Ticket) -> None:
        """Raises `SettledOtherwise` if the call is already claimed: an answer to its questions could not be used."""
        if await self._read(call, ticket) is not None:
            raise SettledOtherwise

    async def settled(self, call: str, request: bytes, ticket: Ticket, *, idempotent: bool = False) -> bytes | None:
        """Return the result for a request that was sent before; `None` if the request is new, or must be run again.

        This is checked before any question is asked, because the effects of a settled call could change its questions.
        """
        there = await self._read(call, ticket)
        if there is None:
            return None
        give_up = self._steady() + WAIT_SECONDS
        while there is not None and there.request == request:
            if there.done:
                return _result(there)
            if there.lease_left <= 0:
                if idempotent:
                    return None
                raise OutcomeUnknown
            await self._wait(call, there, give_up)
            there = await self._read(call, ticket)
        return None

    async def _read(self, call: str, ticket: Ticket) -> Claim | None:
        try:
            return await self._store.read(call, ticket.issued, ticket.deadline, ticket.incarnation)
        except StoreUnavailable as error:
            raise _unavailable(error) from None
        except Forgotten:
            raise _forgotten(call) from None

    async def _wait(self, call: str, there: Claim, give_up: float) -> None:
        left = give_up - self._steady()
        if left <= 0:
            raise StillRunning
        try:
            await self._store.changed(call, min(there.lease_left, left))
        except StoreUnavailable as error:
            raise _unavailable(error) from None

    async def claim(self, call: str, spending: "Spending") -> "Lease | Claim":
        """Claim a call. Returns our lease, or the claim that came first. Raises a `LedgerError` if there is no room."""
        owner = self._new_owner()
        entry = self._entry(spending, owner)
        if entry.claimed >= entry.deadline:
            # A store may have dropped the claim on this call by now, so it must not be run again.
            raise _forgotten(call)
        try:
            there = await self._store.claim(call, entry, LEASE_SECONDS)
        except StoreUnavailable as error:
            self._later(_withdraw(self._store, call, owner), "bespeak claim to be withdrawn")
            raise _unavailable(error) from None
        except StoreFull:
            raise LedgerFull from None
        except ShareTaken:
            raise ShareUsedUp from None
        except Forgotten:
            raise _forgotten(call) from None
        return self._lease(call, owner) if there is None else there

    async def take_try(
        self, call: str, question: str, answer: bytes, most: int, ticket: Ticket, holder: str | None
    ) -> int:
        """Take one of so many tries at a question of a call, and return its number. The same answer gets the same try again.

        Raises `NoTriesLeft`, or another `LedgerError`.
        """
        tries = [f"{call}/try {number}/{question}" for number in range(1, most + 1)]
        entry = self._entry(Spending(answer, answer, ticket, holder), "")._replace(kept_until=ticket.deadline)
        try:
            number = await self._store.take_try(tries, entry)
        except StoreUnavailable as error:
            raise _unavailable(error) from None
        except StoreFull:
            raise LedgerFull from None
        except ShareTaken:
            raise ShareUsedUp from None
        except Forgotten:
            raise _forgotten(call) from None
        if number is None:
            raise NoTriesLeft(question, most)
        return number

    async def outcome(
        self, call: str, spending: "Spending", there: Claim, *, idempotent: bool = False
    ) -> bytes | Claim:
        """Wait for the claim of another request, and return its result. Raises a `LedgerError` if there will be none.

        If the worker that ran an idempotent call died, returns its claim, which can then be taken over.
        """
        give_up = self._steady() + WAIT_SECONDS
        while True:
            if there.answers != spending.answers:
                raise SettledOtherwise
            if there.done:
                return _result(there)
            if there.lease_left <= 0:
                if idempotent:
                    return there
                raise OutcomeUnknown
            await self._wait(call, there, give_up)
            there = await self._read_again(call, spending.ticket)

    async def take_over(self, call: str, lapsed: Claim, spending: "Spending") -> "Lease | Claim":
        """Take over a lapsed claim. Returns our lease, or the current claim if another request was faster."""
        owner = self._new_owner()
        try:
            taken = await self._store.take_over(call, lapsed.owner, self._entry(spending, owner), LEASE_SECONDS)
        except StoreUnavailable as error:
            raise _unavailable(error) from None
        if taken:
            return self._lease(call, owner)
        return await self._read_again(call, spending.ticket)

    async def _read_again(self, call: str, ticket: Ticket) -> Claim:
        there = await self._read(call, ticket)
        if there is None:  # forgotten at its deadline, or withdrawn because it never ran
            raise _forgotten(call) if self._clock() >= ticket.deadline else StillRunning
        return there

    def _new_owner(self) -> str:
        return os.urandom(8).hex()

    def _entry(self, spending: "Spending", owner: str) -> Entry:
        """Return the entry for a claim, which is kept for as long as any state of its call can be valid."""
        now, ticket = self._clock(), spending.ticket
        return Entry(
            answers=spending.answers,
            request=spending.request,
            owner=owner,
            issued=ticket.issued,
            claimed=max(now, ticket.issued),  # if the clock was set back since, the state is still the newer of the two
            kept_until=min(max(ticket.expiry, now + self._lifetime) + CLOCK_DIFFERENCE, ticket.deadline),
            deadline=ticket.deadline,
            incarnation=ticket.incarnation,
            holder=spending.holder,
        )


class Lease:
    """Our own claim. It lasts while its work runs, and is done when the result is stored."""

    def __init__(
        self, store: Store, call: str, owner: str, later: Callable[[Coroutine[Any, Any, None], str], None]
    ) -> None:
        self._store = store
        self._call = call
        self._owner = owner
        self._later = later

    async def hold(self, work: Coroutine[Any, Any, T]) -> T:
        """Await the work, and renew the lease for as long as it takes."""
        renewing = _Renewal(self._renew)
        try:
            return await await_in_place(work, renewing.start)
        finally:
            renewing.stop()

    async def _renew(self) -> None:
        if not await self._store.renew(self._call, self._owner, LEASE_SECONDS):
            _log_gone(self._call, "while it ran")

    async def finish(self, result: bytes) -> None:
        """Store the result for all requests with the same answers.

        While the store cannot be reached, this is tried again in the background: the client must not wait for it.
        """
        try:
            await self._store_result(result)
        except (StoreUnavailable, StoreFull) as error:
            logger.error("the result of a call could not be stored; will try again: %s", error)
            self._later(self._finish_later(result), "bespeak result to be stored")

    async def _store_result(self, result: bytes) -> None:
        if not await self._store.finish(self._call, self._owner, result):
            _log_gone(self._call, "before its result could be stored")

    async def _finish_later(self, result: bytes) -> None:
        loop = asyncio.get_running_loop()
        give_up, (pause, longest) = loop.time() + FINISH_SECONDS, FINISH_PAUSES
        while loop.time() < give_up:
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest)
            with suppress(StoreUnavailable, StoreFull):
                return await self._store_result(result)
            with suppress(StoreUnavailable, StoreFull):  # the call has not died
                await self._renew()
        logger.error(
            "the result of a call could not be stored within %g s; if the same request is sent again, its outcome is unknown",
            FINISH_SECONDS,
        )
        return None


async def _withdraw(store: Store, call: str, owner: str) -> None:
    """Remove a claim that may have been added although its answer was lost. Otherwise its call could not be repeated.

    It is removed twice: a claim that was on its way may arrive after the first time.
    """
    loop = asyncio.get_running_loop()
    give_up, pause, left = loop.time() + FINISH_SECONDS, FINISH_PAUSES[0], 2
    while left and loop.time() < give_up:
        await asyncio.sleep(pause)
        pause = min(pause * 2, FINISH_PAUSES[1])
        with suppress(StoreUnavailable, StoreFull):
            await store.withdraw(call, owner)
            left -= 1


def _forgotten(call: str) -> CallForgotten:
    logger.warning("the call %r was refused: it cannot be known whether it was run before", call)
    return CallForgotten(call)


def _log_gone(call: str, when: str) -> None:
    logger.error(
        "the claim on the call %r was lost %s: the store has forgotten it, or another worker has taken it over. Who repeats the "
        "request is told that its outcome is unknown",
        call,
        when,
    )


def _unavailable(error: StoreUnavailable) -> LedgerUnavailable:
    logger.error("%s", error)
    return LedgerUnavailable()


def _result(there: Claim) -> bytes:
    if there.result is None:
        raise ResultGone
    return there.result


def short_digest(content: bytes) -> bytes:
    """Return a digest as a store keeps it. It only distinguishes the requests and answers of one call."""
    return blake2b(content, digest_size=DIGEST_BYTES).digest()


class _Renewal:
    """Renews a lease while its work runs. Costs nothing if the work never waits, and only a timer if it is fast."""

    _timer: asyncio.TimerHandle | None = None
    _task: asyncio.Task[None] | None = None

    def __init__(self, renew: Callable[[], Awaitable[None]]) -> None:
        self._renew = renew

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LEASE_SECONDS / 3, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        while True:
            try:
                await self._renew()
            except Exception:
                logger.exception("could not renew the lease of a running call; will try again")
            await asyncio.sleep(LEASE_SECONDS / 3)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
