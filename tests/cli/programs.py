"""`bespeak run` as a program: started, listening, told to stop, and what it said."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from mcp_types import InputRequiredResult

from bespeak import Client

COMMAND = [sys.executable, "-m", "bespeak.cli", "run"]
SECONDS = 30
"""How long anything here may take before the test gives up."""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Program:
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}/mcp"

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self) -> str:
        """What it said on standard error, when it is over."""
        _, said = await asyncio.to_thread(self.process.communicate, timeout=SECONDS)
        return said


def start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    environment = {**os.environ, **environment}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


@asynccontextmanager
async def listening(*command: str, port: int | None = None, **environment: str) -> AsyncGenerator[Program]:
    """A program that answers at its port."""
    port = port or free_port()
    process = start([word.replace("PORT", str(port)) for word in command], environment)
    try:
        async with httpx2.AsyncClient() as client, asyncio.timeout(SECONDS):
            while not await healthy(client, port):
                assert process.poll() is None, "it ended before it answered"
                await asyncio.sleep(0.03)
        yield Program(process, port)
    finally:
        end(process)


async def healthy(client: httpx2.AsyncClient, port: int) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{port}/health")).status_code == 200
    except httpx2.TransportError:
        return False


def over_http(file: Path, *more: str) -> list[str]:
    return [*COMMAND, str(file), "--http", "--port", "PORT", *more]


async def begun(client: Client) -> InputRequiredResult:
    """A call that waits for its answer."""
    asked = await client.session.call_tool("buy", allow_input_required=True)
    assert isinstance(asked, InputRequiredResult)
    return asked
