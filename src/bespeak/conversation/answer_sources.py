"""Where the answers of a conversation come from: a fixture, or a person at a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bespeak.conversation.answers import Answer, answer_from
from bespeak.conversation.fixtures import InputResponseFixture, Rule, responses_to, unused
from bespeak.conversation.responses import Question
from bespeak.conversation.results import Failure
from bespeak.terminal.prompt_types import Reply


class Script(Protocol):
    """Answers the questions of one conversation."""

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        """What to send for the questions of a round, by key. Raises `CannotAnswer`.

        `state` says whether the round came with one, and is `None` for a question that was pushed.
        """
        ...

    def leftovers(self) -> list[Failure]:
        """What was prepared and never came, and what came and was not as expected."""
        ...


class FixtureScript:
    """One fixture for all rounds."""

    def __init__(self, fixture: InputResponseFixture, where: str = "inputResponses") -> None:
        self._fixture = fixture
        self._where = where
        self._used: list[Rule] = []

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        return responses_to(questions, self._answer_for)

    def _answer_for(self, question: Question) -> Answer | None:
        rule = self._fixture.rule_for(question)
        if rule is None:
            return None
        self._used.append(rule)
        return rule.answer

    def leftovers(self) -> list[Failure]:
        return [never_asked(rule, self._where) for rule in unused(self._fixture.rules, self._used)]


def never_asked(rule: Rule, where: str) -> Failure:
    named = f"{where}{rule.where}" if rule.where.startswith("[") else f"{where}: {rule.where}"
    return Failure(f"nobody asked for the answer {named}")


class Asks(Protocol):
    """Somebody who can be asked one question."""

    async def ask(self, question: Question) -> Reply: ...


class RoundChecks(Protocol):
    """What each round should ask."""

    def enter(self, questions: Sequence[Question], state: bool | None) -> object:
        """Note the questions of a round. Raises `CannotAnswer` if it was not expected."""
        ...

    def leftovers(self, *, answers: bool) -> list[Failure]:
        """What was not as expected; with `answers`, also the answers that were never asked for."""
        ...


class Prepared(Protocol):
    """What was answered beforehand."""

    def answer_for(self, question: Question) -> Answer | None: ...


class PromptScript:
    """A person at a terminal. What they answer is kept, in the order it was given."""

    def __init__(self, prompt: Asks, prepared: Prepared | None = None, rounds: RoundChecks | None = None) -> None:
        self._prompt = prompt
        self._prepared = prepared or InputResponseFixture()
        self._rounds = rounds
        """What each round should ask, whoever answers."""
        self.given: dict[str, Any] = {}
        """What was answered, by what each question is called, as a suite writes it."""

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        if self._rounds is not None:
            self._rounds.enter(questions, state)
        found: dict[str, Answer] = {}
        for question in questions:
            found[question.key] = self._prepared.answer_for(question) or await self._asked(question)
            self.given |= written_for(question, found[question.key].saved(question), self.given)
        return responses_to(questions, lambda question: found[question.key])

    async def _asked(self, question: Question) -> Answer:
        return answer_from(question, await self._prompt.ask(question))

    def leftovers(self) -> list[Failure]:
        return [] if self._rounds is None else self._rounds.leftovers(answers=False)


def written_for(question: Question, answer: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as it is added to those given before: by the question's name, unless its whole key is there already."""
    return {question.key if question.key in given else question.name: answer}
