"""Drives a call through its rounds: answers what the server asks, and sends the same request again."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bespeak.client.errors import InputRequiredQuestionsExceededError, InputRequiredRoundsExceededError
from bespeak.client.question_answers import Answers
from bespeak.client.result_reading import Asking, read_result
from bespeak.client.session import ClientSession
from bespeak.protocol.quoting import one_line

DIALOGS = 8
"""Questions of one round that are put to the callbacks at once."""
BACKOFF = (0.05, 0.25)
"""First and longest pause before a round that carries no answers, in seconds."""

Send = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends the request with some more members in its params; the raw result."""


class Driver:
    """Answers rounds with a client's callbacks."""

    def __init__(self, session: ClientSession, answers: Answers, max_rounds: int, max_questions: int) -> None:
        self._session = session
        self._answers = answers
        self._max_rounds = max_rounds
        self._max_questions = max_questions
        """Of one round."""

    async def drive(self, send: Send, extra: dict[str, Any]) -> dict[str, Any]:
        """Send a request until its result asks nothing. The complete result, raw."""
        asked: list[list[str]] = []
        pause = BACKOFF[0]
        while True:
            result = await send(extra)
            asking = read_result(result)
            if asking is None:
                return result
            asked.append([_spell(key, question) for key, question in asking.questions.items()])
            if len(asked) > self._max_rounds:
                raise InputRequiredRoundsExceededError(self._max_rounds, asked)
            if len(asking.questions) > self._max_questions:
                raise InputRequiredQuestionsExceededError(self._max_questions, len(asking.questions))
            if asking.questions:
                pause = BACKOFF[0]
                extra = {"inputResponses": await self._answered(asking)}
            else:
                await asyncio.sleep(pause)
                pause = min(pause * 2, BACKOFF[1])
                extra = {}
            if asking.state is not None:
                extra["requestState"] = asking.state

    async def _answered(self, asking: Asking) -> dict[str, dict[str, Any]]:
        """The answers to all questions of a round, or one exception."""
        for key, question in asking.questions.items():
            self._answers.check_declared(key, question)
            self._answers.check_url(key, question)
        if len(asking.questions) == 1:
            return {
                key: await self._answers.answer(self._session, key, question)
                for key, question in asking.questions.items()
            }
        answers: dict[str, dict[str, Any]] = {}
        waiting = iter(asking.questions.items())

        async def work() -> None:
            for key, question in waiting:
                answers[key] = await self._answers.answer(self._session, key, question)

        workers = [asyncio.create_task(work()) for _ in range(min(DIALOGS, len(asking.questions)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return {key: answers[key] for key in asking.questions}


def _spell(key: str, question: Mapping[str, Any]) -> str:
    message = question.get("params", {}).get("message")
    return f"{one_line(key)} ({one_line(message if isinstance(message, str) else question['method'])})"
