"""Holding one conversation over any line: what each leg sends, when it stops, and what is never shown.

testing.md section 1 (the rules of a retry, state-only rounds, the cap) and protocol section 6.4.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bespeak.client.errors import CallbackFailed
from bespeak.conversation import call_rounds
from bespeak.conversation.answer_sources import FixtureScript
from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.call_rounds import Conversation, RoundsExceeded
from bespeak.conversation.connection import Push, Received, Scripts, nothing
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.exchange import BrokenRule, Talk
from bespeak.conversation.fixtures import InputResponseFixture, MissingAnswer
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question
from bespeak.testing.attacks import Attack
from bespeak.testing.suite.suite_file import Fault
from tests.testing.canned import MODERN, NOVEMBER, TOKEN, Json, asking, error, form, told

CALL: Json = {"name": "forecast", "arguments": {"day": "today"}}
ACCEPTED: Json = {"action": "accept", "content": {"value": "Rome"}}


@dataclass
class Canned:
    """A line on which the replies come in their order, and what was sent is kept."""

    replies: Sequence[Json]
    version: str = MODERN
    sent: list[Json] = field(default_factory=list[Json])
    notifications: Sequence[Json] = ()
    findings: Sequence[Finding] = ()

    async def send(self, method: str, params: Json, push: Push, scripts: Scripts = nothing) -> Received:
        self.sent.append(params)
        reply = self.replies[min(len(self.sent), len(self.replies)) - 1]
        members = reply if "error" in reply else {"result": reply}
        return Received({"jsonrpc": "2.0", "id": 1, **members}, list(self.notifications), list(self.findings))

    def astray(self) -> list[Finding]:
        return []

    async def settle(self) -> None:
        """Nothing comes beside what is canned."""


@dataclass
class Pushing:
    """A line over which questions are pushed in mid-call: one after the other, or all of them at once."""

    questions: Sequence[Question]
    at_once: bool = False
    version: str = NOVEMBER
    answers: list[Any] = field(default_factory=list[Any])

    async def send(self, method: str, params: Json, push: Push, scripts: Scripts = nothing) -> Received:
        if self.at_once:
            self.answers += await asyncio.gather(*map(push, self.questions))
        else:
            for question in self.questions:
                self.answers.append(await push(question))
        if None in self.answers:
            raise CallbackFailed("city", "elicitation/create", "there is no answer to it")
        return Received({"jsonrpc": "2.0", "id": 1, "result": told()})

    def astray(self) -> list[Finding]:
        return []

    async def settle(self) -> None:
        """Nothing comes beside what is canned."""


def talk(line: Canned | Pushing, answers: Any = None, **more: Any) -> Talk:
    conversation = Conversation("tools/call", CALL, capabilities=EVERYTHING, **more)
    return Talk(line, conversation, FixtureScript(InputResponseFixture(answers)))


async def held(line: Canned | Pushing, answers: Any = None, **more: Any) -> Talk:
    holding = talk(line, answers, **more)
    await holding.hold()
    return holding


def pushed(key: str) -> Question:
    asked = form(f"Which {key}?")
    return Question(key, asked["method"], asked["params"])


# Legs


async def test_a_call_that_asks_nothing_is_one_request_and_no_round() -> None:
    line = Canned([told()])
    holding = await held(line)
    assert line.sent == [CALL]
    assert (holding.conversation.rounds, holding.asked) == ([], [])
    assert holding.envelope["result"] == told()


async def test_a_retry_carries_the_original_params_this_rounds_answers_and_its_state() -> None:
    line = Canned([asking("city", state="one"), asking("units", state="two"), told()])
    await held(line, {"city": "Rome", "units": "C"})
    celsius = {"action": "accept", "content": {"value": "C"}}
    assert line.sent == [
        CALL,
        {**CALL, "inputResponses": {"city": ACCEPTED}, "requestState": "one"},
        {**CALL, "inputResponses": {"units": celsius}, "requestState": "two"},
    ]


async def test_an_error_between_rounds_ends_the_call() -> None:
    line = Canned([asking("city"), error("too late"), told()])
    holding = await held(line, {"city": "Rome"})
    assert holding.envelope["error"]["message"] == "too late"
    assert len(line.sent) == 2


async def test_notifications_and_findings_of_all_legs_are_kept_in_their_order() -> None:
    note: Json = {"method": "notifications/message", "params": {"data": 1}}
    line = Canned([asking("city"), told()], notifications=[note], findings=[Finding("envelope", "odd")])
    holding = await held(line, {"city": "Rome"})
    assert holding.notifications == [note, note]
    assert holding.conversation.findings == [Finding("envelope", "odd")] * 2


# Where it stops


async def test_a_question_without_an_answer_stops_the_call_and_nothing_is_sent() -> None:
    line = Canned([asking("city", "units")])
    with pytest.raises(MissingAnswer, match=r"there is no answer to 'units' \(Which one\?\)"):
        await held(line, {"city": "Rome"})
    assert line.sent == [CALL]


async def test_a_question_that_was_not_declared_is_not_answered() -> None:
    line = Canned([asking("city")])
    holding = Talk(
        line,
        Conversation("tools/call", CALL, capabilities={"sampling": {}}),
        FixtureScript(InputResponseFixture({"city": "Rome"})),
    )
    with pytest.raises(
        BrokenRule, match=r"'city' asks for elicitation\.form, which the client did not declare \(undeclared: "
    ):
        await holding.hold()
    assert line.sent == [CALL]


async def test_five_answered_rounds_pass_and_the_sixth_question_fails() -> None:
    rounds = [asking("city", state=str(number)) for number in range(6)]
    holding = await held(Canned([*rounds[:5], told()]), {"city": "Rome"})
    assert len(holding.conversation.rounds) == 5
    with pytest.raises(
        RoundsExceeded, match=r"(?s)after 5 answered rounds; .* round 6: city \(Which one\?\) -> no answer"
    ):
        await held(Canned(rounds), {"city": "Rome"})


async def test_rounds_that_only_hand_out_a_state_count_and_are_not_hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("bespeak.conversation.exchange.asyncio.sleep", sleep)
    line = Canned([asking(state=str(number)) for number in range(6)])
    with pytest.raises(RoundsExceeded, match="round 6: nothing, only a state"):
        await held(line)
    assert pauses == [0.05, 0.1, 0.2, 0.25, 0.25]
    assert call_rounds.BACKOFF == (0.05, 0.25)
    assert line.sent[1] == {**CALL, "requestState": "0"}  # and no answers, for nothing was asked


# Questions that are pushed


async def test_a_pushed_question_is_answered_from_the_same_fixture() -> None:
    line = Pushing([pushed("city"), pushed("units")])
    holding = await held(line, {"city": "Rome", "units": "decline"})
    assert line.answers == [ACCEPTED, {"action": "decline"}]
    assert holding.asked == ["city", "units"]
    assert [one.asked for one in holding.conversation.rounds] == [{"city": "Which city?"}, {"units": "Which units?"}]


async def test_questions_that_are_pushed_at_once_are_answered_each_with_its_own() -> None:
    line = Pushing([pushed(f"k{number}") for number in range(5)], at_once=True)
    holding = await held(line, {f"k{number}": str(number) for number in range(5)})
    assert [answer["content"]["value"] for answer in line.answers] == ["0", "1", "2", "3", "4"]
    assert sorted(holding.asked) == ["k0", "k1", "k2", "k3", "k4"]


async def test_a_missing_answer_to_a_pushed_question_is_raised_by_the_call() -> None:
    with pytest.raises(MissingAnswer, match="there is no answer to 'city'"):
        await held(Pushing([pushed("city")]))


async def test_a_pushed_question_cannot_be_left_out() -> None:
    with pytest.raises(CannotAnswer, match="'city' was asked during the call and cannot be omitted"):
        await held(Pushing([pushed("city")]), {"city": "omit"})


# Lost responses


@pytest.mark.parametrize(("round_", "sent"), [(0, [0, 0, 0, 1]), (1, [0, 1, 1, 1])])
async def test_a_request_whose_response_is_lost_is_sent_again_as_it_was(round_: int, sent: list[int]) -> None:
    line = Canned([asking("city")] * (1 if round_ else 3) + [told()])
    holding = talk(line, {"city": "Rome"})
    holding.interference = Attack(fault=Fault(round=round_, drop="response"), retry=2)
    await holding.hold()
    retried = {**CALL, "inputResponses": {"city": ACCEPTED}, "requestState": TOKEN}
    assert line.sent == [[CALL, retried][number] for number in sent]
    assert len(holding.conversation.rounds) == 1


# The token


async def test_the_token_is_in_no_representation_of_what_is_held() -> None:
    line = Canned([asking("city"), asking("units")])
    holding = talk(line, {"city": "Rome"})
    with pytest.raises(MissingAnswer) as raised:
        await holding.hold()
    assert TOKEN in str(holding.conversation.as_json())  # who goes on with the call needs it
    received = Received({"result": asking("city")})
    for shown in (holding.conversation, holding.conversation.pending, holding.conversation.rounds, received):
        assert TOKEN not in repr(shown)
    assert TOKEN not in repr(raised.value) + str(raised.value)


async def test_at_an_older_revision_a_result_that_asks_breaks_a_rule() -> None:
    holding = await held(Canned([asking("city"), told()], version=NOVEMBER), {"city": "Rome"})
    (finding,) = holding.conversation.findings
    assert (finding.rule, finding.text) == ("era", "at 2025-11-25 the server returned a result that asks for input")
