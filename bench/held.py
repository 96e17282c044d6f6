"""What one worker can hold: slow calls, questions nobody answers, and older clients. `python -m bench.held [SCALE]`.

Prints one line a figure, and fails if a call is lost or memory stays behind.
"""

import asyncio
import json
import resource
import socket
import subprocess
import sys
import time
from typing import Any

from bench.legacy import abandon_sessions, wait_for_people
from bench.load import META, Http, message, until_it_listens
from bench.memory import resident

SERVER = """
import asyncio, sys
from typing import Annotated
from bespeak import Elicit, MCPServer, Resolve
mcp = MCPServer("Held", log_level="ERROR")
held, go_on = 0, asyncio.Event()

@mcp.tool()
async def hold(a: int, b: int) -> str:
    global held
    held += 1
    await go_on.wait()
    return str(a + b)

@mcp.tool()
async def how_many() -> int:
    return held

@mcp.tool()
async def let_go() -> None:
    go_on.set()

async def ask(a: int) -> Elicit[bool]:
    return Elicit(f"Is {a} right?", bool)

@mcp.tool()
async def asked(a: int, b: int, answer: Annotated[bool, Resolve(ask)]) -> str:
    return str(a + b)

mcp.run(
    "streamable-http",
    port=int(sys.argv[1]),
    session_idle_timeout=2.0,
    uvicorn_config={"log_level": "error", "backlog": 8192},
)
"""
IDLE_SECONDS = 2.0
OPENING = 200
"""Connections opened at once."""


def request(port: int, tool: str, body: bytes) -> bytes:
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json, text/event-stream\r\n"
        "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
        f"Mcp-Name: {tool}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def exchange(port: int, tool: str, body: bytes) -> dict[str, Any]:
    """One request on a connection of its own; its response, whether it came as JSON or as an event stream."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request(port, tool, body))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"content-length: " in head:
            return json.loads(
                await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
            )
        while True:
            line = await reader.readline()
            if line.startswith(b"data: "):
                return json.loads(line[6:])
            assert line, "the stream ended without an answer"
    finally:
        writer.close()


def bare(tool: str) -> bytes:
    params = {"name": tool, "arguments": {}, "_meta": META}
    return json.dumps({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params}).encode()


async def hold(port: int, pid: int, number: int) -> None:
    before = resident(pid)
    calls: list[asyncio.Task[dict[str, Any]]] = []
    started = time.perf_counter()
    for first in range(0, number, OPENING):
        for one in range(first, min(first + OPENING, number)):
            calls.append(asyncio.create_task(exchange(port, "hold", message("hold", one))))
        await asyncio.sleep(0.05)
    held = 0
    while held < number:
        await asyncio.sleep(0.1)
        held = (await exchange(port, "how_many", bare("how_many")))["result"]["structuredContent"]["result"]
        assert time.perf_counter() - started < 120, f"only {held} of {number} calls are held"
    opened = time.perf_counter() - started
    during = resident(pid)
    started = time.perf_counter()
    for _ in range(20):
        await exchange(port, "how_many", bare("how_many"))
    others = (time.perf_counter() - started) / 20
    await exchange(port, "let_go", bare("let_go"))
    started = time.perf_counter()
    for one, response in enumerate(await asyncio.gather(*calls)):
        assert response["result"]["content"][0]["text"] == str(one + 2), response
    ended = time.perf_counter() - started
    print(
        f"{number} slow calls held open by one worker: all begun after {opened:.1f} s, all answered {ended:.1f} s after"
    )
    print(
        f"  memory {before:.0f} MiB before, {during:.0f} MiB held: {(during - before) * 1024 / number:.1f} KiB a call"
    )
    print(f"  another call meanwhile: {others * 1000:.1f} ms, connection included")


def abandon(port: int, pid: int, number: int) -> None:
    class Abandoning(Http):
        def ask(self, calls: int) -> None:
            one = self._sockets[0]
            for call in range(calls):
                one.sendall(request(port, "asked", message("asked", call)))
                data = one.recv(65536)
                while b"requestState" not in data or not data.endswith(b"}"):
                    data += one.recv(65536)

    http = Abandoning(port)
    http.ask(max(500, number // 10))
    before = resident(pid)
    http.ask(number)
    after = resident(pid)
    http.close()
    print(f"{number} calls asked and never answered: memory {before:.1f} MiB before, {after:.1f} MiB after")
    assert after - before < 2, "questions nobody answers leave memory behind"


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the server inherits it
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(port)])
    try:
        until_it_listens(port, lambda: server.poll() is None)
        asyncio.run(abandon_sessions(port, server.pid, int(1000 * scale), IDLE_SECONDS))
        asyncio.run(hold(port, server.pid, int(5000 * scale)))
        abandon(port, server.pid, int(10000 * scale))
        asyncio.run(wait_for_people(port, server.pid, int(200 * scale)))
    finally:
        server.terminate()
        server.wait(20)


if __name__ == "__main__":
    main()
