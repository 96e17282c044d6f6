"""The table of requests under way: ids, cancellations, and responses that travel together."""

import asyncio
import json
import logging
from typing import Any

import pytest

from bespeak.protocol.errors import MCPError
from bespeak.protocol.messages import LegacyRequest, MalformedMessage, Notification, Request
from bespeak.transports.interfaces import WrittenResponse
from bespeak.transports.requests_under_way import ID_IN_USE, RequestsUnderWay, Responses, Task, cancel_and_wait
from tests.waiting import eventually


class Desk:
    """Serves requests when it is told to, and keeps what is sent."""

    def __init__(self, broken_off: MCPError | None = None) -> None:
        self.gate = asyncio.Event()
        self.sent: list[list[Any]] = []
        self.tasks: set[Task] = set()
        self.requests = RequestsUnderWay(lambda: broken_off, all_tasks=self.tasks)

    async def serve(self, request: Request | LegacyRequest) -> WrittenResponse:
        await self.gate.wait()
        return WrittenResponse(json.dumps({"id": request.id}).encode())

    def start(self, *messages: LegacyRequest | MalformedMessage, batch: bool = False) -> Responses:
        responses = Responses(len(messages), lambda found: self.sent.append([json.loads(one) for one in found]))
        for message in messages:
            self.requests.start(message, self.serve, responses, batch=batch)
        return responses


def cancelled(id_: Any) -> Notification:
    return Notification("notifications/cancelled", {"requestId": id_})


async def test_responses_of_a_batch_are_sent_together_and_a_cancelled_request_has_none() -> None:
    desk = Desk()
    broken = MalformedMessage(MCPError(-32600, "no"), None)
    responses = desk.start(
        broken, LegacyRequest(1, "a", {}), LegacyRequest("1", "a", {}), LegacyRequest(2, "initialize", {}), batch=True
    )
    assert responses.unanswered == [1, "1"]
    others: list[Any] = [7, 1.0, True, None, [], "1"]
    for id_ in others:
        desk.requests.heard(cancelled(id_))
    assert (desk.requests.is_cancelled("1"), desk.requests.is_cancelled(1)) == (True, False)
    desk.gate.set()
    await eventually(lambda: desk.sent)
    ((first, handshake, last),) = desk.sent
    assert (first["error"]["message"], handshake["id"], last) == ("no", 2, {"id": 1})
    assert (bool(desk.requests), desk.tasks, responses.unanswered) == (False, set(), [])


async def test_an_id_is_in_use_until_its_response_is_sent() -> None:
    desk = Desk()
    desk.start(LegacyRequest(1, "a", {}))
    desk.start(LegacyRequest(1, "a", {}))
    assert desk.sent[0][0]["error"]["message"] == ID_IN_USE
    desk.gate.set()
    await eventually(lambda: desk.sent[1:] == [[{"id": 1}]])
    desk.start(LegacyRequest(1, "a", {}))
    await eventually(lambda: len(desk.sent) == 3)
    assert desk.sent[2] == [{"id": 1}]


@pytest.mark.parametrize("error", [None, MCPError(-32603, "over")], ids=["nobody waits", "somebody waits"])
async def test_a_request_that_is_cancelled_by_the_server_is_answered_if_somebody_waits(error: MCPError | None) -> None:
    desk = Desk(error)
    desk.start(LegacyRequest(1, "a", {}))
    desk.requests.cancel_all("over")
    await eventually(lambda: desk.sent)
    assert [one["error"]["message"] for one in desk.sent[0]] == ([] if error is None else ["over"])


async def test_a_task_that_ignores_its_cancellation_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    gate = asyncio.Event()

    async def stubborn() -> None:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue

    task = asyncio.create_task(stubborn(), name="bespeak request stubborn")
    await asyncio.sleep(0)
    await cancel_and_wait({task}, "over", 0.01, logging.getLogger("bespeak.test"))
    assert caplog.messages == ["bespeak request stubborn ignored its cancellation and is abandoned"]
    gate.set()
    await task
