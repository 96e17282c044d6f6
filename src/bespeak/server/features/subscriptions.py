"""Telling clients what has changed: lists of tools, prompts and resources, and the contents of resources.

A change is published once and reaches the clients of both eras: modern ones on the streams they opened with
`subscriptions/listen`, older ones on the stream that belongs to no request. Changes that a client has not read yet are kept
once each, however often they happen, so a client that does not read costs no more than what it subscribed to.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

from bespeak.aio.timers import after
from bespeak.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, MCPError
from bespeak.protocol.messages import RequestId, write_notification
from bespeak.protocol.methods import SUBSCRIPTION_ID_META
from bespeak.server.incoming import Incoming
from bespeak.transports.interfaces import Notify

MOST_URIS = 1000
"""Resources that one client may subscribe to at a time."""
MOST_URI_BYTES = 64 * 1024
"""What their URIs may have together."""
MOST_URI_BYTES_IN_ALL = 16 * 1024 * 1024
"""What the URIs of all older clients may have together."""
MOST_STREAMS = 1024
"""Streams of `subscriptions/listen` that a server keeps open."""
PRESSURE = 2
"""From 1 / `PRESSURE` of all streams on, each address is held to its share."""
SHARE = 10
"""One address has at most 1 / `SHARE` of all streams then."""

ListName = Literal["tools", "prompts", "resources"]
_FIELDS: Mapping[str, ListName] = {
    "toolsListChanged": "tools",
    "promptsListChanged": "prompts",
    "resourcesListChanged": "resources",
}


@dataclass(frozen=True, slots=True)
class ListChanged:
    """Something was added to a list, or taken from it."""

    list: ListName

    def notification(self) -> tuple[str, dict[str, Any]]:
        return f"notifications/{self.list}/list_changed", {}


@dataclass(frozen=True, slots=True)
class ResourceUpdated:
    """The contents of a resource have changed."""

    uri: str

    def notification(self) -> tuple[str, dict[str, Any]]:
        return "notifications/resources/updated", {"uri": self.uri}


Change = ListChanged | ResourceUpdated


class OtherWorkers(Protocol):
    """The workers beside this one, whose clients want to know of the same changes."""

    async def listen(self) -> None:
        """Have this worker told of changes. Returns when the others know."""
        ...

    def publish(self, change: Mapping[str, Any]) -> None:
        """Tell the others of a change. May be called from any thread."""
        ...


class Subscriber:
    """One client's choice of changes, and those it has not been told yet."""

    def __init__(self, lists: frozenset[ListName], uris: set[str]) -> None:
        self._lists = lists
        self.uris = uris
        self._pending: dict[Change, None] = {}
        self._stirred = asyncio.Event()
        self._ended = False
        self.loop = asyncio.get_running_loop()

    def add(self, change: Change) -> None:
        """Note a change, if the client wants to know. Called in the subscriber's own event loop."""
        if (change.list in self._lists) if isinstance(change, ListChanged) else (change.uri in self.uris):
            self._pending[change] = None
            self._stirred.set()

    def end(self) -> None:
        """Have `deliver` return when everything is said."""
        self._ended = True
        self._stirred.set()

    async def deliver(self, send: Callable[[Change], Awaitable[None] | None]) -> None:
        """Send changes as they happen, until `end` is called."""
        while not self._ended:
            await self._stirred.wait()
            self._stirred.clear()
            while self._pending:
                change = next(iter(self._pending))
                del self._pending[change]
                behind = send(change)
                if behind is not None:
                    await behind


class Changes:
    """The changes of one server, and who wants to know of them. May be used from any thread."""

    def __init__(self) -> None:
        self._subscribers: dict[Subscriber, None] = {}
        self._uri_bytes = 0
        self._lock = threading.Lock()
        self._forwarded: list[tuple[Changes, Callable[[str], str]]] = []
        """The changes of servers that include this one, each with the URIs it gives."""
        self._others: dict[asyncio.AbstractEventLoop, OtherWorkers] = {}

    @property
    def wanted(self) -> bool:
        """Whether anybody here wants to know of changes."""
        return bool(self._subscribers)

    @contextlib.contextmanager
    def shared_with(self, others: OtherWorkers) -> Generator[None]:
        """Tell other workers too, while the block is open, which is in an event loop."""
        loop = asyncio.get_running_loop()
        self._others[loop] = others
        try:
            yield
        finally:
            del self._others[loop]

    async def listen_everywhere(self) -> None:
        """Return when all other workers know that somebody in this event loop wants to know of changes."""
        others = self._others.get(asyncio.get_running_loop())
        if others is not None:
            await others.listen()

    def forward(self, to: "Changes", rename: Callable[[str], str]) -> None:
        """Publish the updates of resources elsewhere too, under other URIs. Lists of that server change by themselves."""
        self._forwarded.append((to, rename))

    def publish(self, change: Change) -> None:
        """Tell everybody who wants to know."""
        if isinstance(change, ResourceUpdated):
            for to, rename in self._forwarded:
                to.publish(ResourceUpdated(rename(change.uri)))
        for others in list(self._others.values())[:1]:  # all event loops of this process have the same others
            others.publish({"list": change.list} if isinstance(change, ListChanged) else {"uri": change.uri})
        self._tell(change)

    def heard(self, change: Mapping[str, Any]) -> None:
        """Tell everybody here of a change that another worker has published."""
        self._tell(ListChanged(change["list"]) if "list" in change else ResourceUpdated(change["uri"]))

    def _tell(self, change: Change) -> None:
        if not self._subscribers:
            return
        with self._lock:
            subscribers = list(self._subscribers)
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        for one in subscribers:
            if one.loop is here:
                one.add(change)
            else:
                with contextlib.suppress(RuntimeError):  # its loop is closed
                    one.loop.call_soon_threadsafe(one.add, change)

    def list_changed(self, name: ListName) -> None:
        self.publish(ListChanged(name))

    def join(self, subscriber: Subscriber) -> None:
        """Begin to tell a subscriber."""
        with self._lock:
            self._subscribers[subscriber] = None

    def leave(self, subscriber: Subscriber) -> None:
        """Stop telling a subscriber."""
        with self._lock:
            self._subscribers.pop(subscriber, None)

    def subscribe(self, subscriber: Subscriber, *uris: str) -> None:
        """Have an older client told of resources. Raises `MCPError` if that is more than it, or all of them, may."""
        new = set(uris) - subscriber.uris
        if not new:
            return
        check_uris(subscriber.uris | new)
        size = sum(map(len, new))
        with self._lock:
            if self._uri_bytes + size > MOST_URI_BYTES_IN_ALL:
                raise MCPError(INTERNAL_ERROR, "there are too many subscriptions on this server; try again later")
            self._uri_bytes += size
        subscriber.uris |= new

    def unsubscribe(self, subscriber: Subscriber, *uris: str) -> None:
        """Stop telling an older client of resources."""
        known = subscriber.uris.intersection(uris)
        subscriber.uris -= known
        with self._lock:
            self._uri_bytes -= sum(map(len, known))


class Listening:
    """Answers `subscriptions/listen`: an acknowledgement, then the changes, until the client leaves, its access token expires, or
    the server stops."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._open: dict[Subscriber, str | None] = {}
        """The open streams, each with the address of its client."""

    async def listen(self, incoming: Incoming) -> dict[str, Any]:
        """Return the result that ends the stream. Raises `MCPError` for a filter that makes no sense."""
        lists, uris = read_filter(incoming.request.params.get("notifications"))
        id_, notify = incoming.request.id, incoming.notify

        def send(change: Change) -> Awaitable[None] | None:
            method, params = change.notification()
            return notify(_written(method, params, id_))

        with self._admitted(Subscriber(frozenset(lists), set(uris)), incoming.address) as subscriber:
            await self._changes.listen_everywhere()
            agreed: dict[str, Any] = {name: True for name, one in _FIELDS.items() if one in lists}
            if uris:
                agreed["resourceSubscriptions"] = uris
            await _said(notify, "notifications/subscriptions/acknowledged", {"notifications": agreed}, id_)
            caller = incoming.headers.caller if incoming.headers is not None else None
            with after(caller.seconds_left(time.time()) if caller is not None else None, subscriber.end):
                await subscriber.deliver(send)
        if incoming.headers is None:  # over HTTP, the end of the stream says the same
            await _said(notify, "notifications/cancelled", {"requestId": id_, "reason": "the server is stopping"}, id_)
        return {"_meta": {SUBSCRIPTION_ID_META: id_}}

    @contextlib.contextmanager
    def _admitted(self, subscriber: Subscriber, address: str | None) -> Generator[Subscriber]:
        held = sum(one == address for one in self._open.values()) if address is not None else 0
        if len(self._open) >= MOST_STREAMS:
            raise MCPError(
                INTERNAL_ERROR, f"{MOST_STREAMS} streams are open, which is the limit of this server; try again later"
            )
        if len(self._open) * PRESSURE > MOST_STREAMS and (held + 1) * SHARE > MOST_STREAMS:
            raise MCPError(INTERNAL_ERROR, "too many streams are open from your address; close one, or try again later")
        self._open[subscriber] = address
        self._changes.join(subscriber)
        try:
            yield subscriber
        finally:
            self._changes.leave(subscriber)
            del self._open[subscriber]

    def end(self) -> None:
        """End the streams of the running event loop, because the server stops."""
        loop = asyncio.get_running_loop()
        for subscriber in list(self._open):
            if subscriber.loop is loop:
                subscriber.end()


def read_filter(wanted: Any) -> tuple[list[ListName], list[str]]:
    """The lists and the URIs that a client subscribes to. Raises `MCPError`."""
    if not isinstance(wanted, dict):
        raise MCPError(INVALID_PARAMS, "params.notifications must be an object that says what to listen to")
    members = cast("dict[str, Any]", wanted)
    for name in _FIELDS:
        if not isinstance(members.get(name, False), bool):
            raise MCPError(INVALID_PARAMS, f"params.notifications.{name} must be true or false")
    uris: Any = members.get("resourceSubscriptions", [])
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in cast("list[Any]", uris)):
        raise MCPError(INVALID_PARAMS, "params.notifications.resourceSubscriptions must be a list of URIs")
    listed = list(dict.fromkeys(cast("list[str]", uris)))
    check_uris(listed)
    return [one for name, one in _FIELDS.items() if members.get(name)], listed


def check_uris(uris: "list[str] | set[str]") -> None:
    """Raise `MCPError` if a client subscribes to more than it may."""
    if len(uris) > MOST_URIS or sum(map(len, uris)) > MOST_URI_BYTES:
        raise MCPError(
            INVALID_PARAMS,
            f"a client may subscribe to {MOST_URIS} resources, whose URIs have {MOST_URI_BYTES} characters together",
        )


def _written(method: str, params: dict[str, Any], id_: RequestId) -> bytes:
    return write_notification(method, {**params, "_meta": {SUBSCRIPTION_ID_META: id_}})


async def _said(notify: Notify, method: str, params: dict[str, Any], id_: RequestId) -> None:
    behind = notify(_written(method, params, id_))
    if behind is not None:
        await behind
