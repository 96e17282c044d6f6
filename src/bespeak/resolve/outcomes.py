"""What an answer means: accepted with data, declined, or cancelled; and that a client could not be asked at all."""

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


class DeclinedElicitation(BaseModel):
    """The user said no."""

    action: Literal["decline"] = "decline"


class CancelledElicitation(BaseModel):
    """The user dismissed the question without deciding."""

    action: Literal["cancel"] = "cancel"


ElicitationResult = TypeAliasType(
    "ElicitationResult", AcceptedElicitation[T] | DeclinedElicitation | CancelledElicitation, type_params=(T,)
)


@dataclass(frozen=True, slots=True)
class NotAsked:
    """The client could not be asked, so nobody has decided anything. A consumer gets it if its annotation names it.

    Decided anew in each round, and never recorded.
    """

    reason: NotAskedReason
    """See `AskingObstacle.reason`."""
    missing: dict[str, Any] = field(default_factory=dict[str, Any])
    """The client capabilities the question needs, as an object of capabilities."""

    def __bool__(self) -> bool:
        """False: `if answer:` must not take it for a yes."""
        return False
