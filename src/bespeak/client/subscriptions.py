"""Subscriptions to changes on a server: one `subscriptions/listen` stream, read as typed events.

There is no replay. A client that opens a subscription again must also request again what it depends on.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from bespeak.client.errors import InvalidServerResponse
from bespeak.client.raw_session import RawSession
from bespeak.protocol import wire_types
from bespeak.protocol.errors import MCPError
from bespeak.protocol.methods import (
    LISTEN,
    PROMPTS_CHANGED,
    RESOURCE_UPDATED,
    RESOURCES_CHANGED,
    SUBSCRIPTION_ID_META,
    TOOLS_CHANGED,
)
from bespeak.protocol.versions import LATEST_MODERN_VERSION, is_modern

if TYPE_CHECKING:
    from mcp_types import SubscriptionFilter

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
MOST_WAITING = 10_000
"""Events that may wait to be read. The same event does not wait twice."""


@dataclass(frozen=True, slots=True)
class ToolsListChanged:
    """The list of tools has changed."""


@dataclass(frozen=True, slots=True)
class PromptsListChanged:
    """The list of prompts has changed."""


@dataclass(frozen=True, slots=True)
class ResourcesListChanged:
    """The list of resources, or of resource templates, has changed."""


@dataclass(frozen=True, slots=True)
class ResourceUpdated:
    """A resource has changed: one of the `resource_subscriptions`, or one below it."""

    uri: str


ServerEvent = ToolsListChanged | PromptsListChanged | ResourcesListChanged | ResourceUpdated


class ListenNotSupportedError(RuntimeError):
    """The protocol version in use does not have `subscriptions/listen`."""

    def __init__(self, negotiated_version: str | None) -> None:
        self.negotiated_version = negotiated_version
        super().__init__(
            f"{LISTEN} does not exist at protocol version {negotiated_version}; it needs {LATEST_MODERN_VERSION}."
            " Use subscribe_resource(), and receive the notifications with message_handler="
        )


class SubscriptionLost(RuntimeError):
    """A subscription has ended, but not because the server or this client ended it. Listen again, and request again what may
    have changed meanwhile."""


class Subscription:
    """An open subscription: an async iterator of events. It ends when the server, or this client, ends the subscription."""

    def __init__(self, asked: "SubscriptionFilter") -> None:
        self.honored = asked
        """What the server has agreed to send."""
        self.subscription_id: int | None = None
        self._asked = asked
        self._acknowledged = False
        self._waiting: dict[ServerEvent, None] = {}
        self._over = False
        self._failure: Exception | None = None
        self._news = asyncio.Event()

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> ServerEvent:
        """Return the next event. Raises `SubscriptionLost` if the connection is lost."""
        while not self._waiting:
            if self._over:
                if self._failure is not None:
                    raise SubscriptionLost(f"the subscription was lost: {self._failure}") from self._failure
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        event = next(iter(self._waiting))
        del self._waiting[event]
        return event

    async def opened(self) -> None:
        """Wait for the server's acknowledgement. Raises why there is none."""
        while not self._acknowledged:
            if isinstance(self._failure, (MCPError, InvalidServerResponse)):
                raise self._failure
            if self._over:
                reason = f": {self._failure}" if self._failure is not None else ""
                raise SubscriptionLost(
                    f"the subscription ended before the server acknowledged it{reason}"
                ) from self._failure
            self._news.clear()
            await self._news.wait()

    async def take(self, id_: int, message: dict[str, Any]) -> None:
        """Take one notification of the stream. Those of other requests may arrive there, too."""
        params: Any = message.get("params", {})
        if message["method"] == CANCELLED:
            if params.get("requestId") == id_:
                self.end(None)
            return
        if params.get("_meta", {}).get(SUBSCRIPTION_ID_META, id_) != id_:
            return
        if message["method"] == ACKNOWLEDGED:
            self._acknowledge(params)
        else:
            self._add(self._event(message["method"], params))
        self._news.set()

    def _acknowledge(self, params: Any) -> None:
        try:
            self.honored = wire_types.SubscriptionsAcknowledgedNotificationParams.model_validate(params).notifications
        except ValidationError:
            self.end(InvalidServerResponse("the server's acknowledgement of the subscription is malformed"))
        else:
            self._acknowledged = True

    def _event(self, method: str, params: Any) -> ServerEvent | None:
        """Return the event in a notification; `None` if it was not asked for."""
        asked = self._asked
        if method == TOOLS_CHANGED and asked.tools_list_changed:
            return ToolsListChanged()
        if method == PROMPTS_CHANGED and asked.prompts_list_changed:
            return PromptsListChanged()
        if method == RESOURCES_CHANGED and asked.resources_list_changed:
            return ResourcesListChanged()
        if method == RESOURCE_UPDATED and asked.resource_subscriptions and isinstance(params.get("uri"), str):
            return ResourceUpdated(params["uri"])
        return None

    def _add(self, event: ServerEvent | None) -> None:
        if event is None or self._over:
            return
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.clear()
            self.end(ConnectionError(f"{MOST_WAITING} events were waiting to be read"))
            return
        self._waiting[event] = None

    def end(self, failure: Exception | None) -> None:
        """End the iteration after the events that are waiting. `failure` says why, if it was not meant to end."""
        if not self._over:
            self._over, self._failure = True, failure
        self._news.set()


@asynccontextmanager
async def listen(
    session: RawSession,
    *,
    tools_list_changed: bool = False,
    prompts_list_changed: bool = False,
    resources_list_changed: bool = False,
    resource_subscriptions: Sequence[str] = (),
) -> AsyncGenerator[Subscription]:
    """Open a subscription, and end it when the block is left. The block starts when the server has acknowledged it.

    Raises `ListenNotSupportedError` at older protocol versions, `MCPError` if the server refuses, `SubscriptionLost` if the
    stream ends before it is acknowledged, and `TimeoutError` if that takes longer than the session's time limit.
    """
    if not is_modern(session.version):
        raise ListenNotSupportedError(session.version)
    if isinstance(resource_subscriptions, str):
        raise TypeError("resource_subscriptions must be a sequence of URIs, not a string")
    asked = wire_types.SubscriptionFilter(
        tools_list_changed=tools_list_changed or None,
        prompts_list_changed=prompts_list_changed or None,
        resources_list_changed=resources_list_changed or None,
        resource_subscriptions=[str(uri) for uri in resource_subscriptions] or None,
    )
    subscription = Subscription(asked)
    wanted = asked.model_dump(mode="json", by_alias=True, exclude_none=True)
    stream = session.open_stream(LISTEN, {"notifications": wanted}, subscription.take)
    subscription.subscription_id = stream.id
    stream.task.add_done_callback(lambda task: subscription.end(None if task.cancelled() else _failure(task)))
    try:
        limit = asyncio.timeout(session.read_timeout_seconds)
        try:
            async with limit:
                await subscription.opened()
        except TimeoutError:
            raise TimeoutError(
                f"the server did not acknowledge {LISTEN} within {session.read_timeout_seconds:g} s"
            ) from None
        yield subscription
    finally:
        stream.task.cancel()
        await asyncio.wait({stream.task})


def _failure(task: asyncio.Task[dict[str, Any]]) -> Exception | None:
    error = task.exception()
    return error if error is None or isinstance(error, Exception) else ConnectionError(repr(error))
