"""The callbacks of a client, which answer a server's questions, and the capabilities that follow from them."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from bespeak.protocol import wire_types
from bespeak.protocol.question_keys import bare_name
from bespeak.protocol.question_urls import WEB

if TYPE_CHECKING:
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

    from bespeak.client.session import ClientSession


@dataclass(frozen=True, slots=True)
class ClientRequestContext:
    """The question that a callback answers, and the session that received it."""

    session: "ClientSession"
    key: str
    """The question's key, as the server sent it."""
    method: str

    @property
    def name(self) -> str:
        """The name of the resolver that asks, if the server uses Bespeak: the key without its suffix."""
        return bare_name(self.key)


class ElicitationCallback(Protocol):
    def __call__(
        self, context: ClientRequestContext, params: "ElicitRequestParams", /
    ) -> "Awaitable[ElicitResult | ErrorData]": ...


class SamplingCallback(Protocol):
    def __call__(
        self, context: ClientRequestContext, params: "CreateMessageRequestParams", /
    ) -> "Awaitable[CreateMessageResult | CreateMessageResultWithTools | ErrorData]": ...


class ListRootsCallback(Protocol):
    def __call__(self, context: ClientRequestContext, /) -> "Awaitable[ListRootsResult | ErrorData]": ...


class LoggingCallback(Protocol):
    def __call__(self, params: "LoggingMessageNotificationParams", /) -> Awaitable[None]: ...


class ProgressCallback(Protocol):
    def __call__(self, progress: float, total: float | None, message: str | None, /) -> Awaitable[None]: ...


class MessageHandler(Protocol):
    def __call__(self, message: dict[str, Any], /) -> Awaitable[None]: ...


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The callbacks that a client was given for questions."""

    elicitation: ElicitationCallback | None = None
    sampling: SamplingCallback | None = None
    sampling_capabilities: "SamplingCapability | None" = None
    list_roots: ListRootsCallback | None = None
    url_schemes: tuple[str, ...] = WEB
    """The schemes of URLs that may reach the elicitation callback."""

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities to declare in every request."""
        declared: dict[str, Any] = {}
        if self.elicitation is not None:
            declared["elicitation"] = {"form": {}, "url": {}} if self.url_schemes else {"form": {}}
        if self.sampling is not None:
            chosen = self.sampling_capabilities or wire_types.SamplingCapability()
            declared["sampling"] = chosen.model_dump(mode="json", by_alias=True, exclude_none=True)
        if self.list_roots is not None:
            declared["roots"] = {}
        return declared
