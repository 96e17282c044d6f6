"""One call, round by round: its state is opened, its round is run, its approval is spent, or its questions are asked.

`Calls` is what all calls of a server share. `Call` is one round of one call. A round that carries a state, or opens
generators, runs in a task of its own, so that the request may go away while a claimed body, or a cleanup, continues.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from bespeak.aio.tasks import spawn_with_end
from bespeak.protocol.capabilities import NOT_DECLARED, AskingObstacle
from bespeak.protocol.errors import INVALID_PARAMS, MCPError
from bespeak.protocol.input_responses import typed_answer
from bespeak.protocol.question_keys import bare_name
from bespeak.resolve.asking.digests import digest, json_bytes
from bespeak.resolve.asking.progress import Progress
from bespeak.resolve.errors import UNASKED_CANCELLATION, Aborted, NoValidAnswer
from bespeak.resolve.running.rounds import Round
from bespeak.server.calls.body import failed, result_of, result_with_resolvers, run_body
from bespeak.server.calls.by_hand import asks_by_hand, questions_of, read_state, state_of
from bespeak.server.calls.call_tasks import CallTasks, Outliving
from bespeak.server.calls.held_calls import HeldCalls
from bespeak.server.calls.replies import Consumer
from bespeak.server.calls.spending import Approval, ApprovalSpender, raising
from bespeak.server.context import Context, facts_of
from bespeak.server.context_errors import NoClient
from bespeak.server.decisions import CallDecisions, Decisions, Era
from bespeak.state.ledger import Ledger, Ticket, short_digest
from bespeak.state.ledger_errors import LedgerError
from bespeak.state.seal import (
    Binding,
    InvalidRequestState,
    RequestStateSecurity,
    Seal,
    State,
    authenticated_principal,
    new_call_id,
)

if TYPE_CHECKING:
    from mcp_types import InputRequiredResult

logger = logging.getLogger("bespeak.server")

EVERYTHING: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
"""All capabilities, for a call without a client: it fails when it asks, not before."""


class Calls:
    """What the calls of one server share: the seal, the ledger, and the tasks that outlive their requests."""

    def __init__(self, security: RequestStateSecurity, ledger: Ledger, audience: str) -> None:
        self.security = security
        self.decisions = Decisions()
        self.seal = Seal(security)
        self.ledger = ledger
        self.held = HeldCalls()
        self._audience = security.audience or audience
        if not security.shared and ledger.place:
            # Two servers of one process may have the same keys and names. Neither knows what the other has spent.
            self._audience = f"{self._audience} {ledger.place}"
        self.tasks = CallTasks()

    def binding(self, consumer: Consumer, arguments: str, context: Context[Any, Any]) -> Binding:
        """What a state of this call is bound to."""
        bind = self.security.bind_principal
        if bind is authenticated_principal:
            return Binding(consumer.method, consumer.name, arguments, self._audience, facts_of(context).principal)
        principal: Any = bind(context) if bind is not None else None
        if not isinstance(principal, (str, type(None))):
            raise TypeError(f"bind_principal must return a string or None, not {type(principal).__name__}")
        return Binding(consumer.method, consumer.name, arguments, self._audience, principal)

    async def shelter(self, call: "Call", work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """Run a call in its own task. The request's cancellation reaches it only while it may be cancelled."""
        call.in_its_own_task = True
        task, ended = spawn_with_end(work, f"bespeak call {call.consumer.name}", copy_context())
        if task.done():
            return task.result()
        self.tasks.add(task, call)
        try:
            await ended
            return task.result()
        except asyncio.CancelledError:
            if not task.done() and not call.closed:
                call.given_up = True
                task.cancel()
                await asyncio.wait({task})
            raise


class Call(Outliving):
    """One round of one call. It shelters itself when it must not be cancelled any more."""

    _state: State | None = None
    _ticket: Ticket | None = None
    _bound: Binding | None = None
    _progress: Progress | None = None
    _era: Era = "modern"
    in_its_own_task = False
    """Whether only this server can cancel its task."""

    def __init__(
        self,
        calls: Calls,
        consumer: Consumer,
        sent: dict[str, Any],
        context: Context[Any, Any],
        *,
        declared: Mapping[str, Any] | None,
        raise_exceptions: bool = False,
    ) -> None:
        self.calls = calls
        self.consumer = consumer
        self.name = consumer.name
        self._sent = sent
        self._context = context
        self._facts = facts_of(context)
        self._facts.held = calls.held
        self._declared = declared
        # Taken before any author code runs, which may change the arguments in place.
        may_ask = consumer.may_ask
        self._arguments = digest(sent) if may_ask and declared is not None else None
        self._raise_exceptions = raise_exceptions
        self._record = (
            CallDecisions(calls.decisions, consumer, self._facts, self._era, calls.security.clock)
            if declared is not None and (may_ask or consumer.graph.overridden) and calls.decisions.wanted
            else None
        )

    def resume(self, token: Any, request_id: str | int) -> None:
        """Continue where an earlier round ended. The client sees the same error for every refusal; the log has the reason."""
        try:
            if not isinstance(token, str):
                raise InvalidRequestState("not a string")
            state, issued, expiry = self.calls.seal.open(token, self._binding())
            if state.by_hand == bool(self.consumer.graph.nodes):
                raise InvalidRequestState(
                    "state of a question made by hand, but the tool has resolvers, or the reverse"
                )
            if state.by_hand:
                self._facts.request_state, asked = read_state(state.body)
                # Only answers to what was asked in that round count.
                if self._facts.answers is not None:
                    self._facts.answers = {key: one for key, one in self._facts.answers.items() if key in asked}
            else:
                self._progress = Progress.decode(state.body.encode())
        except (InvalidRequestState, ValueError) as reason:
            logger.warning("refused the requestState of %r, request %r: %s", self.consumer.name, request_id, reason)
            if self._record is not None:
                self._record.refused_state(reason)
            raise MCPError(
                INVALID_PARAMS,
                "invalid or expired requestState; if the call may have taken effect, check before you start it again",
            ) from None
        self._state, self._ticket = state, Ticket(issued, expiry, state.deadline, state.incarnation)
        self._facts.id, self._facts.round = state.call_id, state.round + 1
        if self._record is not None:
            self._record.resumed(issued)

    def _binding(self) -> Binding:
        if self._bound is None:
            self._bound = self.calls.binding(self.consumer, self._arguments or digest(self._sent), self._context)
        return self._bound

    @property
    def ends_at_once(self) -> bool:
        """Whether nothing waits once the call is claimed. Then it cannot be interrupted, and needs no task of its own."""
        consumer = self.consumer
        waits = consumer.may_wait or consumer.graph.may_wait_at_last or self.calls.ledger.may_wait
        return not waits and self._record is None

    def _holder(self) -> str | None:
        """Whom the ledger counts the call for: the caller, or the address if nobody says who that is."""
        principal = self._binding().principal
        if principal is not None:
            return f"principal {principal}"
        return f"address {self._facts.address}" if self._facts.address is not None else None

    def run(self) -> Coroutine[Any, Any, dict[str, Any]]:
        """The wire result. Raises `MCPError` for a protocol error."""
        return self._run() if self._record is None else self._recorded(self._record)

    async def _recorded(self, record: CallDecisions) -> dict[str, Any]:
        try:
            return await self._run()
        finally:
            await record.written()

    async def _run(self) -> dict[str, Any]:
        try:
            return await self.outcome()
        except asyncio.CancelledError as error:
            return failed(self.consumer, self._cancelled(error), raise_exceptions=self._raise_exceptions)
        except Exception as error:  # noqa: BLE001 - the edge where an author's crash becomes an answer
            if isinstance(error, Aborted):
                self.refusal = error.refusal
            return failed(self.consumer, error, raise_exceptions=self._raise_exceptions)

    def _cancelled(self, error: asyncio.CancelledError) -> Exception:
        """The failure that a cancellation by an author's code is. Raises it again if the server, or its caller, is behind it."""
        task = asyncio.current_task()
        if task is None or not self.in_its_own_task or self.given_up:
            raise error
        while task.cancelling():
            task.uncancel()
        if self.approved:
            logger.error(
                "%r was approved, and was cancelled while it ran; whether it took effect is unknown", self.name
            )
        failure = RuntimeError(f"{self.consumer.name!r} {UNASKED_CANCELLATION}")
        failure.__cause__ = error
        return failure

    def outcome(self) -> Coroutine[Any, Any, dict[str, Any]]:
        """The wire result, failures raised as they are."""
        graph = self.consumer.graph
        if not graph.nodes:
            return self._unresolved()
        arguments = self.consumer.arguments.read(self._sent)
        round_ = self._round(arguments)
        if graph.has_generators or self._record is not None:
            return self._closed_after(round_, arguments)
        return self._run_round(round_, arguments)

    async def _unresolved(self) -> dict[str, Any]:
        if self._state is None:
            value = await self._body(self.consumer.arguments.read(self._sent))
            return await self._ask_by_hand(value) if asks_by_hand(value) else result_of(self.consumer, value)
        arguments = self.consumer.arguments.read(self._sent)
        for key, answer in (self._facts.answers or {}).items():
            typed_answer(key, answer)  # a malformed one is refused before anything is spent
            if self._record is not None:
                self._record.answered(key, None, answer.get("action", "accept"))
        # Each round is spent by itself: the body decides anew whether it asks.
        approval = self._approval(f"{self._state.call_id}/{self._state.round}")
        return await self._spender().spend(approval, self._facts.answers, lambda: self._plain(arguments))

    async def ask(self, value: "InputRequiredResult") -> dict[str, Any]:
        """The wire result of a plain consumer that turned out to ask by hand."""
        try:
            return await self._ask_by_hand(value)
        except Exception as error:  # noqa: BLE001 - the same edge
            return failed(self.consumer, error, raise_exceptions=self._raise_exceptions)

    # With resolvers

    def _round(self, arguments: dict[str, Any]) -> Round:
        return Round(
            self.consumer.graph,
            arguments=arguments,
            context=self._context,
            progress=self._progress or Progress(),
            answers=self._facts.answers or {},
            declared=EVERYTHING if self._declared is None else self._declared,
            call=f"{self.consumer.method} {self.name} {self._arguments}",
            watcher=self._record,
            take_try=self._take_try if self._state is not None else None,
            hold=self._hold,
        )

    async def _take_try(self, question: str, answer: Any, most: int) -> int:
        """Take a try at a question. It counts for this call, whichever of its states was sent.

        The order of an answer's fields makes another answer: a validator may see it.
        """
        assert self._state is not None, "only a resumed call brings answers"
        assert self._ticket is not None, "a state comes with a ticket"
        try:
            tried = short_digest(to_json(answer, inf_nan_mode="constants"))
            return await self.calls.ledger.take_try(
                self._state.call_id, question, tried, most, self._ticket, self._holder()
            )
        except LedgerError as error:
            if self._record is not None:
                self._record.refused(error)
            raise

    def _hold(self) -> AbstractContextManager[bool]:
        return self.calls.held.hold(self._holder())

    async def _closed_after(self, round_: Round, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a round, and then its cleanups. It must not be cancelled from outside after its end."""
        try:
            result = await self._run_round(round_, arguments)
        except BaseException as error:
            self.closed = True
            await round_.close(error, body_ran=False)
            raise
        self.closed = True
        if self.consumer.graph.has_generators:
            await round_.close(body_ran=False)
        return result

    async def _run_round(self, round_: Round, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the stored reply, or else run the guards, the questions, the rest and the body.

        A lost response is looked for first: a guard that asks "not yet refunded?" would refuse what it succeeded in.
        """
        if self._state is None:
            questions = await round_.ask()
            if questions:
                return await self._ask(questions, round_.progress)
            return await self._conclude(round_, arguments)
        approval, spender = self._approval(self._state.call_id), self._spender()
        reply = await spender.settled(approval)
        if reply is not None:
            return reply
        try:
            questions = await round_.ask()
        except (Aborted, NoValidAnswer) as end:
            return await spender.spend(approval, round_.settled(), raising(end))
        if questions:
            return await self._ask(questions, round_.progress)
        return await spender.spend(approval, round_.settled(), lambda: self._conclude(round_, arguments))

    def _approval(self, key: str) -> Approval:
        assert self._state is not None, "only a resumed call has something to spend"
        assert self._ticket is not None, "a state comes with a ticket"
        # The same request again is the same claim, whatever has changed in the meantime.
        request = short_digest(self._state.body.encode() + b"\n" + json_bytes(self._facts.answers))
        return Approval(key, request, self._ticket, self._holder())

    def _spender(self) -> ApprovalSpender:
        calls = self.calls
        return ApprovalSpender(
            calls.ledger,
            calls.seal,
            self.consumer,
            self,
            self._cancelled,
            self._record,
            raise_exceptions=self._raise_exceptions,
        )

    async def _conclude(self, round_: Round, arguments: dict[str, Any]) -> dict[str, Any]:
        """Phase two, the body, and the cleanups, which see how the body ended."""
        ran = False
        try:
            resolved = await round_.finish()
            ran = True
            value = await self._body({**arguments, **resolved})
            result = result_with_resolvers(self.consumer, value)
        except BaseException as error:
            self.closed = True
            await round_.close(error, body_ran=ran)
            raise
        self.closed = True
        if self.consumer.graph.has_generators:
            await round_.close(body_ran=True)
        return result

    async def _ask(self, questions: dict[str, dict[str, Any]], progress: Progress) -> dict[str, Any]:
        if self._state is not None and self._ticket is not None:
            await self.calls.ledger.check_unspent(self._state.call_id, self._ticket)
        return await self._input_required(questions, progress.encode().decode(), progress.heaviest, by_hand=False)

    # Without resolvers

    async def _plain(self, arguments: dict[str, Any]) -> dict[str, Any]:
        value = await self._body(dict(arguments))
        if asks_by_hand(value):
            return await self._ask_by_hand(value)
        return result_of(self.consumer, value)

    def _obstacle(self, request: Mapping[str, Any], missing: Mapping[str, Any]) -> AskingObstacle | None:
        """Why the client cannot be asked; `None` if it can."""
        return NOT_DECLARED if missing else None

    def _questions_by_hand(self, asked: "InputRequiredResult") -> dict[str, Any]:
        declared = EVERYTHING if self._declared is None else self._declared
        return questions_of(self.consumer.name, asked, declared, self._obstacle)

    async def _ask_by_hand(self, asked: "InputRequiredResult") -> dict[str, Any]:
        requests = self._questions_by_hand(asked)
        body = state_of(self.consumer.name, asked, requests)
        result = await self._input_required(requests, body, lambda: "the request_state", by_hand=True)
        if self._record is not None:
            for key in requests:
                self._record.asked(key, None, again=False)
        return {**result, "_meta": asked.meta} if asked.meta else result

    # Both

    def _body(self, values: dict[str, Any]) -> Coroutine[Any, Any, Any]:
        for name in self.consumer.context_parameters:
            values[name] = self._context
        return run_body(self.consumer, values)

    async def _input_required(
        self, requests: dict[str, Any], body: str, heaviest: Callable[[], str], *, by_hand: bool
    ) -> dict[str, Any]:
        if self._declared is None:
            raise NoClient(_no_client(self.consumer.name, requests))
        incarnation = await self.calls.ledger.check_room(self._holder())
        facts, now = self._facts, self.calls.security.clock()
        if facts.id is None:
            facts.id = new_call_id()
        deadline = now + self.calls.security.deadline
        if self._state is not None:
            deadline, incarnation = self._state.deadline, self._state.incarnation
        state = State(facts.id, facts.round, deadline, by_hand, body, incarnation)
        token = self.calls.seal.close(state, self._binding(), heaviest)
        asked = {"inputRequests": requests} if requests else {}
        return {"resultType": "input_required", **asked, "requestState": token}


def _no_client(name: str, requests: dict[str, Any]) -> str:
    asked = ", ".join(repr(bare_name(key)) for key in requests) or "a state to be echoed"
    return (
        f"{name!r} asks ({asked}), but there is no client to answer. In a test, connect a client with callbacks: "
        "`async with Client(mcp, elicitation_callback=...) as client`, or replace the resolver: "
        "`with mcp.override(resolver, value=...)`"
    )
