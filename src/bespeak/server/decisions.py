"""The record of decisions: what was asked, who decided, and what was spent on it. Never what was answered."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bespeak.aio.tasks import is_cancelled
from bespeak.server.calls.replies import Consumer
from bespeak.server.context import CallFacts
from bespeak.server.tracing import is_tracing, trace_decision
from bespeak.state.ledger_errors import CallForgotten, LedgerError
from bespeak.state.seal import ExpiredRequestState, InvalidRequestState, new_call_id

logger = logging.getLogger("bespeak.decisions")

DecisionEvent = Literal[
    "asked",
    "re-asked",
    "answered",
    "declined",
    "cancelled",
    "drifted",
    "expired",
    "replayed",
    "refused",
    "claimed",
    "finished",
]
DecidedBy = Literal["client", "default", "override", "nobody"]
Era = Literal["modern", "legacy"]

_ACTIONS: dict[str, DecisionEvent] = {"accept": "answered", "decline": "declined", "cancel": "cancelled"}


@dataclass(frozen=True, slots=True)
class Decision:
    """One step on the way to an approval, or to its end."""

    event: DecisionEvent
    call_id: str | None
    """`None` if the request does not tell: its state was refused."""
    round: int
    method: str
    target: str
    """The name of the tool or prompt, or the URI of the resource."""
    era: Era
    principal: str | None
    """Whose request it is; `None` without authentication."""
    key: str | None = None
    """The name of the question, where the event is about one."""
    pin: str | None = None
    """A digest of exactly what was asked, and of what it depends on."""
    decided_by: DecidedBy | None = None
    """`client` is the client's answer: a server cannot know that it came from a person."""
    seconds: float | None = None
    """The time between the question and its answer, or between the claim and its end."""
    reason: str | None = None
    """Why something was refused or has expired, or how a finished call has failed."""


DecisionHook = Callable[[Decision], Awaitable[None] | None]


class Decisions:
    """Where the decisions of one server are reported: the log, the spans of OpenTelemetry, and the author's own functions."""

    def __init__(self) -> None:
        self.hooks: list[DecisionHook] = []
        self.writing: set[asyncio.Task[None]] = set()
        """What is being recorded; a task that nobody holds could vanish."""

    @property
    def wanted(self) -> bool:
        """Whether anybody reads them."""
        return bool(self.hooks) or (logger.isEnabledFor(logging.INFO) and logger.hasHandlers()) or is_tracing()

    def report(self, decision: Decision) -> "list[Awaitable[None]]":
        """Report a decision. Returns what the author's asynchronous functions still have to do."""
        if _is_logged():
            named = f", question {decision.key!r}" if decision.key is not None else ""
            logger.info(
                "%s: %s %s%s, round %d",
                decision.event,
                decision.method,
                decision.target,
                named,
                decision.round,
                extra={"decision": asdict(decision)},
            )
        if is_tracing():
            trace_decision(asdict(decision))
        work: list[Awaitable[None]] = []
        for hook in self.hooks:
            try:
                result = hook(decision)
            except Exception:  # noqa: BLE001 - an author's function must not decide how a call ends
                _failed(hook)
                continue
            if inspect.isawaitable(result):
                work.append(self._guarded(hook, result))
        return work

    async def _guarded(self, hook: DecisionHook, work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            _failed(hook)
        except Exception:  # noqa: BLE001 - the same
            _failed(hook)


def _is_logged() -> bool:
    return logger.isEnabledFor(logging.INFO) and logger.hasHandlers()


def _failed(hook: DecisionHook) -> None:
    logger.exception("the function %r, which records decisions, failed", getattr(hook, "__name__", hook))


class CallDecisions:
    """The decisions of one round of a call: what the round itself reports, and what becomes of its approval."""

    def __init__(
        self, decisions: Decisions, consumer: Consumer, facts: CallFacts, era: Era, clock: Callable[[], float]
    ) -> None:
        self._decisions = decisions
        self._consumer = consumer
        self._facts = facts
        self._era: Era = era
        self._clock = clock
        self._shown: float | None = None
        """When the questions of the round before were sent, where each round has its own request."""
        self._began: dict[str, float] = {}
        self._writing: asyncio.Task[None] | None = None
        self._left: list[Awaitable[None]] = []

    def _report(self, event: DecisionEvent, **more: Any) -> None:
        facts = self._facts
        if "call_id" not in more and facts.id is None:
            facts.id = new_call_id()
        given: dict[str, Any] = {"call_id": facts.id, "round": facts.round, **more}
        decision = Decision(
            event,
            method=self._consumer.method,
            target=self._consumer.name,
            era=self._era,
            principal=facts.principal,
            **given,
        )
        self._left += self._decisions.report(decision)
        if self._left and self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="bespeak decisions")
            self._decisions.writing.add(self._writing)
            self._writing.add_done_callback(self._decisions.writing.discard)

    async def _write(self) -> None:
        """Let the author's functions run one after another, in the order of the decisions."""
        while self._left:
            await self._left.pop(0)
        self._writing = None

    async def written(self) -> None:
        """Return when the author's functions have recorded everything so far."""
        if self._writing is not None:
            await asyncio.shield(self._writing)

    # What a round reports

    def asked(self, key: str, pin: str | None, *, again: bool) -> None:
        self._began[key] = self._clock()
        self._report("re-asked" if again else "asked", key=key, pin=pin)

    def drifted(self, key: str, pin: str) -> None:
        self._report("drifted", key=key, pin=pin)

    def answered(self, key: str, pin: str | None, action: str) -> None:
        self._report(_ACTIONS[action], key=key, pin=pin, decided_by="client", seconds=self._waited(key))

    def unanswered(self, key: str, pin: str, reason: str) -> None:
        self._report("expired", key=key, pin=pin, decided_by="nobody", seconds=self._waited(key), reason=reason)

    def not_asked(self, key: str, *, default: bool) -> None:
        self._report("answered", key=key, decided_by="default" if default else "nobody")

    def overridden(self, key: str) -> None:
        self._report("answered", key=key, decided_by="override")

    def _waited(self, key: str) -> float | None:
        since = self._began.get(key, self._shown)
        return max(0.0, self._clock() - since) if since is not None else None

    # What becomes of a call

    def resumed(self, shown: float) -> None:
        """The request brings answers to questions that were sent at this time."""
        self._shown = shown

    def refused_state(self, reason: InvalidRequestState | ValueError) -> None:
        """The state of a request is not valid."""
        if isinstance(reason, ExpiredRequestState):
            self._report("expired", call_id=reason.call_id, round=reason.round, decided_by="nobody", reason=str(reason))
        else:
            self._report("refused", call_id=None, reason=str(reason))

    def refused(self, error: LedgerError | CallForgotten) -> None:
        """The ledger refuses the approval."""
        self._report("refused", reason=str(error))

    def replayed(self) -> None:
        """The result of an earlier request was handed out."""
        self._report("replayed")

    def claimed(self) -> None:
        """The approval is spent."""
        self._began[""] = self._clock()
        self._report("claimed")

    def finished(self, failure: str | None) -> None:
        """The claimed call has ended. `failure` says how, if it failed."""
        self._report("finished", seconds=self._waited(""), reason=failure)
