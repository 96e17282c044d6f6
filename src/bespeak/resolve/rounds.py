"""Runs one round of a call: to values, or to questions.

Theory of operation. A graph is run from scratch in every round; nothing but the call's progress survives between
rounds. Three phases run in turn: the guards, then whatever may ask, then the rest, which runs only when no question is
open and so only once per call.

Within a phase a resolver starts as soon as everything it takes is there. One that is ready alone is awaited in place;
several each get a task. Generators are the exception: they open one after another in the call's own task, because a
scope they hold across their `yield` belongs to that task, and they close there too, in reverse.

A resolver that returns a question settles at once if the progress holds an outcome for exactly that question (the same
pin), or if the client has just sent one. Otherwise the question is open, and all that depends on it waits for another
round. An outcome that somebody cannot do without (a decline, mostly) ends the call: what comes later in graph order is
cancelled, what comes earlier is waited for, so that which error the client sees does not depend on timing.
"""

import asyncio
import functools
import inspect
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic_core import PydanticSerializationError

from bespeak.resolve.errors import Aborted, BadAnswer, Meant, MissingCapability, ResolverFailed
from bespeak.resolve.forms import FormError, Refused
from bespeak.resolve.generators import OpenGenerators
from bespeak.resolve.graph import FromArgument, FromNode, Graph, Node
from bespeak.resolve.markers import Question
from bespeak.resolve.outcomes import AcceptedElicitation
from bespeak.resolve.progress import Progress, Settled, Shown
from bespeak.resolve.questions import (
    CANCELLED,
    Outcome,
    Rendered,
    digest,
    lacking,
    merge,
    outcome_of,
    pin_of,
    render,
    settle,
)
from bespeak.resolve.signature import Kind
from bespeak.resolve.tasks import cancel_all, is_cancelled, spawn
from bespeak.resolve.threads import in_thread

logger = logging.getLogger("bespeak.resolve")

DRIFT_LIMIT = 3


class Round:
    """One wire request of a call, seen from the resolvers."""

    def __init__(
        self,
        graph: Graph,
        *,
        arguments: Mapping[str, Any],
        context: Any,
        progress: Progress,
        answers: Mapping[str, Mapping[str, Any]],
        declared: Mapping[str, Any],
    ) -> None:
        self.graph = graph
        self.progress = progress
        self._arguments = arguments
        self._context = context
        self._answers = answers
        self._declared = declared
        count = len(graph.nodes)
        self._done = [False] * count
        self._values: list[Any] = [None] * count
        self._outcomes: list[Outcome | None] = [None] * count
        self._open: dict[int, tuple[Rendered, str | None]] = {}
        self._lacking: dict[str, Any] = {}
        self._aborts: dict[int, str] = {}
        self._limit = count
        self._generators = OpenGenerators()

    async def ask(self) -> dict[str, dict[str, Any]]:
        """Run guards and phase one. The open questions by wire key, in graph order; empty when all is settled."""
        await self._run(self.graph.guards)
        await self._run(self.graph.questions)
        if self._lacking:
            raise MissingCapability(self._lacking)
        return {
            self.graph.nodes[index].key: question.request(note)
            for index, (question, note) in sorted(self._open.items())
        }

    async def finish(self) -> dict[str, Any]:
        """Run phase two. The values of the consumer's marked parameters."""
        await self._run(self.graph.rest)
        return {want.parameter: self._taken(want) for want in self.graph.wants}

    async def close(self, error: BaseException | None = None, *, body_ran: bool) -> None:
        """Run the cleanups. See `OpenGenerators.close`."""
        await self._generators.close(error, body_ran=body_ran)

    # Running resolvers

    async def _run(self, indices: tuple[int, ...]) -> None:
        if not indices:
            return
        nodes = self.graph.nodes
        waiting = {index: sum(not self._done[need] for need in nodes[index].needs) for index in indices}
        ready = [index for index in indices if not waiting[index]]
        running: dict[asyncio.Task[None], int] = {}
        try:
            while ready or running:
                ready = [index for index in ready if index < self._limit]
                finished: list[int] = []
                if len(ready) == 1 and not running:
                    finished = [ready.pop()]
                    await self._step(nodes[finished[0]])
                else:
                    turn = self._start(ready, running)
                    if turn is not None:
                        finished = await self._take_turn(nodes[turn], running)
                    elif running:
                        finished = await self._wait(running)
                for index in finished:
                    if self._done[index]:
                        ready.extend(self._unblock(index, waiting))
                ready.sort()
                for task, index in running.items():
                    if index > self._limit:
                        task.cancel()
        finally:
            await cancel_all(running)
        if self._aborts:
            raise Aborted(self._aborts[min(self._aborts)])

    def _start(self, ready: list[int], running: dict[asyncio.Task[None], int]) -> int | None:
        """Give every ready resolver a task; a generator is handed back instead, to be run in place."""
        turn: int | None = None
        left: list[int] = []
        for index in ready:
            node = self.graph.nodes[index]
            if index >= self._limit:  # one that started before it has just ended the call
                break
            if not node.kind.is_generator:
                running[spawn(self._step(node), f"bespeak resolver {node.name}")] = index
            elif turn is None:
                turn = index
            else:
                left.append(index)
        ready[:] = left
        return turn

    async def _take_turn(self, node: Node, running: dict[asyncio.Task[None], int]) -> list[int]:
        """Open a generator in place, unless what runs beside it ends the call first."""
        me = asyncio.current_task()
        interrupted = False

        def look(task: asyncio.Task[None]) -> None:
            nonlocal interrupted
            failed = not task.cancelled() and task.exception() is not None
            if me is not None and not interrupted and (failed or self._limit < node.index):
                interrupted = True
                me.cancel()

        for task in running:
            task.add_done_callback(look)
        try:
            await self._step(node)
        except asyncio.CancelledError:
            if not interrupted or me is None or me.cancelling() > 1:
                raise
        finally:
            for task in running:
                task.remove_done_callback(look)
            if interrupted and me is not None:
                me.uncancel()
        return [node.index]

    async def _wait(self, running: dict[asyncio.Task[None], int]) -> list[int]:
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finished = {running.pop(task): task for task in done}
        for index in sorted(finished):
            task = finished[index]
            error = None if task.cancelled() else task.exception()
            if error is not None and index < self._limit:
                raise error
        return sorted(finished)

    def _unblock(self, index: int, waiting: dict[int, int]) -> list[int]:
        freed: list[int] = []
        for dependent in {use.consumer for use in self.graph.uses[index]}:
            if dependent in waiting:
                waiting[dependent] -= 1
                if not waiting[dependent]:
                    freed.append(dependent)
        return freed

    async def _step(self, node: Node) -> None:
        """Run one resolver and settle what it gives."""
        index = node.index
        if node.once and node.key in self.progress.once and self._restore_once(node):
            return
        try:
            result = await self._call(node)
            if isinstance(result, Question):
                self._asked(node, result)
                return
            if node.once and index not in self.graph.rest:
                self.progress.once[node.key] = node.once.dump_python(result, mode="json")
        except (Meant, ResolverFailed):
            raise
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            raise ResolverFailed(node.name, node.path, "ended in a cancellation that nobody asked for") from error
        except PydanticSerializationError as error:
            reason = "gave a value that its return type cannot serialise, though it is marked once=True"
            raise ResolverFailed(node.name, node.path, reason) from error
        except Exception as error:
            raise ResolverFailed(node.name, node.path) from error
        self._values[index] = result
        self._done[index] = True

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
            return await node.fn(**inputs)
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
        outcome = self._outcomes[taken.node]
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
        return taken.default

    def _restore_once(self, node: Node) -> bool:
        if node.once is None:
            return False
        try:
            self._values[node.index] = node.once.validate_python(self.progress.once[node.key])
        except ValueError:
            logger.warning("the once=True value of %r no longer fits its return type; it is computed again", node.name)
            return False
        self._done[node.index] = True
        return True

    # Questions

    def _asked(self, node: Node, marker: Question) -> None:
        if not node.may_ask:
            reason = "asked a question, though its return annotation says that it does not"
            raise ResolverFailed(node.name, node.path, reason)
        try:
            question = render(node.key, marker)
        except (FormError, ValueError) as error:
            raise ResolverFailed(node.name, node.path, f"asked what cannot be asked: {error}") from error
        rests = digest([self._rest(self.graph.nodes[index]) for index in node.rests_on])
        pin = pin_of(question, rests)
        if self._recorded(node, question, pin):
            return
        shown = self.progress.shown.get(node.key)
        note, attempts = None, 1
        if shown is not None and shown.pin == pin:
            attempts = shown.attempts
            answer = self._answers.get(node.key)
            if answer is not None:
                try:
                    entry, outcome = settle(question, answer, pin)
                except Refused as slip:
                    note, attempts = str(slip), attempts + 1
                    if attempts > question.attempts:
                        tries = "1 attempt" if question.attempts == 1 else f"{question.attempts} attempts"
                        raise BadAnswer(f"no valid answer to {node.key!r} after {tries}: {note}") from None
                else:
                    self._settled(node, entry, outcome)
                    return
        missing = lacking(question.requires, self._declared)
        if missing:
            self._unanswerable(node, pin, missing)
            return
        self.progress.shown[node.key] = self._show(node, question, pin, rests, attempts, shown)
        self._open[node.index] = (question, note)

    def _recorded(self, node: Node, question: Rendered, pin: str) -> bool:
        """Use the outcome recorded for exactly this question; drop one for another."""
        entry = self.progress.settled.get(node.key)
        if entry is None:
            return False
        if entry.pin == pin:
            with suppress(BadAnswer, Refused):
                self._settled(node, entry, outcome_of(question, entry))
                return True
        del self.progress.settled[node.key]
        return False

    def _settled(self, node: Node, entry: Settled, outcome: Outcome) -> None:
        self.progress.settled[node.key] = entry
        self.progress.shown.pop(node.key, None)
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

    def _unanswerable(self, node: Node, pin: str, missing: dict[str, Any]) -> None:
        """The client cannot answer: a cancel, if everybody who takes the outcome can live with that."""
        if all(use.input.has_default or use.input.accepts(type(CANCELLED)) for use in self.graph.uses[node.index]):
            self._settled(node, Settled(pin, "cancel", None), CANCELLED)
        else:
            merge(self._lacking, missing)

    def _rest(self, node: Node) -> list[Any]:
        """What another question rests on, of one question or `once` value."""
        if node.once:
            return [node.key, self.progress.once.get(node.key)]
        entry = self.progress.settled.get(node.key) if self._outcomes[node.index] else None
        return [node.key, entry and [entry.pin, entry.action, entry.content]]

    def _show(self, node: Node, question: Rendered, pin: str, rests: str, attempts: int, before: Shown | None) -> Shown:
        if before is None or before.rests != rests:
            return Shown(pin, rests, 0, attempts, (question.text,))
        if before.pin == pin:
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


def _unresolved(taken: FromNode, outcome: Outcome) -> str:
    return f"Resolver for parameter {taken.parameter!r} could not resolve: elicitation was {outcome.action}"
