"""What the workers of a server have to know of an older client's session, as plain data, and how many sessions there may be."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a handshake and later requests have said, and whose session it is."""

    version: str
    """The revision that client and server agreed on."""
    capabilities: Mapping[str, Any]
    client_info: Mapping[str, Any] | None
    log_level: str
    uris: tuple[str, ...] = ()
    """The resources whose changes the client wants to know of."""
    principal: str | None = None
    prefix: str = ""
    """The prefix of its streams' names, which an event store can see."""
    changes: int = 0
    """Counts the changes of these facts, so that older ones never replace newer ones. Not part of what is stored."""

    def owned_by(self, principal: str | None, prefix: str) -> "SessionFacts":
        """Return the same facts with the owner of the session and the prefix of its streams."""
        return replace(self, principal=principal, prefix=prefix)


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How many sessions there may be, for all workers together."""

    most: int | None
    idle_seconds: float | None
    recent_seconds: float = 300.0
    """A session used within this time is not ended to make room for a newcomer."""
    pressure: int = 2
    """Once there are 1 / `pressure` of all allowed sessions, each holder is limited to its share."""
    share: int = 10
    """The share of one holder: 1 / `share` of all allowed sessions."""


class Delivery(Enum):
    """What became of an answer that arrived at another worker than the one that asked."""

    SENT = "sent"
    UNKNOWN = "unknown"
    """Nobody waits for it: it was not asked, is answered, or was withdrawn."""
    WORKER_GONE = "worker gone"


class TooManySessions(Exception):
    """All sessions that are allowed are in use."""


class TooManyOfOne(Exception):
    """There are many sessions, and this address has its share."""

    def __init__(self, held: int) -> None:
        super().__init__(held)
        self.held = held


class SessionsUnavailable(ConnectionError):
    """The store that workers share cannot be reached. The client may try again later."""

    def __init__(self) -> None:
        super().__init__("the server cannot reach the store that its workers share; try again later")
