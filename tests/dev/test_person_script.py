"""The answers of the person at the page."""

import asyncio
from collections.abc import Sequence

import pytest

from bespeak.conversation.exchange import Stopped
from bespeak.conversation.responses import Question
from bespeak.dev.person_script import NothingAsked, PersonScript
from tests.waiting import turns

SCHEMA = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
QUESTION = Question("shop:sure~12345678", "elicitation/create", {"message": "Sure?", "requestedSchema": SCHEMA})


def ignore(questions: Sequence[Question], *, pushed: bool) -> None:
    """Show nothing."""


async def test_a_round_without_questions_needs_nobody() -> None:
    assert await PersonScript(ignore).answers([], state=True) == {}


async def test_a_round_is_shown_and_waits_until_it_is_answered() -> None:
    shown: list[Question] = []

    def show(questions: Sequence[Question], *, pushed: bool) -> None:
        shown.extend(questions)
        assert not pushed

    script = PersonScript(show)
    assert not script.scripts(QUESTION)
    assert not script.waits
    answering = asyncio.create_task(script.answers([QUESTION], state=True))
    await turns()
    assert (shown, script.waits) == ([QUESTION], True)
    assert script.give({QUESTION.key: "maybe"}) != {}
    assert script.waits
    assert script.give({QUESTION.key: True}) == {}
    assert await answering == {QUESTION.key: {"action": "accept", "content": {"sure": True}}}
    assert not script.waits


async def test_a_round_is_answered_or_left_once() -> None:
    script = PersonScript(ignore)
    for done in (lambda: script.give({}), script.stop):
        with pytest.raises(NothingAsked):
            done()
    answering = asyncio.create_task(script.answers([QUESTION], state=True))
    await turns()
    script.stop()
    for done in (lambda: script.give({QUESTION.key: True}), script.stop):
        with pytest.raises(NothingAsked):
            done()
    with pytest.raises(Stopped):
        await answering
