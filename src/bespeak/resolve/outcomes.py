"""What an answer means: accepted with data, declined, or cancelled."""

from typing import Generic, Literal, TypeVar

from pydantic import BaseModel
from typing_extensions import TypeAliasType

T = TypeVar("T")


class AcceptedElicitation(BaseModel, Generic[T]):
    """The user answered, or the resolver knew the value without asking."""

    action: Literal["accept"] = "accept"
    data: T


class DeclinedElicitation(BaseModel):
    """The user said no."""

    action: Literal["decline"] = "decline"


class CancelledElicitation(BaseModel):
    """The user dismissed the question, or the client cannot show it."""

    action: Literal["cancel"] = "cancel"


ElicitationResult = TypeAliasType(
    "ElicitationResult", AcceptedElicitation[T] | DeclinedElicitation | CancelledElicitation, type_params=(T,)
)
