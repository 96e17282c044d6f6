"""A client and a server in one process. Bytes travel all the same, so nothing mutable is shared between the two."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

from bespeak.transports.transport import Outgoing, Serving


class MemoryTransport:
    """Calls a server object directly. The caller's cancellation is the request's cancellation."""

    mirrors = False

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

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None]) -> bytes:
        response = await self._server.serve(request.message, notify, raise_exceptions=self._raise_exceptions)
        if response is None:
            raise ConnectionError("the server gave no answer to a request")
        return response
