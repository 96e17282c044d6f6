"""The other profiles, and how `--as` finds one."""

import asyncio
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bespeak.client.errors import CallbackFailed
from bespeak.conversation.answer_sources import FixtureScript
from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.call_rounds import Conversation
from bespeak.conversation.connection import Push, Received, Scripts, nothing
from bespeak.conversation.exchange import STARTS, Talk
from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.conversation.profiles.known_profiles import KNOWN, ClaudeCode, Impatient, Lossy, Silent, find_profile
from bespeak.conversation.profiles.langgraph import LangGraph
from bespeak.conversation.profiles.profile import Ask, Profile, StartOver
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question
from tests.testing.canned import MODERN, NOVEMBER, Json, asking, form, listing, told

CALL: Json = {"name": "forecast", "arguments": {}}
NOTE: Json = {"method": "notifications/message", "params": {"data": 1}}


@dataclass
class Line:
    """Replies in their order; `None` is no reply at all. At an older revision it pushes a question each time."""

    replies: Sequence[Json | None]
    version: str = MODERN
    pushes: Sequence[str] = ()
    sent: list[Json] = field(default_factory=list[Json])
    given_up: int = 0

    async def send(self, method: str, params: Json, push: Push, scripts: Scripts = nothing) -> Received:
        self.sent.append(params)
        for key in self.pushes:
            asked = form(f"Which {key}?")
            if await push(Question(key, asked["method"], asked["params"])) is None:
                raise CallbackFailed(key, asked["method"], "there is no answer to it")
        reply = self.replies[min(len(self.sent), len(self.replies)) - 1]
        if reply is None:
            try:
                await asyncio.Event().wait()
            finally:
                self.given_up += 1
        return Received({"jsonrpc": "2.0", "id": 1, "result": reply}, [NOTE])

    def astray(self) -> list[Finding]:
        return []

    async def settle(self) -> None:
        """Nothing comes beside what is canned."""


async def held(line: Line, client: Profile, answers: Any = None) -> tuple[Talk, FixtureScript]:
    script = FixtureScript(InputResponseFixture(answers))
    talk = Talk(line, Conversation("tools/call", CALL), script, client=client)
    await talk.hold()
    return talk, script


# silent


async def test_the_silent_client_declines_every_question_without_asking_anybody() -> None:
    line = Line([asking("city", "units"), told()])
    await held(line, Silent())
    assert line.sent[1]["inputResponses"] == {"city": {"action": "decline"}, "units": {"action": "decline"}}


async def test_the_silent_client_cannot_decline_in_the_compatibility_dialect_and_sends_nothing() -> None:
    line = Line([listing("city"), told()])
    await held(line, Silent())
    assert line.sent[1]["inputResponses"] == []


async def test_a_silent_client_is_found_asked_again_what_it_declined() -> None:
    talk, _ = await held(Line([asking("city"), asking("city"), told()]), Silent())
    assert [one.rule for one in talk.conversation.findings] == ["declined"]


# lossy


async def test_the_lossy_client_sends_everything_twice_and_goes_on_with_the_second_response() -> None:
    first, second = asking("city", state="first"), asking("city", state="second")
    line = Line([first, second, told("lost"), told("arrived")])
    talk, _ = await held(line, Lossy(), {"city": "Rome"})
    assert line.sent[:2] == [CALL, CALL]
    assert line.sent[2] == line.sent[3]
    assert line.sent[3]["requestState"] == "second"
    assert talk.envelope["result"] == told("arrived")
    assert len(talk.conversation.rounds) == 1


async def test_notifications_of_a_lost_response_are_lost_too() -> None:
    talk, _ = await held(Line([told(), told()]), Lossy())
    assert talk.notifications == [NOTE]


async def test_the_pushed_questions_of_the_second_copy_get_the_answers_of_the_first_and_count_once() -> None:
    line = Line([told()], NOVEMBER, ["city", "units"])
    talk, script = await held(line, Lossy(), {"city": "Rome", "units": "C"})
    assert len(line.sent) == 2
    assert talk.asked == ["city", "units"]
    assert len(talk.conversation.rounds) == 2
    assert script.leftovers() == []


async def test_another_question_of_the_second_copy_is_answered_by_the_script() -> None:
    line = Line([told()], NOVEMBER, ["city"])
    client = Lossy()

    async def send(method: str, params: Json, push: Push, scripts: Scripts = nothing) -> Received:
        line.pushes = ["units"] if line.sent else ["city"]
        return await Line.send(line, method, params, push, scripts)

    line.send = send  # pyright: ignore[reportAttributeAccessIssue] - a method of one object
    talk, script = await held(line, client, {"city": "Rome", "units": "C"})
    assert talk.asked == ["units"]
    assert script.leftovers() == []


# impatient


async def test_the_impatient_client_gives_a_request_up_and_sends_it_again() -> None:
    line = Line([None, told("at last")])
    talk, _ = await held(line, Impatient(0.01))
    assert (line.given_up, line.sent) == (1, [CALL, CALL])
    assert talk.envelope["result"] == told("at last")


async def test_the_impatient_client_sends_a_request_at_most_twice() -> None:
    line = Line([None])
    with pytest.raises(TimeoutError) as caught:
        await held(line, Impatient(0.01))
    assert str(caught.value) == "the client gave up after 0.01 s, sent the request again and gave up again"
    assert line.given_up == 2


async def test_another_time_limit_is_not_taken_for_its_own() -> None:
    async def send() -> Received:
        raise TimeoutError("no answer to tools/call within 30 s")

    with pytest.raises(TimeoutError, match="no answer to tools/call"):
        await Impatient(60).send(send)


# What they declare


def test_what_each_profile_declares() -> None:
    assert {name: make().declares for name, make in KNOWN.items()} == {
        "langgraph": {"elicitation": {"form": {}, "url": {}}},
        "claude-code": {"elicitation": {"form": {}}, "roots": {}},
        "silent": {"elicitation": {"form": {}, "url": {}}},
        "impatient": None,
        "lossy": None,
    }


# Finding one


def test_a_profile_is_found_by_its_name() -> None:
    made = {name: type(find_profile(name).make()) for name in KNOWN}
    assert made == {
        "langgraph": LangGraph,
        "claude-code": ClaudeCode,
        "silent": Silent,
        "impatient": Impatient,
        "lossy": Lossy,
    }


async def test_impatient_takes_its_seconds() -> None:
    chosen = find_profile("impatient=0.01")
    assert chosen.name == "impatient"
    with pytest.raises(TimeoutError, match=re.escape("after 0.01 s")):
        await held(Line([None]), chosen.make())


@pytest.mark.parametrize("value", ["", "soon", "0", "-1", "nan", "3601"])
def test_impatient_needs_a_number_of_seconds(value: str) -> None:
    with pytest.raises(ValueError, match="write the number of seconds after which the client gives up"):
        find_profile(f"impatient={value}")


def test_other_profiles_take_no_value() -> None:
    with pytest.raises(ValueError, match="the profile lossy takes no value; write lossy"):
        find_profile("lossy=2")


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(
        ValueError, match=re.escape("there is no profile 'langgraf'; use langgraph, claude-code, silent")
    ):
        find_profile("langgraf")


OWN = """
from bespeak.testing import Profile


class Stubborn(Profile):
    declares = {"elicitation": {}}


class Needy(Profile):
    def __init__(self, something):
        pass


number = 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / f"own_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(OWN)
    return path


def test_an_own_profile_is_found_by_its_file(own: Path) -> None:
    assert find_profile(f"{own}:Stubborn").make().declares == {"elicitation": {}}


def test_an_own_profile_is_found_by_its_module(own: Path) -> None:
    chosen = find_profile(f"{own.stem}:Stubborn")
    assert chosen.make().declares == {"elicitation": {}}
    assert chosen.name == f"{own.stem}:Stubborn"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("{file}:Missing", "has no class 'Missing' that is based on bespeak.testing.Profile"),
        ("{file}:number", "has no class 'number' that is based on bespeak.testing.Profile"),
        ("{file}:Needy", "Needy() must need no arguments; there is a new one for each call"),
        ("nowhere.py:It", "there is no file nowhere.py"),
        ("no_such_module_anywhere:It", "no_such_module_anywhere cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_what_is_wrong_with_an_own_profile_is_said(own: Path, target: str, said: str) -> None:
    given = target.format(file=own.name)
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        find_profile(given)
    assert str(caught.value).startswith(f"--as {given}: ")


# Starting over


class Restless(Profile):
    """Never comes to an end."""

    async def answers(self, questions: Sequence[Question], ask: Ask) -> dict[str, Any]:
        raise StartOver


async def test_a_client_that_never_stops_starting_over_is_stopped() -> None:
    with pytest.raises(
        CannotAnswer, match=f"the client started the call over {STARTS} times and never came to its end"
    ):
        await held(Line([asking("city")]), Restless())


async def test_a_call_cannot_be_started_over_where_questions_are_pushed() -> None:
    with pytest.raises(CannotAnswer, match="at 2025-11-25 a question is answered during the call"):
        await held(Line([told()], NOVEMBER, ["city"]), Restless())
