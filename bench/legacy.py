"""What clients of older revisions cost one worker: sessions nobody ends, and calls that wait for people."""

import asyncio
import json
import time
from typing import Any

from bench.load import INITIALIZE
from bench.memory import resident

AT_ONCE = 50
SETTLED_MIB = 3.0


class LegacyClient:
    """One session, by hand."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._session = ""

    async def begin(self) -> None:
        head, _ = await self._post({"id": 0, "method": "initialize", "params": INITIALIZE})
        self._session = head.partition("mcp-session-id: ")[2].partition("\r\n")[0]
        assert self._session, head
        await self._post({"method": "notifications/initialized"})

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a call that asks nothing."""
        _, body = await self._post({"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        return json.loads(body)["result"]

    @property
    def session(self) -> str:
        """The id that the server gave to the session."""
        return self._session

    async def wait(self, number: int, asked: asyncio.Semaphore, answers: asyncio.Event) -> None:
        """A call whose question is answered when a person says so."""
        params = {"name": "asked", "arguments": {"a": number, "b": 2}}
        reader, writer = await self._send({"id": 1, "method": "tools/call", "params": params})
        try:
            question = await _event(reader)
            assert question["method"] == "elicitation/create", question
            asked.release()
            await answers.wait()
            await self._post({"id": question["id"], "result": {"action": "accept", "content": {"value": True}}})
            response = await _event(reader)
            assert response["result"]["content"][0]["text"] == str(number + 2), response
        finally:
            writer.close()

    async def _send(self, message: dict[str, Any]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        known = f"Mcp-Session-Id: {self._session}\r\nMCP-Protocol-Version: 2025-11-25\r\n" if self._session else ""
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAccept: application/json, text/event-stream\r\n"
            f"Content-Type: application/json\r\n{known}Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        return reader, writer

    async def _post(self, message: dict[str, Any]) -> tuple[str, bytes]:
        reader, writer = await self._send(message)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            if "text/event-stream" in head:
                return head, json.dumps(await _event(reader)).encode()
            length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
            return head, await reader.readexactly(int(length or 0))
        finally:
            writer.close()


async def _event(reader: asyncio.StreamReader) -> dict[str, Any]:
    while True:
        line = await reader.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: {"):
            return json.loads(line[6:])


async def abandon_sessions(port: int, pid: int, number: int, idle_seconds: float) -> None:
    """Open sessions and never come back; then see that they are forgotten."""
    await _open(port, number)  # what the first ones make it allocate is not theirs
    await asyncio.sleep(idle_seconds * 2)
    before = resident(pid)
    await _open(port, number)
    during = resident(pid)
    await asyncio.sleep(idle_seconds * 2)
    after = resident(pid)
    print(f"{number} sessions of an older client opened and abandoned:")
    print(f"  memory {before:.1f} MiB before, {during:.1f} MiB with them, {after:.1f} MiB when they have expired")
    assert after - before < SETTLED_MIB, "abandoned sessions leave memory behind"


async def _open(port: int, number: int) -> None:
    for first in range(0, number, AT_ONCE):
        await asyncio.gather(*(LegacyClient(port).begin() for _ in range(first, min(first + AT_ONCE, number))))


async def wait_for_people(port: int, pid: int, number: int) -> None:
    """Calls that wait for people, and another one meanwhile."""
    clients = [LegacyClient(port) for _ in range(number)]
    for first in range(0, number, AT_ONCE):
        await asyncio.gather(*(client.begin() for client in clients[first : first + AT_ONCE]))
    before = resident(pid)
    asked, answers = asyncio.Semaphore(0), asyncio.Event()
    waiting = [asyncio.create_task(client.wait(one, asked, answers)) for one, client in enumerate(clients)]
    for _ in clients:
        await asked.acquire()
    during = resident(pid)
    other = LegacyClient(port)
    await other.begin()
    started = time.perf_counter()
    for _ in range(20):
        await other.call("how_many")
    others = (time.perf_counter() - started) / 20
    answers.set()
    started = time.perf_counter()
    await asyncio.gather(*waiting)
    ended = time.perf_counter() - started
    print(
        f"{number} calls of older clients waiting for people at once: all answered {ended:.1f} s after the people are"
    )
    print(f"  memory {before:.0f} MiB before, {during:.0f} MiB waiting; another call meanwhile: {others * 1000:.1f} ms")
    assert others < 1, "calls that wait for people keep others waiting"
