"""What happened in a conversation, in order: what the client sent, and what the server sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from bespeak.conversation.question_names import names_of


class Step(StrEnum):
    """The kinds of events."""

    CALL = "call"
    """The client sent the call."""
    ANSWERS = "answers"
    """The client sent the call again, with the answers of a round."""
    AGAIN = "sent again"
    """The client sent the same request again, because its response was lost."""
    ASKS = "asks"
    """The server asked, in a result or by pushing a question."""
    ANSWER = "answer"
    """The client answered a pushed question."""
    NOTIFICATION = "notification"
    RESULT = "result"
    ERROR = "error"
    NO_RESPONSE = "no response"
    GIVES_UP = "gives up"
    """The client had no answer that it could send, and did not go on with the call."""


_BY_CLIENT = (Step.CALL, Step.ANSWERS, Step.AGAIN, Step.ANSWER, Step.GIVES_UP)
BY_KEY = ("inputRequests", "inputResponses")


@dataclass(frozen=True, slots=True)
class Event:
    """One message of a conversation."""

    step: Step
    body: Mapping[str, Any]
    """What was sent, without `_meta` and without the requestState."""
    method: str = ""
    """The method of a request or notification."""
    state: bool = False
    """Whether it had a requestState. The token itself is not kept."""

    @property
    def by_client(self) -> bool:
        return self.step in _BY_CLIENT

    def named(self) -> "Event":
        """Return the event with the names of questions instead of their keys."""
        body = dict(self.body)
        for name in BY_KEY:
            members: Any = body.get(name)
            if isinstance(members, dict):
                names = names_of(cast("dict[str, Any]", members))
                body[name] = {names[key]: one for key, one in cast("dict[str, Any]", members).items()}
        return Event(self.step, body, self.method, self.state)

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"from": "client" if self.by_client else "server", "event": self.step.value}
        if self.method:
            told["method"] = self.method
        return {**told, "body": dict(self.body), **({"state": True} if self.state else {})}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Event":
        return cls(Step(told["event"]), told["body"], told.get("method", ""), told.get("state", False))
