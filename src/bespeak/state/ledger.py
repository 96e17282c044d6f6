"""Each approval is spent once: who may run a settled call, and what everybody else gets."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from bespeak.resolve.errors import ToolError
from bespeak.resolve.straight import straight
from bespeak.state.stores.store import Claim, Forgotten, Store, StoreFull

logger = logging.getLogger("bespeak.state")

LEASE_SECONDS = 15.0
WAIT_SECONDS = 60.0


class LedgerError(ToolError):
    """The ledger does not let this claim through."""


class SettledOtherwise(LedgerError):
    def __init__(self) -> None:
        super().__init__("this call was already settled with other answers; start a new call")


class ResultGone(LedgerError):
    def __init__(self) -> None:
        super().__init__("this call was already completed, and its result is no longer kept; do not repeat it blindly")


class OutcomeUnknown(LedgerError):
    def __init__(self) -> None:
        super().__init__(
            "this call was started and the server running it died: whether it took effect is unknown. It is not run "
            "again; check before starting a new call"
        )


class StillRunning(LedgerError):
    def __init__(self) -> None:
        super().__init__("this call is still running; send the same request again later to get its result")


class TooLate(LedgerError):
    def __init__(self) -> None:
        super().__init__("the time for this call has run out; start a new call")


class LedgerFull(LedgerError):
    def __init__(self) -> None:
        super().__init__("the server cannot take more calls that ask questions now; try again later")


@dataclass(slots=True)
class Shelter:
    """Whether a call's task may be cancelled from outside. A claimed call, and one that cleans up, may not."""

    closed: bool = False


@dataclass(frozen=True, slots=True)
class Spending:
    """What a call is claimed with."""

    digest: str
    """Of the settled answers: with others, the claim is another one."""
    sent: str
    """Of the request: the very same one again need not be looked into."""
    deadline: float


class Ledger:
    """The claims of one server, in a store."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._owner = secrets.token_hex(8)

    async def check_room(self) -> None:
        """Raise `LedgerFull` if a call that asks now could not be claimed later."""
        if not await self._store.has_room(self._clock()):
            raise LedgerFull

    async def check_unspent(self, call: str) -> None:
        """Raise `SettledOtherwise` if the call is claimed: nobody is asked what could not be spent any more."""
        if await self._store.read(call) is not None:
            raise SettledOtherwise

    async def settled(self, call: str, sent: str, *, idempotent: bool = False) -> bytes | None:
        """The result for a request that was sent before; `None` if this one is new, or is to be run again.

        Asked before anybody is asked anything: what a settled call has changed would change its questions too.
        """
        there = await self._store.read(call)
        give_up = self._clock() + WAIT_SECONDS
        while there is not None and there.sent == sent:
            if there.done:
                return _result(there)
            now = self._clock()
            if there.lease_until <= now:
                if idempotent:
                    return None
                raise OutcomeUnknown
            await self._wait(call, there, give_up, now)
            there = await self._store.read(call)
        return None

    async def _wait(self, call: str, there: Claim, give_up: float, now: float) -> None:
        if now >= give_up:
            raise StillRunning
        await self._store.changed(call, min(there.lease_until, give_up) - now)

    async def spend(
        self,
        call: str,
        spending: "Spending",
        work: Callable[[], Coroutine[Any, Any, bytes]],
        shelter: Shelter,
        *,
        idempotent: bool = False,
    ) -> bytes:
        """Run the work if nobody has, or hand out what the first to run it got. Raises a `LedgerError` otherwise."""
        owner = f"{self._owner}.{secrets.token_hex(4)}"
        shelter.closed = True
        there = await self._enter(call, self._claim(spending, owner))
        if there is None:
            return await self._run(call, owner, work)
        shelter.closed = False
        give_up = self._clock() + WAIT_SECONDS
        while True:
            if there.digest != spending.digest:
                raise SettledOtherwise
            if there.done:
                return _result(there)
            now = self._clock()
            if there.lease_until <= now:
                if not idempotent:
                    raise OutcomeUnknown
                shelter.closed = True
                if await self._store.take_over(call, there.owner, self._claim(spending, owner)):
                    return await self._run(call, owner, work)
                shelter.closed = False
            else:
                await self._wait(call, there, give_up, now)
            next_one = await self._store.read(call)
            if next_one is None:  # forgotten at its deadline
                raise TooLate
            there = next_one

    def _claim(self, spending: "Spending", owner: str) -> Claim:
        return Claim(spending.digest, spending.sent, owner, self._clock() + LEASE_SECONDS, spending.deadline)

    async def _enter(self, call: str, claim: Claim) -> Claim | None:
        now = self._clock()
        if now >= claim.deadline:
            # From here on a store may have forgotten who ran this call, so nobody runs it any more.
            raise TooLate
        try:
            return await self._store.claim(call, claim, now)
        except StoreFull:
            raise LedgerFull from None
        except Forgotten:
            raise TooLate from None

    async def _run(self, call: str, owner: str, work: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        renewing = _Renewal(lambda: self._store.renew(call, owner, self._clock() + LEASE_SECONDS))
        try:
            result = await straight(work(), renewing.start)
        finally:
            renewing.stop()
        await self._store.finish(call, owner, result)
        return result


def _result(there: Claim) -> bytes:
    if there.result is None:
        raise ResultGone
    return there.result


class _Renewal:
    """Prolongs a lease while its work runs. Costs nothing unless the work waits, and one timer unless it is slow."""

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
                logger.exception("could not renew the lease of a running call; it is tried again")
            await asyncio.sleep(LEASE_SECONDS / 3)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
