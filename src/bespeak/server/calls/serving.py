"""Running a call for a request, in either era: the shortest way that its consumer allows."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bespeak.protocol.input_responses import read_answers
from bespeak.resolve.errors import ToolError
from bespeak.server.calls.body import run_plain, run_straight
from bespeak.server.calls.by_hand import asks_by_hand
from bespeak.server.calls.call import Call, Calls
from bespeak.server.calls.concurrency import CallLimits, RunningCalls, TooManyCalls
from bespeak.server.calls.replies import Consumer
from bespeak.server.context import CallFacts, Context, end
from bespeak.server.features.completions import CompletionRun
from bespeak.server.incoming import Incoming
from bespeak.server.legacy.pushed_calls import PushedCall
from bespeak.server.legacy.pushing import Asker
from bespeak.server.middleware import Around, CallEnd, CallHook, CallInfo

if TYPE_CHECKING:
    from mcp_types import InputRequiredResult

MakeContext = Callable[[CallFacts, Incoming | None], Context[Any, Any]]


class CallServing:
    """Runs the calls of one server."""

    def __init__(self, calls: Calls, context: MakeContext, limits: CallLimits) -> None:
        self._calls = calls
        self._context = context
        self._running = RunningCalls(limits)
        self.bounded = self._running.bounded
        """Whether calls that run at the same time are counted."""
        self.hooks: list[CallHook] = []

    def serve(
        self, consumer: Consumer, arguments: dict[str, Any], incoming: Incoming
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Return the wire result of a call. Raises `MCPError` for a protocol error."""
        serve = self._serve_bounded if self.bounded else self._serve
        return serve(consumer, arguments, incoming)

    async def _serve_bounded(self, consumer: Consumer, arguments: dict[str, Any], incoming: Incoming) -> dict[str, Any]:
        try:
            with self._running.running(incoming.principal or incoming.address) as slot:
                if incoming.asker is not None:
                    incoming.asker.slot = slot
                return await self._serve(consumer, arguments, incoming)
        except TooManyCalls as refusal:
            return consumer.failure(refusal)

    async def _serve(self, consumer: Consumer, arguments: dict[str, Any], incoming: Incoming) -> dict[str, Any]:
        if incoming.asker is not None:
            return await self._legacy(consumer, arguments, incoming, incoming.asker)
        params = incoming.request.params
        answers = read_answers(params) if "inputResponses" in params else None
        if consumer.plain and not self.hooks and "requestState" not in params:
            result = await run_plain(consumer, arguments, raise_exceptions=incoming.raise_exceptions)
            if not asks_by_hand(result):
                return result
            return await self.ask(consumer, arguments, incoming, result)
        straight = consumer.graph.straight and not self.hooks and "requestState" not in params
        if straight and not (consumer.graph.uses_context or consumer.context_parameters):
            return await run_straight(consumer, arguments, None, raise_exceptions=incoming.raise_exceptions)
        principal, address = incoming.sender
        facts = CallFacts(consumer.name, consumer.home, None, 1, principal, address, answers)
        context = self._context(facts, incoming)
        if straight:
            return await run_straight(consumer, arguments, context, raise_exceptions=incoming.raise_exceptions)
        call = self._call(consumer, arguments, context, incoming)
        try:
            own_task = consumer.graph.has_generators
            if "requestState" in params:
                call.resume(params["requestState"], incoming.request.id)
                incoming.round = facts.round
                own_task = own_task or not call.ends_at_once
            if not own_task and not self.hooks:
                return await call.run()
            return await self._run(call, context, arguments, own_task=own_task)
        finally:
            incoming.refusal = call.refusal
            end(context)

    async def ask(
        self, consumer: Consumer, arguments: dict[str, Any], incoming: Incoming, asked: "InputRequiredResult"
    ) -> dict[str, Any]:
        """Return the wire result of a plain consumer that turned out to ask by hand."""
        facts = CallFacts(consumer.name, consumer.home, principal=incoming.principal, address=incoming.address)
        context = self._context(facts, incoming)
        try:
            return await self._call(consumer, arguments, context, incoming).ask(asked)
        finally:
            end(context)

    def _call(
        self, consumer: Consumer, arguments: dict[str, Any], context: Context[Any, Any], incoming: Incoming
    ) -> Call:
        return Call(
            self._calls,
            consumer,
            arguments,
            context,
            declared=incoming.request.meta.capabilities,
            raise_exceptions=incoming.raise_exceptions,
        )

    async def _run(
        self, call: Call, context: Context[Any, Any], arguments: dict[str, Any], *, own_task: bool
    ) -> dict[str, Any]:
        """Run a call inside the author's hooks, in a task of its own if it may have to outlive its request."""
        if not self.hooks:
            return await (self._calls.shelter(call, call.run()) if own_task else call.run())

        async def work() -> dict[str, Any]:
            return await (self._calls.shelter(call, call.run()) if own_task else call.run())

        info = CallInfo(call.consumer.method, call.name, arguments, context)
        try:
            return await Around(self.hooks, info, work, _call_end).run()
        except ToolError as refusal:
            return call.consumer.failure(refusal)

    async def complete(self, run: CompletionRun, incoming: Incoming) -> dict[str, Any]:
        """Return the wire result of a completion, in either era. Nobody is asked, so there is no state and no ledger.

        Raises `MCPError` if it fails.
        """
        if not self.bounded:
            return await self._complete(run, incoming)
        try:
            with self._running.running(incoming.principal or incoming.address):
                return await self._complete(run, incoming)
        except TooManyCalls as refusal:
            run.failure(refusal)

    async def _complete(self, run: CompletionRun, incoming: Incoming) -> dict[str, Any]:
        facts = CallFacts(run.name, run.home, principal=incoming.principal, completes=True)
        context = self._context(facts, replace(incoming, asker=None))
        call = Call(self._calls, run, run.values, context, declared={}, raise_exceptions=incoming.raise_exceptions)
        try:
            if not run.graph.has_generators:
                return await call.run()
            return await self._calls.shelter(call, call.run())
        finally:
            end(context)

    async def _legacy(
        self, consumer: Consumer, arguments: dict[str, Any], incoming: Incoming, asker: Asker
    ) -> dict[str, Any]:
        """Run a call that has one request. What later revisions send with a retry means nothing here."""
        # It may wait for a person. Nothing is kept meanwhile that it does not need.
        for name in incoming.request.params.keys() - {"name", "uri", "_meta"}:
            del incoming.request.params[name]
        asked, asker.by_hand = asker.by_hand, None
        if asked is None and consumer.plain and not self.hooks:
            result = await run_plain(consumer, arguments, raise_exceptions=incoming.raise_exceptions)
            if not asks_by_hand(result):
                return result
            asked = result
        facts = CallFacts(consumer.name, consumer.home, principal=incoming.principal, address=incoming.address)
        context = self._context(facts, incoming)
        call = PushedCall(self._calls, consumer, arguments, context, asker, raise_exceptions=incoming.raise_exceptions)
        try:
            if asked is not None:
                return await self._calls.shelter(call, call.ask(asked))
            own_task = consumer.graph.has_generators or (consumer.may_ask and not call.ends_at_once)
            return await self._run(call, context, arguments, own_task=own_task)
        finally:
            incoming.refusal = call.refusal
            end(context)


def _call_end(result: dict[str, Any]) -> CallEnd:
    return CallEnd(result.get("resultType") == "input_required", bool(result.get("isError")))
