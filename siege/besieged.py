"""The server's process as the siege sees it: started, looked into, sampled, and ended."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from siege.readings import Reading, highest

SAMPLE_SECONDS = 0.25
START_SECONDS = 20.0
STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Options:
    """How the server is started."""

    server: dict[str, Any] = field(default_factory=dict[str, Any])
    app: dict[str, Any] = field(default_factory=dict[str, Any])
    run: dict[str, Any] = field(default_factory=dict[str, Any])
    store: dict[str, Any] = field(default_factory=dict[str, Any])
    files: int | None = None
    """The most files it may have open."""


class Besieged:
    """A running server."""

    def __init__(
        self, process: subprocess.Popen[bytes], port: int, lines: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> None:
        self._process = process
        self._reader, self._writer = lines
        self._one_at_a_time = asyncio.Lock()
        self.port = port

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    async def look(self, order: str = "look") -> Reading:
        """What it holds now, after it has done what it is told."""
        async with self._one_at_a_time:
            self._writer.write(order.encode() + b"\n")
            line = await self._reader.readline()
        if not line:
            raise ConnectionError("the server under siege has ended")
        return Reading(memory=self._memory("VmRSS"), files=self._files(), **json.loads(line))

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[list[Reading]]:
        """Take readings all the while. Afterwards the list holds one: the highest of each, and of memory the exact peak."""
        self._forget_peak()
        readings = [await self.look()]

        async def take() -> None:
            while True:
                await asyncio.sleep(SAMPLE_SECONDS)
                readings.append(await self.look())

        taking = asyncio.create_task(take())
        try:
            yield readings
        finally:
            taking.cancel()
            await asyncio.wait({taking})
        readings.append(await self.look())
        readings[:] = [replace(highest(readings), memory=self._memory("VmHWM"))]

    async def settled(self, before: Reading, slack: dict[str, float], seconds: float) -> Reading:
        """What it holds when it has let go of what it held more than before, or the time is up."""
        until = time.perf_counter() + seconds
        while True:
            now = await self.look()
            if not now.exceeds(before, slack) or time.perf_counter() > until:
                return now
            await asyncio.sleep(SAMPLE_SECONDS)

    def _forget_peak(self) -> None:
        """Have `VmHWM` count from here on."""
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")

    def _memory(self, name: str) -> float:
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
        raise LookupError(name)

    def _files(self) -> int:
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))  # noqa: PTH208 - a count is all that is wanted


@asynccontextmanager
async def besieged(options: Options, core: int | None) -> AsyncGenerator[Besieged]:
    """A server on a port of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    ours, theirs = socket.socketpair()
    process = _start(theirs, json.dumps({**asdict(options), "port": port, "core": core}))
    try:
        await _listening(port, process)
        yield Besieged(process, port, await asyncio.open_connection(sock=ours))
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(process.wait, STOP_SECONDS)
        process.kill()
        process.wait()
        ours.close()


def _start(channel: socket.socket, told: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "siege.server", str(channel.fileno()), told]
    with channel:
        return subprocess.Popen(command, pass_fds=[channel.fileno()])


async def _listening(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.perf_counter() + START_SECONDS
    while process.poll() is None and time.perf_counter() < until:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise ConnectionError("the server under siege did not start")
