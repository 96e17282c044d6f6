"""Records what goes over a connection to a server."""

import asyncio
from typing import Any, Protocol

from bespeak.conversation.connection import Line, Push, Received, Scripts, nothing
from bespeak.conversation.json_values import as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question
from bespeak.testing.cassettes.cassette_format import Writing
from bespeak.testing.redaction.redactor import Redactor


class LiveLine(Line, Protocol):
    """A line to a live server."""

    @property
    def notifications(self) -> list[dict[str, Any]]:
        """The notifications of the current request so far."""
        ...


class Recorder:
    """A line that records what goes over a connection."""

    def __init__(self, connection: LiveLine, redaction: Redactor) -> None:
        self._connection = connection
        self._writing = Writing(redaction)
        self._heard = 0
        self.turns: list[dict[str, Any]] = []

    @property
    def version(self) -> str:
        return self._connection.version

    async def send(self, method: str, params: dict[str, Any], push: Push, scripts: Scripts = nothing) -> Received:
        writing = self._writing
        if self.turns and "inputResponses" in params:
            self.turns[-1]["answered"] = writing.answered(params["inputResponses"])
        turn: dict[str, Any] = {"method": method, "sent": writing.sent(params)}
        self._heard = 0

        async def pushed(question: Question) -> Any:
            nonlocal turn
            try:
                answer = await push(question)
            except asyncio.CancelledError:  # the client went away without an answer
                self._asked(turn, question)
                raise
            self._asked(turn, question)
            turn["answered"] = writing.answered({question.key: answer})
            turn = {}
            return answer

        received = await self._connection.send(method, params, pushed, scripts)
        self._close(turn, received.notifications)
        if _is_response(received.envelope):
            turn |= writing.came(received.envelope)
        return received

    def _asked(self, turn: dict[str, Any], question: Question) -> None:
        """End a turn with a question that was pushed in it."""
        self._close(turn, self._connection.notifications)
        turn["asked"] = self._writing.asked({question.key: question.as_json()})

    def astray(self) -> list[Finding]:
        return self._connection.astray()

    async def settle(self) -> None:
        await self._connection.settle()

    def _close(self, turn: dict[str, Any], notifications: list[dict[str, Any]]) -> None:
        """End a turn, and add the notifications that arrived in it."""
        heard = notifications[self._heard :]
        self._heard = len(notifications)
        if heard:
            turn["notifications"] = self._writing.heard(heard)
        self.turns.append(turn)


def _is_response(envelope: Any) -> bool:
    """Whether a response has something to record."""
    message = as_object(envelope)
    return isinstance(message.get("result"), dict) or isinstance(message.get("error"), dict)
