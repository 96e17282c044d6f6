"""The keys of hostile tests: what is done to a request, to a response, to the server or to the client."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from bespeak.testing.suite.suite_values import Flag, Maybe, Part, Text, whole

StateAttack = Literal[
    "flip",
    "drop",
    "empty",
    "truncate",
    "other-arguments",
    "other-tool",
    "other-caller",
    "older-round",
    "expired",
]
AnswersAttack = Literal[
    "text",
    "list",
    "nothing",
    "unknown-key",
    "no-action",
    "unknown-action",
    "no-content",
    "wrong-type",
    "oversized",
]
LONGEST_WAIT = 600
"""The maximum number of seconds to wait for a state to expire."""
_BELONGS = {
    "arguments": ("other-arguments", "other-tool"),
    "tool": ("other-tool",),
    "headers": ("other-caller",),
    "from": ("older-round",),
    "after": ("expired",),
}
"""The keys of an attack, and the attacks that they belong to."""
_NEEDED = {
    "other-arguments": ("arguments", "the arguments to send instead"),
    "other-tool": ("tool", "the tool that the state is sent to"),
    "other-caller": ("headers", "the headers of the other caller"),
    "expired": ("after", "the seconds after which the state must have expired"),
}


class Tamper(Part):
    """An attack: the requestState of a round, or the answers to it, are altered before they are sent."""

    round: Annotated[int, Field(ge=1), BeforeValidator(whole)]
    requestState: Maybe[StateAttack] = Field(default=None, description="What is done to the requestState.")
    inputResponses: Maybe[AnswersAttack] = Field(default=None, description="What is done to the answers.")
    arguments: Maybe[dict[str, Any]] = Field(
        default=None, description="The arguments to send instead, for other-arguments and other-tool."
    )
    tool: Maybe[Text] = Field(default=None, description="The tool to call instead, for other-tool.")
    headers: Maybe[Annotated[dict[str, str], Field(min_length=1)]] = Field(
        default=None, description="The headers of the other caller, for other-caller."
    )
    from_: Maybe[Annotated[int, Field(ge=1), BeforeValidator(whole)]] = Field(
        default=None,
        alias="from",
        description="The round whose state is sent, for older-round. Default: the one before.",
    )
    after: Maybe[Annotated[float, Field(gt=0, le=LONGEST_WAIT)]] = Field(
        default=None, description="How many seconds to wait before the state is sent, for expired."
    )

    @property
    def how(self) -> str:
        """The name of the attack."""
        return self.requestState or str(self.inputResponses)

    @property
    def older(self) -> int:
        """The round whose state is sent, for older-round."""
        return self.from_ or self.round - 1

    @model_validator(mode="after")
    def _agree(self) -> "Tamper":
        if (self.requestState is None) == (self.inputResponses is None):
            raise ValueError("tamper needs exactly one of requestState and inputResponses")
        given = {"from" if name == "from_" else name for name in self.model_fields_set}
        for name, attacks in _BELONGS.items():
            if name in given and self.how not in attacks:
                raise ValueError(f"{name} belongs to {' and '.join(attacks)}, not to {self.how}")
        needed, what = _NEEDED.get(self.how, ("round", ""))
        if needed not in given:
            raise ValueError(f"{self.how} needs {needed}: {what}")
        if self.how == "older-round" and not 1 <= self.older < self.round:
            raise ValueError("older-round needs an earlier round: give a round of 2 or more, and a smaller from")
        return self


class Fault(Part):
    """An attack: a response is lost, or the server is restarted. Round 0 is the call, round 1 answers the first questions."""

    round: Annotated[int, Field(ge=0), BeforeValidator(whole)]
    drop: Maybe[Literal["response"]] = Field(
        default=None, description="Lose the response to the request; retry says how often it is sent again."
    )
    restart: Maybe[Flag] = Field(
        default=None,
        description="Restart the server before the request of the round; with drop, before it is sent again.",
    )

    @model_validator(mode="after")
    def _agree(self) -> "Fault":
        if self.drop is None and self.restart is None:
            raise ValueError("fault needs drop, restart, or both")
        if self.drop is None and self.round == 0:
            raise ValueError("restart needs a round of 1 or more: before the call there is nothing to lose")
        return self


class Stop(Part):
    """A client that goes away: it receives the questions of a round, and sends nothing more."""

    after: Annotated[int, Field(ge=1), BeforeValidator(whole)] = Field(
        description="The round whose questions are received and never answered."
    )
