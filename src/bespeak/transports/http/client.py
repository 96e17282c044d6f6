"""The client of Streamable HTTP, built on `httpx2`."""

import asyncio
import contextlib
import functools
import logging
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from bespeak.protocol.headers import SESSION_HEADER
from bespeak.protocol.methods import LISTEN
from bespeak.protocol.quoting import one_line
from bespeak.protocol.server_sent_events import EventReader, EventTooLong
from bespeak.transports.http.received_responses import Reading, error_in, excerpt, media_type, rest_of
from bespeak.transports.http.url_redaction import forget, hiding, public
from bespeak.transports.interfaces import (
    ANSWER_LIMIT,
    Ask,
    Lost,
    MissingExtra,
    Outgoing,
    SessionGone,
    Witness,
    cancellation,
)

if TYPE_CHECKING:
    import ssl

    import httpx2

logger = logging.getLogger("bespeak.client")

CONNECT_SECONDS = 30.0
SILENCE_SECONDS = 300.0
"""A server that works on a call sends something every few seconds. After this many seconds of silence it counts as
dead."""
CONNECT_PAUSES = (0.1, 0.4)
"""How long to wait before each further attempt to connect, in seconds."""
SERVER_FAULT = 500
REDIRECTS = 3
RETRY_SECONDS = 1.0
"""How long to wait before resuming a stream, unless the server says."""
RESUME_FAILURES = 5
"""How many times in a row a resumed stream may bring nothing."""
STANDING_FAILURES = 10
STANDING_SECONDS = 0.5
"""How long to wait for the standing stream to open before anything else is sent."""
PATIENCE_SECONDS = 3600.0
"""How long a server may send nothing if its question may wait for a person, or if nothing may change."""
PARTING_SECONDS = 2.0
EVENTS = "text/event-stream"
_OWN_HEADERS: dict[str, dict[str, str]] = {
    "POST": {"Accept": f"application/json, {EVENTS}", "Content-Type": "application/json"},
    "GET": {"Accept": EVENTS},
    "DELETE": {},
}
_SESSION = re.compile(r"[\x21-\x7e]{1,1024}")
_HEADER = re.compile(r"[\x20-\x7e\t]*")


UNAUTHORIZED = "pass auth= (any httpx2.Auth) or an Authorization header to streamable_http_client"
"""What to do about status 401 in Python."""


class HttpStatusError(ConnectionError):
    """The server, or a proxy in front of it, answered with an HTTP status instead of a JSON-RPC message."""

    def __init__(
        self, status: int, where: str, said: str = "", unauthorized: str = UNAUTHORIZED, *, in_json: bool = False
    ) -> None:
        self.status = status
        self.in_json = in_json
        """Whether the body of the response was JSON, though not a JSON-RPC message."""
        hint = {
            401: f"; {unauthorized}",
            403: "; check the server's allowed hosts and origins, and what the token allows",
            404: ". Is this the path of its MCP endpoint?",
            405: ". Is this the path of its MCP endpoint?",
        }.get(status, "")
        self.says_nothing = says_nothing(status)
        """Whether the status is about the client or the state of the server, not about the request."""
        super().__init__(f"{where} answered with HTTP status {status}{f' ({one_line(said)})' if said else ''}{hint}")


def says_nothing(status: int) -> bool:
    """Return whether a status is about the client or the state of the server, not about the request."""
    return status in (401, 403, 407, 408, 429) or status >= SERVER_FAULT


class NotConnected(ConnectionError):
    """The server cannot be reached. Nothing was sent."""


class HttpTransport:
    """Reaches a server by URL. Each request is a POST; its response is JSON or an event stream."""

    sends_headers = True

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: "httpx2.Auth | tuple[str, str] | None" = None,
        http_client: "httpx2.AsyncClient | None" = None,
        limit: int = ANSWER_LIMIT,
        stray: Callable[[bytes], None] | None = None,
        unauthorized: str = UNAUTHORIZED,
    ) -> None:
        where = public(url)
        if where is None:
            raise ValueError("the URL of the server is not valid; write one like https://mcp.example.com/mcp")
        for name, value in (headers or {}).items():
            if not _HEADER.fullmatch(value):
                raise ValueError(f"the value of the header {name!r} is not one line of plain ASCII")
        self._url = url
        self._where = where
        self._headers = dict(headers or {})
        self._auth = auth
        self._given = http_client
        self._limit = limit
        self._stray = stray
        self._witness: Witness | None = None
        self._unauthorized = unauthorized
        """What to do about status 401, for the message."""
        self._client: httpx2.AsyncClient | None = None
        self._session: str | None = None
        """The session's id, if a handshake gave one."""
        self._begun: Mapping[str, str] = {}
        self._standing: asyncio.Task[None] | None = None
        self._parting: set[asyncio.Task[None]] = set()

    def watch(self, witness: Witness) -> None:
        """Tell a witness of statuses, headers and late messages from now on."""
        self._witness = witness

    async def __aenter__(self) -> "HttpTransport":
        try:
            import httpx2
        except ImportError:
            raise MissingExtra("a client over HTTP needs httpx2: pip install 'bespeak[http]'") from None
        self._errors = httpx2
        self._client = self._given or httpx2.AsyncClient(
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=SILENCE_SECONDS),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            verify=_certificates(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._end_session()
        finally:
            client, self._client = self._client, None
            if client is not None and self._given is None:
                await client.aclose()
            forget()

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        """Send a request and return the response. While nobody listens at the URL, it is tried again for a moment."""
        for pause in CONNECT_PAUSES:
            try:
                return await self._exchange(request, notify, ask)
            except NotConnected:  # nothing was sent: it may be a server that is just being restarted
                await asyncio.sleep(pause)
        return await self._exchange(request, notify, ask)

    async def _exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None) -> bytes:
        if ask is None:
            return await self._sent(request, notify, None)
        try:
            return await self._sent(request, notify, ask)
        except asyncio.CancelledError:
            if request.method != "initialize":  # which cannot be cancelled
                self._part(cancellation(request.id), request.headers)
            raise

    async def _sent(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None) -> bytes:
        stream = Reading(EventReader(self._limit), notify, ask, self._stray)
        try:
            response = await self._posted(request, stream, legacy=ask is not None)
        except Lost:
            if not stream.resumable:
                raise
            response = None
        if response is not None:
            return response
        if not stream.resumable:
            raise Lost(request.method, f"{self._where} ended its stream")
        return await self._resumed(request, stream)

    async def _posted(self, request: Outgoing, stream: Reading, *, legacy: bool) -> bytes | None:
        """The response to a request; `None` if it does not arrive on the connection that the request was sent on."""
        async with self._opened("POST", request.message, request.headers, request.method, legacy=legacy) as post:
            if request.method == "initialize" and post.is_success:
                self._session = self._named(post.headers.get(SESSION_HEADER))
            elif post.status_code == 404 and self._session and legacy and request.method != "initialize":
                raise SessionGone(f"{self._where} no longer knows this session")
            kind = media_type(post)
            streamed = kind == EVENTS and post.is_success
            if self._witness is not None:
                self._witness.responded(request.id, post.status_code, post.headers, streamed=streamed)
            if not streamed:
                return await self._body(kind, post, probe=request.method == "server/discover")
            return await self._read(stream, post)

    # What only older revisions have: messages without a response, a session, streams that can be resumed

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        """Send a message that has no response. If the connection breaks, it is sent once more: another worker may take it, and a
        server takes the same answer or notification twice without harm.
        """
        try:
            await self._said(message, headers)
        except Lost:
            await self._said(message, headers)

    async def _said(self, message: bytes, headers: Mapping[str, str]) -> None:
        async with self._opened("POST", message, headers, "a message", legacy=True) as response:
            if response.status_code == 404 and self._session is not None:
                raise SessionGone(f"{self._where} no longer knows this session")
            if not response.is_success:
                body = await self._body(media_type(response), response)
                raise HttpStatusError(response.status_code, self._where, error_in(body) or "", self._unauthorized)

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        """Called after a handshake. `notify` and `ask` get messages that do not belong to a request."""
        if self._standing is not None:
            self._standing.cancel()
        self._begun = headers
        there = asyncio.Event()
        self._standing = asyncio.create_task(self._stand(headers, notify, ask, there), name="bespeak standing stream")
        # Some servers send the questions of a request on this stream, and drop them if it is not open yet.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STANDING_SECONDS):
                await there.wait()

    async def _stand(
        self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask, there: asyncio.Event
    ) -> None:
        """Keep a stream open for messages of the server that do not belong to a request."""
        stream = Reading(EventReader(self._limit), notify, ask, self._stray)
        failures = 0
        loop = asyncio.get_running_loop()
        while failures < STANDING_FAILURES:
            before, began = stream.events.last_id, loop.time()
            failures += 1
            try:
                async with self._opened(
                    "GET", b"", {**headers, **stream.go_on()}, "the standing stream", legacy=True
                ) as get:
                    there.set()
                    if not get.is_success or media_type(get) != EVENTS:
                        if not stream.resumable or get.status_code in (404, 405):
                            return  # it has none, or does not know us: the next request will tell
                        stream.events = EventReader(self._limit)  # it has forgotten where we were
                    else:
                        await self._read(stream, get, to_its_end=True)
            except (OSError, ValueError) as error:
                there.set()
                logger.debug("the standing stream broke off: %s", error)
            if stream.events.last_id != before or loop.time() - began > STANDING_SECONDS:
                failures = 0
            await asyncio.sleep(stream.pause(RETRY_SECONDS))

    async def _resumed(self, request: Outgoing, stream: Reading) -> bytes:
        """Resume a stream that broke off before the response came."""
        failures = 0
        reason = f"{self._where} ended its stream"
        while failures < RESUME_FAILURES:
            await asyncio.sleep(stream.pause(RETRY_SECONDS))
            before = stream.events.last_id
            try:
                async with self._opened(
                    "GET", b"", {**request.headers, **stream.go_on()}, request.method, legacy=True
                ) as get:
                    if not get.is_success or media_type(get) != EVENTS:
                        status = get.status_code
                        reason = f"{self._where} ended its stream, and sent status {status} when asked for the rest,"
                        break
                    response = await self._read(stream, get)
                    if response is not None:
                        return response
            except (Lost, NotConnected):
                pass
            failures = failures + 1 if stream.events.last_id == before else 0
        raise Lost(request.method, reason)

    def _named(self, session: str | None) -> str | None:
        if session is not None and not _SESSION.fullmatch(session):
            raise ConnectionError(f"{self._where} sent a session id that a header cannot contain")
        return session

    def _part(self, message: bytes, headers: Mapping[str, str]) -> None:
        """Send a cancellation in the background: nothing waits for its request any more."""
        task = asyncio.create_task(self._try(self.say(message, headers)), name="bespeak cancellation")
        self._parting.add(task)
        task.add_done_callback(self._parting.discard)

    @staticmethod
    async def _try(work: Coroutine[Any, Any, None]) -> None:
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            async with asyncio.timeout(PARTING_SECONDS):
                await work

    async def _end_session(self) -> None:
        if self._standing is not None:
            self._standing.cancel()
            await asyncio.wait({self._standing})
            self._standing = None
        if self._parting:
            await asyncio.wait(self._parting)
        if self._session is not None:
            await self._try(self._delete())
            self._session = None

    async def _delete(self) -> None:
        async with self._opened("DELETE", b"", self._begun, "the end", legacy=True):
            pass

    # One request of HTTP

    @asynccontextmanager
    async def _opened(
        self, method: str, content: bytes, headers: Mapping[str, str], what: str, *, legacy: bool
    ) -> "AsyncGenerator[httpx2.Response]":
        """The response to a request, after redirects within the same server."""
        url = self._url
        status = 0
        for _ in range(REDIRECTS):
            async with self._requested(method, url, content, headers, what, legacy=legacy) as response:
                moved = self._moved(response)
                if moved is None:
                    yield response
                    return
                url, status = moved, response.status_code
        raise HttpStatusError(status, self._where, "too many redirects")

    @asynccontextmanager
    async def _requested(
        self, method: str, url: str, content: bytes, headers: Mapping[str, str], what: str, *, legacy: bool
    ) -> "AsyncGenerator[httpx2.Response]":
        """The response to a request. Errors of the HTTP library are raised as errors of this package."""
        if self._client is None:
            raise RuntimeError("the transport is not open; use it through `async with Client(...)`")
        errors = self._errors
        more: dict[str, Any] = {"auth": self._auth} if self._auth is not None else {}
        if legacy or what == LISTEN:  # a server may say nothing while a person thinks, or while nothing changes
            more["timeout"] = errors.Timeout(CONNECT_SECONDS, read=None if method == "GET" else PATIENCE_SECONDS)
        elif self._client.timeout == errors.Timeout(
            5.0
        ):  # the library's default, shorter than a server's silence may be
            more["timeout"] = errors.Timeout(CONNECT_SECONDS, read=SILENCE_SECONDS)
        sent = errors.Headers(self._headers)
        for name, value in {**_OWN_HEADERS[method], **headers}.items():
            sent[name] = value  # in UTF-8, as the ids of events are
        if self._session is not None and legacy and what != "initialize":
            sent[SESSION_HEADER] = self._session
        try:
            async with AsyncExitStack() as stack:
                with hiding():
                    response = await stack.enter_async_context(
                        self._client.stream(method, url, content=content, headers=sent, follow_redirects=False, **more)
                    )
                yield response
        except errors.LocalProtocolError:  # whose text may hold the header's value
            raise ValueError("the request cannot be sent: a header value is invalid") from None
        except (errors.ConnectError, errors.ConnectTimeout, errors.PoolTimeout) as error:
            hint = "; the server may speak http and not https" if "WRONG_VERSION_NUMBER" in str(error) else ""
            raise NotConnected(f"cannot connect to {self._where}: {error or type(error).__name__}{hint}") from error
        except errors.TimeoutException as error:
            raise TimeoutError(f"{self._where} went silent during {what}") from error
        except errors.TransportError as error:
            raise Lost(what, f"the connection to {self._where} broke") from error
        except errors.DecodingError as error:
            raise ConnectionError(f"{self._where} sent a response that cannot be decoded: {error}") from error

    def _moved(self, response: "httpx2.Response") -> str | None:
        """Return the URL that a request is redirected to, only on the same server: another one must not see the
        message.
        """
        if response.status_code not in (307, 308) or response.next_request is None:
            return None
        target = response.next_request.url
        here = response.request.url
        if (target.scheme, target.host, target.port) != (here.scheme, here.host, here.port):
            elsewhere = f"it moved to {public(str(target))}; use that URL"
            raise HttpStatusError(response.status_code, self._where, elsewhere)
        return str(self._errors.URL(self._url).copy_with(raw_path=target.raw_path))

    async def _body(self, kind: str, response: "httpx2.Response", *, probe: bool = False) -> bytes:
        """The message in a response that is not a stream. Raises `HttpStatusError` if the body is not a message.

        The response to a probe shows what kind of server it is from, so there some statuses count for more than a message.
        """
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > self._limit:
                raise ConnectionError(f"{self._where} sent more than {self._limit} bytes")
        if response.is_success and kind == "application/json":
            return bytes(body)
        said = error_in(body)
        if said is not None and not (probe and says_nothing(response.status_code)):
            return bytes(body)
        if response.is_success:
            raise HttpStatusError(response.status_code, self._where, f"{kind or 'nothing'} instead of JSON")
        raise HttpStatusError(
            response.status_code,
            self._where,
            said or excerpt(kind, body),
            self._unauthorized,
            in_json=kind == "application/json",
        )

    async def _read(self, stream: Reading, response: "httpx2.Response", *, to_its_end: bool = False) -> bytes | None:
        """Read a stream up to the response it holds; `None` if it ends without one."""
        pieces = response.aiter_bytes()
        late = None if self._witness is None else self._witness.unclaimed
        try:
            async for piece in pieces:
                events = stream.events.feed(piece)
                for data in events:
                    answer = stream.take(data, self._where)
                    if answer is not None and not to_its_end:
                        await rest_of(pieces, events, stream.events, late)
                        return answer
        except EventTooLong:
            raise ConnectionError(f"{self._where} sent an event of more than {self._limit} bytes") from None
        return None


@functools.cache
def _certificates() -> "ssl.SSLContext":
    """The trusted certificates. Cached: reading them takes longer than most calls."""
    import httpx2

    return httpx2.create_ssl_context()
