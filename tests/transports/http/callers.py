"""Calls over HTTP that can be watched and broken off, and the servers they reach."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bespeak import Context, Elicit, MCPServer
from tests.wires import Listening

HEADERS = {
    "Host": "127.0.0.1",
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
}


def call(name: str, *, progress: bool = False, capable: bool = True, **params: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}} if capable else {},
    }
    if progress:
        meta["progressToken"] = "p"
    params = {"arguments": {}, **params, "name": name, "_meta": meta}
    return {"jsonrpc": "2.0", "id": "r", "method": "tools/call", "params": params}


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_stream(self) -> bool:
        return self.headers["content-type"] == "text/event-stream"

    @property
    def messages(self) -> list[Any]:
        """All messages, whichever way they came."""
        if not self.is_stream:
            return [json.loads(self.body)]
        events = [event for event in self.body.split(b"\r\n\r\n") if event not in (b"", b":")]
        parts = [event.split(b"\r\n") for event in events]
        assert all(part[0] == b"event: message" and len(part) == 2 for part in parts)
        return [json.loads(part[1].removeprefix(b"data: ")) for part in parts]

    @property
    def text(self) -> str:
        return self.messages[-1]["result"]["content"][0]["text"]


class Caller:
    """One request on a connection of its own, which may be given up at any time."""

    def __init__(self, port: int, message: dict[str, Any]) -> None:
        self._port = port
        self._message = message

    async def __aenter__(self) -> "Caller":
        raw = json.dumps(self._message).encode()
        name = self._message["params"]["name"]
        given = {**HEADERS, "Mcp-Name": name, "Content-Length": str(len(raw)), "Connection": "close"}
        head = "".join(f"{key}: {value}\r\n" for key, value in given.items())
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port)
        self.writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + raw)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        self.writer.close()

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines[1:] if line)}
        return int(lines[0].split()[1]), headers

    async def chunk(self) -> bytes:
        length = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(length + 2))[:-2]

    async def answer(self) -> Answer:
        async with asyncio.timeout(5):
            status, headers = await self.head()
            if "content-length" in headers:
                return Answer(status, headers, await self.reader.readexactly(int(headers["content-length"])))
            body = b""
            while chunk := await self.chunk():
                body += chunk
            return Answer(status, headers, body)


async def post(port: int, message: dict[str, Any]) -> Answer:
    async with Caller(port, message) as caller:
        return await caller.answer()


class Body:
    """A tool's body that the test watches: whether it began, how it ended, and when it may go on."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        self.ended = asyncio.Event()
        self.how: list[str] = []

    async def __call__(self, ctx: Context | None = None) -> str:
        if ctx is not None:
            await ctx.report_progress(1)
        self.began.set()
        try:
            await self.go_on.wait()
            if ctx is not None:
                await ctx.report_progress(2)
        except asyncio.CancelledError:
            self.how.append("cancelled")
            raise
        else:
            self.how.append("finished")
        finally:
            self.ended.set()
        return "the result"


async def soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(5):
        await event.wait()


async def confirm() -> Elicit[bool]:
    return Elicit("Really?", bool)


def server_with(*tools: Callable[..., Any]) -> MCPServer[Any]:
    mcp = MCPServer("Streams")
    for tool in tools:
        mcp.add_tool(tool)
    return mcp


async def fetch(server: Listening, path: str, verb: str = "GET", body: bytes = b"") -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = f"{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    async with asyncio.timeout(5):
        raw = await reader.read()
    writer.close()
    found, _, rest = raw.partition(b"\r\n\r\n")
    return int(found.split()[1]), rest
