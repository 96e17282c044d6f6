"""What authors write: `Resolve` and `Complete` on a parameter, and the questions a resolver may return."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from mcp_types import IncludeContext, ModelPreferences, SamplingMessage, Tool, ToolChoice


T = TypeVar("T")

MISSING: Any = object()
"""In place of what an author has left out of a question. It is reported with the resolver's name when the question is asked."""


@dataclass(frozen=True, slots=True, eq=False)
class Resolve:
    """Marker for `Annotated[T, Resolve(fn)]`: the parameter is filled by running `fn`, never by the client."""

    fn: Callable[..., Any]
    _: KW_ONLY
    key: str | None = None
    """The name in the question's key on the wire, instead of one derived from the function's name."""
    once: bool = False
    """Compute the value once per call and seal it into the progress, so every round sees the same value."""
    guard: bool = False
    """Run first, in every round that is not answered from the ledger. If it raises, no question is asked."""
    timeout: float | None = None
    """Seconds this resolver may take in one round. The time a person takes to answer does not count."""


@dataclass(frozen=True, slots=True, eq=False)
class Complete:
    """Marker for `Annotated[str, Complete(fn)]`: while a person types this argument, `fn` says what it could become.

    For the parameters of prompts and resource templates. `fn` takes the text typed so far, and what else it needs by name.
    """

    fn: Callable[..., Any]


class Question:
    """Base class of what a resolver returns, instead of a value, to ask the client."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Neither true nor false: nobody has answered."""
        name = type(self).__name__
        raise TypeError(
            f"{name}(...) is a question that nobody has answered, so it is neither true nor false; return it from a resolver"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Elicit(Question, Generic[T]):
    """Ask the user to fill a form: a flat model, or a single value."""

    message: str
    schema: type[T] = field(default_factory=lambda: MISSING)
    _: KW_ONLY
    attempts: int = 3
    """How many times in all the form is shown if the author's validators reject the answer."""
    choices: Mapping[str, str] | None = None
    """For `str`: the allowed values with their titles, when they are known only at run time."""

    if TYPE_CHECKING:  # to a type checker a Literal or an Annotated is not a `type[T]`

        @overload
        def __init__(
            self, message: str, schema: type[T], *, attempts: int = 3, choices: Mapping[str, str] | None = None
        ) -> None: ...
        @overload
        def __init__(
            self: "Elicit[Any]",
            message: str,
            schema: object,
            *,
            attempts: int = 3,
            choices: Mapping[str, str] | None = None,
        ) -> None: ...
        def __init__(
            self, message: str, schema: Any, *, attempts: int = 3, choices: Mapping[str, str] | None = None
        ) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class ElicitUrl(Question):
    """Send the user to a web page, for what must not pass through the client: keys, payments, sign-in.

    To accept means that the page was opened, and settles nothing. The resolver is run again until it returns its value
    instead of this question. The URL must stay the same meanwhile: compute it with `Resolve(fn, once=True)`.
    """

    message: str
    url: str
    _: KW_ONLY
    every: float | None = None
    """Seconds between two runs of the resolver while a call waits for its value, at most 25. If it is left out, the time
    grows from a quarter of a second to 2 seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample(Question):
    """Ask the client's model for a message. Injects a `CreateMessageResult`, or a `CreateMessageResultWithTools` with tools."""

    messages: "Sequence[SamplingMessage]"
    _: KW_ONLY
    if TYPE_CHECKING:
        max_tokens: int
    else:
        max_tokens: int = field(default_factory=lambda: MISSING)
    system_prompt: str | None = None
    include_context: "IncludeContext | None" = None
    temperature: float | None = None
    stop_sequences: list[str] | None = None
    metadata: dict[str, Any] | None = None
    model_preferences: "ModelPreferences | None" = None
    tools: "list[Tool] | None" = None
    tool_choice: "ToolChoice | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class ListRoots(Question):
    """Ask the client for its roots. Injects a `ListRootsResult`."""
