"""Answer fixtures: answers written in advance, by key or by rules."""

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, overload

from bespeak.conversation.answers import Answer, CannotAnswer, Way, parse_answer, render
from bespeak.conversation.input_required import InputRequest, InputResponse
from bespeak.conversation.matchers import Matcher, equal_to, parse_matcher
from bespeak.conversation.patterns import PatternTimeout
from bespeak.conversation.question_names import AmbiguousName, SpelledKey, meant, name_of
from bespeak.conversation.responses import Question, in_one_round

SHOWN = 20
"""How many questions an error lists."""
CONDITIONS: dict[str, Callable[[Question], Any]] = {
    "key": lambda question: SpelledKey(question.key, question.namesakes),
    "message": lambda question: question.message,
    "method": lambda question: question.method or "",
    "mode": lambda question: "url" if question.is_url else "form" if question.is_form else "",
}
"""The conditions of a rule: what each compares."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """An answer and the conditions for its questions. Without conditions it is for every question."""

    where: str
    """How messages name it."""
    when: Mapping[str, Matcher]
    answer: Answer
    key: str | None = None
    """The key or name it is for, if that is its only condition: such rules are found in a map."""

    def fits(self, question: Question) -> bool:
        """Return whether it fits a question. Raises `AmbiguousName`, and `CannotAnswer` if a pattern takes too long."""
        for name, matcher in self.when.items():
            try:
                if matcher.check(CONDITIONS[name](question)) is not None:
                    return False
            except PatternTimeout as timeout:
                raise CannotAnswer(f"the rule {self.where} of the answers, when.{name}: {timeout}") from None
        return True


class MissingAnswer(CannotAnswer):
    """Questions without an answer."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = tuple(questions)
        listed = ", ".join(question.told() for question in self.questions[:SHOWN])
        more = len(self.questions) - SHOWN
        super().__init__(f"there is no answer to {listed}{f' and {more} more' if more > 0 else ''}")


class InputResponseFixture:
    """Answers for a conversation that runs without a person.

    `written` is a map of key to answer, a list of `{id, value}`, or a list of rules: `{when: ..., answer: ...}` and
    `{otherwise: ...}`. The first rule that fits is used. Raises `ValueError`.
    """

    def __init__(self, written: Mapping[str, Any] | Sequence[Any] | None = None) -> None:
        if isinstance(written, Mapping):
            self.rules = tuple(_named(key, answer) for key, answer in written.items())
        elif isinstance(written, Sequence) and not isinstance(written, str):
            self.rules = tuple(_rule(number, entry) for number, entry in enumerate(written))
        elif written is None:
            self.rules = ()
        else:
            raise ValueError("answers are a map of key to answer, or a list")
        self._by_key = {
            key: number for number, rule in reversed([*enumerate(self.rules)]) if (key := rule.key) is not None
        }
        self._others = [number for number, rule in enumerate(self.rules) if rule.key is None]

    def rule_for(self, question: Question) -> Rule | None:
        """Return the first rule that fits a question.

        Raises `CannotAnswer` if a name in one fits other questions as well.
        """
        naming = self._naming(question)
        try:
            earlier = (number for number in self._others if number < naming and self.rules[number].fits(question))
            first = next(earlier, naming)
            if first == naming < len(self.rules):
                meant(self.rules[naming].key or "", question.namesakes)
        except AmbiguousName as error:
            raise CannotAnswer(str(error)) from None
        return self.rules[first] if first < len(self.rules) else None

    def _naming(self, question: Question) -> int:
        """The index of the rule for a question's key or name; the number of rules if none fits."""
        none = len(self.rules)
        name = name_of(question.key)
        if question.key in self._by_key or name in question.namesakes:  # that name is the key of another question
            return self._by_key.get(question.key, none)
        return self._by_key.get(name, none)

    def answer_for(self, question: Question) -> Answer | None:
        """Return the answer of the first rule that fits a question; `None` if none fits.

        Raises `CannotAnswer` if a name in one fits other questions as well.
        """
        rule = self.rule_for(question)
        return None if rule is None else rule.answer

    def scripts(self, question: Question) -> bool:
        """Return whether a rule is for just this question, and not for all that are left.

        A mistake in the rules is left to those who answer the question.
        """
        try:
            rule = self.rule_for(question)
        except CannotAnswer:
            return True
        return rule is not None and bool(rule.when)


def _named(key: str, answer: Any) -> Rule:
    try:
        return Rule(key, {"key": equal_to(key)}, parse_answer(answer), key)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _rule(number: int, entry: Any) -> Rule:
    where = f"[{number}]"
    if not isinstance(entry, Mapping):
        raise ValueError(
            f"{where}: a rule is {{when: ..., answer: ...}}, {{otherwise: ...}} or {{id: ..., value: ...}}"
        )
    said = cast("Mapping[str, Any]", entry)
    try:
        if set(said) == {"id", "value"}:
            if not isinstance(said["id"], str):
                raise ValueError("an id must be a string")
            return _named(said["id"], said["value"])
        if set(said) == {"otherwise"}:
            return Rule("", {}, parse_answer(said["otherwise"]))
        if set(said) != {"when", "answer"}:
            raise ValueError("a rule is {when: ..., answer: ...}, {otherwise: ...} or {id: ..., value: ...}")
        return Rule(where, _conditions(said["when"]), parse_answer(said["answer"]))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _conditions(when: Any) -> dict[str, Matcher]:
    if not isinstance(when, dict) or not when or not when.keys() <= CONDITIONS.keys():
        raise ValueError(f"when must have one or more of {', '.join(CONDITIONS)}")
    if has_snapshot(when):
        raise ValueError("snapshots are for results, not for questions; write the expected value")
    return {name: parse_matcher(written) for name, written in cast("dict[str, Any]", when).items()}


def has_snapshot(written: Any) -> bool:
    """Return whether a matcher anywhere in a value is a snapshot."""
    if isinstance(written, list):
        return any(map(has_snapshot, cast("list[Any]", written)))
    if not isinstance(written, dict):
        return False
    members = cast("dict[str, Any]", written)
    return "snapshot" in members or any(has_snapshot(one) for name, one in members.items() if name != "equals")


def responses_to(questions: Sequence[Question], answer_for: Callable[[Question], Answer | None]) -> dict[str, Any]:
    """Return what to send for the questions of a round, by key.

    Raises `CannotAnswer` if a required answer is missing or does not fit.
    """
    given = [(question, answer_for(question)) for question in questions]
    missing = [question for question, answer in given if answer is None and question.required]
    if missing:
        raise MissingAnswer(missing)
    return {
        question.key: copy.deepcopy(render(question, answer))  # a fixture answers many conversations
        for question, answer in given
        if answer is not None and not _left_out(question, answer)
    }


def _left_out(question: Question, answer: Answer) -> bool:
    # A field that need not be filled in is the nearest the compatibility dialect has to a decline.
    return answer.way is Way.OMIT or (answer.declines and not question.required)


@overload
def collect_responses(requests: Sequence[InputRequest], fixture: InputResponseFixture) -> list[InputResponse]: ...
@overload
def collect_responses(requests: Mapping[str, Mapping[str, Any]], fixture: InputResponseFixture) -> dict[str, Any]: ...
def collect_responses(
    requests: Sequence[InputRequest] | Mapping[str, Mapping[str, Any]], fixture: InputResponseFixture
) -> list[InputResponse] | dict[str, Any]:
    """Return the answers to the requests of one round, in their own dialect.

    A request without an answer is left out if it is optional, and raises `MissingAnswer` if it is required.
    """
    if isinstance(requests, Mapping):
        asked = [Question(key, one["method"], one.get("params") or {}) for key, one in requests.items()]
        return responses_to(in_one_round(asked), fixture.answer_for)
    answered = responses_to(in_one_round([request.question() for request in requests]), fixture.answer_for)
    return [InputResponse(id=key, value=value) for key, value in answered.items()]


def unused(rules: Sequence[Rule], used: Sequence[Rule]) -> list[Rule]:
    """Return the rules that were not used. A rule without conditions may stay unused."""
    taken = set(map(id, used))
    return list(itertools.filterfalse(lambda rule: id(rule) in taken or not rule.when, rules))
