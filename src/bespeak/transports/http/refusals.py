"""Refusals of requests and connections: the status, the reason as a JSON-RPC error, and when to try again."""

from dataclasses import dataclass

from bespeak.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, MCPError
from bespeak.protocol.messages import RequestId, write_error
from bespeak.transports.http.asgi import JSON, Receive, Scope, Send, respond
from bespeak.transports.interfaces import Challenge

RETRY_SECONDS = 1
"""When a client that is refused for now may try again."""
RETRY = (b"retry-after", b"%d" % RETRY_SECONDS)
NO_ROOM = "too many large bodies are being received; try again later"
READ_FIRST = "clients at this address do not read their responses; read them, then try again"
_PHRASES = {
    408: "Request Timeout",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a connection is refused or closed."""

    status: int
    reason: str

    def written(self) -> bytes:
        """Return the whole HTTP response, for a connection that is not served by an app."""
        body = write_error(None, _error(self.status, self.reason))
        retry = b"retry-after: %d\r\n" % RETRY_SECONDS if self.status in (429, 503) else b""
        head = f"HTTP/1.1 {self.status} {_PHRASES[self.status]}\r\ncontent-type: application/json\r\n"
        return b"%bcontent-length: %d\r\n%bconnection: close\r\n\r\n%b" % (head.encode(), len(body), retry, body)


async def refuse(send: Send, status: int, reason: str, *, unread: bool = False) -> None:
    """Refuse a request. `unread` says that the rest of its body has not been read."""
    extra = [(b"allow", b"POST")] if status == 405 else []
    if unread or status in (408, 413):
        extra.append((b"connection", b"close"))
    if status in (429, 503):
        extra.append(RETRY)
    await respond(send, status, write_error(None, _error(status, reason)), JSON, *extra)


async def challenge(send: Send, why: Challenge, id_: RequestId | None = None) -> None:
    """Refuse a request that is not authenticated, or not authorized."""
    extra = [(b"www-authenticate", why.header)] if why.header is not None else []
    if why.status == 503:
        extra.append(RETRY)
    await respond(send, why.status, write_error(id_, _error(why.status, why.reason)), JSON, *extra)


async def read_first(scope: Scope, receive: Receive, send: Send) -> None:
    """The app for clients that must read their responses before they ask for more."""
    await refuse(send, 429, READ_FIRST)


class LegacyRefusal(Exception):
    """Raised where a request of an older client is refused."""

    def __init__(
        self, status: int, reason: str, code: int = INVALID_REQUEST, *, retry_seconds: int | None = None
    ) -> None:
        self.status = status
        self.code = code
        self.retry_seconds = retry_seconds
        super().__init__(reason)

    async def send(self, send: Send, id_: RequestId | None = None) -> None:
        """Refuse the request with this id."""
        extra = [(b"allow", b"POST")] if self.status == 405 else []
        if self.retry_seconds is not None:
            extra.append((b"retry-after", b"%d" % self.retry_seconds))
        await respond(send, self.status, write_error(id_, MCPError(self.code, str(self))), JSON, *extra)


def _error(status: int, reason: str) -> MCPError:
    return MCPError(INTERNAL_ERROR if status >= 500 else INVALID_REQUEST, reason)
