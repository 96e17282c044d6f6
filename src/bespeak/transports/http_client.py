"""A client's side of Streamable HTTP, over `httpx2`."""

import asyncio
import contextlib
import functools
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from pydantic_core import from_json

from bespeak.protocol.events import EventReader, EventTooLong
from bespeak.transports.transport import ANSWER_LIMIT, Lost, MissingExtra, Outgoing

if TYPE_CHECKING:
    import ssl

    import httpx2

logger = logging.getLogger("bespeak.client")

CONNECT_SECONDS = 30.0
SILENCE_SECONDS = 300.0
"""A server that works on a call says so every few seconds; after so long without a word it is not there any more."""
CONNECT_PAUSES = (0.1, 0.4)
"""How long to wait before each further attempt to connect, in seconds."""
EXCERPT = 200
REDIRECTS = 3
REST_SECONDS = 0.2
_OWN_HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_HEADER = re.compile(r"[\x20-\x7e\t]*")


class HttpStatusError(ConnectionError):
    """The server, or something before it, answered with a status and no JSON-RPC message."""

    def __init__(self, status: int, where: str, said: str = "") -> None:
        self.status = status
        hint = {
            401: "; pass auth= (any httpx2.Auth) or an Authorization header to streamable_http_client",
            403: "; the server refuses this client: see its allowed hosts and origins, and what its token may do",
            404: "; is this the path of its MCP endpoint?",
            405: "; is this the path of its MCP endpoint?",
        }.get(status, "")
        super().__init__(f"{where} answered with HTTP status {status}{f' ({said})' if said else ''}{hint}")


class NotConnected(ConnectionError):
    """The server cannot be reached. Nothing was sent."""


class HttpTransport:
    """Reaches a server by URL. One POST a request; its response is JSON or an event stream."""

    mirrors = True

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: "httpx2.Auth | tuple[str, str] | None" = None,
        http_client: "httpx2.AsyncClient | None" = None,
        limit: int = ANSWER_LIMIT,
    ) -> None:
        where = _public(url)
        if where is None:
            raise ValueError("that is no URL of a server; one looks like https://mcp.example.com/mcp")
        for name, value in (headers or {}).items():
            if not _HEADER.fullmatch(value):
                raise ValueError(f"the value of the header {name!r} is not one line of plain ASCII")
        self._url = url
        self._where = where
        _hide(url, where)
        self._headers = dict(headers or {})
        self._auth = auth
        self._given = http_client
        self._limit = limit
        self._client: httpx2.AsyncClient | None = None

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
        client, self._client = self._client, None
        if client is not None and self._given is None:
            await client.aclose()

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None]) -> bytes:
        for pause in CONNECT_PAUSES:
            try:
                return await self._exchange(request, notify)
            except NotConnected:  # nothing was sent: it may be a server that is just being restarted
                await asyncio.sleep(pause)
        return await self._exchange(request, notify)

    async def _exchange(self, request: Outgoing, notify: Callable[[bytes], None]) -> bytes:
        url = self._url
        status = 0
        for _ in range(REDIRECTS):
            async with self._post(url, request) as response:
                moved = self._moved(response)
                if moved is None:
                    return await self._answer(request.method, response, notify)
                url, status = moved, response.status_code
        raise HttpStatusError(status, self._where, "it keeps redirecting")

    @asynccontextmanager
    async def _post(self, url: str, request: Outgoing) -> "AsyncGenerator[httpx2.Response]":
        """The response to a request, every way of not getting one turned into one of ours."""
        if self._client is None:
            raise RuntimeError("the transport is not open; use it through `async with Client(...)`")
        errors = self._errors
        more: dict[str, Any] = {"auth": self._auth} if self._auth is not None else {}
        if self._client.timeout == errors.Timeout(5.0):  # the library's default, shorter than a server's silence may be
            more["timeout"] = errors.Timeout(CONNECT_SECONDS, read=SILENCE_SECONDS)
        headers = errors.Headers(self._headers)
        headers.update({**_OWN_HEADERS, **request.headers})
        try:
            async with self._client.stream(
                "POST", url, content=request.message, headers=headers, follow_redirects=False, **more
            ) as response:
                yield response
        except errors.LocalProtocolError:  # whose text may hold the header's value
            raise ValueError("the request cannot be sent: one of its headers is none") from None
        except (errors.ConnectError, errors.ConnectTimeout, errors.PoolTimeout) as error:
            raise NotConnected(f"cannot connect to {self._where}: {error or type(error).__name__}") from error
        except errors.TimeoutException as error:
            raise TimeoutError(f"{self._where} went silent during {request.method}") from error
        except errors.TransportError as error:
            raise Lost(request.method, f"the connection to {self._where} broke") from error
        except errors.DecodingError as error:
            raise ConnectionError(f"{self._where} sent what cannot be decoded: {error}") from error

    def _moved(self, response: "httpx2.Response") -> str | None:
        """Where to send the request instead. Only to the same server: a message may hold what is meant for no other."""
        if response.status_code not in (307, 308) or response.next_request is None:
            return None
        target = response.next_request.url
        here = response.request.url
        if (target.scheme, target.host, target.port) != (here.scheme, here.host, here.port):
            elsewhere = f"it moved to {_public(str(target))}; use that URL"
            raise HttpStatusError(response.status_code, self._where, elsewhere)
        return str(self._errors.URL(self._url).copy_with(raw_path=target.raw_path))

    async def _answer(self, method: str, response: "httpx2.Response", notify: Callable[[bytes], None]) -> bytes:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and response.is_success:
            return await self._last_event(method, response, notify)
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > self._limit:
                raise ConnectionError(f"{self._where} sent more than {self._limit} bytes")
        if response.is_success and kind == "application/json":
            return bytes(body)
        if _is_error(body):
            return bytes(body)
        if response.is_success:
            raise HttpStatusError(response.status_code, self._where, f"{kind or 'nothing'} instead of JSON")
        raise HttpStatusError(response.status_code, self._where, _excerpt(kind, body))

    async def _last_event(self, method: str, response: "httpx2.Response", notify: Callable[[bytes], None]) -> bytes:
        events = EventReader(self._limit)
        pieces = response.aiter_bytes()
        try:
            async for piece in pieces:
                for data in events.feed(piece):
                    message = _object(data)
                    if message is None:
                        logger.warning("%s sent an event that is no JSON object; it is ignored", self._where)
                    elif "method" not in message:
                        await _rest(pieces)
                        return data
                    elif "id" not in message:
                        notify(data)
                    else:
                        logger.warning("%s sent a request, which this revision does not allow", self._where)
        except EventTooLong:
            raise ConnectionError(f"{self._where} sent an event of more than {self._limit} bytes") from None
        raise Lost(method, f"{self._where} ended its stream")


def _hide(url: str, where: str) -> None:
    """Keep what may be secret in a URL out of the log of the library that sends it."""
    log = logging.getLogger("httpx2")
    if not any(isinstance(one, _Hiding) for one in log.filters):
        log.addFilter(_Hiding())
    _HIDDEN[url] = where


class _Hiding(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                _HIDDEN.get(str(one), one) if type(one).__name__ == "URL" else one for one in record.args
            )
        return True


_HIDDEN: dict[str, str] = {}


@functools.cache
def _certificates() -> "ssl.SSLContext":
    """Whom to trust; reading it takes longer than most calls."""
    import httpx2

    return httpx2.create_ssl_context()


async def _rest(pieces: AsyncIterator[bytes]) -> None:
    """Read a stream to its end if that is near, so that its connection can be used again."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REST_SECONDS):
            async for _ in pieces:
                pass


def _public(url: str) -> str | None:
    """A URL without what may be secret in it; `None` if it is none that can be used."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path}"


def _object(data: bytes | bytearray) -> dict[str, Any] | None:
    try:
        message = from_json(data)
    except ValueError:
        return None
    return cast("dict[str, Any]", message) if isinstance(message, dict) else None


def _is_error(body: bytearray) -> bool:
    """Whether a body is a JSON-RPC error, and not just some JSON about one."""
    message = _object(body)
    error: Any = message.get("error") if message else None
    return isinstance(error, dict) and isinstance(cast("dict[str, Any]", error).get("code"), int)


def _excerpt(kind: str, body: bytearray) -> str:
    if kind not in ("text/plain", "application/json"):
        return ""
    return " ".join(body[:EXCERPT].decode(errors="replace").split())
