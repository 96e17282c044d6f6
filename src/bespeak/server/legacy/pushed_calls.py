"""A call of an older client: one request, and its questions are pushed while it runs."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.errors import MCPError
from bespeak.protocol.input_responses import typed_answer
from bespeak.resolve.asking.progress import Progress
from bespeak.resolve.errors import Aborted, NotAnswered, ToolError
from bespeak.resolve.running.rounds import Round
from bespeak.server.calls.body import result_of
from bespeak.server.calls.by_hand import asks_by_hand
from bespeak.server.calls.call import Call, Calls
from bespeak.server.calls.replies import Consumer
from bespeak.server.context import Context, headers_of, request_of
from bespeak.server.legacy.pushing import Asker
from bespeak.server.legacy.waiting_calls import weigh

if TYPE_CHECKING:
    from mcp_types import InputRequiredResult

RUNS = 8
"""How often a body that asks by hand is run again."""
PAUSES = (0.05, 0.25)
"""The first and the longest pause, in seconds, before a body that returned only a state is run again."""


class PushedCall(Call):
    """A call of an older client. It ends with its request, except that an approved body still finishes."""

    _era = "legacy"

    def __init__(
        self,
        calls: Calls,
        consumer: Consumer,
        sent: dict[str, Any],
        context: Context[Any, Any],
        asker: Asker,
        *,
        raise_exceptions: bool = False,
    ) -> None:
        super().__init__(calls, consumer, sent, context, declared=asker.declared, raise_exceptions=raise_exceptions)
        self._asker = asker
        asker.call = self
        self._kept: Any = sent

    @property
    def ends_at_once(self) -> bool:
        """Whether nothing waits once the last question is answered. Until then it may be cancelled, and so needs no own task."""
        consumer = self.consumer
        waits = consumer.may_wait or consumer.graph.may_wait_at_last
        return bool(consumer.graph.nodes) and not waits and self._record is None

    def kept_bytes(self, most: int) -> int:
        request = request_of(self._context)
        about = () if request is None else (request.id, request.meta.raw)
        headers = headers_of(self._context)
        return weigh([self._kept, *about, *(headers.raw if headers is not None else ())], most)

    # With resolvers

    def _round(self, arguments: dict[str, Any]) -> Round:
        return Round(
            self.consumer.graph,
            arguments=arguments,
            context=self._context,
            progress=Progress(),
            answers={},
            declared=self._asker.declared,
            call=f"{self.consumer.method} {self.name} {self._arguments}",
            push=self._asker,
            watcher=self._record,
            hold=self._hold,
        )

    async def _run_round(self, round_: Round, arguments: dict[str, Any]) -> dict[str, Any]:
        self._kept = arguments
        self._sent.clear()  # they have been read, and a digest was taken: while somebody is asked, one copy is enough
        await round_.ask()
        self.closed = self.approved = round_.asked  # from here on an approval is spent
        record = self._record if round_.asked else None
        if record is None:
            return await self._conclude(round_, arguments)
        record.claimed()
        await record.written()
        try:
            result = await self._conclude(round_, arguments)
        except BaseException as error:
            record.finished((error.refusal if isinstance(error, Aborted) else None) or "failed")
            raise
        record.finished("failed" if result.get("isError") else None)
        return result

    # By hand

    def _obstacle(self, request: Mapping[str, Any], missing: Mapping[str, Any]) -> AskingObstacle | None:
        return self._asker.obstacle(request, missing)

    async def _ask_by_hand(self, asked: "InputRequiredResult") -> dict[str, Any]:
        """Push what a body returned as questions, and run it again with the answers, until it returns something else."""
        value: Any = asked
        pause = PAUSES[0]
        for _ in range(RUNS):
            if not asks_by_hand(value):
                return result_of(self.consumer, value)
            requests = self._questions_by_hand(value)
            self._facts.answers = {key: await self._one(key, request) for key, request in requests.items()}
            self._facts.request_state = value.request_state
            self._facts.round += 1
            if not requests:
                self._facts.answers = None
                await asyncio.sleep(pause)
                pause = min(pause * 2, PAUSES[1])
            self.approved = self.approved or bool(requests)
            self.closed = self.approved
            value = await self._body(self.consumer.arguments.read(self._sent))
            self.closed = False
        if not asks_by_hand(value):
            return result_of(self.consumer, value)
        raise ToolError(f"it is still asking after {RUNS} runs")

    async def _one(self, key: str, request: dict[str, Any]) -> dict[str, Any]:
        if self._record is not None:
            self._record.asked(key, None, again=False)
        try:
            answer = await self._asker.ask(key, request)
        except NotAnswered as failure:
            raise NotAnswered(f"question {key!r} got no answer: {failure}") from failure
        try:
            typed_answer(key, answer, request["method"])
        except MCPError:
            raise ToolError(f"the answer to {key!r} is not a response to {request['method']}") from None
        if self._record is not None:
            self._record.answered(key, None, answer.get("action", "accept"))
        return answer
