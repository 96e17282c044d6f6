"""Runs one round of a call: to values, or to questions.

Theory of operation. A graph is run from scratch in every round; nothing but the call's progress survives between
rounds. Three phases run in turn: the guards, then whatever may ask, then the rest, which runs only when no question is
open and so only once per call.

A resolver that returns a question settles at once if the progress holds an outcome for exactly that question (the same
pin), or if the client has just sent one. Otherwise the question is open, and all that depends on it waits for another
round. A client of an older revision has no other round: there the question is pushed, and the resolver waits for its
outcome while others run.

An outcome that a consumer cannot use (usually a decline) ends the call: what comes later in graph order is
cancelled, what comes earlier is waited for, so that which error the client sees does not depend on timing.
"""

import asyncio
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import copy_context
from typing import Any, cast

from pydantic import TypeAdapter

from bespeak.aio.in_place import CancelledItself, at_once, catch_self_cancellation, in_context, take_back, this_task
from bespeak.aio.tasks import is_cancelled
from bespeak.aio.threads import in_thread
from bespeak.protocol.capabilities import NOT_DECLARED, AskingObstacle, lacking
from bespeak.resolve.asking.drift import shown_again
from bespeak.resolve.asking.form_schemas import FormError, Refused
from bespeak.resolve.asking.once_values import LOST, restored_once, sealed_once
from bespeak.resolve.asking.pins import Pins
from bespeak.resolve.asking.progress import Kept, Progress, Settled, Shown
from bespeak.resolve.asking.questions import (
    OPENED_SECONDS,
    Outcome,
    Rendered,
    is_guess,
    outcome_of,
    render,
    settle,
    too_often,
)
from bespeak.resolve.errors import (
    UNASKED_CANCELLATION,
    BadAnswer,
    ClientVisibleError,
    MissingCapability,
    NotAnswered,
    ResolverFailed,
)
from bespeak.resolve.graph.model import FromArgument, FromNode, Graph, Node
from bespeak.resolve.markers import ElicitUrl, Question
from bespeak.resolve.outcomes import AcceptedElicitation, DeclinedElicitation
from bespeak.resolve.reading.callables import Kind
from bespeak.resolve.reading.misplaced_markers import is_official_question
from bespeak.resolve.reading.returned_values import is_value, why_not_this_question, why_ruled_out
from bespeak.resolve.running.generators import OpenGenerators
from bespeak.resolve.running.injection import Settlements
from bespeak.resolve.running.phases import Phase
from bespeak.resolve.running.round_watcher import RoundWatcher
from bespeak.resolve.running.turns import Push, Turns

logger = logging.getLogger("bespeak.resolve")

OPENED_PAUSES = (0.25, 2.0)
"""The first and the longest pause between the runs after a page was opened, in seconds, unless the author says how long."""
MOST_OPENED = 10
"""How often an older client is sent to a page in one call."""
CANCELLED_ITSELF = "cancelled its own task"
_PASSED_ON = (ClientVisibleError, ResolverFailed, MissingCapability, KeyboardInterrupt)
"""What a resolver raises that is not only its own failure."""
TakeTry = Callable[[str, Any, int], Awaitable[int]]
"""Takes one of so many tries at a question, given by its name, for an answer. Returns its number, and raises if none is left."""
Hold = Callable[[], AbstractContextManager[bool]]
"""Counts a call that is held because a page was opened. Gives whether there is room for it."""
SETTLED: Any = object()
"""Nothing is left to do for a resolver in this round: it has an outcome, or its question is open."""


class Round:
    """One wire request of a call, seen from the resolvers."""

    asked = False
    """Whether anything was pushed."""
    _in_place = True
    """Whether resolvers that never wait may be run one after another: no answer of theirs has to wait for the ledger."""
    _turns: Turns | None = None

    def __init__(
        self,
        graph: Graph,
        *,
        arguments: Mapping[str, Any],
        context: Any,
        progress: Progress,
        answers: Mapping[str, Mapping[str, Any]],
        declared: Mapping[str, Any],
        call: str = "",
        push: Push | None = None,
        watcher: RoundWatcher | None = None,
        take_try: TakeTry | None = None,
        hold: Hold = lambda: nullcontext(True),
    ) -> None:
        self.graph = graph
        self.progress = progress
        self._arguments = arguments
        self._context = context
        self._answers = answers
        self._declared = declared
        self._settlements = Settlements(graph)
        self._pins = Pins(graph, progress, call, self._settlements)
        self._open: dict[int, tuple[Rendered, str | None]] = {}
        self._guarded = False
        self._watcher = watcher
        self._take_try = take_try
        if graph.overridden and watcher is not None:  # overrides are reported step by step
            self._in_place = False
        elif progress.shown:
            self._in_place = not any(shown.takes_tries for shown in progress.shown.values())
        self._hold = hold
        if push is not None:
            asking = [index for index in graph.questions if graph.nodes[index].may_ask]
            self._turns = Turns(push, asking, alone=graph.questions in graph.chains)
        self._generators = OpenGenerators()

    async def guard(self) -> None:
        """Run the guards and what they depend on. Raises what they raise."""
        self._guarded = True
        if self.graph.guards:
            await self._run(self.graph.guards)

    async def ask(self) -> dict[str, dict[str, Any]]:
        """Run the guards, unless they have run, and phase one. Return the open questions by their full keys, in graph order."""
        if self.graph.guards and not self._guarded:
            await self.guard()
        if not self.graph.questions:
            return {}
        await self._run(self.graph.questions)
        if not self._open:
            return {}
        return {
            self._pins.keys[index]: question.request(note) for index, (question, note) in sorted(self._open.items())
        }

    async def finish(self) -> dict[str, Any]:
        """Run phase two. The values of the consumer's marked parameters."""
        if self.graph.rest:
            await self._run(self.graph.rest)
        return {want.parameter: self._settlements.injected(want) for want in self.graph.wants}

    def settled(self) -> dict[str, list[Any]]:
        """Return the answers that the round depends on. If one of them ends the call, later ones are left out, because which of
        them arrived depends on timing."""
        last, nodes = self._settlements.last, self.graph.nodes
        late = {node.key_name for node in nodes if node.index > last} if last < len(nodes) else ()
        entries = self.progress.settled.items()
        return {key: [one.pin, one.action, one.content] for key, one in entries if key not in late}

    async def close(self, error: BaseException | None = None, *, body_ran: bool) -> None:
        """Run the cleanups, if there are any. See `OpenGenerators.close`."""
        await self._generators.close(error, body_ran=body_ran)

    # Running resolvers

    def _run(self, indices: tuple[int, ...]) -> Coroutine[Any, Any, None]:
        """Run the resolvers of a phase. Raises `Aborted` or `MissingCapability` if the call cannot go on after it."""
        pushes = self._turns is not None and indices is self.graph.questions
        if self._in_place and not pushes and indices in self.graph.at_once:
            return self._run_at_once(indices)
        return self._run_phase(indices)

    async def _run_phase(self, indices: tuple[int, ...]) -> None:
        step = self._step if self._turns is None else self._step_in_turn
        if indices in self.graph.chains:
            for index in indices:
                if index < self._settlements.limit:
                    await step(self.graph.nodes[index])
                if not self._settlements.done[index]:  # and so none of those that come after can run
                    break
        else:
            await Phase(self.graph, indices, self._settlements.done, step, lambda: self._settlements.limit).run()
        self._settlements.check()

    async def _run_at_once(self, indices: tuple[int, ...]) -> None:
        """Run resolvers that never wait, one after another in graph order. The same as a phase of tasks, for less.

        Unless each needs the one before, what one sets in its context variables is not seen by the others.
        """
        settlements, task = self._settlements, this_task()
        before, apart, complete = task.cancelling(), indices not in self.graph.chains, True
        try:
            for index in indices:
                node = self.graph.nodes[index]
                if index >= settlements.limit or not (complete or all(settlements.done[need] for need in node.needs)):
                    continue
                try:
                    work = node.fn(**self._inputs(node))
                    result = await (in_context(work, copy_context()) if apart else work)
                    cls = cast("type[Any]", type(result))
                    if cls not in node.ruled_out and is_value(cls):
                        settlements.put_value(index, result)
                        continue
                    if node.may_ask and issubclass(cls, Question):
                        self._asked(node, result)
                    else:
                        settlements.put(node, self._checked(node, result))
                    complete = complete and settlements.done[index]
                except _PASSED_ON:
                    raise
                except asyncio.CancelledError as error:
                    if before:
                        raise
                    reason = CANCELLED_ITSELF if task.cancelling() else UNASKED_CANCELLATION
                    raise ResolverFailed(node.name, node.path, reason) from error
                except BaseException as error:
                    raise ResolverFailed(node.name, node.path) from error
        finally:
            if task.cancelling() > before:
                await take_back(task, before)
            del task
        settlements.check()

    async def _step_in_turn(self, node: Node) -> None:
        await self._step(node)
        if self._turns is not None:
            self._turns.settled(node.index)

    async def _step(self, node: Node) -> None:
        """Run one resolver and settle what it gives."""
        index = node.index
        if node.once and node.key_name in self.progress.once and self._restore_once(node):
            return
        try:
            result = self._checked(node, await self._call(node))
            if isinstance(result, Question):
                if self._turns is None:
                    more = self._asked(node, result)
                    result = SETTLED if more is None else await more
                else:
                    result = await self._pushed(node, result, self._turns)
                if result is SETTLED:
                    return
            if node.once and index not in self.graph.rest:
                result = self._seal_once(node, node.once, result)
        except _PASSED_ON:
            raise
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            raise ResolverFailed(node.name, node.path, UNASKED_CANCELLATION) from error
        except CancelledItself as error:
            raise ResolverFailed(node.name, node.path, CANCELLED_ITSELF) from error
        except BaseException as error:
            raise ResolverFailed(node.name, node.path) from error
        if node.overridden and self._watcher is not None:
            self._watcher.overridden(node.key_name)
        self._settlements.put(node, result)

    @staticmethod
    def _checked(node: Node, result: Any) -> Any:
        """Return what a resolver returned, a value or a question. Raises `ResolverFailed` if it may not return that."""
        cls = cast("type[Any]", type(result))
        if cls in node.ruled_out:
            raise _ruled_out(node, result)
        if is_value(cls):
            return result
        if issubclass(cls, Question):
            if not node.may_ask:
                raise _not_allowed(node)
        elif is_official_question(cls):
            raise _official(node, result)
        return result

    async def _call(self, node: Node) -> Any:
        inputs = self._inputs(node)
        if node.timeout is None:
            if node.kind is Kind.ASYNC:
                run = catch_self_cancellation if node.may_wait else at_once
                return await run(node.fn(**inputs), this_task())
            return await self._invoke(node, inputs)
        limit = asyncio.timeout(node.timeout)
        try:
            async with limit:
                return await self._invoke(node, inputs)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ResolverFailed(node.name, node.path, f"took longer than {node.timeout:g} s") from error

    async def _invoke(self, node: Node, inputs: dict[str, Any]) -> Any:
        if node.kind is Kind.ASYNC:
            return await catch_self_cancellation(node.fn(**inputs), this_task())
        if node.kind is Kind.SYNC:
            result = await in_thread(functools.partial(node.fn, **inputs), node.name)
            return await result if inspect.isawaitable(result) else result
        if node.kind is Kind.VALUE:
            return node.fn()
        return await self._generators.open(node, node.fn(**inputs))

    def _inputs(self, node: Node) -> dict[str, Any]:
        inputs: dict[str, Any] = {}
        for one in node.inputs:
            if type(one) is FromNode:
                inputs[one.parameter] = self._settlements.injected(one)
            else:
                inputs[one.parameter] = self._arguments[one.parameter] if type(one) is FromArgument else self._context
        return inputs

    def _seal_once(self, node: Node, adapter: TypeAdapter[Any], value: Any) -> Any:
        """Keep a value for the rounds to come, and give it as they will see it."""
        json, again = sealed_once(node, adapter, value)
        self.progress.once[node.key_name] = Kept(self._pins.rests(node), json)
        return again

    def _restore_once(self, node: Node) -> bool:
        before = self.progress.once[node.key_name]
        if node.once is None or before.rests != self._pins.rests(node):  # an answer it was computed from is another now
            return False
        value = restored_once(node, node.once, before.value)
        if value is LOST:
            return False
        self._settlements.put(node, value)
        return True

    # Questions

    @staticmethod
    def _rendered(node: Node, marker: Question) -> Rendered:
        wrong = why_not_this_question(marker, node.asks, node.asks_for)
        if wrong is not None:
            raise ResolverFailed(node.name, node.path, wrong)
        try:
            return render(node.key_name, marker)
        except FormError as error:
            raise ResolverFailed(
                node.name, node.path, f"returned a question that cannot be sent: {error}; {error.fix}"
            ) from error
        except ValueError as error:
            raise ResolverFailed(node.name, node.path, "returned a question that cannot be sent") from error

    async def _pushed(self, node: Node, marker: Question, turns: Turns, opened: int = 0) -> Any:
        """Ask at once, again if the answer was a slip, and settle with the outcome.

        Return `SETTLED`, or the value that a resolver has when its page was opened. `opened` counts the pages so far.
        """
        question = self._rendered(node, marker)
        pin, _ = self._pins.pin(node, question)
        missing = lacking(question.requires, self._declared)
        obstacle = turns.push.obstacle(question.request(), missing)
        if obstacle is not None:
            self._cannot_ask(node, obstacle, missing or question.requires)
            if not self._settlements.done[node.index]:
                turns.drop()
            return SETTLED
        note: str | None = None
        for attempt in range(1, question.attempts + 1):
            self.asked = True
            try:
                answer = await turns.ask(
                    node.index,
                    self._pins.keys[node.index],
                    question.request(note),
                    lambda: self._settlements.limit,
                    functools.partial(self._shown, node, pin, again=attempt > 1 or opened > 0),
                )
            except NotAnswered as failure:
                logger.warning("the question of resolver %r got no answer: %s", node.name, failure)
                if self._watcher is not None:
                    self._watcher.unanswered(node.key_name, pin, str(failure))
                raise NotAnswered(f"resolver {node.name!r} got no answer: {failure}") from failure
            if answer is None:
                return SETTLED
            try:
                entry, outcome = settle(question, answer, pin)
            except Refused as slip:
                note = str(slip)
                if attempt == question.attempts:
                    raise too_often(question, note) from None
                continue
            if question.is_url and entry.action == "accept":
                result = await self._run_again(node, pin, marker)
                if not isinstance(result, Question):
                    return result
                if opened + 1 == MOST_OPENED:
                    raise NotAnswered(
                        f"resolver {node.name!r} has no value after its page was opened {MOST_OPENED} times"
                    )
                return await self._pushed(node, result, turns, opened + 1)
            self._answered_now(node, entry, outcome)
            break
        return SETTLED

    async def _run_again(self, node: Node, pin: str, marker: Question) -> Any:
        """Run a resolver again until it has its value, or asks something else, because its page was opened.

        Return the value, or a question: the same one if the time is up, or too many calls are held already.
        """
        loop = asyncio.get_running_loop()
        every = marker.every if isinstance(marker, ElicitUrl) else None
        pause, longest = OPENED_PAUSES if every is None else (every, every)
        until = loop.time() + OPENED_SECONDS
        result: Any = marker
        with self._hold() as held:
            while held and loop.time() + pause <= until:
                await asyncio.sleep(pause)
                pause = min(pause * 2, longest)
                result = self._checked(node, await self._call(node))
                if not isinstance(result, Question) or self._pins.pin(node, self._rendered(node, result))[0] != pin:
                    break
        return result

    def _asked(self, node: Node, marker: Question) -> Coroutine[Any, Any, Any] | None:
        """Settle with the outcome that is recorded or was just sent, or leave the question open.

        Return what remains to be awaited, if anything: its result is the resolver's value, or `SETTLED`.
        """
        question = self._rendered(node, marker)
        pin, rests = self._pins.pin(node, question)
        if self.progress.settled and self._recorded(node, question, pin):
            return None
        shown = self.progress.shown.get(node.key_name)
        if shown is None or shown.pin != pin:
            self._leave_open(node, question, pin, rests, shown, None, 1)
            return None
        answer = self._answers.get(self._pins.keys[node.index], self._answers.get(node.key_name))
        if answer is None:
            self._leave_open(node, question, pin, rests, shown, None, shown.attempts)
            return None
        if question.is_url and answer.get("action") == "accept":
            return self._opened(node, marker)
        if shown.takes_tries and self._take_try is not None and is_guess(question, answer):
            return self._guessed(node, question, answer, shown, self._take_try)
        self._judged(node, question, answer, shown)
        return None

    async def _guessed(
        self, node: Node, question: Rendered, answer: Mapping[str, Any], shown: Shown, take_try: TakeTry
    ) -> Any:
        """Take a try for an answer, and settle with it or ask again. Tries are counted for all copies of the call's states."""
        number = await take_try(node.key_name, [shown.pin, answer["content"]], question.attempts)
        self._judged(node, question, answer, shown, is_last=number >= question.attempts)
        return SETTLED

    def _judged(
        self, node: Node, question: Rendered, answer: Mapping[str, Any], shown: Shown, *, is_last: bool = False
    ) -> None:
        """Settle with an answer, or ask again if it is a slip."""
        try:
            entry, outcome = settle(question, answer, shown.pin)
        except Refused as slip:
            if is_last or shown.attempts >= question.attempts:
                raise too_often(question, str(slip)) from None
            self._leave_open(node, question, shown.pin, shown.rests, shown, str(slip), shown.attempts + 1)
        else:
            self._answered_now(node, entry, outcome)

    async def _opened(self, node: Node, marker: Question) -> Any:
        """Return the value that a resolver has after its page was opened, or `SETTLED` if it asks again."""
        shown = self.progress.shown[node.key_name]
        result = await self._run_again(node, shown.pin, marker)
        if not isinstance(result, Question):
            del self.progress.shown[node.key_name]
            return result
        question = self._rendered(node, result)
        pin, rests = self._pins.pin(node, question)
        self._leave_open(node, question, pin, rests, shown, None, shown.attempts)
        return SETTLED

    def _leave_open(
        self,
        node: Node,
        question: Rendered,
        pin: str,
        rests: str,
        shown: Shown | None,
        note: str | None,
        attempts: int,
    ) -> None:
        """Ask in the response to this round, if the client can be asked. `shown` is what it was asked before."""
        missing = lacking(question.requires, self._declared)
        if missing:
            self._cannot_ask(node, NOT_DECLARED, missing)
            return
        again = shown is not None and shown.pin == pin
        if self._watcher is not None and shown is not None and shown.pin != pin and shown.rests == rests:
            self._watcher.drifted(node.key_name, pin)
        self.progress.shown[node.key_name] = shown_again(node, question, pin, rests, attempts, shown)
        self._open[node.index] = (question, note)
        if self._watcher is not None:
            self._watcher.asked(node.key_name, pin, again=again)

    def _shown(self, node: Node, pin: str, *, again: bool) -> None:
        if self._watcher is not None:
            self._watcher.asked(node.key_name, pin, again=again)

    def _cannot_ask(self, node: Node, obstacle: AskingObstacle, missing: dict[str, Any]) -> None:
        self._settlements.cannot_ask(node, obstacle, missing)
        if self._watcher is not None and self._settlements.done[node.index]:
            default = all(not use.input.takes_not_asked for use in self.graph.uses[node.index])
            self._watcher.not_asked(node.key_name, default=default)

    def _recorded(self, node: Node, question: Rendered, pin: str) -> bool:
        """Use the outcome recorded for exactly this question; drop one for another."""
        entry = self.progress.settled.get(node.key_name)
        if entry is None:
            return False
        if entry.pin == pin:
            with suppress(BadAnswer, Refused):
                self._settled(node, entry, outcome_of(question, entry))
                return True
        del self.progress.settled[node.key_name]
        return False

    def _answered_now(self, node: Node, entry: Settled, outcome: Outcome) -> None:
        if not isinstance(outcome, AcceptedElicitation):
            said = "declined" if isinstance(outcome, DeclinedElicitation) else "dismissed without an answer"
            logger.info("the question of resolver %r was %s", node.name, said)
        if self._watcher is not None:
            self._watcher.answered(node.key_name, entry.pin, entry.action)
        self._settled(node, entry, outcome)

    def _settled(self, node: Node, entry: Settled, outcome: Outcome) -> None:
        self.progress.settled[node.key_name] = entry
        self.progress.shown.pop(node.key_name, None)
        self._settlements.take(node, outcome)


def _ruled_out(node: Node, value: Any) -> ResolverFailed:
    return ResolverFailed(node.name, node.path, why_ruled_out(value, node.returns, node.takers))


def _not_allowed(node: Node) -> ResolverFailed:
    reason = "returned a question, but its return annotation does not allow one"
    if node.kind.is_generator:
        reason = "returned a question, but a generator cannot ask"
    return ResolverFailed(node.name, node.path, reason)


def _official(node: Node, result: Any) -> ResolverFailed:
    reason = f"returned {type(result).__name__} of the official SDK; import it from bespeak"
    return ResolverFailed(node.name, node.path, reason)
