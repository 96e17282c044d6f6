"""The answers of `bespeak call --answer`, and what happens when there is no answer and nobody to ask."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from bespeak.cli.suggestions import SHOWN
from bespeak.client.pushed_questions import MAX_QUESTIONS
from bespeak.conversation.answer_sources import Script, written_for
from bespeak.conversation.answers import Answer, CannotAnswer
from bespeak.conversation.fixtures import InputResponseFixture, responses_to
from bespeak.conversation.question_names import name_of
from bespeak.conversation.responses import Question
from bespeak.terminal.safe_text import quoted


class Waiting(Exception):
    """Questions are open, and nobody is there to answer them."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = questions
        super().__init__("questions are waiting for answers")


def nearest(name: str, questions: Sequence[Question]) -> str | None:
    """Return the name of the question that was probably meant by another name."""
    full = {form: one.name for one in questions for form in (one.name, one.name.rpartition(":")[2])}
    return next((full[form] for form in difflib.get_close_matches(name, full, 1)), None)


class PreparedAnswers:
    """Answers given on the command line. An answer by name is used for one key only.

    A question about another price has the same name and another key. Approving the first price does not approve the second.
    """

    def __init__(self, answers: Mapping[str, Any], used: Mapping[str, str]) -> None:
        self._fixture = InputResponseFixture(answers)
        self._used = dict(used)
        """The names that were answered, each with the key it was answered under."""
        self.unused = list(answers)
        """The names and keys whose answers were not used yet."""
        self._noted: set[str] = set()

    def answer_for(self, question: Question) -> Answer | None:
        rule = self._fixture.rule_for(question)
        if rule is not None and rule.key in self.unused:
            self.unused.remove(rule.key)
        if rule is None or rule.key is None or rule.key == question.key:
            return rule and rule.answer
        return rule.answer if self._used.setdefault(rule.key, question.key) == question.key else None

    def scripts(self, question: Question) -> bool:
        return self._fixture.scripts(question)

    def new_notes(self, questions: Sequence[Question]) -> list[str]:
        """Return a sentence for each answer that is for no question so far, once, before a person is asked these."""
        asked = [one for one in questions if not self.scripts(one)]
        known = {name for one in questions for name in (one.key, name_of(one.key))}
        stray = [name for name in self.unused if name not in known | self._noted] if asked else []
        self._noted |= set(stray)
        return [unused_note(name, asked) for name in stray]


def unused_note(name: str, questions: Sequence[Question]) -> str:
    """Return a sentence about an answer that is for none of these questions."""
    meant = nearest(name, questions)
    asked = ", ".join(quoted(one.name) for one in questions[:SHOWN])
    told = f"the server asks {asked}" if meant is None else f"did you mean {quoted(meant)}?"
    return f"--answer {name} answers no question so far; {told}"


class WithoutTerminal:
    """Answers with prepared answers only. Raises `Waiting` if a required question has none."""

    def __init__(self, prepared: PreparedAnswers) -> None:
        self._prepared = prepared
        self.given: dict[str, Any] = {}

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        found = {question.key: self._prepared.answer_for(question) for question in questions}
        missing = [question for question in questions if question.required and found[question.key] is None]
        if missing:
            raise Waiting(missing)
        for question in questions:
            if (answer := found[question.key]) is not None:
                self.given |= written_for(question, answer.as_written(), self.given)
        return responses_to(questions, lambda question: found[question.key])

    def scripts(self, question: Question) -> bool:
        return self._prepared.scripts(question)


class Bounded:
    """Refuses a round with more questions than a person would answer."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        if len(questions) > MAX_QUESTIONS:
            asked = f"{len(questions):,} questions in one round"
            raise CannotAnswer(f"the server asked {asked}; at most {MAX_QUESTIONS} are answered")
        return await self._script.answers(questions, state=state)

    def scripts(self, question: Question) -> bool:
        return self._script.scripts(question)
