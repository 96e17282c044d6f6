"""Replays a recorded conversation in place of the server, and checks what the client sends."""

import secrets
from collections.abc import Mapping
from typing import Any

from bespeak.client.errors import CallbackFailed
from bespeak.conversation.connection import Push, Received, Scripts, nothing
from bespeak.conversation.matchers import ABSENT
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question
from bespeak.testing.cassettes.cassette_format import ANEW, StaleCassette, Writing, compared, differing, diverged
from bespeak.testing.cassettes.key_handles import KeyHandles
from bespeak.testing.cassettes.recorded_turns import RecordedTurns
from bespeak.testing.redaction.redactor import Redactor


class Player:
    """A line that replays a cassette. Raises `StaleCassette` when the client sends something else than was recorded."""

    def __init__(self, cassette: Mapping[str, Any], redaction: Redactor) -> None:
        self._version: str = cassette["revision"]
        self._turns: list[dict[str, Any]] = cassette["turns"]
        self._recorded = RecordedTurns(KeyHandles.listed(cassette.get("keys", []), self._turns), redaction)
        self._writing = Writing(redaction)
        self._next = 0
        self._tokens: dict[Any, str] = {}

    @property
    def version(self) -> str:
        return self._version

    async def send(self, method: str, params: dict[str, Any], push: Push, scripts: Scripts = nothing) -> Received:
        self._check_answered(params)
        if self._next >= len(self._turns):
            raise StaleCassette(f"never recorded: the cassette has no more turns, but another request was sent; {ANEW}")
        turn = self._turns[self._next]
        self._same("method", turn.get("method", ABSENT), method, self._next)
        self._same("sent", turn.get("sent", ABSENT), self._writing.sent(params), self._next)
        notifications: list[dict[str, Any]] = []
        while True:
            number, turn = self._next, self._turns[self._next]
            self._next += 1
            notifications += self._recorded.notifications(turn)
            if "asking" in turn or "result" in turn or "error" in turn:
                return Received(self._envelope(turn), notifications)
            await self._push(number, turn, push)
            if self._next >= len(self._turns):
                raise StaleCassette("the cassette ends in the middle of a call; run with --record new")

    def _check_answered(self, params: Mapping[str, Any]) -> None:
        """Compare the answers of the previous round with the recorded ones."""
        before = self._turns[self._next - 1] if self._next else {}
        recorded = before.get("answered", ABSENT) if "asking" in before or "inputResponses" in params else ABSENT
        given = self._writing.answered(params["inputResponses"]) if "inputResponses" in params else ABSENT
        self._same("answered", recorded, given, max(0, self._next - 1))

    async def _push(self, number: int, turn: Mapping[str, Any], push: Push) -> None:
        for key, request in self._recorded.questions(turn).items():
            answer = await push(Question(key, request["method"], request.get("params", {})))
            if answer is None:
                raise CallbackFailed(key, request["method"], "there is no answer to it")
            self._same("answered", turn.get("answered", ABSENT), self._writing.answered({key: answer}), number)

    def _same(self, name: str, expected: Any, actual: Any, number: int) -> None:
        path, now = f"turns[{number}].{name}", self._recorded.stored(actual)
        found = compared(path, expected, now)
        if found is not None:
            raise diverged(found, places=[*differing(path, expected, now)])

    def _envelope(self, turn: Mapping[str, Any]) -> dict[str, Any]:
        """The response of a turn, with a new token for each state."""
        if "error" in turn:
            return {"jsonrpc": "2.0", "id": 1, "error": self._recorded.error(turn)}
        result = self._recorded.result(turn)
        if "state" in turn:
            number: Any = turn["state"]["$state"]
            token = self._tokens.setdefault(number, secrets.token_urlsafe(24))
            self._writing.states.numbers[token] = number
            result["requestState"] = token
        return {"jsonrpc": "2.0", "id": 1, "result": result}

    def astray(self) -> list[Finding]:
        return []

    async def settle(self) -> None:
        """A cassette sends nothing late."""

    def check_played(self) -> None:
        """Raises `StaleCassette` if recorded turns are left over."""
        left = len(self._turns) - self._next
        if left:
            turns = "1 recorded turn was" if left == 1 else f"{left} recorded turns were"
            raise StaleCassette(f"{turns} never played; {ANEW}")
