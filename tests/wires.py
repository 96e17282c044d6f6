"""Every way a client can reach a server, within one process and one event loop: what travels is real all the same."""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Literal

import uvicorn
from uvicorn.server import ServerState

from bespeak import MCPServer
from bespeak.transports.http.asgi import ASGIApp
from bespeak.transports.http.client import HttpTransport
from bespeak.transports.http.connection_limits import ConnectionLimits
from bespeak.transports.http.uvicorn_server import HttpProtocols
from bespeak.transports.interfaces import ANSWER_LIMIT, Ask, Outgoing
from bespeak.transports.stdio.client_requests import ClientRequests
from bespeak.transports.stdio.lines import ThreadedReader, ThreadedWriter
from bespeak.transports.stdio.stdio_server import StdioServer

Parser = Literal["h11", "httptools"]


class Listening:
    """An ASGI app behind one of uvicorn's parsers on a free port of loopback, its lifespan run as uvicorn does."""

    def __init__(self, app: ASGIApp, parser: Parser = "h11", limits: ConnectionLimits | None = None) -> None:
        # both as `mcp.run` has them
        http: Any = HttpProtocols(limits or ConnectionLimits(), parser)
        self.connections = http.table
        config = uvicorn.Config(app, http=http, ws="none", log_config=None, access_log=False, proxy_headers=False)
        config.load()
        self._config = config
        self._state = ServerState()
        self._lifespan = config.lifespan_class(config)
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def open(self) -> list[Any]:
        """The connections that uvicorn knows."""
        return list(self._state.connections)

    async def __aenter__(self) -> "Listening":
        await self._lifespan.startup()
        assert not self._lifespan.should_exit, "the app's lifespan failed to start"
        protocol: Any = self._config.http_protocol_class
        self._server = await asyncio.get_running_loop().create_server(
            lambda: protocol(config=self._config, server_state=self._state, app_state={}), "127.0.0.1", 0
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=5)
        await self._lifespan.shutdown()


class OverHttp:
    """A client's transport to a server that listens only for it."""

    sends_headers = True

    def __init__(self, mcp: MCPServer[Any], parser: Parser) -> None:
        self._mcp = mcp
        self._parser: Parser = parser
        self._stack = AsyncExitStack()
        self._inner: HttpTransport | None = None

    async def __aenter__(self) -> "OverHttp":
        listening = await self._stack.enter_async_context(Listening(self._mcp.streamable_http_app(), self._parser))
        self._inner = await self._stack.enter_async_context(HttpTransport(listening.url))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        assert self._inner is not None
        return await self._inner.exchange(request, notify, ask)

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        assert self._inner is not None
        await self._inner.say(message, headers)

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        assert self._inner is not None
        await self._inner.begin(headers, notify, ask)


class OverPipes:
    """A client's transport to a server on stdio, both in this process."""

    sends_headers = False

    def __init__(self, mcp: MCPServer[Any]) -> None:
        self._mcp = mcp

    async def __aenter__(self) -> "OverPipes":
        server_in, client_out = os.pipe()
        client_in, server_out = os.pipe()
        self._fds = server_in, client_out, client_in
        self._server = StdioServer(self._mcp, server_in, server_out)
        self._serving = asyncio.create_task(self._server.run())
        self._serving.add_done_callback(lambda _: os.close(server_out))  # as the end of its process would
        self._writer = ThreadedWriter(client_out)
        self._reader = ThreadedReader(client_in)
        self.conversation = ClientRequests(self._write, ANSWER_LIMIT)
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        server_in, client_out, client_in = self._fds
        await self._writer.close(5)
        os.close(client_out)
        await asyncio.wait({self._serving})
        if not self._serving.cancelled():
            self._serving.result()
        await self._reading
        # A thread that reads later must not read another file, which may get the same number.
        for _ in range(20):
            if self._server.idle and not self._reader.thread.is_alive():
                break
            await asyncio.sleep(0.01)
        os.close(server_in)
        os.close(client_in)

    def stop_serving(self) -> None:
        """Cancel the server."""
        self._serving.cancel()

    async def _write(self, line: bytes) -> None:
        self._writer.outbox.add(line)

    async def _read(self) -> None:
        async for piece in self._reader:
            self.conversation.feed(piece)
        self.conversation.end(ConnectionError("the server closed its output"))

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        return await self.conversation.exchange(request, notify, ask)

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        await self.conversation.say(message)

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        self.conversation.begin(notify, ask)
