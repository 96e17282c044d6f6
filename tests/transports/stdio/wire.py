"""A server on a pair of pipes, spoken to line by line."""

import asyncio
import contextlib
import json
import socket
from typing import Annotated, Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from bespeak import Context, Elicit, MCPServer, Resolve
from bespeak.transports.interfaces import MESSAGE_LIMIT, Answering
from bespeak.transports.stdio.stdio_server import StdioServer
from tests.waiting import eventually

Message = dict[str, Any]


META: Message = {PROTOCOL_VERSION_META_KEY: "2026-07-28", CLIENT_CAPABILITIES_META_KEY: {"elicitation": {}}}


def request(id_: Any, method: str, params: Message | None = None, **meta: Any) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**(params or {}), "_meta": {**META, **meta}}}


def call(id_: Any, tool: str, arguments: Message | None = None, retry: Message | None = None, **meta: Any) -> Message:
    return request(id_, "tools/call", {"name": tool, "arguments": arguments or {}, **(retry or {})}, **meta)


def cancelled(**params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def content(message: Message) -> str:
    return message["result"]["content"][0]["text"]


class Watched(StdioServer):
    """A server that says when it has read the last of its input, or was told to stop."""

    def __init__(self, server: Answering, stdin: int, stdout: int, limit: int) -> None:
        super().__init__(server, stdin, stdout, limit)
        self.has_read = asyncio.Event()

    async def _read(self) -> None:
        await super()._read()
        self.has_read.set()

    @property
    def full(self) -> bool:
        """Whether the client is behind with its reading."""
        return not self._writer.outbox._room.is_set()  # pyright: ignore[reportPrivateUsage] - nobody else knows


class Wire:
    """A server on stdio, and a client that speaks to it byte by byte."""

    def __init__(self, server: Answering, limit: int = MESSAGE_LIMIT) -> None:
        self._server = server
        self._limit = limit

    async def __aenter__(self) -> "Wire":
        mine, self._theirs = socket.socketpair()
        self.stdio = Watched(self._server, self._theirs.fileno(), self._theirs.fileno(), self._limit)
        self.serving = asyncio.create_task(self.stdio.run())
        self._reader, self.writer = await asyncio.open_connection(sock=mine, limit=1 << 26)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()
        try:
            await asyncio.wait_for(self.serving, 10)
        finally:
            with contextlib.suppress(TimeoutError):  # its threads must end before the file's number means another file
                await eventually(lambda: self.stdio.idle, 0.2)
            self._theirs.close()

    def send(self, *messages: Message | bytes) -> None:
        lines = [one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in messages]
        self.writer.write(b"".join(lines))

    def eof(self) -> None:
        self.writer.write_eof()

    async def told(self) -> None:
        """Return when the server knows that it is to end."""
        await asyncio.wait_for(self.stdio.has_read.wait(), 20)

    async def line(self) -> bytes:
        return await asyncio.wait_for(self._reader.readline(), 10)

    async def next(self) -> Message:
        return json.loads(await self.line())

    async def ask(self, message: Message) -> Message:
        self.send(message)
        return await self.next()

    async def rest(self) -> list[Message]:
        """Everything sent up to now: what comes before the answer to one more request."""
        found: list[Message] = []
        self.send(request("the last", "server/discover"))
        while (message := await self.next()).get("id") != "the last":
            found.append(message)
        return found


class Shop:
    """A server whose tools can be held up."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.reached = asyncio.Event()
        self.gate = asyncio.Event()
        self.mcp = mcp = MCPServer[Any]("shop")

        @mcp.tool()
        async def echo(text: str) -> str:
            return text

        @mcp.tool()
        async def wait(ctx: Context) -> str:
            await self.through()
            await ctx.report_progress(1)
            return "waited"

        @mcp.tool()
        async def stubborn() -> str:
            try:
                await self.through()
            except asyncio.CancelledError:
                await self.gate.wait()
            return "what cancellation?"

        @mcp.tool()
        async def chatty(ctx: Context) -> None:
            try:
                await self.through()
            finally:
                await ctx.report_progress(1, message="cleaning up")

        @mcp.tool()
        async def pay(approval: Annotated[bool, Resolve(ask, key="ask")], ctx: Context) -> str:
            await self.through()
            await ctx.report_progress(1)
            return f"paid {approval}"

    async def through(self) -> None:
        self.log.append("began")
        self.reached.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.log.append("cancelled")
            raise
        self.log.append("ended")

    async def begun(self) -> None:
        await asyncio.wait_for(self.reached.wait(), 20)
        self.reached.clear()


async def ask() -> Elicit[bool]:
    return Elicit("Pay?", bool)


class Press:
    """A server with answers far larger than the questions."""

    def __init__(self) -> None:
        self.served = 0
        self.cancelled = asyncio.Event()
        self.mcp = MCPServer[Any]("press")

        @self.mcp.tool()
        async def print_(padding: str = "") -> str:
            self.served += 1
            return "x" * 100_000

        @self.mcp.tool()
        async def tell(ctx: Context, times: int) -> str:
            try:
                for time in range(times):
                    await ctx.report_progress(time, message="y" * 20_000)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            self.served += 1
            return "told"


async def settled(wire: Wire, press: Press) -> int:
    """Return how many were served when the client is behind with its reading, and no more are."""
    served = -1
    while served != press.served:
        served = press.served
        await eventually(lambda: wire.stdio.full)
        # That nothing more happens cannot be waited for otherwise: a thread reads, and its client sends no sign of life.
        # On a slow machine the tests prove less, but pass.
        await asyncio.sleep(0.05)
    return served
