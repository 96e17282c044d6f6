"""Where the answers of a conversation come from: a fixture, a fixture for each round, or a person at a terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bespeak.conversation.answers import Answer, CannotAnswer
from bespeak.conversation.fixtures import SHOWN, InputResponseFixture, Rule, responses_to, unused
from bespeak.conversation.matchers import ABSENT, equal_to, join, parse_matcher
from bespeak.conversation.question_names import AmbiguousName, meant, name_of, names_of
from bespeak.conversation.responses import Question
from bespeak.conversation.results import Failure
from bespeak.testing.expect.expectations import Hide, as_told
from bespeak.testing.suite.suite_file import RoundExpect, RoundSpec


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
        return [_never_asked(rule, self._where) for rule in unused(self._fixture.rules, self._used)]


def _never_asked(rule: Rule, where: str) -> Failure:
    named = f"{where}{rule.where}" if rule.where.startswith("[") else f"{where}: {rule.where}"
    return Failure(f"nobody asked for the answer {named}")


@dataclass(slots=True)
class _Block:
    """One round of a test: what it should ask, and what is answered."""

    expect: RoundExpect
    fixture: InputResponseFixture
    asked: dict[str, Question] = field(default_factory=dict[str, Question])
    used: list[Rule] = field(default_factory=list[Rule])
    state: bool | None = None


class RoundsScript:
    """A fixture for each round, and what each should ask.

    A pushed question comes alone where a round would bring several at once: so it belongs to the round under way as long
    as that has an answer to it that was not given yet.
    """

    def __init__(self, rounds: Sequence[RoundSpec], hide: Hide = lambda value: value) -> None:
        self._hide = hide
        self._blocks = [_Block(one.expect, InputResponseFixture(one.answer)) for one in rounds]
        self._now = -1

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        block = self.enter(questions, state)

        def answer_for(question: Question) -> Answer | None:
            rule = block.fixture.rule_for(question)
            if rule is None:
                return None
            block.used.append(rule)
            return rule.answer

        return responses_to(questions, answer_for)

    def enter(self, questions: Sequence[Question], state: bool | None) -> _Block:
        """The round that questions belong to. Raises `CannotAnswer` if there is none."""
        if state is not None or not self._goes_on(questions):
            self._now += 1
        if self._now >= len(self._blocks):
            listed = ", ".join(repr(question.name) for question in questions[:SHOWN])
            raise CannotAnswer(f"round {self._now + 1} was not expected; it asks {listed or 'nothing'}")
        block = self._blocks[self._now]
        block.asked |= {question.key: question for question in questions}
        block.state = state
        return block

    def _goes_on(self, questions: Sequence[Question]) -> bool:
        if not 0 <= self._now < len(self._blocks):
            return False
        block = self._blocks[self._now]
        asks = block.expect.asks
        return all(
            self._is_new(block, one)
            and (asks is None or one.key in asks or one.name in asks)
            and block.fixture.rule_for(one) is not None
            for one in questions
        )

    def _is_new(self, block: _Block, question: Question) -> bool:
        """Whether a question was not asked in a round yet. One of the same name is, but where a suite tells them apart."""
        if question.key in block.asked:
            return False
        rule = block.fixture.rule_for(question)
        told_apart = rule is not None and rule.key == question.key
        return told_apart or name_of(question.key) not in map(name_of, block.asked)

    def leftovers(self, *, answers: bool = True) -> list[Failure]:
        """What was not as expected, and, unless somebody else has answered, what was never asked for."""
        found: list[Failure] = []
        for number, block in enumerate(self._blocks, 1):
            if number > self._now + 1:
                found.append(Failure(f"round {number} was never reached: the server asked no more"))
                break
            found += _differences(number, block, self._hide)
            if not answers:
                continue
            found += [
                _never_asked(rule, f"rounds[{number - 1}].answer") for rule in unused(block.fixture.rules, block.used)
            ]
        return found


def _differences(number: int, block: _Block, hide: Hide) -> list[Failure]:
    """What a round asked other than it should have."""
    expect, found = block.expect, list[Failure]()
    where = f"rounds[{number - 1}]"
    if expect.asks is not None:
        found += _asked_otherwise(number, expect.asks, block, f"{where}.asks")
    looks: list[tuple[str, Mapping[str, Any], Callable[[Question], Any]]] = [
        ("messages", expect.messages, lambda question: question.message),
        ("schemas", expect.schemas, lambda question: dict(question.schema)),
        ("methods", expect.methods, lambda question: question.method or ABSENT),
    ]
    for name, expected, look in looks:
        for key, written in expected.items():
            path = join(f"{where}.{name}", key)
            try:
                question = meant(key, block.asked)
            except AmbiguousName as error:
                found.append(Failure(f"round {number}, {name}: {error}", path=path, actual=ABSENT))
                continue
            actual: Any = ABSENT if question is None else look(block.asked[question])
            difference = parse_matcher(written).judge(actual, path)
            if difference is not None:
                difference = as_told(difference, written, actual, path, hide)
                text = f"round {number}, {name} of {key!r}: {difference.message}"
                found.append(
                    Failure(text, path=difference.path, expected=difference.expected, actual=difference.actual)
                )
    if expect.state is not None and block.state is not None:
        actual = "present" if block.state else "absent"
        if difference := equal_to(expect.state).check(actual, f"{where}.state"):
            message = f"round {number}: requestState is {actual}, and should be {expect.state}"
            found.append(Failure(message, path=difference.path, expected=expect.state, actual=actual))
    return found


def _asked_otherwise(number: int, asks: Sequence[str], block: _Block, path: str) -> list[Failure]:
    """Whether a round asked other questions than those that a suite names."""
    names = names_of(block.asked)
    asked = [key if key in asks else names[key] for key in block.asked]
    try:
        for name in asks:
            meant(name, block.asked)
    except AmbiguousName as error:
        return [Failure(f"round {number}, asks: {error}", path=path, expected=list(asks), actual=asked)]
    if sorted(asks) == sorted(asked):
        return []
    message = f"round {number} asked {', '.join(asked) or 'nothing'} instead of {', '.join(asks) or 'nothing'}"
    return [Failure(message, path=path, expected=list(asks), actual=asked)]


class Asks(Protocol):
    """Somebody who can be asked one question."""

    async def ask(self, question: Question) -> Answer: ...


class Prepared(Protocol):
    """What was answered beforehand."""

    def answer_for(self, question: Question) -> Answer | None: ...


class PromptScript:
    """A person at a terminal. What they answer is kept, in the order it was given."""

    def __init__(self, prompt: Asks, prepared: Prepared | None = None, rounds: RoundsScript | None = None) -> None:
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
            found[question.key] = self._prepared.answer_for(question) or await self._prompt.ask(question)
            self.given |= written_for(question, found[question.key].saved(question), self.given)
        return responses_to(questions, lambda question: found[question.key])

    def leftovers(self) -> list[Failure]:
        return [] if self._rounds is None else self._rounds.leftovers(answers=False)


def written_for(question: Question, answer: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as it is added to those given before: by the question's name, unless its whole key is there already."""
    return {question.key if question.key in given else question.name: answer}
