"""Tests that check each round: what the round should ask, and what it is answered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bespeak.conversation.answer_sources import never_asked, unused_names, whole_messages
from bespeak.conversation.answers import Answer, CannotAnswer
from bespeak.conversation.fixtures import SHOWN, InputResponseFixture, Rule, responses_to, unused
from bespeak.conversation.matchers import ABSENT, equal_to, join
from bespeak.conversation.question_names import AmbiguousName, meant, name_of, names_of
from bespeak.conversation.responses import Question
from bespeak.testing.expect.expectations import Telling
from bespeak.testing.report.results import Failure
from bespeak.testing.suite.suite_file import RoundExpect, RoundSpec


class UnexpectedRound(CannotAnswer):
    """A question came in a round for which the test has nothing."""

    def __init__(self, number: int, questions: Sequence[Question]) -> None:
        self.questions = questions
        listed = ", ".join(repr(question.name) for question in questions[:SHOWN])
        super().__init__(f"round {number} was not expected; it asks {listed or 'nothing'}")


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

    Pushed questions arrive one at a time, while a round has several at once. So a pushed question belongs to the
    current round as long as that round has an unused answer for it.
    """

    def __init__(
        self,
        rounds: Sequence[RoundSpec],
        telling: Telling | None = None,
        shown: Callable[[Question], Question] = lambda question: question,
    ) -> None:
        """`shown` returns a question without what is redacted in it by path."""
        self._telling, self._shown = telling or Telling(), shown
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

    @property
    def number(self) -> int:
        """The number of the round that was asked last."""
        return self._now + 1

    def unused_names(self) -> list[str]:
        """Return the names in the answers of this round that were not used yet."""
        block = self._blocks[self._now]
        return unused_names(block.fixture.rules, block.used)

    def nearly(self, questions: Sequence[Question]) -> str:
        """Return which rule of this round has only a part of a question's message, to append to a message."""
        return whole_messages(self._blocks[self._now].fixture.rules, questions, f"rounds[{self._now}].answer")

    def mismatches(self) -> list[Failure]:
        """Return how the rounds that were asked so far differ from the expected ones, if the call could not go on."""
        found: list[Failure] = []
        for number, block in enumerate(self._blocks[: self.number], 1):
            if number == self.number and block.state is None:  # more questions of this round may have followed
                found += _unexpected(number, block)
            else:
                found += _differences(number, block, self._telling, self._shown)
        return found

    def scripts(self, question: Question) -> bool:
        """Return whether the current round or the next one has an answer for just this question, or expects it."""
        near = self._blocks[max(0, self._now) : max(0, self._now) + 2]
        return any(
            one.fixture.scripts(question) or bool({question.key, question.name} & set(one.expect.asks or ()))
            for one in near
        )

    def enter(self, questions: Sequence[Question], state: bool | None) -> _Block:
        """Return the round that questions belong to. Raises `CannotAnswer` if there is none."""
        if state is not None or not self._goes_on(questions):
            self._now += 1
        if self._now >= len(self._blocks):
            raise UnexpectedRound(self._now + 1, questions)
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
        """Whether a question was not asked in a round yet.

        Questions of the same name are one, unless the suite names a key.
        """
        if question.key in block.asked:
            return False
        rule = block.fixture.rule_for(question)
        told_apart = rule is not None and rule.key == question.key
        return told_apart or name_of(question.key) not in map(name_of, block.asked)

    def leftovers(self, *, answers: bool = True) -> list[Failure]:
        """Return what was not as expected and, if `answers` is set, the answers that no question asked for."""
        found: list[Failure] = []
        for number, block in enumerate(self._blocks, 1):
            if number > self._now + 1:
                found.append(Failure(f"round {number} was never reached: the server asked no more questions"))
                break
            found += _differences(number, block, self._telling, self._shown)
            if not answers:
                continue
            found += [
                Failure(never_asked(rule, f"rounds[{number - 1}].answer"))
                for rule in unused(block.fixture.rules, block.used)
            ]
        return found


def _differences(number: int, block: _Block, telling: Telling, shown: Callable[[Question], Question]) -> list[Failure]:
    """Return how a round's questions differ from the expected ones."""
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
            seen: Any = ABSENT if question is None else look(shown(block.asked[question]))
            differs = telling.difference(written, actual, path, None, (written, seen))
            if differs is not None:
                (one, diff), text = differs, f"round {number}, {name} of {key!r}: {differs[0].message}"
                found.append(Failure(text, path=one.path, expected=one.expected, actual=one.actual, diff=diff))
    if expect.state is not None and block.state is not None:
        actual = "present" if block.state else "absent"
        if difference := equal_to(expect.state).check(actual, f"{where}.state"):
            message = f"round {number}: requestState is {actual}, but should be {expect.state}"
            found.append(Failure(message, path=difference.path, expected=expect.state, actual=actual))
    return found


def _unexpected(number: int, block: _Block) -> list[Failure]:
    """Return a failure if a round that is not over has asked something that a suite does not name."""
    asks = block.expect.asks
    if asks is None or all(one.key in asks or one.name in asks for one in block.asked.values()):
        return []
    return _asked_otherwise(number, asks, block, f"rounds[{number - 1}].asks")


def _asked_otherwise(number: int, asks: Sequence[str], block: _Block, path: str) -> list[Failure]:
    """Return a failure if a round did not ask exactly the questions that a suite names."""
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
