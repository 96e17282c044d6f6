"""A call and its rounds, one step at a time: what to send, what came, what was answered.

No transport inside: whoever drives a conversation sends what it says and hands in what came. All it knows is plain JSON, so
that a conversation can be put down in mid-call, printed or saved, and taken up again by another process.
"""

import asyncio
import inspect
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast, overload

from bespeak.resolve.questions import lacking, requirements
from bespeak.testing.dialects import InputResponse, build_retry_params
from bespeak.testing.findings import Finding
from bespeak.testing.fixtures import InputResponseFixture, responses_to
from bespeak.testing.results import Round
from bespeak.testing.verdicts import Dialect, Question, Reading, Verdict, read_envelope

DEFAULT_MAX_ELICITATION_ROUNDS = 5
"""So many rounds are answered; one more question fails."""
BACKOFF = (0.05, 0.25)
"""First and longest pause before a round that carries no answers, in seconds."""
SHOWN = 20
"""Questions of one round that an error lists."""


class RoundsExceeded(Exception):
    """The server still asks after as many rounds as are answered. Lists them all."""

    def __init__(self, max_rounds: int, rounds: list[Round]) -> None:
        self.max_rounds = max_rounds
        self.rounds = rounds
        lines = [f"  round {number}: {_told(one)}" for number, one in enumerate(rounds, 1)]
        super().__init__("\n".join([f"the server still asks after {max_rounds} answered rounds; it asked:", *lines]))


class MalformedResponse(Exception):
    """A response is nothing the protocol allows."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        self.findings = findings
        super().__init__("; ".join(map(str, findings)))


def _told(one: Round) -> str:
    if not one.asked:
        return "nothing, only a state"
    listed = [f"{key} ({said:.200}) -> {_answer(one.answered, key)}" for key, said in list(one.asked.items())[:SHOWN]]
    more = len(one.asked) - SHOWN
    return "; ".join(listed) + (f"; and {more} more" if more > 0 else "")


def _answer(answered: Mapping[str, Any], key: str) -> str:
    return f"{answered[key]!r:.200}" if key in answered else "no answer"


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
    to_send: dict[str, Any] = field(init=False)
    """The params of the next request."""
    _declined: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def __post_init__(self) -> None:
        self.to_send = self.params

    def receive(self, envelope: Any) -> Reading:
        """Take in the response to the last request. Raises `MalformedResponse` and `RoundsExceeded`."""
        read = read_envelope(envelope, self.method)
        self.findings += read.findings
        if read.verdict is Verdict.MALFORMED:
            raise MalformedResponse(read.findings)
        self.pending = None
        return read if read.verdict is Verdict.COMPLETE else self.ask(read)

    def ask(self, read: Reading) -> Reading:
        """Take in questions, however they came. Raises `RoundsExceeded`."""
        self.findings += [finding for one in read.questions for finding in self._misplaced(one)]
        if len(self.rounds) >= self.max_rounds:
            raise RoundsExceeded(self.max_rounds, [*self.rounds, _round(read, {})])
        self.pending = read
        return read

    def push(self, question: Question) -> None:
        """Take in a question that came in mid-call, as servers of older revisions ask. Raises `RoundsExceeded`."""
        self.ask(Reading(Verdict.ASKING, (question,), dialect=Dialect.SPEC))

    def _misplaced(self, question: Question) -> list[Finding]:
        found: list[Finding] = []
        if question.as_json() in self._declined:
            found.append(Finding("declined", f"{question.key!r} was declined, and is asked again"))
        if self.capabilities is not None and question.method is not None:
            needs = requirements(question.method, question.params)
            if lacking(needs, self.capabilities):
                found.append(
                    Finding("undeclared", f"{question.key!r} asks for {_capability(needs)}, which was not declared")
                )
        return found

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
        self.rounds.append(_round(asked, responses))
        self._declined += [
            question.as_json()
            for question in asked.questions
            if isinstance(response := responses.get(question.key), dict)
            and cast("dict[str, Any]", response).get("action") == "decline"
        ]
        given: Any = dict(responses) if asked.questions else None
        if asked.dialect is Dialect.LIST:
            given = [InputResponse(id=key, value=value) for key, value in responses.items()]
        self.to_send = build_retry_params(self.params, asked.state, given)
        self.pending = None

    # Put down, and taken up again

    def as_json(self) -> dict[str, Any]:
        """All there is to know. Holds the state's token: whoever has it can go on with the call."""
        pending = self.pending
        return {
            "method": self.method,
            "params": self.params,
            "maxRounds": self.max_rounds,
            "capabilities": self.capabilities,
            "rounds": [one.as_json() for one in self.rounds],
            "findings": [one.as_json() for one in self.findings],
            "declined": self._declined,
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

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "Conversation":
        """A conversation as it was put down. Raises `ValueError` for what is none."""
        try:
            self = cls(
                saved["method"],
                saved["params"],
                saved["maxRounds"],
                saved["capabilities"],
                [Round(**one) for one in saved["rounds"]],
                [Finding(**one) for one in saved["findings"]],
                _pending(saved["pending"]),
            )
            self._declined = list(saved["declined"])
            self.to_send = dict(saved["toSend"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"that is no conversation that was put down ({type(error).__name__}: {error})") from None
        return self


def _pending(saved: Mapping[str, Any] | None) -> Reading | None:
    if saved is None:
        return None
    dialect = Dialect(saved["dialect"])
    questions = tuple(_question(key, one, dialect) for key, one in saved["questions"])
    return Reading(Verdict.ASKING, questions, saved["requestState"], dialect, saved["description"])


def _question(key: str, saved: Mapping[str, Any], dialect: Dialect) -> Question:
    if dialect is Dialect.LIST:
        kind = {"kind": saved["kind"], "description": saved["description"]}
        return Question(key, None, kind, saved["required"])
    return Question(key, saved["method"], saved.get("params", {}))


def _round(read: Reading, answered: Mapping[str, Any]) -> Round:
    asked = {question.key: question.message or question.method or "" for question in read.questions}
    return Round(asked, dict(answered), read.state is not None)


def _capability(needs: Mapping[str, Any]) -> str:
    ((name, modes),) = needs.items()
    return ".".join([name, *list(modes)[:1]])


# The loop, for those who have a request to send and a fixture


@dataclass(frozen=True, slots=True)
class Chain:
    """A call that has come to its end."""

    response: dict[str, Any]
    """The response that asks nothing."""
    rounds: list[Round]


@overload
def run_elicitation_chain(
    initial_response: Any,
    initial_params: Any,
    fixture: InputResponseFixture,
    max_rounds: int,
    next_response: Callable[[dict[str, Any]], Awaitable[Any]],
) -> Awaitable[Chain]: ...
@overload
def run_elicitation_chain(
    initial_response: Any,
    initial_params: Any,
    fixture: InputResponseFixture,
    max_rounds: int,
    next_response: Callable[[dict[str, Any]], dict[str, Any]],
) -> Chain: ...
def run_elicitation_chain(
    initial_response: Any,
    initial_params: Any,
    fixture: InputResponseFixture,
    max_rounds: int = DEFAULT_MAX_ELICITATION_ROUNDS,
    next_response: Callable[[dict[str, Any]], Any] | None = None,
) -> Chain | Awaitable[Chain]:
    """Answer a call's questions from a fixture until a response asks nothing.

    `next_response` sends the params it is given, and returns the response; if it is async, so is this. Raises
    `RoundsExceeded` for a question beyond the cap, `CannotAnswer` and `MalformedResponse`.
    """
    params: dict[str, Any] = cast("dict[str, Any]", initial_params) if isinstance(initial_params, dict) else {}
    conversation = Conversation("tools/call", params, max_rounds)
    if next_response is None:
        raise TypeError("next_response is missing: it sends the params it is given, and returns the response")
    if inspect.iscoroutinefunction(next_response):
        return _walk_async(conversation, fixture, initial_response, next_response)
    response = initial_response
    while _asks(conversation, fixture, response):
        time.sleep(conversation.pause)
        response = next_response(conversation.to_send)
    return Chain(response, conversation.rounds)


async def _walk_async(
    conversation: Conversation,
    fixture: InputResponseFixture,
    response: Any,
    next_response: Callable[[dict[str, Any]], Awaitable[Any]],
) -> Chain:
    while _asks(conversation, fixture, response):
        await asyncio.sleep(conversation.pause)
        response = await next_response(conversation.to_send)
    return Chain(response, conversation.rounds)


def _asks(conversation: Conversation, fixture: InputResponseFixture, response: Any) -> bool:
    """Whether a response asks; if so, it is answered."""
    read = conversation.receive(response)
    if read.verdict is not Verdict.ASKING:
        return False
    conversation.answer(responses_to(read.questions, fixture.answer_for))
    return True
