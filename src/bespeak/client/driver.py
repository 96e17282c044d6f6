"""Drives a call through its rounds: answers the server's questions, and sends the request again with the answers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bespeak.client.errors import InputRequiredQuestionsExceededError, InputRequiredRoundsExceededError, Undeclared
from bespeak.client.question_answers import CallbackAnswers
from bespeak.client.server_responses import InputRequired, read_input_required, read_required_urls
from bespeak.client.session import ClientSession
from bespeak.protocol.errors import MCPError
from bespeak.protocol.legacy import NOVEMBER
from bespeak.protocol.quoting import one_line

DIALOGS = 8
"""Questions of one round that are answered at the same time."""
BACKOFF = (0.05, 0.25)
"""The first and the longest pause before a round without answers, in seconds."""

Send = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends the request with additional params, and returns the raw result."""


class Driver:
    """Answers the questions of each round with a client's callbacks."""

    def __init__(self, session: ClientSession, answers: CallbackAnswers, max_rounds: int, max_questions: int) -> None:
        self._session = session
        self._answers = answers
        self._max_rounds = max_rounds
        self._max_questions = max_questions

    async def drive(self, send: Send, extra: dict[str, Any]) -> dict[str, Any]:
        """Send a request until its result requires no more input. Return that result, raw."""
        asked: list[list[str]] = []
        pause = BACKOFF[0]
        while True:
            try:
                result = await send(extra)
            except MCPError as error:
                if not await self._opened_urls(error, asked):
                    raise
                continue
            required = read_input_required(result)
            if required is None:
                return result
            self._count(required, asked)
            if required.questions:
                pause = BACKOFF[0]
                extra = {"inputResponses": await self._answered(required)}
            else:
                await asyncio.sleep(pause)
                pause = min(pause * 2, BACKOFF[1])
                extra = {}
            if required.state is not None:
                extra["requestState"] = required.state

    def _count(self, required: InputRequired, asked: list[list[str]]) -> None:
        """Add a round to those that were asked. Raises if there are too many, or too many questions in it."""
        asked.append([_spell(key, question) for key, question in required.questions.items()])
        if len(asked) > self._max_rounds:
            raise InputRequiredRoundsExceededError(self._max_rounds, asked)
        if len(required.questions) > self._max_questions:
            raise InputRequiredQuestionsExceededError(self._max_questions, len(required.questions))

    async def _opened_urls(self, error: MCPError, asked: list[list[str]]) -> bool:
        """Whether an error asks to open URLs, and a person has agreed to open all of them. The request is then sent again."""
        required = read_required_urls(error) if self._session.version == NOVEMBER else None
        if required is None:
            return False
        try:
            for key, question in required.questions.items():
                self._answers.check_declared(key, question)
        except Undeclared:
            return False
        self._count(required, asked)
        answers = await self._answered(required)
        return all(answer["action"] == "accept" for answer in answers.values())

    async def _answered(self, required: InputRequired) -> dict[str, dict[str, Any]]:
        """Return the answers to all questions of a round. Raises the first error."""
        for key, question in required.questions.items():
            self._answers.check_declared(key, question)
            self._answers.check_url(key, question)
        if len(required.questions) == 1:
            return {
                key: await self._answers.answer(self._session, key, question)
                for key, question in required.questions.items()
            }
        answers: dict[str, dict[str, Any]] = {}
        waiting = iter(required.questions.items())

        async def work() -> None:
            for key, question in waiting:
                answers[key] = await self._answers.answer(self._session, key, question)

        workers = [asyncio.create_task(work()) for _ in range(min(DIALOGS, len(required.questions)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return {key: answers[key] for key in required.questions}


def _spell(key: str, question: Mapping[str, Any]) -> str:
    message = question.get("params", {}).get("message")
    return f"{one_line(key)} ({one_line(message if isinstance(message, str) else question['method'])})"
