"""A client that goes away after a round: it is asked, and sends nothing more."""

import asyncio
import json
from typing import Any

import pytest

from bespeak.transports.interfaces import Ask, Outgoing
from tests.testing.canned import Canned, Hold, Pushing, asking, error, form, messages, told
from tests.testing.canned import hold as hold

STOP = "  - {{name: a, tool: pay, {more}}}\n"


def stop(more: str) -> str:
    return STOP.format(more=more)


async def test_nothing_is_sent_after_the_questions_of_the_round(hold: Hold) -> None:
    server = Canned(asking("ok"), told("Paid."))
    (result,) = await hold(server, stop("stop: {after: 1}, expect: {rounds: 1, asked: [ok], notifications: []}"))
    assert result.failures == []
    assert len(server.sent) == 1
    assert [one.as_json()["answered"] for one in result.rounds] == [{}]


async def test_the_rounds_before_are_answered(hold: Hold) -> None:
    server = Canned(asking("ok"), asking("next"), told("Paid."))
    (result,) = await hold(server, stop("stop: {after: 2}, inputResponses: {ok: x}"))
    assert result.failures == []
    assert [list(params.get("inputResponses", ())) for params in server.params] == [[], ["ok"]]


async def test_what_the_last_round_asks_is_checked(hold: Hold) -> None:
    tests = stop("stop: {after: 1}, rounds: [{expect: {asks: [other]}}]")
    assert messages(await hold(Canned(asking("ok")), tests)) == [
        "round 1 asked ok instead of other; the client stops after round 1"
    ]


async def test_whether_anything_was_done_is_verified_afterwards(hold: Hold) -> None:
    verify = "verify: {tool: balance, expect: {structuredContent: {paid: 0}}}"
    server = Canned(asking("ok"), told(structuredContent={"paid": 1}))
    results = await hold(server, stop(f"stop: {{after: 1}}, {verify}"))
    assert messages(results) == ["verify: structuredContent.paid: expected 0, got 1"]
    assert len(server.sent) == 2


async def test_an_answer_that_is_never_sent_is_reported_with_the_reason(hold: Hold) -> None:
    results = await hold(Canned(asking("ok")), stop("stop: {after: 1}, inputResponses: {ok: x}"))
    assert messages(results) == [
        "the answer 'ok' (inputResponses) was not used: the server never asked for it; the client stops after round 1"
    ]


@pytest.mark.parametrize(("reply", "ended"), [(told("Paid."), "Paid."), (error("no"), "an error: no (-32602)")])
async def test_a_call_that_ends_before_the_round_fails_as_not_reached(
    hold: Hold, reply: dict[str, Any], ended: str
) -> None:
    results = await hold(Canned(asking("ok"), reply), stop("stop: {after: 2}, inputResponses: {ok: x}"))
    (message,) = messages(results)
    assert message.startswith("not reached: the server never reached round 2, so the client did not stop")
    assert message.endswith(ended)


async def test_a_question_without_an_answer_before_the_round_is_reported_alone(hold: Hold) -> None:
    results = await hold(Canned(asking("ok")), stop("stop: {after: 2}"))
    assert messages(results) == ["there is no answer to 'ok' (Which one?)"]


# Older revisions


class Cancelled(Pushing):
    """A server of an older revision that notes when its call is cancelled."""

    def __init__(self, *questions: dict[str, Any]) -> None:
        super().__init__(*questions)
        self.cancelled = 0

    async def exchange(self, request: Outgoing, notify: Any, ask: Ask | None = None) -> bytes:
        try:
            return await super().exchange(request, notify, ask)
        except asyncio.CancelledError:
            assert json.loads(request.message)["method"] == "tools/call"
            self.cancelled += 1
            raise


async def test_during_a_pushed_question_the_call_is_cancelled_and_the_question_gets_no_answer(hold: Hold) -> None:
    server = Cancelled(form(), form("And?"))
    (result,) = await hold(server, stop("stop: {after: 1}, expect: {rounds: 1, asked: [value]}"))
    assert result.failures == []
    assert server.cancelled == 1
    assert server.answered == []


async def test_pushed_questions_before_it_are_answered(hold: Hold) -> None:
    server = Cancelled(form(), form("And?"))
    (result,) = await hold(server, stop("stop: {after: 2}, inputResponses: {value: x}, expect: {rounds: 2}"))
    assert result.failures == []
    assert len(server.answered) == 1
