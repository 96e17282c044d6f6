"""Raw HTTP requests to an app, and their responses."""

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from bespeak import MCPServer
from tests.wires import Listening

VERSION = "2026-07-28"


Lines = list[tuple[str, str]]


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> int | None:
        return self.json().get("error", {}).get("code")

    @property
    def message(self) -> str:
        return self.json()["error"]["message"]


def make_server() -> MCPServer[Any]:
    mcp = MCPServer("Checks")

    @mcp.tool()
    async def echo(text: str = "") -> str:
        return text

    @mcp.tool()
    async def place(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "nowhere",
        count: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Count"})] = 0,
        fast: Annotated[bool, Field(json_schema_extra={"x-mcp-header": "Fast"})] = False,
    ) -> str:
        return f"{region} {count} {fast}"

    return mcp


def message(method: str = "tools/call", version: str = VERSION, id_: Any = 1, **params: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    if method == "tools/call":
        params = {"name": "echo", "arguments": {}, **params}
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**params, "_meta": meta}}


def lines(method: str = "tools/call", name: str = "echo", *, without: str = "", **changed: str | None) -> Lines:
    """The right headers, some changed or left out; `mcp_name="x"` is `Mcp-Name: x`."""
    found: dict[str, str | None] = {
        "host": "127.0.0.1",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": VERSION,
        "mcp-method": method,
        "mcp-name": name if method == "tools/call" else None,
        **{key.replace("_", "-"): value for key, value in changed.items()},
    }
    return [(key, value) for key, value in found.items() if value is not None and key != without]


async def answer(reader: asyncio.StreamReader) -> Response:
    """What a server that will close the connection, or says how much there is, sends."""
    async with asyncio.timeout(5):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"])) if "content-length" in headers else b""
    return Response(int(head[0].split()[1]), headers, body)


async def send(
    server: Listening, body: Any, headers: Lines | None = None, *, verb: str = "POST", path: str = "/mcp"
) -> Response:
    """Send one request exactly as it is written here."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = lines() if headers is None else headers
    head = "".join(f"{name}: {value}\r\n" for name, value in [*given, ("content-length", str(len(raw)))])
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"{verb} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + raw)
    try:
        return await answer(reader)
    finally:
        writer.close()
