"""What a client is given to answer with, and what it can therefore declare."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    LoggingMessageNotificationParams,
    SamplingCapability,
)

from bespeak.client.urls import WEB
from bespeak.protocol.question_keys import bare_name

if TYPE_CHECKING:
    from bespeak.client.session import ClientSession


@dataclass(frozen=True, slots=True)
class CallbackContext:
    """Which question a callback is answering, and for which session."""

    session: "ClientSession"
    key: str
    """The question's key, as the server wrote it."""
    method: str

    @property
    def name(self) -> str:
        """Who asks, of a server made with Bespeak: the key without what names the wording of the question."""
        return bare_name(self.key)


class ElicitationCallback(Protocol):
    def __call__(
        self, context: CallbackContext, params: ElicitRequestParams, /
    ) -> Awaitable[ElicitResult | ErrorData]: ...


class SamplingCallback(Protocol):
    def __call__(
        self, context: CallbackContext, params: CreateMessageRequestParams, /
    ) -> Awaitable[CreateMessageResult | CreateMessageResultWithTools | ErrorData]: ...


class ListRootsCallback(Protocol):
    def __call__(self, context: CallbackContext, /) -> Awaitable[ListRootsResult | ErrorData]: ...


class LoggingCallback(Protocol):
    def __call__(self, params: LoggingMessageNotificationParams, /) -> Awaitable[None]: ...


class ProgressCallback(Protocol):
    def __call__(self, progress: float, total: float | None, message: str | None, /) -> Awaitable[None]: ...


class MessageHandler(Protocol):
    def __call__(self, message: dict[str, Any], /) -> Awaitable[None]: ...


@dataclass(frozen=True, slots=True)
class Callbacks:
    """All that a client can answer."""

    elicitation: ElicitationCallback | None = None
    sampling: SamplingCallback | None = None
    sampling_capabilities: SamplingCapability | None = None
    list_roots: ListRootsCallback | None = None
    url_schemes: tuple[str, ...] = WEB
    """Of the URLs that people are sent to."""

    def capabilities(self) -> dict[str, Any]:
        """What to declare in every request."""
        declared: dict[str, Any] = {}
        if self.elicitation is not None:
            declared["elicitation"] = {"form": {}, "url": {}} if self.url_schemes else {"form": {}}
        if self.sampling is not None:
            chosen = self.sampling_capabilities or SamplingCapability()
            declared["sampling"] = chosen.model_dump(mode="json", by_alias=True, exclude_none=True)
        if self.list_roots is not None:
            declared["roots"] = {}
        return declared
