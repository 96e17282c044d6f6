"""A client and a server in one process. Bytes travel all the same, so nothing mutable is shared between the two."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol

Notify = Callable[[bytes], None]
"""Takes one notification that belongs to the request being served."""


class Serving(Protocol):
    """What a server must have to be reached in memory."""

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


class MemoryTransport:
    """Calls a server object directly. The caller's cancellation is the request's cancellation."""

    def __init__(self, server: Serving, *, raise_exceptions: bool = False) -> None:
        self._server = server
        self._raise_exceptions = raise_exceptions
        self._lifespan: AbstractAsyncContextManager[Any] | None = None

    async def __aenter__(self) -> "MemoryTransport":
        self._lifespan = self._server.running()
        await self._lifespan.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._lifespan is not None:
            await self._lifespan.__aexit__(None, None, None)

    async def exchange(self, message: bytes, notify: Notify) -> bytes:
        response = await self._server.serve(message, notify, raise_exceptions=self._raise_exceptions)
        if response is None:
            raise ConnectionError("the server gave no answer to a request")
        return response
