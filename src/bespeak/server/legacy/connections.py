"""The connection of one client of an older revision: its handshake, its requests, and the questions it was sent."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, cast

from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, MCPError
from bespeak.protocol.headers import Headers
from bespeak.protocol.legacy import capabilities_at, info_at
from bespeak.protocol.messages import (
    LegacyRequest,
    Meta,
    Notification,
    Request,
    RequestId,
    Response,
    is_id,
    write_error,
    write_notification,
    write_result,
)
from bespeak.protocol.reserved_meta import PROTOCOL_VERSION_META_KEY
from bespeak.protocol.session_facts import SessionFacts
from bespeak.protocol.versions import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from bespeak.server.features.logging import DEFAULT_LOG_LEVEL, read_level
from bespeak.server.features.progress_notifications import ProgressNotifications
from bespeak.server.features.subscriptions import Change, Changes, Subscriber, check_uris
from bespeak.server.legacy.pushing import Asker, Questions
from bespeak.server.legacy.waiting_calls import WaitingCalls, weigh
from bespeak.transports.interfaces import Channel, Notify, OpenQuestions, WrittenResponse

logger = logging.getLogger("bespeak.server")

HANDSHAKE_BYTES = 16 * 1024
"""How many bytes of memory a session uses at most for its client's capabilities, and the same for its client info."""


class Serve(Protocol):
    """Answers a request of an older client."""

    def __call__(
        self, request: Request, notify: Notify, headers: Headers | None, *, asker: Asker, raise_exceptions: bool
    ) -> Awaitable[WrittenResponse]: ...


class LegacyConnection:
    """A server's side of one handshake."""

    def __init__(
        self,
        serve: Serve,
        hello: Mapping[str, Any],
        *,
        question_seconds: float,
        question_heartbeat: float | None,
        waiting: WaitingCalls,
        changes: Changes,
        unaskable: AskingObstacle | None = None,
        assumed: str | None = None,
        other_workers: OpenQuestions | None = None,
    ) -> None:
        self._serve = serve
        self._hello = hello
        """What the server says about itself: `capabilities`, `serverInfo`, perhaps `instructions`."""
        self._question_seconds = question_seconds
        self._question_heartbeat = question_heartbeat
        self._unaskable = unaskable
        self.version = assumed
        self._assumed = assumed is not None
        self._declared: dict[str, Any] = {}
        self._client_info: dict[str, Any] | None = None
        self._log_level = DEFAULT_LOG_LEVEL
        self._questions = Questions(other_workers)
        self._waiting = waiting.of_session()
        self._under_way: dict[RequestId, Asker] = {}
        self._changes = changes
        self._subscriber: Subscriber | None = None
        """Set when there is a stream for it, or the client has subscribed to a resource."""
        self._changes_seen = 0
        """Counts what is known here of the changes of a session that several workers share."""
        self._agreed = asyncio.Event()
        """A handshake has been made."""
        self._own: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "initialize": self._initialize,
            "ping": lambda _: {},
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
        }

    async def answer(
        self,
        request: LegacyRequest,
        channel: Channel,
        headers: Headers | None = None,
        *,
        raise_exceptions: bool = False,
    ) -> WrittenResponse:
        """Return the response to one request."""
        answer = self.at_once(request)
        if answer is not None:
            return answer
        version = self.version or ""
        meta = self._meta(version, request.params)
        asker = Asker(
            self._questions,
            channel,
            version=version,
            declared=self._declared,
            unaskable=self._unaskable,
            seconds=self._question_seconds,
            progress=ProgressNotifications(meta),
            heartbeat=self._question_heartbeat,
            room=self._waiting,
            address=headers.address if headers is not None else None,
        )
        asker.by_hand = request.by_hand
        whole = Request(request.id, request.method, request.params, meta)
        self._under_way[request.id] = asker

        def notify(message: bytes) -> Awaitable[None] | None:
            return None if asker.over else channel.notify(message)

        try:
            return await self._serve(whole, notify, headers, asker=asker, raise_exceptions=raise_exceptions)
        finally:
            asker.end()
            asker.call = None  # each holds the other, and the call its arguments
            self._under_way.pop(request.id, None)

    def at_once(self, request: LegacyRequest) -> WrittenResponse | None:
        """Return the response to a request that needs no waiting; `None` for any other request."""
        try:
            own = self._own.get(request.method)
            if own is not None:
                return WrittenResponse(write_result(request.id, own(request.params)))
            self._check_agreed(request.method)
        except MCPError as error:
            return WrittenResponse(write_error(request.id, error), error.code)
        return None

    def waits_for(self, response: Response) -> bool:
        """Return whether a question of this connection waits for an answer, or has given up waiting for it."""
        return self._questions.knows(response)

    def heard(self, message: Notification | Response) -> None:
        """Process a message that expects no response."""
        if isinstance(message, Response):
            if not self._questions.answered(message):
                self._not_waited_for(message)
        elif message.method == "notifications/cancelled":
            id_: Any = message.params.get("requestId")
            asker = self._under_way.get(id_) if is_id(id_) else None
            if asker is not None:
                asker.end()  # whatever its call does, it sends and asks nothing more

    def _not_waited_for(self, response: Response) -> None:
        """Log an answer that has no effect, without its content."""
        question = self._questions.given_up(response)
        if question is None:
            logger.debug("the client answered %r, which was not asked or was answered before", response.id)
        elif response.error is not None:  # some clients confirm in this way that they no longer ask
            logger.debug(
                "the client answered question %r with an error after the question was withdrawn", question.name
            )
        else:
            logger.warning(
                "the answer to question %r came too late and has no effect: the question was withdrawn because %s",
                question.name,
                question.reason,
            )

    async def stand(self, notify: Notify) -> None:
        """Tell the client what has changed, as long as this runs."""
        await self._agreed.wait()
        subscriber = self._subscribing()

        def send(change: Change) -> Awaitable[None] | None:
            return notify(write_notification(*change.notification()))

        await subscriber.deliver(send)

    async def listen(self) -> None:
        """Note changes from now on, for `stand` to tell. Returns when other workers know."""
        self._subscribing()
        await self._changes.listen_everywhere()

    def _subscribing(self) -> Subscriber:
        if self._subscriber is None:
            self._subscriber = Subscriber(frozenset({"tools", "prompts", "resources"}), set())
            self._changes.join(self._subscriber)
        return self._subscriber

    # What other workers have to know

    def facts(self) -> SessionFacts:
        """Return what was said in the handshake and later, for another worker to continue with."""
        assert self.version is not None, "a session is shared after its handshake"
        uris = self._subscriber.uris if self._subscriber is not None else ()
        return SessionFacts(self.version, self._declared, self._client_info, self._log_level, tuple(sorted(uris)))

    def applied(self, request: LegacyRequest, facts: SessionFacts) -> SessionFacts:
        """Return what is known after a request that changes it. Raises `MCPError` if that is more than a client may have."""
        if request.method == "logging/setLevel":
            return replace(facts, log_level=read_level(request.params))
        uri, before = _uri_of(request.params), set(facts.uris)
        after = before | {uri} if request.method == "resources/subscribe" else before - {uri}
        check_uris(after)
        return replace(facts, uris=tuple(sorted(after)))

    def restore(self, facts: SessionFacts) -> None:
        """Continue with what was said to another worker, unless something newer is known here."""
        if facts.changes <= self._changes_seen:
            return
        self._changes_seen = facts.changes
        self.version, self._log_level = facts.version, facts.log_level
        self._declared = dict(facts.capabilities)
        self._client_info = dict(facts.client_info) if facts.client_info is not None else None
        self._agreed.set()
        before = self._subscriber.uris if self._subscriber is not None else set[str]()
        if before != set(facts.uris):
            subscriber = self._subscribing()
            self._changes.unsubscribe(subscriber, *before.difference(facts.uris))
            with suppress(MCPError):  # there are too many subscriptions on this worker; the others have room, perhaps
                self._changes.subscribe(subscriber, *facts.uris)

    def close(self, reason: str) -> None:
        """Called when the client is gone. Stops waiting for its answers, and tells it nothing more."""
        self._questions.close(reason)
        if self._subscriber is not None:
            self._changes.leave(self._subscriber)
            self._changes.unsubscribe(self._subscriber, *self._subscriber.uris)
            self._subscriber.end()

    def _check_agreed(self, method: str) -> None:
        if self.version is None:
            raise MCPError(
                INVALID_PARAMS,
                f"{method} was sent before initialize; send initialize first, or name the protocol version in params._meta: "
                f"{PROTOCOL_VERSION_META_KEY}",
            )

    def _meta(self, version: str, params: Mapping[str, Any]) -> Meta:
        sent: Any = params.get("_meta")
        raw = cast("dict[str, Any]", sent) if isinstance(sent, dict) else {}
        token = raw.get("progressToken")
        return Meta(version, self._declared, self._client_info, self._log_level, token if is_id(token) else None, raw)

    # What a session answers itself

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.version is not None and not self._assumed:
            raise MCPError(INVALID_REQUEST, "initialize was already answered; send it once per connection")
        wanted, declared, info = params.get("protocolVersion"), params.get("capabilities"), params.get("clientInfo")
        if not isinstance(wanted, str):
            raise MCPError(INVALID_PARAMS, "initialize: protocolVersion must be the revision the client speaks")
        if not isinstance(declared, dict):
            raise MCPError(INVALID_PARAMS, "initialize: capabilities must be an object")
        if weigh([declared], HANDSHAKE_BYTES) > HANDSHAKE_BYTES:
            raise MCPError(
                INVALID_PARAMS, f"initialize: capabilities take more than {HANDSHAKE_BYTES} bytes; declare fewer"
            )
        version = wanted if wanted in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION
        self.version = version
        self._agreed.set()
        self._client_info = _kept_info(cast("dict[str, Any]", info)) if isinstance(info, dict) else None
        if self._unaskable is None:
            self._declared = capabilities_at(version, cast("dict[str, Any]", declared))
        info = info_at(version, self._hello["serverInfo"])
        return {**self._hello, "protocolVersion": version, "serverInfo": info}

    def _set_level(self, params: dict[str, Any]) -> dict[str, Any]:
        self._check_agreed("logging/setLevel")
        self._log_level = read_level(params)
        return {}

    def _subscribe(self, params: dict[str, Any]) -> dict[str, Any]:
        self._check_agreed("resources/subscribe")
        self._changes.subscribe(self._subscribing(), _uri_of(params))
        return {}

    def _unsubscribe(self, params: dict[str, Any]) -> dict[str, Any]:
        self._check_agreed("resources/unsubscribe")
        self._changes.unsubscribe(self._subscribing(), _uri_of(params))
        return {}


def _uri_of(params: Mapping[str, Any]) -> str:
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise MCPError(INVALID_PARAMS, "params.uri must be the URI of a resource")
    return uri


def _kept_info(info: dict[str, Any]) -> dict[str, Any] | None:
    """What a session keeps of what its client says of itself: all of it, or its name and version if that is too much."""
    named = {key: info[key] for key in ("name", "title", "version") if key in info}
    return next((some for some in (info, named) if weigh([some], HANDSHAKE_BYTES) <= HANDSHAKE_BYTES), None)
