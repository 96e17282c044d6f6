"""Outcomes of a question: accepted with data, declined, cancelled, or not asked because the client cannot be asked."""

from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel
from typing_extensions import TypeAliasType

from bespeak.protocol.capabilities import NotAskedReason

T = TypeVar("T")


class AcceptedElicitation(BaseModel, Generic[T]):
    """The user answered, or the resolver knew the value without asking."""

    action: Literal["accept"] = "accept"
    data: T

    def __bool__(self) -> bool:
        """True, unless the answer to a yes/no question was no."""
        return self.data is not False


class DeclinedElicitation(BaseModel):
    """The user said no."""

    action: Literal["decline"] = "decline"

    def __bool__(self) -> bool:
        """Always false, so that `if answer:` does not treat it as a yes."""
        return False


class CancelledElicitation(BaseModel):
    """The user dismissed the question without deciding."""

    action: Literal["cancel"] = "cancel"

    def __bool__(self) -> bool:
        """Always false, so that `if answer:` does not treat it as a yes."""
        return False


ElicitationResult = TypeAliasType(
    "ElicitationResult", AcceptedElicitation[T] | DeclinedElicitation | CancelledElicitation, type_params=(T,)
)


@dataclass(frozen=True, slots=True)
class NotAsked:
    """The client could not be asked, so nobody has decided anything. Passed to a consumer whose annotation names it.

    Decided again in each round and never recorded.
    """

    reason: NotAskedReason
    """See `AskingObstacle.reason`."""
    missing: dict[str, Any] = field(default_factory=dict[str, Any])
    """The client capabilities the question needs, shaped like the protocol's capabilities object."""

    def __bool__(self) -> bool:
        """Always false, so that `if answer:` does not treat it as a yes."""
        return False
