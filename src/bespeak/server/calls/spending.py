"""Spends the approval of a call: the call is claimed, its work is run once, and its one reply is kept.

Which ends of a call are final? All that come after the claim: phase two or the body returned or raised, or a person
declined something that the call needs. A final end is stored, and the same request gets it again. For questions made by
hand the claim comes before the body, so every end of the body is final.

Everything before the claim may be tried again: a missing capability, a malformed answer, a guard or a resolver of phase
one that failed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from bespeak.protocol.errors import MCPError
from bespeak.resolve.asking.digests import json_bytes
from bespeak.resolve.errors import Aborted
from bespeak.server.calls.body import failure_of
from bespeak.server.calls.call_tasks import Outliving
from bespeak.server.calls.replies import Consumer, Reply
from bespeak.server.decisions import CallDecisions
from bespeak.state.ledger import Lease, Ledger, Spending, Ticket, short_digest
from bespeak.state.ledger_errors import CallForgotten, LedgerError, ResultGone
from bespeak.state.seal import InvalidRequestState, Seal

Work = Callable[[], Awaitable[dict[str, Any]]]


class Approval(NamedTuple):
    """The approval that a resumed call brings."""

    key: str
    """What is claimed: the call or, for a question made by hand, one round of it."""
    request: bytes
    """A short digest of the request. A repeated request gets the same reply."""
    ticket: Ticket
    holder: str | None
    """The principal or address for which the ledger counts the claim."""


class ApprovalSpender:
    """Spends the approval of one call."""

    def __init__(
        self,
        ledger: Ledger,
        seal: Seal,
        consumer: Consumer,
        call: Outliving,
        cancelled: Callable[[asyncio.CancelledError], Exception],
        record: CallDecisions | None = None,
        *,
        raise_exceptions: bool,
    ) -> None:
        self._ledger = ledger
        self._seal = seal
        self._consumer = consumer
        self._call = call
        self._cancelled = cancelled
        self._record = record
        self._raise_exceptions = raise_exceptions
        self._raised: Exception | None = None
        self._may_wait = consumer.may_wait or consumer.graph.may_wait_at_last or record is not None
        """Whether the work may wait. Otherwise its lease cannot run out, and is not renewed."""

    async def settled(self, approval: Approval) -> dict[str, Any] | None:
        """Return the reply to a request that was settled before; `None` if it is new."""
        idempotent = self._consumer.idempotent
        try:
            stored = await self._ledger.settled(approval.key, approval.request, approval.ticket, idempotent=idempotent)
            return self._opened(approval.key, stored) if stored is not None else None
        except (LedgerError, CallForgotten) as error:
            self._refused(error)
            raise

    async def spend(self, approval: Approval, answers: Any, work: Work) -> dict[str, Any]:
        """Run `work` once, and return its one reply to every request with the same answers."""
        try:
            claimed = await self._claim(approval, answers)
            if isinstance(claimed, bytes):
                return self._opened(approval.key, claimed)
        except (LedgerError, CallForgotten) as error:
            self._refused(error)
            raise
        self._call.approved = True
        if self._record is not None:
            self._record.claimed()
        reply = await (claimed.hold(self._reply(work)) if self._may_wait else self._reply(work))
        try:
            raw = reply.encode()
        except ValueError as error:
            reply = self._failure(error)
            raw = reply.encode()
        await claimed.finish(self._seal.close_result(approval.key, raw))
        if self._record is not None:
            self._record.finished(reply.failure)
        self._call.refusal = reply.refusal
        if self._raised is not None:
            raise self._raised
        return reply.unwrap()

    async def _claim(self, approval: Approval, answers: Any) -> Lease | bytes:
        """Return our lease on the call, or the stored result of the claim that came first.

        From the claim on the call must not be cancelled; while it waits for somebody else's, it may be.
        """
        ledger, call, key = self._ledger, self._call, approval.key
        spending = Spending(short_digest(json_bytes(answers)), approval.request, approval.ticket, approval.holder)
        call.closed = True
        found = await ledger.claim(key, spending)
        while not isinstance(found, Lease):
            call.closed = False
            settled = await ledger.outcome(key, spending, found, idempotent=self._consumer.idempotent)
            if isinstance(settled, bytes):
                return settled
            call.closed = True
            found = await ledger.take_over(key, settled, spending)
        return found

    def _refused(self, error: LedgerError | CallForgotten) -> None:
        if self._record is not None:
            self._record.refused(error)

    def _opened(self, key: str, stored: bytes) -> dict[str, Any]:
        """Return the stored reply of the claim that came first."""
        try:
            reply = Reply.decode(self._seal.open_result(key, stored))
        except InvalidRequestState:
            raise ResultGone from None
        if self._record is not None:
            self._record.replayed()
        self._call.refusal = reply.refusal
        return reply.unwrap()

    async def _reply(self, work: Work) -> Reply:
        try:
            if self._record is not None:
                await self._record.written()
            return Reply(await work())
        except asyncio.CancelledError as error:
            return self._failure(self._cancelled(error))
        except Exception as error:  # noqa: BLE001 - however the claimed work ends, that end is stored
            return self._failure(error)

    def _failure(self, error: Exception) -> Reply:
        if self._raise_exceptions:  # otherwise nobody needs it, and its traceback holds all that the call keeps
            self._raised = error
        refusal = error.refusal if isinstance(error, Aborted) else None
        try:
            return Reply(failure_of(self._consumer, error), refusal=refusal)
        except MCPError as protocol_error:
            return Reply(None, protocol_error, refusal)


def raising(error: Exception) -> Work:
    """Return work that raises an error once and then drops it: its traceback would keep the whole call in memory."""
    held = [error]

    async def work() -> dict[str, Any]:
        raise held.pop()

    return work
