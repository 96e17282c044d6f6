"""A client at the refund desk that sends the last request of each call twice at once: the same one, or with another answer."""

import asyncio
import itertools
import time
from typing import Any

from bespeak.state.ledger_errors import SettledOtherwise
from storm.desk_visits import Visits, expected
from storm.exchanges import Exchanges
from storm.replies import Ending, Reply, text_of

CLIENTS = 4
TOOL = "refund_order"
YES = {"action": "accept", "content": {"restock": True}}
NO = {"action": "accept", "content": {"restock": False}}
FULL = {"action": "accept", "content": {"full": True}}


class DoublingClient:
    """Makes calls of 2026-07-28."""

    def __init__(self, exchanges: Exchanges, *, same: bool) -> None:
        self._exchanges = exchanges
        self._same = same
        """Whether both requests have the same answer. With different ones, only one of the two may be refunded."""
        self._ids = itertools.count(1)

    async def visit(self, calls: int) -> Visits:
        """Make so many calls."""
        visits = Visits()
        numbers = iter(range(calls))

        async def one_client() -> None:
            for number in numbers:
                began = time.perf_counter()
                await self._refund(f"doubled {number}", visits)
                visits.slowest = max(visits.slowest, time.perf_counter() - began)

        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(one_client())
        return visits

    async def _refund(self, reason: str, visits: Visits) -> None:
        visits.calls += 1
        arguments = {"order_id": "ORD-7002", "reason": reason}
        reply, asked = await self._send(arguments, {}), 0
        answers = FULL
        while reply.ending is Ending.ASKED:
            asked += 1
            content = reply.content or {}
            (key,) = content["inputRequests"]
            if asked == 2:
                pair = [{key: YES}, {key: YES if self._same else NO}]
                both = await asyncio.gather(*(self._send(arguments, _answering(content, answers)) for answers in pair))
                self._judge(reason, both, visits)
                break
            reply = await self._send(arguments, _answering(content, {key: answers}))
        visits.unasked += asked != 2
        if asked != 2:
            visits.failures.append(f"{reason}: {reply.said}")

    def _judge(self, reason: str, both: list[Reply], visits: Visits) -> None:
        done = [reply for reply in both if reply.ending is Ending.RESULT]
        refunds = [(reply.content or {}).get("structuredContent") for reply in done]
        if len({reply.result for reply in done}) > 1:
            visits.doubled += 1
        right = [expected(reason), {**expected(reason), "restocked": False}][: 1 if self._same else 2]
        if self._same:
            held = len(done) == 2 and all(refund in right for refund in refunds)
        else:
            others = [reply for reply in both if reply not in done]
            told = [text_of(reply.content or {}).endswith(str(SettledOtherwise())) for reply in others]
            held = len(done) == 1 and refunds[0] in right and told == [True]
        if held:
            visits.refunded += 1
        else:
            visits.failures.append(f"{reason}: {' | '.join(reply.said for reply in both)}")

    async def _send(self, arguments: dict[str, Any], params: dict[str, Any]) -> Reply:
        return await self._exchanges.call_modern(TOOL, {"arguments": arguments, **params}, f"double/{next(self._ids)}")


def _answering(asked: Any, answers: dict[str, Any]) -> dict[str, Any]:
    return {"inputResponses": answers, "requestState": asked["requestState"]}
