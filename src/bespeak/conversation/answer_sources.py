"""Where the answers of a conversation come from: a fixture, or a person at a terminal."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from bespeak.conversation.answers import Answer, answer_from
from bespeak.conversation.fixtures import SHOWN, InputResponseFixture, Rule, responses_to, unused
from bespeak.conversation.match_operators import Scalar
from bespeak.conversation.responses import Question
from bespeak.terminal.prompt_types import Asker, Reply
from bespeak.terminal.safe_text import quoted


class Script(Protocol):
    """Answers the questions of one conversation."""

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        """Return what to send for the questions of a round, by key. Raises `CannotAnswer`.

        `state` says whether the round came with one, and is `None` for a question that was pushed.
        """
        ...

    def scripts(self, question: Question) -> bool:
        """Return whether there is an answer for just this question, and not only one for all that are left."""
        ...


class FixtureScript:
    """One fixture for all rounds."""

    def __init__(self, fixture: InputResponseFixture, where: str = "inputResponses") -> None:
        self._fixture = fixture
        self._where = where
        self._used: list[Rule] = []

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        return responses_to(questions, self._answer_for)

    def scripts(self, question: Question) -> bool:
        return self._fixture.scripts(question)

    def _answer_for(self, question: Question) -> Answer | None:
        rule = self._fixture.rule_for(question)
        if rule is None:
            return None
        self._used.append(rule)
        return rule.answer

    def unused_names(self) -> list[str]:
        return unused_names(self._fixture.rules, self._used)

    def nearly(self, questions: Sequence[Question]) -> str:
        """Return which rule has only a part of a question's message, to append to a message."""
        return whole_messages(self._fixture.rules, questions, self._where)

    def leftovers(self) -> list[str]:
        """Return what is wrong when the call has ended: the answers that no question asked for."""
        return [never_asked(rule, self._where) for rule in unused(self._fixture.rules, self._used)]


def unused_names(rules: Sequence[Rule], used: Sequence[Rule]) -> list[str]:
    """Return the names in the answers that were not used yet. One of them may be a misspelt name of a question."""
    return [rule.key for rule in unused(rules, used) if rule.key is not None]


def not_used_so_far(names: Sequence[str]) -> str:
    """Return the names in the answers that were not used yet, to append to a message about a missing answer."""
    return f"; not used so far: {', '.join(map(quoted, names[:SHOWN]))}" if names else ""


def never_asked(rule: Rule, where: str) -> str:
    """Return the message about an answer that no question asked for."""
    if rule.key is None:
        return f"the answer {where}{rule.where} was not used: no question fits it"
    return f"the answer {quoted(rule.key)} ({where}) was not used: the server never asked for it"


def whole_messages(rules: Sequence[Rule], questions: Sequence[Question], where: str) -> str:
    """Return that a rule has only a part of a question's message, to append to a message about a missing answer."""
    for rule in rules:
        meant = rule.when.get("message")
        if not isinstance(meant, Scalar) or not isinstance(meant.written, str) or not meant.written:
            continue
        if any(meant.written.lower() in one.message.lower() for one in questions):
            return f"; {where}{rule.where} is for the whole message: for a part of it, use contains or matches"
    return ""


class Asks(Protocol):
    """Somebody who can be asked one question."""

    async def ask(self, question: Question, asker: Asker) -> Reply: ...


Enter = Callable[[Sequence[Question], bool | None], object]
"""Called with the questions of each round, and whether it has a state. Raises `CannotAnswer` to refuse the round."""


class Prepared(Protocol):
    """Answers that were given in advance."""

    def answer_for(self, question: Question) -> Answer | None: ...

    def scripts(self, question: Question) -> bool: ...


class PromptScript:
    """Answers from a person at a terminal. They are kept in the order in which they were given."""

    def __init__(
        self,
        prompt: Asks,
        prepared: Prepared | None = None,
        enter: Enter | None = None,
        asker: Callable[[], Asker] = Asker,
    ) -> None:
        self._prompt = prompt
        self._asker = asker
        self._prepared = prepared or InputResponseFixture()
        self._enter = enter
        self.given: dict[str, Any] = {}
        """The answers by the names of the questions, as a suite writes them."""

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        if self._enter is not None:
            self._enter(questions, state)
        found: dict[str, Answer] = {}
        for question in questions:
            found[question.key] = self._prepared.answer_for(question) or await self._asked(question)
            self.given |= written_for(question, found[question.key].saved(question), self.given)
        return responses_to(questions, lambda question: found[question.key])

    def scripts(self, question: Question) -> bool:
        return self._prepared.scripts(question)

    async def _asked(self, question: Question) -> Answer:
        return answer_from(question, await self._prompt.ask(question, self._asker()))


def written_for(question: Question, answer: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer to add to the given ones: by the question's name, or by its key if that is already in use."""
    return {question.key if question.key in given else question.name: answer}
