"""What joins clients and servers: how a request is carried, and what carries it needs of a server."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol

Notify = Callable[[bytes], None]
"""Takes one notification that belongs to the request being served."""


class Serving(Protocol):
    """What a server must have to be reached."""

    async def serve(self, message: bytes, notify: Notify, *, raise_exceptions: bool = False) -> bytes | None:
        """Answer one message; `None` if it wants no answer."""
        ...

    def running(self) -> AbstractAsyncContextManager[Any]:
        """The server's lifespan, shared by all who are inside at the same time."""
        ...


class Transport(Protocol):
    """How a client reaches a server: one request, its notifications, its response."""

    async def __aenter__(self) -> "Transport": ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    async def exchange(self, message: bytes, notify: Notify) -> bytes:
        """Send a request and return the response. Cancelling the wait cancels the request."""
        ...
