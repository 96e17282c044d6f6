"""Where the answers of a conversation come from: a fixture, or a person at a terminal."""

from collections.abc import Sequence
from typing import Any

import pytest

from bespeak.conversation.answer_examples import written
from bespeak.conversation.answer_sources import FixtureScript, PromptScript, Script
from bespeak.conversation.fixtures import InputResponseFixture, MissingAnswer
from bespeak.conversation.responses import Question
from bespeak.terminal.prompt_types import Action, Asker, Reply
from bespeak.testing.suite.variables import fill
from bespeak.testing.suite.yaml_positions import read_yaml
from tests.testing.canned import Json, form


def asked(key: str, message: str = "Which one?", **fields: Json) -> Question:
    question = form(message, **fields)
    return Question(key, question["method"], question["params"])


def content(value: Any, name: str = "value") -> Json:
    return {"action": "accept", "content": {name: value}}


async def answered(script: Script, *rounds: Sequence[Question], state: bool | None = True) -> list[Json]:
    """What a script answers to each round; without states, they are pushed."""
    return [await script.answers(questions, state=state) for questions in rounds]


def fixture(answers: Any) -> FixtureScript:
    return FixtureScript(InputResponseFixture(answers))


# One fixture for all rounds


async def test_one_fixture_answers_all_rounds() -> None:
    script = fixture({"city": "Rome", "units": "C"})
    assert await answered(script, [asked("city")], [asked("units")]) == [
        {"city": content("Rome")},
        {"units": content("C")},
    ]
    assert script.leftovers() == []


async def test_answers_that_no_question_asked_for_are_reported() -> None:
    script = fixture({"city": "Rome", "units": "C", "day": "today"})
    await answered(script, [asked("city")])
    assert script.leftovers() == [
        "the answer 'units' (inputResponses) was not used: the server never asked for it",
        "the answer 'day' (inputResponses) was not used: the server never asked for it",
    ]


async def test_an_unused_rule_is_reported_by_its_place() -> None:
    script = fixture([{"when": {"message": {"contains": "city"}}, "answer": "Rome"}, {"otherwise": "decline"}])
    await answered(script, [asked("x", "Which units?")])
    assert script.leftovers() == ["the answer inputResponses[0] was not used: no question fits it"]


async def test_an_otherwise_rule_may_stay_unused() -> None:
    script = fixture([{"otherwise": "decline"}])
    assert await answered(script, []) == [{}]
    assert script.leftovers() == []


async def test_all_questions_of_a_round_without_an_answer_are_listed() -> None:
    with pytest.raises(MissingAnswer) as raised:
        await answered(fixture({}), [asked("city", "Where?"), asked("units", "Which units?")])
    assert str(raised.value) == "there is no answer to 'city' (Where?), 'units' (Which units?)"


# A person


class Person:
    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.asked: list[str] = []

    async def ask(self, question: Question, asker: Asker) -> Reply:
        self.asked.append(question.key)
        return self._replies.pop(0)


def said(value: Any) -> Reply:
    return Reply(Action.ACCEPT, {"value": value})


async def test_a_person_is_asked_each_question_in_its_order_unless_an_answer_was_given_beforehand() -> None:
    person = Person(said("Rome"), Reply(Action.DECLINE))
    script = PromptScript(person, InputResponseFixture({"units": "C"}))
    assert await answered(script, [asked("city"), asked("units"), asked("day")]) == [
        {"city": content("Rome"), "units": content("C"), "day": {"action": "decline"}}
    ]
    assert person.asked == ["city", "day"]
    assert script.given == {"city": "Rome", "units": "C", "day": "decline"}


@pytest.mark.parametrize("text", ["decline", "cancel", "omit", "true", "null", "~", "1", "- a", "a: b", "", "é\x1b"])
async def test_a_saved_answer_of_a_person_reads_back_the_same(text: str) -> None:
    script = PromptScript(Person(said(text)))
    sent = await answered(script, [asked("city")])
    saved = read_yaml(written(script.given)).value
    assert await answered(fixture(saved["inputResponses"]), [asked("city")]) == sent


async def test_a_saved_answer_of_a_person_is_never_a_variable() -> None:
    script = PromptScript(Person(said("${env:HOME} and $${x}")))
    sent = await answered(script, [asked("city")])
    saved = fill(read_yaml(written(script.given)).value, lambda name: f"what {name} stands for")
    assert await answered(fixture(saved["inputResponses"]), [asked("city")]) == sent
