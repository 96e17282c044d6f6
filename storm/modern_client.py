"""A client of 2026-07-28 that sends the last request of each call again and again: at the same time, and afterwards."""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from storm.exchanges import Exchanges
from storm.records import Plan, Record
from storm.replies import SETTLED, Ending, Reply

AT_ONCE = 3
"""How often the last request is sent at the same time."""
AFTERWARDS = 2
"""How often it is sent one after another when the call is settled."""
TRIES = 20
"""How often a request is sent again that got no reply because its worker died."""
PAUSE_SECONDS = 0.2


class ModernClient:
    """Makes calls with questions."""

    def __init__(self, exchanges: Exchanges) -> None:
        self._exchanges = exchanges
        self._ids = itertools.count(1)

    async def call(self, plan: Plan) -> Record:
        """Make one call."""
        record = Record(plan)
        asked = [await self._until_asked(record, {})]
        answers: list[Any] = [] if plan.tip is None else [{"action": "accept", "content": {"value": plan.tip}}]
        for answer in answers:
            params = _answering(asked, answer)
            if params is None:
                return record
            record.asked += 1
            # Both replies ask the same question, so that any of the two states may be sent with the answer.
            asked = await asyncio.gather(*(self._until_asked(record, params[0]) for _ in range(2)))
        last = _answering(
            asked, {"action": "accept", "content": {"value": True}} if plan.consents else {"action": "decline"}
        )
        if last is None:
            return record
        record.asked += 1
        await self._settle(record, last)
        return record

    async def _until_asked(self, record: Record, params: dict[str, Any]) -> Reply:
        """Send a request until it is answered with a question. Nothing has been spent, so it may be sent again."""
        for _ in range(TRIES):
            reply = await self._send(record.plan, params)
            if reply.ending is Ending.ASKED:
                return reply
            record.detours.append(reply)
            if reply.ending not in (Ending.BROKEN, Ending.STORE_UNREACHABLE):
                break
            await asyncio.sleep(PAUSE_SECONDS)
        return record.detours[-1]

    async def _settle(self, record: Record, requests: Sequence[dict[str, Any]]) -> None:
        """Send the last request several times at once, then until a reply is final, and then again, which must change nothing."""
        record.answered = True
        turns = itertools.cycle(requests)
        record.replies += await asyncio.gather(*(self._send(record.plan, next(turns)) for _ in range(AT_ONCE)))
        for _ in range(TRIES):
            if any(reply.ending in SETTLED for reply in record.replies):
                break
            await asyncio.sleep(PAUSE_SECONDS)
            record.replies.append(await self._send(record.plan, next(turns)))
        for _ in range(AFTERWARDS):
            record.replies.append(await self._send(record.plan, next(turns)))

    async def _send(self, plan: Plan, params: dict[str, Any]) -> Reply:
        arguments = {"order": plan.order, "cents": plan.cents, "pause_ms": plan.pause_ms}
        id_ = f"{plan.order}/{next(self._ids)}"
        return await self._exchanges.call_modern(plan.tool, {"arguments": arguments, **params}, id_)


def _answering(asked: Sequence[Reply], answer: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return a request with the answer for each reply that asks; `None` if one of them does not ask one question."""
    requests: list[dict[str, Any]] = []
    for reply in asked:
        content = reply.content or {}
        questions: dict[str, Any] = content.get("inputRequests") or {}
        if reply.ending is not Ending.ASKED or len(questions) != 1:
            return None
        (key,) = questions
        requests.append({"inputResponses": {key: answer}, "requestState": content["requestState"]})
    return requests
