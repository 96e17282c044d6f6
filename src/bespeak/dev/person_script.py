"""The answers of the person at the page: a round's questions wait here until all of them are answered, or the call is stopped."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bespeak.conversation.answers import Answer, CannotAnswer, Refused, Way, parse_answer, render
from bespeak.conversation.exchange import Stopped
from bespeak.conversation.responses import Question


class Show(Protocol):
    """Shows the questions of a round to the person, or one that was pushed during the call."""

    def __call__(self, questions: Sequence[Question], *, pushed: bool) -> None: ...


class PersonScript:
    """Answers the questions of one conversation with what the page sends."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._questions: Sequence[Question] = ()
        self._pushed = False
        self._answers: asyncio.Future[dict[str, Any]] | None = None

    @property
    def waits(self) -> bool:
        """Whether a round is open."""
        return self._answers is not None and not self._answers.done()

    async def answers(self, questions: Sequence[Question], *, state: bool | None) -> dict[str, Any]:
        """Return what to send for the questions of a round, by key. Raises `Refused`, or `Stopped`."""
        if not questions:
            return {}
        self._questions, self._pushed = questions, state is None
        self._answers = asyncio.get_running_loop().create_future()
        self._show(questions, pushed=self._pushed)
        try:
            return await self._answers
        finally:
            self._questions, self._answers = (), None

    def scripts(self, question: Question) -> bool:
        """Return false: nothing is known of a question before it is asked."""
        return False

    def give(self, written: Mapping[str, Any]) -> dict[str, str]:
        """Take the answers to the open round, each as a suite writes it. Return what is wrong with them, by key.

        Raises `NothingAsked` if no round is open.
        """
        waiting = self._open()
        rendered: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for question in self._questions:
            try:
                rendered[question.key] = render(question, _answer(written, question))
            except Refused as refused:
                if self._pushed:  # an older server gets an error for it
                    waiting.set_exception(refused)
                    return {}
                problems[question.key] = CANNOT_DECLINE
            except (CannotAnswer, ValueError) as error:
                problems[question.key] = str(error)
        if not problems:
            waiting.set_result(rendered)
        return problems

    def stop(self) -> None:
        """Leave the open round without answers: the client goes away. Raises `NothingAsked`."""
        self._open().set_exception(Stopped())

    def _open(self) -> "asyncio.Future[dict[str, Any]]":
        if self._answers is None or self._answers.done():
            raise NothingAsked
        return self._answers


class NothingAsked(Exception):
    """No round of the call waits for answers."""


CANNOT_DECLINE = "at this revision there is no answer that declines it; answer, or stop the call"


def _answer(written: Mapping[str, Any], question: Question) -> Answer:
    if question.key not in written:
        raise CannotAnswer("it is not answered yet")
    answer = parse_answer(written[question.key])
    if answer.way is Way.OMIT:
        raise CannotAnswer("it is not answered yet")
    return answer
