"""Errors of the engine: all faults of a consumer at registration, and the error that ends a call."""

from dataclasses import dataclass
from typing import Any, Literal

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
    """The path from the consumer to the fault, one line per step."""

    def __str__(self) -> str:
        return f"{self.problem}\n    at {self.place}\n{self.drawing}\n    fix: {self.fix}"


class InvalidSignature(Exception):
    """Raised when a consumer cannot be registered. Lists all of its faults."""

    def __init__(self, consumer: str, faults: tuple[Fault, ...]) -> None:
        self.consumer = consumer
        self.faults = faults
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        listed = "\n\n".join(f"{number}. {fault}" for number, fault in enumerate(faults, 1))
        super().__init__(f"cannot register {consumer!r}: {count}\n\n{listed}")


class ToolError(ClientVisibleError):
    """An error whose text is shown to the model."""


Refusal = Literal["declined", "cancelled"]
"""How a person ended a call: with a no, or by dismissing the question."""

_REFUSALS: dict[str, Refusal] = {"decline": "declined", "cancel": "cancelled"}
_FOLLOWS: dict[str, str] = {
    "decline": ". A person said no. Do not try again in another way.",
    "cancel": ". The question was dismissed without an answer.",
}
"""What a model reads after the error's first words, so that it does not take a person's no for a crash."""


class Aborted(ToolError):
    """A question was declined or cancelled, and a consumer needs its answer. Final: it settles the call."""

    def __init__(self, parameter: str, action: str) -> None:
        self.refusal: Refusal | None = _REFUSALS.get(action)
        ended = f"Resolver for parameter {parameter!r} could not resolve: elicitation was {action}"
        super().__init__(ended + _FOLLOWS.get(action, ""))


class BadAnswer(ToolError, ValueError):
    """The client's answer to a question is invalid. Not final: the same round may be sent again with a valid answer.

    Also a `ValueError`, because that is what `ctx.elicit()` raises in the official SDK.
    """


class NoValidAnswer(BadAnswer):
    """A question has no tries left, and none of its answers was valid. Final: it settles the call."""


class NotAnswered(ToolError):
    """A question was sent to the client during the call and will not be answered. The message says why."""


class CleanupUnfinished(ToolError):
    """The body ran, but the cleanup of a generator did not finish."""

    def __init__(self, resolver: str) -> None:
        super().__init__(
            f"the tool ran, but the cleanup of resolver {resolver!r} did not finish, so some of its effects may be "
            "missing. Check whether it took effect before you repeat the call"
        )


UNASKED_CANCELLATION = "raised CancelledError although nothing cancelled it"


class ResolverFailed(Exception):
    """A resolver failed with an exception that is not meant for the client. `__cause__` is that exception."""

    def __init__(self, resolver: str, path: str, reason: str = "failed") -> None:
        self.resolver = resolver
        self.path = path
        super().__init__(f"resolver {resolver!r} {reason} ({path})")


class MissingCapability(Exception):
    """A question needs a capability that the client did not declare."""

    def __init__(self, required: dict[str, Any], reason: str | None = None) -> None:
        self.required = required
        names = ", ".join(capability_names(required))
        declare = f"the client must declare {names} for this call"
        super().__init__(f"this call asks the client for {names}, but {reason}" if reason else declare)
