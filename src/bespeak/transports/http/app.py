"""The ASGI app that serves an MCP server over Streamable HTTP: its checks, in the order the protocol requires, and its routing."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from bespeak.aio.in_place import Begun, begin, within
from bespeak.protocol.errors import INVALID_REQUEST, MCPError, http_status
from bespeak.protocol.headers import SESSION_HEADER, Headers, check_routing
from bespeak.protocol.media_types import accepts_responses, accepts_streams, is_json
from bespeak.protocol.messages import (
    Batch,
    LegacyRequest,
    MalformedMessage,
    Message,
    Notification,
    Request,
    RequestId,
    message_of,
    no_batch,
    read_json,
    read_meta,
    write_error,
)
from bespeak.protocol.methods import LISTEN
from bespeak.protocol.origins import Gate, TransportSecuritySettings
from bespeak.protocol.versions import HANDSHAKE_PROTOCOL_VERSIONS, check_version
from bespeak.transports.http.asgi import JSON, BodyTooLarge, Receive, Scope, Send, read_body, respond, when_stopping
from bespeak.transports.http.client_addresses import ClientAddresses
from bespeak.transports.http.custom_routes import Bounds, Route, serve_routes
from bespeak.transports.http.large_bodies import LARGE_BYTES, LargeBodies, LargeBody
from bespeak.transports.http.legacy.endpoint import LegacyHttp, LegacyOptions
from bespeak.transports.http.modern_responses import ModernResponse, respond_at_once
from bespeak.transports.http.public_documents import is_at, serve_document
from bespeak.transports.http.refusals import NO_ROOM, challenge, refuse
from bespeak.transports.interfaces import (
    MESSAGE_LIMIT,
    Authenticator,
    CannotStart,
    Challenge,
    SessionServer,
    StraightCall,
    WrittenResponse,
)

logger = logging.getLogger("bespeak.http")

REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How a server is reached over HTTP."""

    path: str = "/mcp"
    health_path: str | None = "/health"
    json_response: bool = False
    body_limit: int = MESSAGE_LIMIT
    body_seconds: float = 30.0
    """How long a body may take to arrive."""
    incoming_bytes: int = 64 * 1024 * 1024
    """How many bytes of large bodies may arrive at the same time."""
    host: str = "127.0.0.1"
    security: TransportSecuritySettings | None = None
    trusted_proxies: Sequence[str] = ()
    legacy: LegacyOptions = field(default_factory=LegacyOptions)


class HttpApp:
    """An ASGI app that serves one MCP server."""

    def __init__(
        self,
        server: SessionServer,
        options: HttpOptions,
        routes: Callable[[], Sequence[Route]] = tuple,
        authenticator: Authenticator | None = None,
    ) -> None:
        if not options.path.startswith("/"):
            raise ValueError(f"streamable_http_path must start with '/'; got {options.path!r}")
        self._server = server
        self._options = options
        self._routes = routes
        self._authenticator = authenticator
        self._legacy = LegacyHttp(server, options.legacy)
        self._gate = Gate(options.host, options.security)
        self._addresses = ClientAddresses(options.trusted_proxies)
        self._large = LargeBodies(options.incoming_bytes)
        self.path = options.path
        """The path of the MCP endpoint, as it was configured."""
        self._path = options.path.rstrip("/")
        self._welcome: set[tuple[str | bytes | None, ...]] = set()
        """Combinations of headers that have passed the checks: clients send the same ones again and again."""
        self._warned = False
        self.stopping = False
        """Set when the app's own lifespan ends: calls under way may end, new ones are refused."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = own_path(scope) if scope.get("root_path") else scope["path"]
            if path == self._path or path.rstrip("/") == self._path:
                return await self._message(scope, receive, send)
            return await self._other(path, scope, receive, send)
        if scope["type"] == "lifespan":
            return await self._lifespan(receive, send)
        return await send({"type": "websocket.close", "code": 1000})

    # Messages

    async def _message(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"], self._addresses.of(scope))
        if self._authenticator is not None and not await self._admit(self._authenticator, headers, send):
            return None
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            return await refuse(send, *refusal)
        if scope["method"] != "POST":
            return await self._other_method(scope, headers, receive, send)
        large = self._large_body(headers)
        try:
            body = begin(read_body(receive, self._options.body_limit, large))
            if isinstance(body, Begun):
                body = await self._rest_of_body(body, send, large)
            if body is None:
                return None
            if large is not None:
                await large.turn(len(body))
                send = large.until_answered(send)
            try:
                parsed = read_json(body)
                del body  # a call may wait for a person, and does not need it meanwhile
                if large is None and self._authenticator is None:
                    call = self._server.straight(parsed, headers)
                    if call is not None:
                        return await self._straight(call, receive, send)
                request = message_of(parsed)
                del parsed
                if large is not None:
                    large.begun()
                if not isinstance(request, Request):
                    return await self._unmarked(request, scope, headers, receive, send)
                try:
                    check_routing(headers, request.meta.protocol_version, request.method, request.params)
                except MCPError as error:
                    raise MalformedMessage(error, request.id) from None
            except MalformedMessage as malformed:
                message = write_error(malformed.id, malformed.error)
                return await respond(send, http_status(malformed.error.code), message, JSON)
            if self._authenticator is not None:
                more = self._authenticator.step_up(headers.caller, request.method, request.params)
                if more is not None:
                    return await challenge(send, more, request.id)
            json_only = self._options.json_response
            if request.method == LISTEN:
                if not accepts_streams(headers.joined(b"accept")):
                    return await refuse(send, 406, "the Accept header must list text/event-stream")
                json_only = False
                when_stopping(scope, self._server.end_subscriptions)
            response = ModernResponse(request.id, receive, send, json_only=json_only)
            return await response.run(self._server.answer(request, response.notify, headers))
        except BodyTooLarge:
            return await refuse(send, 413, too_large(self._options.body_limit))
        finally:
            if large is not None:
                large.let_out()

    def _straight(self, call: StraightCall, receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
        """Run a call that sends no notifications. Return what is left to do: nothing but its response, unless it waits."""
        try:
            answer = begin(call.work)
        except asyncio.CancelledError as error:
            return self._cut_off(self._modern(call.id, receive, send), error)
        if isinstance(answer, Begun):
            return self._modern(call.id, receive, send).finish(answer)
        return respond_at_once(send, answer)

    @staticmethod
    async def _cut_off(response: ModernResponse, error: asyncio.CancelledError) -> None:
        await response.interrupted()
        raise error

    def _modern(self, id_: RequestId, receive: Receive, send: Send) -> ModernResponse:
        return ModernResponse(id_, receive, send, json_only=self._options.json_response)

    async def _admit(self, authenticator: Authenticator, headers: Headers, send: Send) -> bool:
        """Find out who sends a request, or refuse it. The checks of `Host` and `Origin` come first."""
        problem = self._gate.refusal(headers)
        if problem is not None:
            await refuse(send, 403, problem)
            return False
        caller = await authenticator.authenticate(headers)
        if isinstance(caller, Challenge):
            await challenge(send, caller)
            return False
        headers.caller = caller
        return True

    async def _rest_of_body(
        self, begun: Begun[bytes | bytearray | None], send: Send, large: LargeBody | None
    ) -> bytes | bytearray | None:
        """A body that was not there at once; `None` if the client went away, or has been refused. Raises `BodyTooLarge`."""
        seconds = self._options.body_seconds
        try:
            return await within(seconds, begun.rest())
        except TimeoutError:
            if large is not None and large.kept_waiting:
                await refuse(send, 503, NO_ROOM, unread=True)
            else:
                await refuse(send, 408, f"the body did not arrive within {seconds:g} s")
        return None

    def _large_body(self, headers: Headers) -> LargeBody | None:
        """The room for a body that may be large: what it declares, or else the most it may have. `None` for a small one."""
        declared, limit = headers.last.get(b"content-length", b""), self._options.body_limit
        size = int(declared) if declared.isdigit() and len(declared) <= 18 else limit
        return self._large.body(headers.address, min(size, limit)) if size > LARGE_BYTES else None

    async def _other_method(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Serve GET and DELETE, which only older revisions have: streams, and the ends of sessions."""
        try:
            version = version_of(headers)
            if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
                check_version(version)
                return await refuse(send, 405, f"in revision {version} every message is sent with POST")
        except MCPError as error:
            return await respond(send, 400, write_error(None, error), JSON)
        if scope["method"] == "GET":
            return await self._legacy.get(scope, headers, receive, send)
        return await self._legacy.delete(headers, send)

    async def _unmarked(
        self, message: Message | Batch, scope: Scope, headers: Headers, receive: Receive, send: Send
    ) -> None:
        """Answer a message that does not name its own revision. Raises `MalformedMessage`."""
        if type(message) is LegacyRequest and self._authenticator is None:
            call = self._legacy.straight(message, headers)
            answer = await call if call is not None else message
            if isinstance(answer, WrittenResponse):
                return await respond(send, 200, answer.message, JSON)
            message = answer
        id_ = message.id if isinstance(message, LegacyRequest) else None
        try:
            version = version_of(headers)
            known = version is None or version in HANDSHAKE_PROTOCOL_VERSIONS
            sessionless = version is None and headers.only(SESSION_HEADER) is None
            if isinstance(message, Notification) and (sessionless or not known):
                return await respond(send, 202, b"")
            if known:
                for one in message.messages if isinstance(message, Batch) else (message,):
                    if self._authenticator is not None and isinstance(one, LegacyRequest):
                        more = self._authenticator.step_up(headers.caller, one.method, one.params)
                        if more is not None:
                            return await challenge(send, more, id_)
                return await self._legacy.post(message, version, scope, headers, receive, send)
            if isinstance(message, Batch):
                raise no_batch()
            check_version(version or "")
            if isinstance(message, LegacyRequest):
                read_meta(message.params)  # raises, and says what is missing
            raise MCPError(INVALID_REQUEST, "the message has no method")
        except MCPError as error:
            raise MalformedMessage(error, id_) from None

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """The status and the reason if a request is refused before it is read."""
        get = headers.last.get
        seen = (scope["method"], get(b"host"), get(b"origin"), get(b"accept"), get(b"content-type"))
        if len(headers.last) != len(headers.raw) or seen not in self._welcome:
            refusal = self._judge(scope["method"], headers)
            if refusal is not None:
                return refusal
            if len(headers.last) == len(headers.raw) and len(self._welcome) < REMEMBERED:
                self._welcome.add(seen)
        declared = get(b"content-length", b"")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self._options.body_limit):
            return 413, too_large(self._options.body_limit)
        if self.stopping:
            return 503, "the server is stopping"
        if not self._server.ready:
            logger.error(NOT_RUNNING)
            return 500, NOT_RUNNING
        return None

    def _judge(self, method: str, headers: Headers) -> tuple[int, str] | None:
        if not self._server.attended and not self._warned:
            self._warned = True
            logger.warning(UNATTENDED)
        problem = self._gate.refusal(headers)
        if problem is not None:
            return 403, problem
        if method in ("GET", "DELETE"):
            return None  # they are checked where they are served
        if method != "POST":
            return 405, "send MCP messages with POST"
        if not accepts_responses(headers.joined(b"accept"), streams=not self._options.json_response):
            return 406, "the Accept header must list application/json and text/event-stream"
        if not is_json(headers.last.get(b"content-type")):
            return 415, "the Content-Type must be application/json"
        return None

    # Everything else

    async def _other(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        if self._authenticator is not None and is_at(self._authenticator.metadata, path, scope):
            return await serve_document(self._authenticator.metadata, scope["method"], send)
        routes = [(route, params) for route in self._routes() if (params := route.match(path)) is not None]
        if routes:
            bounds = Bounds(
                self._gate,
                self._options.body_limit,
                self._options.body_seconds,
                lambda scope: self._large_body(Headers(scope["headers"], self._addresses.of(scope))),
            )
            return await serve_routes(routes, bounds, scope, receive, send)
        if path != self._options.health_path:
            full: str = scope["path"]
            mounted_at = full[: len(full) - len(path)]
            where = f"there is nothing at {full!r}; MCP messages go to {mounted_at + self._options.path!r}"
            if path.rstrip("/").endswith("/sse"):
                where += ". The HTTP+SSE transport of 2024-11-05 is not supported"
            return await refuse(send, 404, where)
        if self.stopping or not self._server.ready:
            return await respond(
                send, 503, b'{"status":"stopping"}' if self.stopping else b'{"status":"starting"}', JSON
            )
        return await respond(send, 200, b'{"status":"ok"}', JSON)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        running: AbstractAsyncContextManager[Any] | None = None
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.stopping = False  # an app may be started again
                try:
                    running = self._server.running()
                    await running.__aenter__()
                except CannotStart as error:
                    await send({"type": "lifespan.startup.failed", "message": f"the server cannot start: {error}"})
                    return
                except Exception as error:  # the ASGI server stops, and says why
                    logger.exception("the server's lifespan failed to start")
                    await send({"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                self.stopping = True
                await self._legacy.close()
                try:
                    if running is not None:
                        await running.__aexit__(None, None, None)
                except Exception as error:
                    logger.exception("the server's lifespan failed to end")
                    await send({"type": "lifespan.shutdown.failed", "message": f"{type(error).__name__}: {error}"})
                    return
                await send({"type": "lifespan.shutdown.complete"})
                return


NOT_RUNNING = (
    "the server's lifespan is not running. An app that mounts this server must run it: pass it to the app, as in "
    "FastAPI(lifespan=mcp.lifespan), or enter mcp.running() in the app's own lifespan"
)


UNATTENDED = (
    "the server's lifespan is not running, so approved calls will not be waited for at shutdown. Pass it to the app that "
    "mounts this server: FastAPI(lifespan=mcp.lifespan)"
)


def version_of(headers: Headers) -> str | None:
    """Return the revision in a request's header. Raises `MCPError` if the header is repeated."""
    said = headers.only("MCP-Protocol-Version")
    return said.decode("latin-1") if said is not None else None


def own_path(scope: Scope) -> str:
    """Return the path of a request, relative to where the app is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    return path[len(root) :] if root and (path == root or path.startswith(root + "/")) else path


def too_large(limit: int) -> str:
    return f"the body is larger than {limit} bytes, the most this server accepts"
