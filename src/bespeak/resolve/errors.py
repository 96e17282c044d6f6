"""Errors of the engine: at registration all faults of a consumer at once, in a call the one that ends it."""

from dataclasses import dataclass
from typing import Any

from bespeak.protocol.capabilities import capability_names
from bespeak.protocol.errors import ClientVisibleError


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a consumer: what, where, and what would fix it."""

    problem: str
    fix: str
    place: str
    """`file:line` of the function at fault."""
    drawing: str
    """The path from the consumer to the fault, one line a step."""

    def __str__(self) -> str:
        return f"{self.problem}\n    at {self.place}\n{self.drawing}\n    fix: {self.fix}"


class InvalidSignature(Exception):
    """A consumer cannot be registered; says every fault it has."""

    def __init__(self, consumer: str, faults: tuple[Fault, ...]) -> None:
        self.consumer = consumer
        self.faults = faults
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        listed = "\n\n".join(f"{number}. {fault}" for number, fault in enumerate(faults, 1))
        super().__init__(f"cannot register {consumer!r}: {count}\n\n{listed}")


class ToolError(ClientVisibleError):
    """A failure whose text the model may read."""


class Aborted(ToolError):
    """A declined or cancelled question that a consumer cannot do without. Final: the call is settled by it."""


class BadAnswer(ToolError, ValueError):
    """The client answered a question wrongly. Not final: the same round may be sent again with a right answer.

    A `ValueError` for bodies that ask with `ctx.elicit()`, which raises that in the official SDK.
    """


class NotAnswered(ToolError):
    """A question was pushed to the client, and no answer will come. Says why."""


class CleanupUnfinished(ToolError):
    """The body ran, and a generator's cleanup after it did not come to its end."""

    def __init__(self, resolver: str) -> None:
        super().__init__(
            f"the tool ran, but the cleanup of resolver {resolver!r} did not finish: what it was to conclude may not have "
            "taken effect. Do not repeat the call blindly"
        )


UNASKED_CANCELLATION = "ended in a cancellation that nobody asked for"


class ResolverFailed(Exception):
    """A resolver raised something its author did not mean the client to read; `__cause__` says what."""

    def __init__(self, resolver: str, path: str, reason: str = "failed") -> None:
        self.resolver = resolver
        self.path = path
        super().__init__(f"resolver {resolver!r} {reason} ({path})")


class MissingCapability(Exception):
    """Questions are open that the client did not declare it can answer."""

    def __init__(self, required: dict[str, Any], reason: str | None = None) -> None:
        self.required = required
        names = ", ".join(capability_names(required))
        declare = f"the client must declare {names} for this call"
        super().__init__(f"this call asks the client for {names}, and {reason}" if reason else declare)
