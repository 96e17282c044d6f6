"""Drives one conversation: sends requests, answers questions, and stops when the call ends or the server breaks a rule."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from bespeak.client.errors import CallbackFailed
from bespeak.conversation.answer_sources import Script
from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.call_rounds import Conversation, MalformedResponse
from bespeak.conversation.connection import Line, Received
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question, Verdict, read_envelope, read_result
from bespeak.protocol.versions import is_modern


class BrokenRule(Exception):
    """The server broke a rule, so the conversation cannot continue."""


class Interference:
    """What is done to requests on their way to the server. Here: nothing; a test that attacks a server overrides it."""

    __slots__ = ()

    def alter(self, number: int, params: dict[str, Any]) -> dict[str, Any]:
        """Return the params to send after `number` answered rounds."""
        return params

    def is_tampered(self, number: int) -> bool:
        """Return whether the request after `number` answered rounds is altered. If so, its response is the last."""
        return False

    def loses(self, number: int) -> int:
        """Return how many responses to that request are lost, so that it is sent again."""
        return 0

    def check_reached(self) -> None:
        """Raises if the call has ended before the request that should have been altered or lost."""


@dataclass(slots=True)
class Talk:
    """A conversation that is being driven, and its outcome."""

    line: Line
    conversation: Conversation
    script: Script
    interference: Interference = field(default_factory=Interference)
    envelope: Any = field(default=None, repr=False)
    """The last response."""
    notifications: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    questions: list[Question] = field(default_factory=list[Question])
    """All questions, in order."""
    _failed: list[Exception] = field(default_factory=list[Exception])
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def asked(self) -> list[str]:
        """The names of all questions, in order."""
        return [question.name for question in self.questions]

    async def hold(self) -> None:
        """Drive the conversation until the call ends. Raises the error that prevents that."""
        talk = self.conversation
        while True:
            number = len(talk.rounds)
            received = await self._send(number)
            self.envelope = received.envelope
            if received.envelope is None and received.findings:
                raise MalformedResponse(tuple(received.findings))
            if self.interference.is_tampered(number):
                state = read_envelope(received.envelope).state
                talk.states += [] if state is None else [state]
                return  # a question in this response is not caused by an answer
            read = talk.receive(received.envelope)
            if read.verdict is Verdict.COMPLETE:
                self.interference.check_reached()
                return
            if not is_modern(self.line.version):
                talk.findings.append(
                    Finding("era", f"at {self.line.version} the server returned a result that asks for input")
                )
            self.questions += read.questions
            self._check_allowed()
            state = read.state is not None
            talk.answer(await self.script.answers(read.questions, state=state))
            await asyncio.sleep(talk.pause)

    async def _send(self, number: int) -> Received:
        params = self.interference.alter(number, self.conversation.to_send)
        if isinstance(params.get("requestState"), str):
            self.conversation.states.append(params["requestState"])
        received = await self._exchange(params)
        for _ in range(self.interference.loses(number)):
            received = await self._exchange(params)  # the response before this one never arrived
        return received

    async def _exchange(self, params: dict[str, Any]) -> Received:
        try:
            received = await self.line.send(self.conversation.method, params, self._pushed)
        except CallbackFailed:
            if self._failed:
                raise self._failed[0] from None
            raise
        finally:
            self.conversation.findings += self.line.astray()
        self.notifications += received.notifications
        self.conversation.findings += received.findings
        return received

    async def _pushed(self, question: Question) -> Any:
        """The answer to a pushed question; `None` if it has no answer and the call has failed."""
        async with self._turn:
            try:
                talk = self.conversation
                _check_question(question)
                talk.push(question)
                self.questions.append(question)
                self._check_allowed()
                responses = await self.script.answers([question], state=None)
                if question.key not in responses:
                    raise CannotAnswer(f"{question.name!r} was asked during the call and cannot be omitted")
                talk.answer(responses)
                return responses[question.key]
            except MalformedResponse as error:
                self.conversation.findings += error.findings
                self._failed.append(error)
                return None
            except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the call was made
                self._failed.append(error)
                return None

    async def settle(self) -> None:
        """Wait until everything that the server wrote with its last response has arrived."""
        await self.line.settle()
        self.conversation.findings += self.line.astray()

    def _check_allowed(self) -> None:
        """Raises `BrokenRule` for a question that the server was not allowed to ask."""
        broken = next((one for one in self.conversation.findings if one.rule == "undeclared"), None)
        if broken is not None:
            raise BrokenRule(str(broken))


def _check_question(question: Question) -> None:
    """Raises `MalformedResponse` for an invalid pushed question."""
    asked = {"resultType": "input_required", "inputRequests": {question.key: question.as_json()}}
    read = read_result(asked)
    if read.verdict is Verdict.MALFORMED:
        raise MalformedResponse(read.findings)
