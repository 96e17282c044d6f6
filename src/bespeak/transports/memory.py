"""The in-memory transport: a client and a server in one process. Messages are bytes here too, so the two share nothing mutable."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

from pydantic_core import from_json

from bespeak.protocol.messages import (
    Batch,
    LegacyRequest,
    MalformedMessage,
    Request,
    no_batch,
    read_message,
    write_error,
)
from bespeak.transports.interfaces import Answering, Ask, Channel, Outgoing, Peer


class MemoryTransport:
    """Calls a server object directly. The caller's cancellation is the request's cancellation.

    Batches are refused: the client does not send any.
    """

    sends_headers = False

    def __init__(self, server: Answering, *, raise_exceptions: bool = False) -> None:
        self._server = server
        self._raise_exceptions = raise_exceptions
        self._lifespan: AbstractAsyncContextManager[Any] | None = None
        self._peer: Peer | None = None
        self._standing: asyncio.Task[None] | None = None

    @property
    def server(self) -> Answering:
        return self._server

    async def __aenter__(self) -> "MemoryTransport":
        self._lifespan = self._server.running()
        await self._lifespan.__aenter__()
        self._peer = self._server.peer()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._standing is not None:
            self._standing.cancel()
        if self._peer is not None:
            self._peer.close("the client has closed the connection")
        if self._lifespan is not None:
            await self._lifespan.__aexit__(None, None, None)

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        response = await self.serve(request.message, _Direct(notify, ask))
        if response is None:
            raise ConnectionError("the server did not respond to a request")
        return response

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        await self.serve(message, _Direct(lambda _: None, None))

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        """Have the server tell `notify` what has changed. Its questions belong to requests."""
        if self._peer is not None and self._standing is None:
            self._standing = asyncio.create_task(self._peer.stand(notify), name="bespeak memory changes")

    async def serve(self, message: bytes, channel: Channel) -> bytes | None:
        """Return the server's response to one message; `None` if the message has none."""
        if self._peer is None:
            raise RuntimeError("the transport is not open; use it through `async with Client(...)`")
        try:
            read = read_message(message)
            if isinstance(read, Batch):
                raise no_batch()
        except MalformedMessage as malformed:
            return write_error(malformed.id, malformed.error)
        if isinstance(read, Request):
            answer = self._server.answer(read, channel.notify, raise_exceptions=self._raise_exceptions)
        elif isinstance(read, LegacyRequest):
            answer = self._peer.answer(read, channel, raise_exceptions=self._raise_exceptions)
        else:
            self._peer.heard(read)
            return None
        return (await answer).message


class _Direct:
    """The way back to the client: a function call."""

    has_reader = True

    def __init__(self, notify: Callable[[bytes], None], ask: Ask | None) -> None:
        self.notify = notify
        self._ask = ask

    def push(self, message: bytes) -> None:
        read = from_json(message)
        if "id" not in read:
            self.notify(message)
        elif self._ask is None:
            raise ConnectionError("the client does not accept questions")
        else:
            self._ask(read)

    def pause(self) -> None:
        """Does nothing: the connection cannot be closed and resumed."""

    def when_gone(self, callback: Callable[[], object]) -> None:
        """The session is gone with its connection, and its questions then end."""
