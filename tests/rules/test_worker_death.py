"""A worker that is killed in a body: the outcome is unknown, which is a clear error at any other worker, and never a second run."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from bespeak import Client
from tests.rules.raw_calls import accept, nobody, said, send
from tests.waiting import eventually

pytestmark = [pytest.mark.timing, pytest.mark.long]

TILL = """
import asyncio, os
from pathlib import Path
from typing import Annotated
from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("till")
LOG = Path(__file__).with_name("log")

async def sure() -> Elicit[bool]:
    return Elicit("Sure?", bool)

async def charge() -> str:
    with LOG.open("a") as log:
        log.write(f"{os.getpid()}\\n")
    while not LOG.with_name("go").exists():
        await asyncio.sleep(0.01)
    return "charged"

@mcp.tool()
async def pay(sure: Annotated[bool, Resolve(sure, key="sure")]) -> str:
    return await charge()

@mcp.tool(idempotent=True)
async def pay_again(sure: Annotated[bool, Resolve(sure, key="sure")]) -> str:
    return await charge()
"""
SECONDS = 40.0


@pytest.fixture
def till(tmp_path: Path) -> Path:
    (tmp_path / "till.py").write_text(TILL)
    return tmp_path / "till.py"


def start(till: Path, port: int) -> subprocess.Popen[bytes]:
    store = f"sqlite:{till.with_name('till.db')}"
    command = [sys.executable, "-m", "bespeak.cli", "run", str(till), "--http", "--port", str(port), "--store", store]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "BESPEAK_STATE_KEYS": "k" * 32})


@asynccontextmanager
async def worker(till: Path) -> AsyncGenerator[tuple[subprocess.Popen[bytes], str]]:
    """A process of its own, which shares its store with the others."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start(till, port)
    try:
        async with httpx2.AsyncClient() as client, asyncio.timeout(SECONDS):
            while True:
                try:
                    if (await client.get(f"http://127.0.0.1:{port}/health")).status_code == 200:
                        break
                except httpx2.TransportError:
                    await asyncio.sleep(0.03)
        yield process, f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("tool", ["pay", "pay_again"])
async def test_a_worker_that_dies_in_a_body_leaves_an_unknown_outcome_and_only_an_idempotent_tool_is_run_again(
    till: Path, tool: str
) -> None:
    async with AsyncExitStack() as stack:
        first, url = await stack.enter_async_context(worker(till))
        _, other_url = await stack.enter_async_context(worker(till))
        one = await stack.enter_async_context(Client(url, elicitation_callback=nobody, read_timeout_seconds=SECONDS))
        two = await stack.enter_async_context(
            Client(other_url, elicitation_callback=nobody, read_timeout_seconds=SECONDS)
        )
        asked = await send(one, tool)
        answers = {key: accept(value=True) for key in asked["inputRequests"]}
        lost = asyncio.create_task(send(one, tool, answers, asked["requestState"]))
        log = till.with_name("log")
        await eventually(log.exists)
        first.send_signal(signal.SIGKILL)
        with pytest.raises(ConnectionError):
            await lost
        till.with_name("go").touch()
        # It waits until the lease of the dead worker has lapsed.
        result = said(await send(two, tool, answers, asked["requestState"]))
        if tool == "pay":
            assert (
                "the server running it died or could not store the outcome: whether it took effect is unknown" in result
            )
        else:
            assert result == "charged"
        assert len(log.read_text().splitlines()) == (1 if tool == "pay" else 2)
