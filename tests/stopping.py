"""A server in a process of its own that is stopped in the middle of an approved call, and what it left behind."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from bespeak import Client
from tests.answering import Person, accept
from tests.waiting import eventually

Wire = Literal["http", "http-legacy", "stdio", "stdio-legacy"]
Json = dict[str, Any]
SECONDS = 20
PORT = re.compile(r"Uvicorn running on (http://127.0.0.1:\d+)")
PROGRAM = '''
import asyncio, atexit, os, sys, threading, time
from pathlib import Path
from typing import Annotated
from bespeak import Elicit, MCPServer, Resolve
from bespeak.transports.stdio.stdio_server import StdioServer

HERE = Path(__file__).parent

def note(what):
    with (HERE / "notes").open("a") as file:
        file.write(f"{what}\\n")

def there(name):
    return (HERE / name).exists()

atexit.register(note, "atexit")

def own():
    threading.main_thread().join()
    time.sleep(float(os.environ.get("OWN_SECONDS", "0")))
    note("thread")

threading.Thread(target=own).start()
mcp = MCPServer("desk")

def heard(*_):
    with (HERE / "heard").open("a") as file:
        file.write("x")

stop, read = StdioServer.stop, StdioServer._read

async def read_to_the_end(self):
    await read(self)
    heard()

StdioServer.stop = lambda self: (heard(), stop(self))
StdioServer._read = read_to_the_end

async def sure() -> Elicit[bool]:
    return Elicit("Sure?", bool)

@mcp.tool()
async def buy(sure: Annotated[bool, Resolve(sure)]) -> str:
    note("begun")
    try:
        while not there("go"):
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    note("ended")
    return "bought"

@mcp.tool()
def buy_in_thread(sure: Annotated[bool, Resolve(sure)]) -> str:
    note("begun")
    while not there("go"):
        time.sleep(0.01)
    note("ended")
    return "bought"

@mcp.tool()
async def nap() -> None:
    note("begun")
    await asyncio.sleep(60)

@mcp.tool()
def hang() -> None:
    note("begun")
    while not there("go"):
        time.sleep(0.01)

@mcp.tool()
async def elsewhere() -> str:
    """Use the same server in another loop."""
    await asyncio.to_thread(lambda: asyncio.run(mcp.call_tool("hello")))
    return "used"

@mcp.tool()
async def hello() -> str:
    return "hello"

async def until_closed(serving):
    task = asyncio.create_task(serving)
    while not there("close"):
        await asyncio.sleep(0.01)

if __name__ == "__main__":
    how, port = sys.argv[1:]
    PATCH
    if how == "http":
        mcp.run("streamable-http", port=int(port), uvicorn_config=UVICORN)
    elif how == "http-closed":
        asyncio.run(until_closed(mcp.run_streamable_http_async(port=int(port))))
    elif how == "http-async":
        asyncio.run(mcp.run_streamable_http_async(port=int(port)))
    elif how == "stdio-closed":
        asyncio.run(until_closed(mcp.run_stdio_async()))
    else:
        mcp.run()
    note("after")
'''


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Stopping:
    """The program, a call of it that runs, and the ways to stop it."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes], wire: Wire) -> None:
        self.process = process
        self._folder = folder
        self._wire: Wire = wire
        self._told = 0

    @property
    def notes(self) -> list[str]:
        path = self._folder / "notes"
        return path.read_text().split() if path.exists() else []

    def touch(self, name: str) -> None:
        """Let the program go on: `go` ends its bodies, `close` its loop."""
        (self._folder / name).touch()

    def signal(self, number: signal.Signals) -> None:
        self._told += 1
        self.process.send_signal(number)

    @property
    def said(self) -> str:
        """What it has written to standard error."""
        return (self._folder / "said").read_text()

    async def heard(self) -> None:
        """Return when the program stops."""
        if self._wire.startswith("http"):
            await eventually(lambda: "Shutting down" in self.said, SECONDS)
        else:
            heard = self._folder / "heard"  # the program notes each signal, and the end of its input
            await eventually(lambda: heard.exists() and len(heard.read_text()) >= self._told, SECONDS)

    def close_stdin(self) -> None:
        self._told += 1
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None

    async def ended(self, seconds: float = SECONDS) -> tuple[int, str]:
        """How the program ended, and what it said on standard error."""
        status = await asyncio.to_thread(self.process.wait, seconds)
        return status, self.said

    # A call

    async def begin(self, tool: str) -> None:
        """Call a tool, approve of it if it asks, and return when its body runs."""
        if self._wire.startswith("http"):
            calling = asyncio.create_task(self.over_http(tool))
        else:
            calling = asyncio.create_task(asyncio.to_thread(self._over_stdio, tool))
        self._calling = calling
        await eventually(lambda: "begun" in self.notes, SECONDS)

    async def answer(self) -> str:
        """What the client got."""
        return await asyncio.wait_for(self._calling, SECONDS)

    async def over_http(self, tool: str) -> str:
        person = Person({"sure": accept(value=True)})
        mode = "legacy" if self._wire == "http-legacy" else "2026-07-28"
        (url,) = PORT.findall(self.said)
        async with Client(f"{url}/mcp", mode=mode, elicitation_callback=person) as client:
            return (await client.call_tool(tool)).model_dump_json()

    def _over_stdio(self, tool: str) -> str:
        if self._wire == "stdio-legacy":
            info = {"name": "older", "version": "1"}
            hello: Json = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info}
            self._exchange({"id": 0, "method": "initialize", "params": hello})
            asked = self._exchange({"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
            if "method" not in asked:
                return json.dumps(asked)
            return json.dumps(self._exchange({"id": asked["id"], "result": ACCEPTED}))
        meta: Json = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        }
        params: Json = {"name": tool, "arguments": {}, "_meta": meta}
        asked = self._exchange({"id": 1, "method": "tools/call", "params": params})["result"]
        if "inputRequests" not in asked:
            return json.dumps(asked)
        answers = dict.fromkeys(asked["inputRequests"], ACCEPTED)
        params |= {"requestState": asked["requestState"], "inputResponses": answers}
        return json.dumps(self._exchange({"id": 2, "method": "tools/call", "params": params}))

    def _exchange(self, message: Json) -> Json:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or b"{}")


ACCEPTED = {"action": "accept", "content": {"value": True}}


def _start(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            env={**os.environ, **environment},
            start_new_session=True,  # so that a whole group can be signalled, as a terminal does
        )


@asynccontextmanager
async def stopping(
    folder: Path,
    wire: Wire,
    how: str | None = None,
    *,
    patch: str = "pass",
    uvicorn: str = "{}",
    command: Sequence[str] | None = None,
    workers: int = 1,
    **environment: str,
) -> AsyncGenerator[Stopping]:
    """The program, serving. `how` is how it runs its server; `command` runs it otherwise, with PORT for its port."""
    port = free_port() if command else 0  # which lets the system choose one that is surely free
    script = folder / "desk.py"
    script.write_text(PROGRAM.replace("PATCH", patch).replace("UVICORN", uvicorn))
    words = command or [sys.executable, "SCRIPT", how or wire.partition("-")[0], "PORT"]
    process = _start(
        [word.replace("PORT", str(port)).replace("SCRIPT", str(script)) for word in words], folder, environment
    )
    program = Stopping(folder, process, wire)
    try:
        if wire.startswith("http"):
            await eventually(lambda: program.said.count("startup complete") == workers, SECONDS)
            await eventually(lambda: PORT.search(program.said), SECONDS)
        yield program
    finally:
        program.touch("go")
        program.touch("close")
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
