"""What is written down during a storm, for the judgement afterwards."""

from dataclasses import dataclass, field
from enum import Enum

from storm.replies import SETTLED, Ending, Reply


class Era(Enum):
    MODERN = "2026-07-28"
    OLDER = "2025-11-25"


@dataclass(frozen=True, slots=True)
class Plan:
    """A call that is to be made."""

    order: str
    """Different for each call."""
    era: Era
    tool: str
    cents: int
    tip: int | None
    """The answer to the first of two questions; `None` for the tool that asks one."""
    pause_ms: int
    """How long the body takes."""
    consents: bool
    """Whether the last question is accepted. Otherwise it is declined."""

    @property
    def total(self) -> int:
        """What is to be charged."""
        return self.cents + (self.tip or 0)

    @property
    def questions(self) -> int:
        return 1 if self.tip is None else 2


@dataclass(slots=True)
class Record:
    """What became of a call."""

    plan: Plan
    asked: int = 0
    """How many different questions were asked."""
    answered: bool = False
    """Whether the answer to the last question was sent."""
    replies: list[Reply] = field(default_factory=list[Reply])
    """To the last request of a modern call, each time it was sent; for an older client the end of its only request."""
    detours: list[Reply] = field(default_factory=list[Reply])
    """Replies to other requests that did not bring the call forward, so that they were sent again."""
    crossed: bool | None = None
    """Whether an answer of an older client reached another worker than the one that asked; `None` if it sent none."""
    waited: float = 0.0
    """The longest time from an answer of an older client to what came next on the stream, in seconds."""

    @property
    def ending(self) -> Ending:
        """How the call ended for its client: the first reply that cannot change, or else the last one."""
        settled = [reply.ending for reply in self.replies if reply.ending in SETTLED]
        if settled:
            return settled[0]
        last = self.replies or self.detours
        return last[-1].ending if last else Ending.UNEXPECTED


@dataclass(frozen=True, slots=True)
class Break:
    """A connection to a worker that ended before the response was complete."""

    pid: int
    request: str
    """The first line of the request."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a worker that was not killed."""

    pid: int
    status: int


@dataclass(frozen=True, slots=True)
class Wreckage:
    """What is known of the workers after a storm."""

    killed: frozenset[int] = frozenset()
    """The process ids of the workers that were killed."""
    breaks: tuple[Break, ...] = ()
    exits: tuple[Exit, ...] = ()
    tracebacks: tuple[str, ...] = ()
    """Tracebacks in the logs of the workers."""
