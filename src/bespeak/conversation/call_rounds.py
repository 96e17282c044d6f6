"""A call and its rounds, one step at a time: what to send, what came, what was answered.

No transport inside: whoever drives a conversation sends what it says and hands in what came. All it knows is plain JSON, so
that a conversation can be put down in mid-call, printed or saved, and taken up again by another process.
"""

import copy
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from bespeak.conversation.differences import shown
from bespeak.conversation.input_required import InputResponse, build_retry_params
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.conversation.question_names import name_of, names_of
from bespeak.conversation.responses import Dialect, Question, Reading, Verdict, is_secret, read_envelope, read_result
from bespeak.protocol.capabilities import lacking, requirements
from bespeak.terminal.safe_text import printable, quoted

DEFAULT_MAX_ELICITATION_ROUNDS = 5
"""So many rounds are answered; one more question fails."""
BACKOFF = (0.05, 0.25)
"""First and longest pause before a round that carries no answers, in seconds."""
PUSHED_A_ROUND = 10
"""How many questions that are pushed, one at a time, count as much as one round."""
SHOWN = 20
"""Questions of one round that an error lists."""


@dataclass(frozen=True, slots=True)
class Round:
    """One asking result, and what was answered."""

    asked: dict[str, str]
    """What each question says, by its key."""
    answered: dict[str, Any]
    """What was answered, as it was sent."""
    state: bool
    """Whether it handed out a state. The token itself is never kept."""
    left_out: int = 0
    """How many questions more there were than are told."""

    def named(self) -> "Round":
        """The round as people read it: with the names of its questions in place of their keys."""
        names = names_of(self.asked)
        answered = {names.get(key, key): answer for key, answer in self.answered.items()}
        return replace(self, asked={names[key]: said for key, said in self.asked.items()}, answered=answered)

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"asked": self.asked, "answered": self.answered, "state": self.state}
        return {**told, "left_out": self.left_out} if self.left_out else told


class RoundsExceeded(Exception):
    """The server still asks after as many rounds as are answered. Lists them all."""

    def __init__(self, max_rounds: int, rounds: list[Round]) -> None:
        self.max_rounds = max_rounds
        self.rounds = rounds
        lines = [f"  round {number}: {_told(one)}" for number, one in enumerate(rounds, 1)]
        rounds_ = "1 answered round" if max_rounds == 1 else f"{max_rounds} answered rounds"
        super().__init__("\n".join([f"the server still asks after {rounds_}; it asked:", *lines]))


class MalformedResponse(Exception):
    """A response is nothing the protocol allows."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        self.findings = findings
        super().__init__("; ".join(map(str, findings)))


def _told(one: Round) -> str:
    one = one.named()
    if not one.asked:
        return "nothing, only a state" if one.state else "nothing"
    listed = [f"{_asked(key, said)} -> {_answer(one.answered, key)}" for key, said in list(one.asked.items())[:SHOWN]]
    more = len(one.asked) - SHOWN
    return "; ".join(listed) + (f"; and {more} more" if more > 0 else "")


def _asked(key: str, said: str) -> str:
    return f"{printable(key)} ({printable(said)})" if said else printable(key)


def _answer(answered: Mapping[str, Any], key: str) -> str:
    return shown(answered[key]) if key in answered else "no answer"


@dataclass(slots=True)
class Conversation:
    """One call with all its rounds."""

    method: str
    params: dict[str, Any]
    """The original ones; they go with every request."""
    max_rounds: int = DEFAULT_MAX_ELICITATION_ROUNDS
    capabilities: dict[str, Any] | None = None
    """What the client declares; `None` if that is not looked at."""
    rounds: list[Round] = field(default_factory=list[Round])
    findings: list[Finding] = field(default_factory=list[Finding])
    pending: Reading | None = None
    """The round that waits for answers."""
    to_send: dict[str, Any] = field(init=False, repr=False)
    """The params of the next request."""
    dialects: set[Dialect] = field(default_factory=set[Dialect])
    """How the server has asked so far."""
    states: list[str] = field(default_factory=list[str], repr=False)
    """The tokens that were handed out, so that they can be kept out of whatever is shown."""
    _declined: dict[str, dict[str, tuple[str, int]]] = field(default_factory=dict[str, dict[str, tuple[str, int]]])
    """The declined questions: by what they said and by name, the key, and how many rounds there had been."""
    _names: list[set[str]] = field(init=False, repr=False)
    """The names of the questions of each round."""

    def __post_init__(self) -> None:
        self._names = [set(map(name_of, one.asked)) for one in self.rounds]
        self.params = copy.deepcopy(self.params)  # nobody else changes what goes with every request
        self.to_send = copy.deepcopy(self.params)

    def receive(self, envelope: Any) -> Reading:
        """Take in the response to the last request. Raises `MalformedResponse` and `RoundsExceeded`."""
        read = read_envelope(envelope, self.method)
        self.findings += read.findings
        if read.dialect is not None:
            self.dialects.add(read.dialect)
        if read.state is not None and is_secret(read.state):
            self.states.append(read.state)
        if read.verdict is Verdict.MALFORMED:
            raise MalformedResponse(read.findings)
        self.pending = None
        return read if read.verdict is Verdict.COMPLETE else self._ask(read, self.max_rounds)

    def _ask(self, read: Reading, most: int) -> Reading:
        """Take in questions, however they came."""
        self.findings += [finding for one in read.questions for finding in self._misplaced(one)]
        if len(self.rounds) >= most:
            raise RoundsExceeded(most, [*self.rounds, _round(read, {})])
        self.pending = read
        return read

    def push(self, question: Question) -> None:
        """Take in a question that came in mid-call, as servers of older revisions ask. Raises `RoundsExceeded`.

        They come one at a time where a round would bring many, so there may be more of them than rounds.
        """
        self._ask(Reading(Verdict.ASKING, (question,), dialect=Dialect.SPEC), self.max_rounds * PUSHED_A_ROUND)

    def _misplaced(self, question: Question) -> list[Finding]:
        found: list[Finding] = []
        if self._declined and self._was_declined(question):
            found.append(Finding("declined", f"{quoted(question.name)} was declined, and is asked again"))
        if self.capabilities is not None and question.method is not None:
            needs = requirements(question.method, question.params)
            if missing := lacking(needs, self.capabilities):
                what = f"{quoted(question.name)} asks for {_capability(missing)}, which was not declared"
                found.append(Finding("undeclared", what))
        return found

    def _was_declined(self, question: Question) -> bool:
        """Whether the same was asked before, and declined.

        The same words can be another question, for what it depends on may have changed. Then only the end of its key is
        another, and something else was asked in the meantime. A new key alone proves nothing.
        """
        declined, name = self._declined.get(_text(question), {}), name_of(question.key)
        if name not in declined or len(declined) > 1:
            return bool(declined)
        key, rounds = declined[name]
        return question.key == key or not any(names - {name} for names in self._names[rounds:])

    @property
    def pause(self) -> float:
        """How long to wait before the next request, in seconds: a round that asked nothing is not to be hurried."""
        idle = sum(1 for _ in itertools.takewhile(lambda one: not one.asked, reversed(self.rounds)))
        return min(BACKOFF[0] * 2 ** (idle - 1), BACKOFF[1]) if idle else 0.0

    def answer(self, responses: Mapping[str, Any]) -> None:
        """Answer the round that is open: what to send for each question, by its key."""
        asked = self.pending
        if asked is None:
            raise RuntimeError("nothing is asked that could be answered")
        known = {one.key for one in asked.questions}
        unasked = next((key for key in responses if key not in known), None)
        if unasked is not None:
            raise ValueError(f"nobody asked for {quoted(unasked)}")
        self.rounds.append(_round(asked, responses))
        self._names.append(set(map(name_of, known)))
        for question in asked.questions:
            response: Any = responses.get(question.key)
            if isinstance(response, dict) and cast("dict[str, Any]", response).get("action") == "decline":
                declined = self._declined.setdefault(_text(question), {})
                declined[name_of(question.key)] = (question.key, len(self.rounds))
        given: Any = dict(responses) if asked.questions else None
        if asked.dialect is Dialect.LIST:
            given = [InputResponse(id=key, value=value) for key, value in responses.items()]
        self.to_send = build_retry_params(self.params, asked.state, given)
        self.pending = None

    # Put down, and taken up again

    def as_json(self) -> dict[str, Any]:
        """All there is to know. Holds the state's token: whoever has it can go on with the call."""
        pending = self.pending
        told = {
            "method": self.method,
            "params": self.params,
            "maxRounds": self.max_rounds,
            "capabilities": self.capabilities,
            "rounds": [one.as_json() for one in self.rounds],
            "findings": [one.as_json() for one in self.findings],
            "declined": {
                text: {name: list(one) for name, one in by_name.items()} for text, by_name in self._declined.items()
            },
            "dialects": sorted(self.dialects),
            "toSend": self.to_send,
            "pending": None
            if pending is None
            else {
                "dialect": pending.dialect,
                "questions": [[question.key, question.as_json()] for question in pending.questions],
                "requestState": pending.state,
                "description": pending.description,
            },
        }
        return copy.deepcopy(told)

    @classmethod
    def from_json(cls, saved: Any) -> "Conversation":
        """A conversation as it was put down. Raises `ValueError` for what is none."""
        read = _Saved.read(copy.deepcopy(saved))
        self = cls(
            read.method,
            read.params,
            read.max_rounds,
            read.capabilities,
            list(read.rounds),
            list(read.findings),
            None if read.pending is None else read.pending.reading(),
        )
        self._declined = read.declined
        self.to_send = read.to_send
        self.dialects = set(read.dialects)
        self.states = [] if self.pending is None or self.pending.state is None else [self.pending.state]
        return self


class _Put(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


class _SavedRound(_Put):
    """The questions of the round in which a conversation was put down."""

    dialect: Dialect
    questions: list[tuple[str, dict[str, Any]]]
    request_state: str | None
    description: str | None

    def reading(self) -> Reading:
        """The round as it came, read once more: whoever kept it may have changed it."""
        asked: Any = [one for _, one in self.questions] if self.dialect is Dialect.LIST else dict(self.questions)
        result: dict[str, Any] = {"inputRequests": asked}
        if self.dialect is Dialect.SPEC:
            result["resultType"] = "input_required"
        if self.request_state is not None:
            result["requestState"] = self.request_state
        read = read_result(result)
        if read.verdict is not Verdict.ASKING:
            raise ValueError("that is no conversation that was put down: see pending")
        return replace(read, description=self.description, findings=())


class _Saved(_Put):
    """A conversation that was put down."""

    method: Literal["tools/call", "prompts/get", "resources/read"]
    params: dict[str, Any]
    max_rounds: int = Field(ge=0)
    capabilities: dict[str, Any] | None
    rounds: list[Round]
    findings: list[Finding]
    declined: dict[str, dict[str, tuple[str, int]]]
    dialects: list[Dialect]
    to_send: dict[str, Any]
    pending: _SavedRound | None

    @field_validator("findings")
    @classmethod
    def _known(cls, findings: list[Finding]) -> list[Finding]:
        if any(finding.rule not in RULES for finding in findings):
            raise ValueError("a finding of no rule")
        return findings

    @classmethod
    def read(cls, saved: Any) -> "_Saved":
        try:
            return cls.model_validate(saved, strict=False)
        except ValidationError as error:
            places = sorted({".".join(map(str, detail["loc"][:2])) or "all of it" for detail in error.errors()})
            raise ValueError(f"that is no conversation that was put down: see {', '.join(places[:5])}") from None


def _text(question: Question) -> str:
    """A question, to be compared with others."""
    return json.dumps(question.as_json(), sort_keys=True)


def _round(read: Reading, answered: Mapping[str, Any]) -> Round:
    asked = {question.key: question.message or question.method or "" for question in read.questions}
    return Round(asked, dict(answered), read.state is not None)


def _capability(needs: Mapping[str, Any]) -> str:
    ((name, modes),) = needs.items()
    return ".".join([name, *list(modes)[:1]])
