"""A call and its rounds, one step at a time: what to send, what was received and what was answered.

No transport is involved: the caller sends `to_send` and passes in each response. All state is plain JSON, so a
conversation can be saved during a call and continued by another process.
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
from bespeak.conversation.json_values import as_object
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.conversation.question_names import name_of, names_of
from bespeak.conversation.responses import Dialect, Question, Reading, Verdict, is_secret, read_envelope, read_result
from bespeak.protocol.capabilities import lacking, requirements
from bespeak.terminal.safe_text import printable, quoted

DEFAULT_MAX_ELICITATION_ROUNDS = 5
"""How many rounds are answered by default. A question in the next round is an error."""
BACKOFF = (0.05, 0.25)
"""The first and the longest pause before a request without answers, in seconds."""
PUSHED_A_ROUND = 10
"""How many pushed questions count as one round."""
SHOWN = 20
"""How many questions of a round an error lists."""


@dataclass(frozen=True, slots=True)
class Round:
    """The questions of one round and their answers."""

    asked: dict[str, str]
    """The message of each question, by key."""
    answered: dict[str, Any]
    """The answers as they were sent, by key."""
    state: bool
    """Whether the round came with a requestState. The token itself is not kept."""
    left_out: int = 0
    """How many more questions there were."""

    def named(self) -> "Round":
        """Return the round with the names of its questions instead of their keys."""
        names = names_of(self.asked)
        answered = {names.get(key, key): answer for key, answer in self.answered.items()}
        return replace(self, asked={names[key]: said for key, said in self.asked.items()}, answered=answered)

    def as_json(self) -> dict[str, Any]:
        """Return the round as JSON, for a saved conversation or a report."""
        told: dict[str, Any] = {"asked": self.asked, "answered": self.answered, "state": self.state}
        return {**told, "left_out": self.left_out} if self.left_out else told


class RoundsExceeded(Exception):
    """The server is still asking after the last round that may be answered. The message lists all rounds."""

    def __init__(self, max_rounds: int, rounds: list[Round]) -> None:
        self.max_rounds = max_rounds
        self.rounds = rounds
        lines = [f"  round {number}: {_told(one)}" for number, one in enumerate(rounds, 1)]
        rounds_ = "1 answered round" if max_rounds == 1 else f"{max_rounds} answered rounds"
        super().__init__("\n".join([f"the server is still asking after {rounds_}; it asked:", *lines]))


class MalformedResponse(Exception):
    """A response that the protocol does not allow."""

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
    """The original params. They are part of every request."""
    max_rounds: int = DEFAULT_MAX_ELICITATION_ROUNDS
    capabilities: dict[str, Any] | None = None
    """The client's declared capabilities; `None` if they are not checked."""
    rounds: list[Round] = field(default_factory=list[Round])
    findings: list[Finding] = field(default_factory=list[Finding])
    pending: Reading | None = None
    """The round that waits for answers."""
    to_send: dict[str, Any] = field(init=False, repr=False)
    """The params of the next request."""
    dialects: set[Dialect] = field(default_factory=set[Dialect])
    """The dialects in which the server has asked so far."""
    states: list[str] = field(default_factory=list[str], repr=False)
    """The requestState tokens so far, to keep them out of reports."""
    _declined: dict[str, dict[str, tuple[str, int]]] = field(default_factory=dict[str, dict[str, tuple[str, int]]])
    """The declined questions, by content and name: the key, and the number of rounds at that time."""
    _names: list[set[str]] = field(init=False, repr=False)
    """The names of the questions of each round."""

    _omitted: list[str] = field(default_factory=list[str], init=False, repr=False)
    """The names of the questions of the last round that were not answered."""

    def __post_init__(self) -> None:
        self._names = [set(map(name_of, one.asked)) for one in self.rounds]
        self.params = copy.deepcopy(self.params)  # later changes by the caller must not get into the requests
        self.to_send = copy.deepcopy(self.params)

    def receive(self, envelope: Any) -> Reading:
        """Take in the response to the last request. Raises `MalformedResponse` and `RoundsExceeded`."""
        extended = bool((self.capabilities or {}).get("extensions"))
        read = read_envelope(envelope, self.method, extended=extended)
        self.findings += read.findings
        if self._omitted and read.verdict is Verdict.COMPLETE:
            did = "answered with an error" if "error" in as_object(envelope) else "completed the call"
            what = f"the server {did}, and did not ask for the answer to {quoted(self._omitted[0])} again"
            self.findings.append(Finding("missing-answer", what))
        if read.dialect is not None:
            self.dialects.add(read.dialect)
        if read.state is not None and is_secret(read.state):
            self.states.append(read.state)
        if read.verdict is Verdict.MALFORMED:
            raise MalformedResponse(read.findings)
        self.pending = None
        return read if read.verdict is Verdict.COMPLETE else self._ask(read, self.max_rounds)

    def _ask(self, read: Reading, most: int) -> Reading:
        """Take in the questions of a response or a push."""
        self.findings += [finding for one in read.questions for finding in self._misplaced(one)]
        if len(self.rounds) >= most:
            raise RoundsExceeded(most, [*self.rounds, _round(read, {})])
        self.pending = read
        return read

    def push(self, question: Question) -> None:
        """Take in a question that was pushed during the call, as in older revisions. Raises `RoundsExceeded`.

        Pushed questions come one at a time, so more of them are allowed than rounds.
        """
        self._ask(Reading(Verdict.ASKING, (question,), dialect=Dialect.SPEC), self.max_rounds * PUSHED_A_ROUND)

    def _misplaced(self, question: Question) -> list[Finding]:
        found: list[Finding] = []
        if self._declined and self._was_declined(question):
            found.append(Finding("declined", f"{quoted(question.name)} was declined, but the server asked it again"))
        if self.capabilities is not None and question.method is not None:
            needs = requirements(question.method, question.params)
            if missing := lacking(needs, self.capabilities):
                what = f"{quoted(question.name)} asks for {_capability(missing)}, which the client did not declare"
                found.append(Finding("undeclared", what))
        return found

    def _was_declined(self, question: Question) -> bool:
        """Whether the same question was declined before.

        Under another name it is another question, even if its words are the same. It can also be a new question if something
        that it depends on has changed. Then only the end of its key is different, and something else was asked in between.
        """
        declined, name = self._declined.get(_text(question), {}), name_of(question.key)
        if name not in declined:
            return False
        key, rounds = declined[name]
        return question.key == key or not any(names - {name} for names in self._names[rounds:])

    @property
    def pause(self) -> float:
        """Seconds to wait before the next request. After a round without questions the server gets some time."""
        idle = sum(1 for _ in itertools.takewhile(lambda one: not one.asked, reversed(self.rounds)))
        return min(BACKOFF[0] * 2 ** (idle - 1), BACKOFF[1]) if idle else 0.0

    def answer(self, responses: Mapping[str, Any]) -> None:
        """Answer the open round: what to send for each question, by key."""
        asked = self.pending
        if asked is None:
            raise RuntimeError("there is no open question to answer")
        known = {one.key for one in asked.questions}
        unasked = next((key for key in responses if key not in known), None)
        if unasked is not None:
            raise ValueError(f"no open question has the key {quoted(unasked)}")
        self.rounds.append(_round(asked, responses))
        self._names.append(set(map(name_of, known)))
        self._omitted = [one.name for one in asked.questions if one.required and one.key not in responses]
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

    def start_over(self) -> None:
        """Begin the call again from its start. Findings stay; rounds, states and what was declined belong to the old call."""
        self.rounds.clear()
        self._names.clear()
        self._declined.clear()
        self._omitted.clear()
        self.pending = None
        self.to_send = copy.deepcopy(self.params)

    def leave(self) -> None:
        """Leave the open round without an answer: the client goes away."""
        assert self.pending is not None, "a client leaves when it was asked"
        self.rounds.append(unanswered(self.pending))
        self.pending = None

    # Saving and restoring

    def as_json(self) -> dict[str, Any]:
        """Return the whole conversation as JSON. It contains the requestState, which is enough to continue the call."""
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
        """Return a conversation from `as_json`. Raises `ValueError` if it is not valid."""
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
    """The open round of a saved conversation."""

    dialect: Dialect
    questions: list[tuple[str, dict[str, Any]]]
    request_state: str | None
    description: str | None

    def reading(self) -> Reading:
        """Return the round, read again as a response: the file may have been changed."""
        asked: Any = [one for _, one in self.questions] if self.dialect is Dialect.LIST else dict(self.questions)
        result: dict[str, Any] = {"inputRequests": asked}
        if self.dialect is Dialect.SPEC:
            result["resultType"] = "input_required"
        if self.request_state is not None:
            result["requestState"] = self.request_state
        read = read_result(result)
        if read.verdict is not Verdict.ASKING:
            raise ValueError("this is not a saved conversation: see pending")
        return replace(read, description=self.description, findings=())


class _Saved(_Put):
    """A saved conversation."""

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
            raise ValueError("a finding names an unknown rule")
        return findings

    @classmethod
    def read(cls, saved: Any) -> "_Saved":
        try:
            return cls.model_validate(saved, strict=False)
        except ValidationError as error:
            places = sorted({".".join(map(str, detail["loc"][:2])) or "all of it" for detail in error.errors()})
            raise ValueError(f"this is not a saved conversation: see {', '.join(places[:5])}") from None


def _text(question: Question) -> str:
    """The content of a question, for comparison."""
    return json.dumps(question.as_json(), sort_keys=True)


def unanswered(asked: Reading) -> Round:
    """Return a round whose questions were not answered."""
    return _round(asked, {})


def _round(read: Reading, answered: Mapping[str, Any]) -> Round:
    asked = {question.key: question.message or question.method or "" for question in read.questions}
    return Round(asked, dict(answered), read.state is not None)


def _capability(needs: Mapping[str, Any]) -> str:
    ((name, modes),) = needs.items()
    return ".".join([name, *list(modes)[:1]])
