"""A client of 2025-11-25 with a session: questions arrive on the stream of the call, answers are requests of their own."""

import asyncio
import itertools
import json
import time
from collections.abc import Mapping
from typing import Any

from storm.exchanges import Exchanges, Stream
from storm.records import Era, Plan, Record
from storm.replies import Ending, Reply, broken, overdue, read_reply

CALL_SECONDS = 90.0
"""How long a call may take, answers included."""
ANSWER_SECONDS = 30.0
"""How long it may take until an answer is accepted: the worker that asked has 5 s to fetch it."""
TRIES = 20
"""How often a request is sent again whose worker died, if sending it again does no harm."""
PAUSE_SECONDS = 0.2
_INITIALIZE: Mapping[str, Any] = {
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": Era.OLDER.value,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "storm", "version": "1"},
    },
}


class OlderClient:
    """One session."""

    def __init__(self, exchanges: Exchanges) -> None:
        self._exchanges = exchanges
        self._session = ""
        self._ids = itertools.count(1)
        self.troubles: list[Reply] = []
        """Replies to requests that belong to no call, other than those that were wanted."""

    @property
    def _headers(self) -> dict[str, str]:
        return {"Mcp-Session-Id": self._session, "MCP-Protocol-Version": Era.OLDER.value}

    async def begin(self) -> None:
        """Make the handshake."""
        for _ in range(TRIES):
            reply, self._session = await self._exchanges.initialize(_INITIALIZE)
            if self._session:
                break
            self.troubles.append(reply)
            await asyncio.sleep(PAUSE_SECONDS)
        await self._tell({"method": "notifications/initialized"}, self.troubles)

    async def end(self) -> None:
        """End the session. If the worker died, the session may have ended all the same."""
        died = False
        for _ in range(TRIES):
            reply = await self._exchanges.delete(self._headers)
            if reply.ending is Ending.ACCEPTED or (died and reply.said.startswith("HTTP 404")):
                return
            self.troubles.append(reply)
            died = died or reply.ending is Ending.BROKEN
            if reply.ending is not Ending.BROKEN:
                return
            await asyncio.sleep(PAUSE_SECONDS)

    async def call(self, plan: Plan) -> Record:
        """Make one call. It is never sent twice: what a worker that died has done cannot be known."""
        record = Record(plan)
        arguments = {"order": plan.order, "cents": plan.cents, "pause_ms": plan.pause_ms}
        message = {"id": next(self._ids), "method": "tools/call", "params": {"name": plan.tool, "arguments": arguments}}
        answering: list[asyncio.Task[Reply]] = []
        try:
            async with asyncio.timeout(CALL_SECONDS), self._exchanges.stream(message, self._headers) as stream:
                end = await self._converse(record, stream, answering)
        except ConnectionError as error:
            end = broken(str(error))
        except TimeoutError:
            end = overdue(CALL_SECONDS)
        answers = [await one for one in answering]
        gone = [reply for reply in answers if reply.ending is Ending.WORKER_GONE]
        record.replies.append(gone[0] if gone and end.ending is Ending.BROKEN else end)
        return record

    async def _converse(self, record: Record, stream: Stream, answering: list[asyncio.Task[Reply]]) -> Reply:
        """Answer what is asked on a stream until the response comes. Raises `ConnectionError`."""
        sent: float | None = None
        while True:
            try:
                message = await stream.next()
            finally:
                if sent is not None:
                    record.waited = max(record.waited, time.perf_counter() - sent)
            read: dict[str, Any] = json.loads(message) if message else {}
            if read.get("method") != "elicitation/create":
                return read_reply(stream.status, message, stream.worker)
            record.asked += 1
            sent = time.perf_counter()
            answering.append(asyncio.create_task(self._send_answer(record, read["id"], stream.worker)))

    async def _send_answer(self, record: Record, id_: str, asker: str) -> Reply:
        reply = await self._tell({"id": id_, "result": self._answer(record)}, record.detours)
        if reply.ending is Ending.ACCEPTED:
            record.crossed = bool(record.crossed) or reply.worker != asker
        return reply

    def _answer(self, record: Record) -> dict[str, Any]:
        plan = record.plan
        if record.asked < plan.questions:
            return {"action": "accept", "content": {"value": plan.tip}}
        record.answered = True
        return {"action": "accept", "content": {"value": True}} if plan.consents else {"action": "decline"}

    async def _tell(self, message: Mapping[str, Any], troubles: list[Reply]) -> Reply:
        """Send what wants no response, again if its worker died: only the first answer to a question counts."""
        for _ in range(TRIES):
            reply = await self._exchanges.post(message, self._headers, ANSWER_SECONDS)
            if reply.ending is Ending.ACCEPTED:
                return reply
            troubles.append(reply)
            if reply.ending not in (Ending.BROKEN, Ending.STORE_UNREACHABLE):
                break
            await asyncio.sleep(PAUSE_SECONDS)
        return troubles[-1]
