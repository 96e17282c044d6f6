"""Runs one round of a call: to values, or to questions.

Theory of operation. A graph is run from scratch in every round; nothing but the call's progress survives between
rounds. Three phases run in turn: the guards, then whatever may ask, then the rest, which runs only when no question is
open and so only once per call.

A resolver that returns a question settles at once if the progress holds an outcome for exactly that question (the same
pin), or if the client has just sent one. Otherwise the question is open, and all that depends on it waits for another
round. A client of an older revision has no other round: there the question is pushed, and the resolver waits for its
outcome while others run.

An outcome that somebody cannot do without (a decline, mostly) ends the call: what comes later in graph order is
cancelled, what comes earlier is waited for, so that which error the client sees does not depend on timing.
"""

import asyncio
import functools
import inspect
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from pydantic import TypeAdapter

from bespeak.aio.in_place import CancelledItself, catch_self_cancellation
from bespeak.aio.tasks import is_cancelled
from bespeak.aio.threads import in_thread
from bespeak.protocol.capabilities import NOT_DECLARED, AskingObstacle, capability_names, lacking, merge
from bespeak.protocol.question_keys import full_key
from bespeak.resolve.asking.digests import NOTHING, digest
from bespeak.resolve.asking.form_schemas import FormError, Refused
from bespeak.resolve.asking.once_values import kept, restored, survives
from bespeak.resolve.asking.progress import Kept, Progress, Settled, Shown
from bespeak.resolve.asking.questions import Outcome, Rendered, outcome_of, render, settle, too_often
from bespeak.resolve.errors import (
    UNASKED_CANCELLATION,
    Aborted,
    BadAnswer,
    ClientVisibleError,
    MissingCapability,
    NotAnswered,
    ResolverFailed,
)
from bespeak.resolve.graph.model import FromArgument, FromNode, Graph, Node
from bespeak.resolve.markers import Question
from bespeak.resolve.outcomes import AcceptedElicitation, DeclinedElicitation, NotAsked
from bespeak.resolve.reading.callables import Kind
from bespeak.resolve.reading.misplaced_markers import is_official_question
from bespeak.resolve.reading.signatures import Factory
from bespeak.resolve.reading.type_hints import OUTCOMES
from bespeak.resolve.running.generators import OpenGenerators
from bespeak.resolve.running.phases import Phase
from bespeak.resolve.running.turns import Push, Turns

logger = logging.getLogger("bespeak.resolve")

DRIFT_LIMIT = 3


class Round:
    """One wire request of a call, seen from the resolvers."""

    asked = False
    """Whether anything was pushed."""
    _turns: Turns | None = None
    _obstacle: AskingObstacle | None = None
    """Why the client could not be asked something it would have to be asked."""

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
    ) -> None:
        self.graph = graph
        self.progress = progress
        self._arguments = arguments
        self._context = context
        self._answers = answers
        self._declared = declared
        self._called = call
        """What is called, and with which arguments, as a digest: two calls may ask in the same words."""
        count = len(graph.nodes)
        self._done = [False] * count
        self._values: list[Any] = [None] * count
        self._outcomes: list[Outcome | None] = [None] * count
        self._not_asked: dict[int, NotAsked] = {}
        self._keys: dict[int, str] = {}
        """The full keys of the questions that were met in this round."""
        self._open: dict[int, tuple[Rendered, str | None]] = {}
        self._lacking: dict[str, Any] = {}
        self._aborts: dict[int, str] = {}
        self._limit = count
        self._guarded = False
        if push is not None:
            asking = [index for index in graph.questions if graph.nodes[index].may_ask]
            self._turns = Turns(push, asking)
        self._generators = OpenGenerators()

    async def guard(self) -> None:
        """Run the guards and what they depend on. Raises what they raise."""
        self._guarded = True
        if self.graph.guards:
            await self._run(self.graph.guards)

    async def ask(self) -> dict[str, dict[str, Any]]:
        """Run the guards, if that is not done, and phase one. The open questions by their full keys, in graph order."""
        if not self._guarded:
            await self.guard()
        if not self.graph.questions:
            return {}
        await self._run(self.graph.questions)
        return {self._keys[index]: question.request(note) for index, (question, note) in sorted(self._open.items())}

    async def finish(self) -> dict[str, Any]:
        """Run phase two. The values of the consumer's marked parameters."""
        await self._run(self.graph.rest)
        return {want.parameter: self._taken(want) for want in self.graph.wants}

    def settled(self) -> dict[str, list[Any]]:
        """The answers the round rests on. If one of them ends the call, none that come later: timing decides about those."""
        last = min(self._aborts, default=len(self.graph.nodes))
        late = {node.key_name for node in self.graph.nodes if node.index > last}
        entries = self.progress.settled.items()
        return {key: [one.pin, one.action, one.content] for key, one in entries if key not in late}

    async def close(self, error: BaseException | None = None, *, body_ran: bool) -> None:
        """Run the cleanups. See `OpenGenerators.close`."""
        await self._generators.close(error, body_ran=body_ran)

    # Running resolvers

    async def _run(self, indices: tuple[int, ...]) -> None:
        step = self._step if self._turns is None else self._step_in_turn
        if indices in self.graph.chains:
            for index in indices:
                if index < self._limit:
                    await step(self.graph.nodes[index])
                if not self._done[index]:  # and so none of those that come after can run
                    break
        elif indices:
            await Phase(self.graph, indices, self._done, step, lambda: self._limit).run()
        if self._aborts:
            raise Aborted(self._aborts[min(self._aborts)])
        if self._lacking:
            raise MissingCapability(self._lacking, self._obstacle and self._obstacle.words)

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
            if node.kind is Kind.ASYNC and node.timeout is None:
                result = await catch_self_cancellation(
                    node.fn(**{one.parameter: self._input(one) for one in node.inputs})
                )
            else:
                result = await self._call(node)
            if is_official_question(result):
                reason = f"returned {type(result).__name__} of the official SDK; import it from bespeak"
                raise ResolverFailed(node.name, node.path, reason)
            if isinstance(result, Question):
                if self._turns is None:
                    self._asked(node, result)
                else:
                    await self._pushed(node, result, self._turns)
                return
            if node.once and index not in self.graph.rest:
                result = self._seal_once(node, node.once, result)
        except (ClientVisibleError, ResolverFailed, MissingCapability):
            raise
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            raise ResolverFailed(node.name, node.path, UNASKED_CANCELLATION) from error
        except CancelledItself as error:
            raise ResolverFailed(node.name, node.path, "cancelled its own task") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise ResolverFailed(node.name, node.path) from error
        self._put(node, result)

    def _put(self, node: Node, result: Any) -> None:
        """Settle a resolver with what it gave. An outcome, handed on from another resolver, say, stays what it is."""
        if isinstance(result, OUTCOMES):
            self._take(node, cast("Outcome", result))
        elif isinstance(result, NotAsked):
            self._take_not_asked(node, result, None)
        else:
            self._values[node.index] = result
            self._done[node.index] = True

    async def _call(self, node: Node) -> Any:
        inputs = {one.parameter: self._input(one) for one in node.inputs}
        if node.timeout is None:
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
            return await catch_self_cancellation(node.fn(**inputs))
        if node.kind is Kind.SYNC:
            result = await in_thread(functools.partial(node.fn, **inputs), node.name)
            return await result if inspect.isawaitable(result) else result
        if node.kind is Kind.VALUE:
            return node.fn()
        return await self._generators.open(node, node.fn(**inputs))

    def _input(self, one: Any) -> Any:
        if isinstance(one, FromNode):
            return self._taken(one)
        return self._arguments[one.parameter] if isinstance(one, FromArgument) else self._context

    def _taken(self, taken: FromNode) -> Any:
        """A settled resolver as one of its consumers wants it."""
        if not self._done[taken.node]:
            node = self.graph.nodes[taken.node]
            raise ResolverFailed(node.name, node.path, "has no value, and nothing runs without it")
        outcome = self._outcomes[taken.node]
        if taken.node in self._not_asked:
            return self._not_asked[taken.node] if taken.takes_not_asked else _default(taken)
        if outcome is None:
            value = self._values[taken.node]
            if not taken.takes:
                return value
            outcome = AcceptedElicitation(data=value)
            if not taken.has_default and not self._acceptable(taken, outcome):
                raise Aborted(_unresolved(taken, outcome))
        if taken.accepts(type(outcome)):
            return outcome
        if isinstance(outcome, AcceptedElicitation) and not taken.takes:
            return outcome.data
        return _default(taken)

    def _seal_once(self, node: Node, adapter: TypeAdapter[Any], value: Any) -> Any:
        """Keep a value for the rounds to come, and give it as they will see it."""
        try:
            json = kept(adapter, value)
            again = restored(adapter, json)
        except ValueError as error:
            reason = "gave a value that its return type cannot serialise, though it is marked once=True"
            raise ResolverFailed(node.name, node.path, reason) from error
        if not survives(value, again):
            reason = "gave a value that does not survive its serialisation, though it is marked once=True"
            raise ResolverFailed(node.name, node.path, reason)
        self.progress.once[node.key_name] = Kept(self._rests(node), json)
        return again

    def _restore_once(self, node: Node) -> bool:
        before = self.progress.once[node.key_name]
        if node.once is None or before.rests != self._rests(node):  # an answer it was computed from is another now
            return False
        try:
            value = restored(node.once, before.value)
        except ValueError:
            logger.warning("the once=True value of %r no longer fits its return type; it is computed again", node.name)
            return False
        self._put(node, value)
        return True

    # Questions

    def _rendered(self, node: Node, marker: Question) -> tuple[Rendered, str, str]:
        """The question, a digest of what it rests on, and its pin. Takes note of its full key."""
        if not node.may_ask:
            reason = "asked a question, though its return annotation says that it does not"
            if node.kind.is_generator:
                reason = "asked a question, and a generator cannot ask"
            raise ResolverFailed(node.name, node.path, reason)
        try:
            question = render(node.key_name, marker)
        except FormError as error:
            raise ResolverFailed(node.name, node.path, f"asked what cannot be asked: {error}") from error
        except ValueError as error:
            raise ResolverFailed(node.name, node.path, "asked what cannot be asked") from error
        shown = question.digest()
        if not node.rests_on:
            self._keys[node.index] = full_key(node.key_name, digest([shown, self._called]))
            return question, NOTHING, shown
        below = [self.graph.nodes[index] for index in node.rests_on]
        # The key is there for everybody to see, so no `once` value goes into it: a digest could be guessed back.
        known = [self._answered(one) for one in below if one.may_ask]
        self._keys[node.index] = full_key(node.key_name, digest([shown, self._called, known]))
        rests = self._rests(node)
        return question, rests, digest([shown, rests])

    def _rests(self, node: Node) -> str:
        """A digest of the answers and `once` values that a question or a `once` value rests on."""
        return digest([self._rest(self.graph.nodes[index]) for index in node.rests_on]) if node.rests_on else NOTHING

    async def _pushed(self, node: Node, marker: Question, turns: Turns) -> None:
        """Ask at once, again if the answer was a slip, and settle with the outcome."""
        question, _, pin = self._rendered(node, marker)
        missing = lacking(question.requires, self._declared)
        obstacle = turns.push.obstacle(question.request(), missing)
        if obstacle is not None:
            self._unanswerable(node, obstacle, missing or question.requires)
            if not self._done[node.index]:
                turns.drop()
            return
        note: str | None = None
        for attempt in range(1, question.attempts + 1):
            self.asked = True
            try:
                answer = await turns.ask(
                    node.index, self._keys[node.index], question.request(note), lambda: self._limit
                )
            except NotAnswered as failure:
                logger.warning("the question of resolver %r got no answer: %s", node.name, failure)
                raise NotAnswered(f"resolver {node.name!r} got no answer: {failure}") from failure
            if answer is None:
                return
            try:
                entry, outcome = settle(question, answer, pin)
            except Refused as slip:
                note = str(slip)
                if attempt == question.attempts:
                    raise too_often(question, note) from None
            else:
                self._answered_now(node, entry, outcome)
                return

    def _asked(self, node: Node, marker: Question) -> None:
        question, rests, pin = self._rendered(node, marker)
        if self._recorded(node, question, pin):
            return
        shown = self.progress.shown.get(node.key_name)
        note, attempts = None, 1
        if shown is not None and shown.pin == pin:
            attempts = shown.attempts
            answer = self._answers.get(self._keys[node.index], self._answers.get(node.key_name))
            if answer is not None:
                try:
                    entry, outcome = settle(question, answer, pin)
                except Refused as slip:
                    note, attempts = str(slip), attempts + 1
                    if attempts > question.attempts:
                        raise too_often(question, note) from None
                else:
                    self._answered_now(node, entry, outcome)
                    return
        missing = lacking(question.requires, self._declared)
        if missing:
            self._unanswerable(node, NOT_DECLARED, missing)
            return
        self.progress.shown[node.key_name] = self._show(node, question, pin, rests, attempts, shown)
        self._open[node.index] = (question, note)

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
        self._settled(node, entry, outcome)

    def _settled(self, node: Node, entry: Settled, outcome: Outcome) -> None:
        self.progress.settled[node.key_name] = entry
        self.progress.shown.pop(node.key_name, None)
        self._take(node, outcome)

    def _take(self, node: Node, outcome: Outcome) -> None:
        """Settle a resolver with an outcome; end the call if somebody cannot do with it."""
        self._outcomes[node.index] = outcome
        self._done[node.index] = True
        doomed = [
            use.input
            for use in self.graph.uses[node.index]
            if not use.input.has_default and not self._acceptable(use.input, outcome)
        ]
        if doomed:
            self._aborts[node.index] = _unresolved(doomed[0], outcome)
            self._limit = min(self._limit, node.index)

    @staticmethod
    def _acceptable(taken: FromNode, outcome: Outcome) -> bool:
        return taken.accepts(type(outcome)) or (isinstance(outcome, AcceptedElicitation) and not taken.takes)

    def _unanswerable(self, node: Node, obstacle: AskingObstacle, missing: dict[str, Any]) -> None:
        why = obstacle.words or f"it did not declare {', '.join(capability_names(missing))}"
        logger.info("the question of resolver %r cannot be put to the client: %s", node.name, why)
        self._take_not_asked(node, NotAsked(obstacle.reason, missing), obstacle)

    def _take_not_asked(self, node: Node, not_asked: NotAsked, obstacle: AskingObstacle | None) -> None:
        """Settle a resolver whose question could not be asked, if everybody who takes its value can do without."""
        if all(use.input.has_default or use.input.takes_not_asked for use in self.graph.uses[node.index]):
            self._not_asked[node.index] = not_asked
            self._done[node.index] = True
        else:
            self._obstacle = self._obstacle or obstacle
            merge(self._lacking, not_asked.missing)

    def _rest(self, node: Node) -> list[Any]:
        """What another question rests on, of one question or `once` value."""
        if node.once:
            kept_ = self.progress.once.get(node.key_name)
            return [node.key_name, kept_ and [kept_.rests, kept_.value]]
        if node.index in self._not_asked:
            return [node.key_name, self._not_asked[node.index].reason]
        entry = self._entry(node)
        return [node.key_name, entry and [entry.pin, entry.action, entry.content]]

    def _answered(self, node: Node) -> list[Any]:
        """What the client has seen of a question that another one rests on."""
        entry = self._entry(node)
        return [entry and self._keys[node.index], entry and [entry.action, entry.content]]

    def _entry(self, node: Node) -> Settled | None:
        """The answer a resolver has in this round; `None` if it knew its value without asking."""
        asked = self._outcomes[node.index] is not None and node.index in self._keys
        return self.progress.settled.get(node.key_name) if asked else None

    def _show(self, node: Node, question: Rendered, pin: str, rests: str, attempts: int, before: Shown | None) -> Shown:
        if before is None or before.rests != rests or before.pin == pin:
            return Shown(pin, rests, 0, attempts, (question.text,))
        renderings = (*before.renderings, question.text)
        if before.drift + 1 >= DRIFT_LIMIT:
            listed = "\n".join(f"  {number}. {text}" for number, text in enumerate(renderings, 1))
            logger.error("the question of resolver %r keeps changing:\n%s", node.name, listed)
            reason = (
                "asks a question that changes from round to round; derive it from arguments and earlier answers only"
            )
            raise ResolverFailed(node.name, node.path, reason)
        return Shown(pin, rests, before.drift + 1, attempts, renderings)


def _default(taken: FromNode) -> Any:
    return taken.default.make() if isinstance(taken.default, Factory) else taken.default


def _unresolved(taken: FromNode, outcome: Outcome) -> str:
    return f"Resolver for parameter {taken.parameter!r} could not resolve: elicitation was {outcome.action}"
