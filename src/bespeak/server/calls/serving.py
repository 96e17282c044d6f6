"""Running a call for a request, in either era: the shortest way that its consumer allows."""

from collections.abc import Callable
from typing import Any

from mcp_types import InputRequiredResult

from bespeak.protocol.input_responses import read_answers
from bespeak.server.calls.body import run_plain
from bespeak.server.calls.call import Call, Calls
from bespeak.server.calls.replies import Consumer
from bespeak.server.context import CallFacts, Context, end
from bespeak.server.incoming import Incoming
from bespeak.server.legacy.pushed_calls import PushedCall
from bespeak.server.legacy.pushing import Asker

MakeContext = Callable[[CallFacts, Incoming | None], Context[Any, Any]]


class CallServing:
    """Runs the calls of one server."""

    def __init__(self, calls: Calls, context: MakeContext) -> None:
        self._calls = calls
        self._context = context

    async def serve(self, consumer: Consumer, arguments: dict[str, Any], incoming: Incoming) -> dict[str, Any]:
        """Return the wire result of a call. Raises `MCPError` for a protocol error."""
        if incoming.asker is not None:
            return await self._legacy(consumer, arguments, incoming, incoming.asker)
        params = incoming.request.params
        answers = read_answers(params)
        asked: InputRequiredResult | None = None
        if consumer.plain and "requestState" not in params:
            result = await run_plain(consumer, arguments, raise_exceptions=incoming.raise_exceptions)
            if not isinstance(result, InputRequiredResult):
                return result
            asked = result
        facts = CallFacts(consumer.name, principal=incoming.principal, address=incoming.address, answers=answers)
        context = self._context(facts, incoming)
        call = Call(
            self._calls,
            consumer,
            arguments,
            context,
            declared=incoming.request.meta.capabilities,
            raise_exceptions=incoming.raise_exceptions,
        )
        try:
            if asked is not None:
                return await call.ask(asked)
            if "requestState" in params:
                call.resume(params["requestState"], incoming.request.id)
            elif not consumer.graph.has_generators:
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
        asked: InputRequiredResult | None = None
        if consumer.plain:
            result = await run_plain(consumer, arguments, raise_exceptions=incoming.raise_exceptions)
            if not isinstance(result, InputRequiredResult):
                return result
            asked = result
        context = self._context(CallFacts(consumer.name, principal=incoming.principal), incoming)
        call = PushedCall(self._calls, consumer, arguments, context, asker, raise_exceptions=incoming.raise_exceptions)
        try:
            if asked is not None:
                return await self._calls.shelter(call, call.ask(asked))
            if not (consumer.may_ask or consumer.graph.has_generators):
                return await call.run()
            return await self._calls.shelter(call, call.run())
        finally:
            end(context)
