"""Requests of both eras over HTTP, each within a time limit, and their replies."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from storm.proxy import WORKER_HEADER
from storm.records import Era
from storm.replies import Ending, Reply, broken, overdue, read_reply

REPLY_SECONDS = 75.0
"""How long a request may take: a replay waits up to 60 s for a running call, or 15 s until the claim of a dead worker lapses."""
EVENTS = "text/event-stream"
_HEADERS = {
    "Accept": f"application/json, {EVENTS}",
    "Content-Type": "application/json",
}
META: Mapping[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": Era.MODERN.value,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "storm", "version": "1"},
}


def encode(message: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()


class Stream:
    """The response to a request of an older client, message by message."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.worker = response.headers.get(WORKER_HEADER, "")
        self._response = response
        self._messages = self._read()

    async def next(self) -> bytes:
        """Return the next message. Raises `ConnectionError` if there is none."""
        try:
            return await anext(self._messages)
        except StopAsyncIteration:
            raise ConnectionError("the stream ended without a response") from None
        except httpx2.TransportError as error:
            raise ConnectionError(_named(error)) from None

    async def _read(self) -> AsyncIterator[bytes]:
        if _is_stream(self._response):
            async for line in self._response.aiter_lines():
                if line.startswith("data: "):
                    yield line.removeprefix("data: ").encode()
        else:
            yield await self._response.aread()


class Exchanges:
    """Sends requests to one URL."""

    def __init__(self, client: httpx2.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url

    async def call_modern(self, tool: str, params: Mapping[str, Any], id_: str) -> Reply:
        """Send a tool call of 2026-07-28."""
        message = {"id": id_, "method": "tools/call", "params": {"name": tool, **params, "_meta": META}}
        headers = {"MCP-Protocol-Version": Era.MODERN.value, "Mcp-Method": "tools/call", "Mcp-Name": tool}
        return await self.post(message, headers)

    async def post(
        self, message: Mapping[str, Any], headers: Mapping[str, str], seconds: float = REPLY_SECONDS
    ) -> Reply:
        """Send a message and return the last message of the response."""
        try:
            async with asyncio.timeout(seconds):
                response = await self._client.post(self._url, content=encode(message), headers={**_HEADERS, **headers})
        except TimeoutError:
            return overdue(seconds)
        except httpx2.TransportError as error:
            return broken(_named(error))
        return read_reply(response.status_code, _last_message(response), response.headers.get(WORKER_HEADER, ""))

    async def initialize(self, message: Mapping[str, Any]) -> tuple[Reply, str]:
        """Send the first message of an older client. Return the reply and the id of the session, which may be empty."""
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                response = await self._client.post(self._url, content=encode(message), headers=_HEADERS)
        except TimeoutError:
            return overdue(REPLY_SECONDS), ""
        except httpx2.TransportError as error:
            return broken(_named(error)), ""
        return read_reply(response.status_code, response.content), response.headers.get("mcp-session-id", "")

    @asynccontextmanager
    async def stream(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> AsyncGenerator[Stream]:
        """Send a request and read its response while the block is open. Raises `ConnectionError`."""
        try:
            async with self._client.stream(
                "POST", self._url, content=encode(message), headers={**_HEADERS, **headers}
            ) as response:
                yield Stream(response)
        except httpx2.TransportError as error:
            raise ConnectionError(_named(error)) from None

    async def delete(self, headers: Mapping[str, str], seconds: float = REPLY_SECONDS) -> Reply:
        """End a session."""
        try:
            async with asyncio.timeout(seconds):
                response = await self._client.delete(self._url, headers=dict(headers))
        except TimeoutError:
            return overdue(seconds)
        except httpx2.TransportError as error:
            return broken(_named(error))
        if response.status_code == 204:
            return Reply(Ending.ACCEPTED)
        return read_reply(response.status_code, response.content, response.headers.get(WORKER_HEADER, ""))


@asynccontextmanager
async def exchanges(url: str) -> AsyncGenerator[Exchanges]:
    """Connect to a URL while the block is open."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx2.AsyncClient(timeout=None, limits=limits, trust_env=False) as client:
        yield Exchanges(client, url)


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").startswith(EVENTS)


def _last_message(response: httpx2.Response) -> bytes:
    """Return the body, or the last message of an event stream."""
    if not _is_stream(response):
        return response.content
    messages = [line for line in response.content.splitlines() if line.startswith(b"data: ")]
    return messages[-1].removeprefix(b"data: ") if messages else b""


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
