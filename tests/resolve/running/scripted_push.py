"""A stand-in for pushing questions to an older client: answers are scripted, or come when the test sends them."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from bespeak.protocol.capabilities import AskingObstacle
from tests.answering import short

Sent = dict[str, Any]


class Scripted:
    """A push whose answers come when the test says so, or at once if they are scripted."""

    def __init__(self, answers: Mapping[str, Any] | None = None, *, why: str | None = None, shows: bool = True) -> None:
        self._answers = dict(answers or {})
        self._shows = shows
        self._waiting: dict[str, asyncio.Future[Sent]] = {}
        self._why = why
        self.pushed: list[str] = []
        self.messages: list[str] = []
        self.taken_back: list[str] = []

    def obstacle(self, request: Mapping[str, Any], missing: Mapping[str, Any]) -> AskingObstacle | None:
        if missing:
            return AskingObstacle("not_declared", self._why)
        return None if self._shows else AskingObstacle("no_way_back", "it has no eyes")

    async def __call__(
        self, key: str, request: Mapping[str, Any], dropped: "asyncio.Future[None] | None" = None
    ) -> Sent | None:
        name = short(key)
        self.pushed.append(name)
        self.messages.append(request.get("params", {}).get("message", ""))
        answer = _next(self._answers.get(name))
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return answer
        waiting = self._waiting[name] = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait({waiting, dropped} if dropped else {waiting}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
            self.taken_back.append(name)
            return None
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # to take a question back takes its time
            self.taken_back.append(name)
            raise

    def answer(self, name: str, answer: Sent) -> None:
        self._waiting[name].set_result(answer)


def _next(answer: Any) -> Any:
    return cast("list[Any]", answer).pop(0) if isinstance(answer, list) else answer
