"""Why a client cannot be asked a question."""

from dataclasses import dataclass
from typing import Literal

NotAskedReason = Literal["not_declared", "no_session", "no_way_back"]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What stands between a question and a client."""

    reason: NotAskedReason
    """`not_declared`: the client did not declare what the question needs, or its revision has no such question.
    `no_session`: the server keeps no session of this older client. `no_way_back`: the response is plain JSON, with no
    stream to ask on."""
    words: str | None = None
    """The reason in words, unless it is that the client simply did not declare it."""


NOT_DECLARED = Obstacle("not_declared")
