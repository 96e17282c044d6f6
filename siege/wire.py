"""Requests as bytes and responses read from them, from whichever loopback address a client has."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, cast

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "siege", "version": "1"},
}
LEGACY = "2025-11-25"
LINE_LIMIT = 8 * 1024 * 1024


class Closed(ConnectionError):
    """The server closed the connection where a response was due."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client comes from, and the server it goes to."""

    port: int
    address: str
    """The loopback address its connections are bound to."""
    forwarded: str | None = None
    """The address in `X-Forwarded-For`, if it speaks for somebody else."""

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(self.address, 0), limit=LINE_LIMIT)

    def head(self, *more: str, path: str = "/mcp") -> str:
        """The head of a POST, without its end."""
        forwarded = [f"X-Forwarded-For: {self.forwarded}"] if self.forwarded else []
        lines = [
            f"POST {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
            *forwarded,
            *more,
        ]
        return "".join(f"{line}\r\n" for line in lines)

    def post(self, body: bytes, *more: str, path: str = "/mcp") -> bytes:
        """A whole request."""
        return f"{self.head(*more, path=path)}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def modern_head(self, tool: str) -> tuple[str, ...]:
        return ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", f"Mcp-Name: {tool}")

    def modern(self, tool: str, arguments: dict[str, Any], id_: int = 1, **more: Any) -> bytes:
        """A tool call of 2026-07-28."""
        params = {"name": tool, "arguments": arguments, **more, "_meta": META}
        return self.post(message({"id": id_, "method": "tools/call", "params": params}), *self.modern_head(tool))

    def legacy(self, content: Any, session: str = "", version: str = LEGACY) -> bytes:
        """A message, or a batch of them, of an older client."""
        known = (f"Mcp-Session-Id: {session}", f"MCP-Protocol-Version: {version}") if session else ()
        body = message(content) if isinstance(content, dict) else compact(content)
        return self.post(body, *known)


def compact(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def message(content: Any) -> bytes:
    return compact({"jsonrpc": "2.0", **content})


def initialize(version: str = LEGACY) -> dict[str, Any]:
    params: dict[str, Any] = {
        "protocolVersion": version,
        "capabilities": {"elicitation": {}, "roots": {}},
        "clientInfo": {"name": "siege", "version": "1"},
    }
    return {"id": 0, "method": "initialize", "params": params}


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a response."""

    status: int
    headers: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def length(self) -> int | None:
        """Of the body; `None` for a stream."""
        said = self.headers.get("content-length")
        return int(said) if said is not None else None


def parse_head(data: bytes) -> Head:
    first, *lines = data.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return Head(int(first.split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in pairs})


async def read_head(reader: asyncio.StreamReader) -> Head:
    try:
        return parse_head(await reader.readuntil(b"\r\n\r\n"))
    except asyncio.IncompleteReadError as ended:
        raise Closed("the server closed the connection without a response") from ended


async def read_json(reader: asyncio.StreamReader) -> tuple[Head, Any]:
    """A response that has a length, or the first message of a stream."""
    head = await read_head(reader)
    if head.length is None:
        return head, await read_event(reader)
    body = await reader.readexactly(head.length)
    return head, json.loads(body) if body else None


async def read_event(reader: asyncio.StreamReader) -> Any:
    """The next message of a stream."""
    while True:
        line = await reader.readline()
        if not line:
            raise Closed("the stream ended")
        if line.startswith(b"data: "):
            return json.loads(line[6:])


def reason(head: Head, content: Any) -> str:
    """What a refusal says, as one short text: how a siege counts them."""
    error, result = _object(_object(content).get("error")), _object(_object(content).get("result"))
    if error:
        return f"{head.status} {error.get('code')}: {error.get('message')}"
    if result.get("isError"):
        return f"{head.status} tool error: {result['content'][0]['text']}"
    return f"{head.status} without a reason"


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
