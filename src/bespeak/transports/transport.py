"""What joins clients and servers: how a request is carried, and what carries it needs of a server."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from bespeak.protocol.envelopes import Request
from bespeak.protocol.headers import Headers

Notify = Callable[[bytes], Awaitable[None] | None]
"""Takes one notification that belongs to the request being served. What it returns, if anything, is to be awaited before
the next one: the reader is behind."""

MESSAGE_LIMIT = 4 * 1024 * 1024
"""Bytes of the largest message a server takes."""
ANSWER_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest message a client takes."""


class Answer(NamedTuple):
    """The response to one request, and the code of the error it carries, if it does."""

    message: bytes
    code: int | None = None


class Serving(Protocol):
    """What a server must have to be reached from its own process."""

    async def serve(self, message: bytes, notify: Notify, *, raise_exceptions: bool = False) -> bytes | None:
        """Answer one message; `None` if it wants no answer."""
        ...

    def running(self) -> AbstractAsyncContextManager[Any]:
        """The server's lifespan, shared by all who are inside at the same time."""
        ...


class Answering(Protocol):
    """What a server must have to be reached by a transport that reads messages itself."""

    def answer(self, request: Request, notify: Notify, headers: Headers | None = None) -> Coroutine[Any, Any, Answer]:
        """Answer one request."""
        ...

    def running(self) -> AbstractAsyncContextManager[Any]:
        """The server's lifespan, shared by all who are inside at the same time."""
        ...

    @property
    def ready(self) -> bool:
        """Whether it can serve: it has no lifespan, or is inside it."""
        ...

    @property
    def attended(self) -> bool:
        """Whether somebody runs it, and will wait at its end for what outlives its requests."""
        ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request as it leaves a client."""

    id: int
    method: str
    message: bytes
    headers: Mapping[str, str]
    """What HTTP repeats of it; empty where `Transport.mirrors` is not set."""


class MissingExtra(ImportError):
    """Something was asked for that an optional part of this package does. Says how to install it."""


class Lost(ConnectionError):
    """A request was sent, and its response will not come. Whether it was carried out is not known."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{reason} before it answered; whether {what} was carried out is not known")


class Transport(Protocol):
    """How a client reaches a server: one request, its notifications, its response."""

    @property
    def mirrors(self) -> bool:
        """Whether requests travel with headers that repeat parts of them."""
        ...

    async def __aenter__(self) -> "Transport": ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None]) -> bytes:
        """Send a request and return the response. Cancelling the wait cancels the request."""
        ...
