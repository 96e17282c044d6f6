"""Drives one conversation: sends requests, answers questions, and stops when the call ends or the server breaks a rule."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from bespeak.client.errors import CallbackFailed, InvalidServerResponse
from bespeak.conversation.answer_sources import Script
from bespeak.conversation.answers import CannotAnswer, Refused
from bespeak.conversation.call_rounds import Conversation, MalformedResponse, Round, RoundsExceeded
from bespeak.conversation.connection import DECLINED, Line, Received
from bespeak.conversation.profiles.profile import Profile, StartOver
from bespeak.conversation.profiles.profile_calls import answered_by, judged_by, sent_by
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Dialect, Question, Verdict, read_envelope, read_question
from bespeak.protocol.versions import is_modern

STARTS = 200
"""How many times a client may start a call over."""


class BrokenRule(Exception):
    """The server broke a rule, so the conversation cannot continue."""


class Stopped(Exception):
    """The client goes away: the open questions are not answered, and nothing more is sent."""


class Interference:
    """What is done to requests on their way to the server. Here: nothing; a test that attacks a server overrides it."""

    __slots__ = ()

    def alter(self, number: int, params: dict[str, Any]) -> dict[str, Any]:
        """Return the params to send after `number` answered rounds."""
        return params

    def is_tampered(self, number: int) -> bool:
        """Return whether the request after `number` answered rounds is altered. If so, its response is the last."""
        return False

    def without_state(self, number: int, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return the params of an altered request without any state, to see whether the server relies on it at all."""
        return None

    def loses(self, number: int) -> int:
        """Return how many responses to that request are lost, so that it is sent again."""
        return 0

    def around(self, number: int, attempt: int) -> AbstractAsyncContextManager[None]:
        """Return the surroundings of one request: entered before it is sent, left when its response has arrived.

        `attempt` is 0 for a new request, and counts how often it was sent again.
        """
        return nullcontext()

    def check_reached(self) -> None:
        """Raises if the call has ended before the request that should have been altered or lost."""


@dataclass(slots=True)
class Talk:
    """A conversation that is being driven, and its outcome."""

    line: Line
    conversation: Conversation
    script: Script
    interference: Interference = field(default_factory=Interference)
    client: Profile = field(default_factory=Profile)
    envelope: Any = field(default=None, repr=False)
    """The last response."""
    unstated: Any = field(default=None, repr=False)
    """The response to an altered request that was sent again without its state; `None` if it was not."""
    unstated_error: Exception | None = None
    """Why there was no response to that request. The connection cannot be used any more."""
    ended: bool = False
    """Whether the call has ended with a result or an error, so that nothing more will be asked."""
    notifications: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    questions: list[Question] = field(default_factory=list[Question])
    """All questions of the call, in order. After a fresh start only those of the last one."""
    _shown: list[Round] = field(default_factory=list[Round])
    """The rounds that somebody has answered, whatever became of the call."""
    _pushed_before: list[tuple[Question, dict[str, Any]]] = field(default_factory=list[tuple[Question, dict[str, Any]]])
    """The questions that were pushed for an earlier copy of this request, and their answers."""
    _pushed_now: list[tuple[Question, dict[str, Any]]] = field(default_factory=list[tuple[Question, dict[str, Any]]])
    _starts: int = 0
    _sent: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """The params of the last request."""
    _failed: list[Exception] = field(default_factory=list[Exception])
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client goes away during a call."""

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
                self._keep_state(received.envelope)
                await self._send_without_state(number)
                return  # a question in this response is not caused by an answer
            read = talk.receive(received.envelope)
            talk.findings += judged_by(self.client, received.envelope, read)
            if read.verdict is Verdict.COMPLETE:
                self.interference.check_reached()
                self.ended = True
                return
            if not is_modern(self.line.version):
                talk.findings.append(
                    Finding("era", f"at {self.line.version} the server returned a result that asks for input")
                )
            self.questions += read.questions
            self._check_allowed()
            try:
                talk.answer(await self._answers(read.questions, state=read.state is not None))
            except StartOver:
                self._start_over()
            await asyncio.sleep(talk.pause)

    async def _answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        """What the client sends for the questions of a round. Raises `StartOver`."""

        async def ask() -> dict[str, Any]:
            most, now = self.conversation.max_rounds, {one.key: one.message for one in questions}
            if state is not None and len(self._shown) >= most:
                raise RoundsExceeded(most, [*self._shown, Round(now, {}, state)])
            answers = await self.script.answers(questions, state=state)
            self._shown.append(Round(now, answers, bool(state)))
            return answers

        return await answered_by(self.client, questions, ask)

    def _start_over(self) -> None:
        """Forget what belongs to the call so far. Raises `CannotAnswer` if the client never comes to an end."""
        self._starts += 1
        if self._starts > STARTS:
            raise CannotAnswer(f"the client started the call over {STARTS} times and never came to its end")
        self.conversation.start_over()
        self.questions.clear()
        self.notifications.clear()

    async def _send(self, number: int) -> Received:
        params = self.interference.alter(number, self.conversation.to_send)
        if isinstance(params.get("requestState"), str):
            self.conversation.states.append(params["requestState"])
        self._sent = params
        copies = 0

        async def send() -> Received:
            nonlocal copies
            if copies and not is_modern(self.line.version):  # it asks its questions again
                self._pushed_before, self._pushed_now = self._pushed_now, []
                self._start_over()
            attempt, copies = copies, copies + 1
            return await self._attempt(number, attempt, params)

        received = await sent_by(self.client, send)
        for _ in range(self.interference.loses(number)):
            received = await send()  # the response before this one never arrived
        self.notifications += received.notifications
        return received

    async def _attempt(self, number: int, attempt: int, params: dict[str, Any]) -> Received:
        async with self.interference.around(number, attempt):
            return await self._exchange(params)

    async def _exchange(self, params: dict[str, Any]) -> Received:
        try:
            received = await self._until_gone(params)
        except CallbackFailed:
            if self._failed:
                raise self._failed[0] from None
            raise
        finally:
            self.conversation.findings += self.line.astray()
        asks_in_list = Dialect.LIST in self.conversation.dialects
        self.conversation.findings += [
            finding for finding in received.findings if not (asks_in_list and finding.rule == "no-result-type")
        ]
        return received

    def _keep_state(self, envelope: Any) -> None:
        state = read_envelope(envelope).state
        self.conversation.states += [] if state is None else [state]

    async def _send_without_state(self, number: int) -> None:
        """Send an altered request that was not refused again without its state."""
        params = self.interference.without_state(number, self._sent)
        envelope: Any = self.envelope
        if params is None or not isinstance(envelope, dict) or "result" not in envelope:
            return
        try:
            self.unstated = (await self._exchange(params)).envelope
        except (OSError, InvalidServerResponse) as error:  # what the server did with the altered request still counts
            self.unstated_error = error
            return
        self._keep_state(self.unstated)

    async def _until_gone(self, params: dict[str, Any]) -> Received:
        """Send a request. It is cancelled if the client goes away while a question is pushed. Raises `Stopped`."""
        if is_modern(self.line.version):
            return await self.line.send(self.conversation.method, params, self._pushed, self.script.scripts)
        sending = asyncio.ensure_future(
            self.line.send(self.conversation.method, params, self._pushed, self.script.scripts)
        )
        gone = asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not sending.done():
                sending.cancel()
                await asyncio.wait({sending})
        if sending.cancelled():
            raise Stopped
        return sending.result()

    async def _pushed(self, question: Question) -> Any:
        """The answer to a pushed question; `None` if it has no answer and the call has failed."""
        async with self._turn:
            try:
                talk = self.conversation
                _check_question(question)
                talk.push(question)
                self.questions.append(question)
                self._check_allowed()
                responses = await self._pushed_answers(question)
                if question.key not in responses:
                    raise CannotAnswer(f"{question.name!r} was asked during the call and cannot be omitted")
                talk.answer(responses)
                return responses[question.key]
            except Refused:
                self.conversation.answer({question.key: DECLINED})
                return DECLINED
            except MalformedResponse as error:
                self.conversation.findings += error.findings
                self._failed.append(error)
                return None
            except StartOver:
                what = (
                    f"at {self.line.version} a question is answered during the call, so the client cannot start it over"
                )
                self._failed.append(CannotAnswer(what))
                return None
            except Stopped:
                self._gone.set()
                # Nothing is sent, not even an error, until the request is cancelled.
                return await asyncio.Event().wait()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the call was made
                self._failed.append(error)
                return None

    async def _pushed_answers(self, question: Question) -> dict[str, Any]:
        """The answers to a pushed question: those of the copy before, if it asked the same at this point."""
        before = self._pushed_before.pop(0) if self._pushed_before else None
        if before is not None and before[0] == question:
            responses = before[1]
        else:
            responses = await self._answers([question], state=None)
        self._pushed_now.append((question, responses))
        return responses

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
    read = read_question(question)
    if read.verdict is Verdict.MALFORMED:
        raise MalformedResponse(read.findings)
