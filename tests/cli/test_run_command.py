"""`bespeak run` as a program: over stdio, over HTTP, with several workers, told to stop, and started again."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from mcp_types import InputRequiredResult

from bespeak import Client, StdioServerParameters
from bespeak.client import streamable_http_client
from tests.answering import Person, accept, text
from tests.cli.programs import COMMAND, SECONDS, begun, free_port, listening, over_http
from tests.waiting import eventually

pytestmark = pytest.mark.timing

SHOP = """
import os, time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated
from bespeak import Elicit, MCPServer, Resolve

print("printed while loading")

@asynccontextmanager
async def lifespan(server):
    yield None
    Path(__file__).with_name("ended").touch()

mcp = MCPServer("shop", lifespan=lifespan)
other = MCPServer("other")

async def asked_by() -> int:
    return os.getpid()

async def confirm(asked: Annotated[int, Resolve(asked_by, once=True)]) -> Elicit[bool]:
    return Elicit("Sure?", bool)

@mcp.tool()
async def buy(asked: Annotated[int, Resolve(asked_by, once=True)], sure: Annotated[bool, Resolve(confirm)]) -> str:
    print("printed in a call")
    return f"{asked} {os.getpid()}"

@mcp.tool()
async def block() -> None:
    Path(__file__).with_name("blocked").touch()
    while not Path(__file__).with_name("go").exists():
        time.sleep(0.01)

if __name__ == "__main__":
    import sys
    mcp.run("streamable-http", port=int(sys.argv[1]))
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.py"
    file.write_text(SHOP)
    return file


def person() -> Person:
    return Person({"confirm": accept(value=True)})


def made(shop: Path) -> set[str]:
    """The files that the shop has made."""
    return {file.name for file in shop.parent.iterdir()}


# Over stdio


@pytest.mark.long
async def test_a_file_is_served_over_stdio_and_what_it_prints_stays_out_of_the_way(shop: Path) -> None:
    parameters = StdioServerParameters(COMMAND[0], [*COMMAND[1:], str(shop)])
    async with Client(parameters, elicitation_callback=person()) as client:
        assert client.server_info is not None
        assert client.server_info.name == "shop"
        asked, answered = text(await client.call_tool("buy")).split()
        assert asked == answered != str(os.getpid())
    assert "ended" in made(shop)


@pytest.mark.long
def test_a_wrong_target_ends_with_code_2_and_the_reason_and_writes_no_message(shop: Path) -> None:
    ended = subprocess.run([*COMMAND, f"{shop}:nothing"], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 2
    assert ended.stderr.endswith("has no MCPServer called 'nothing'; it has mcp, other\n")
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr


LIFE = """
from contextlib import asynccontextmanager
from bespeak import MCPServer

@asynccontextmanager
async def lifespan(server):
    raise ConnectionError("no database")
    yield

mcp = MCPServer("shop", lifespan=lifespan)
"""


def test_a_lifespan_that_fails_ends_with_code_3_the_reason_and_the_line_of_the_author(tmp_path: Path) -> None:
    (tmp_path / "life.py").write_text(LIFE)
    ended = subprocess.run([*COMMAND, "life.py"], cwd=tmp_path, capture_output=True, text=True, check=False, input="")
    assert ended.returncode == 3
    assert ended.stderr.splitlines() == [
        "bespeak: the lifespan of life.py failed: ConnectionError: no database",
        f'           at {tmp_path / "life.py"}:7: raise ConnectionError("no database")',
    ]


# Over HTTP


@pytest.mark.long
async def test_an_interrupt_from_the_keyboard_ends_a_script_in_order_and_without_a_traceback(shop: Path) -> None:
    async with listening(sys.executable, str(shop), "PORT") as program:
        program.signal(signal.SIGINT)
        said = await program.ended()
    assert "ended" in made(shop)
    assert "Traceback" not in said


# From process to process


async def finished(client: Client, asked: InputRequiredResult) -> list[str]:
    """The process that asked, and the one that ran the body."""
    assert asked.input_requests is not None
    answers = dict.fromkeys(asked.input_requests, accept(value=True))
    done = await client.session.call_tool("buy", input_responses=answers, request_state=asked.request_state)
    return text(done).split()


@pytest.mark.long
async def test_two_workers_finish_each_other_s_calls(shop: Path) -> None:
    # A client with one connection stays with the worker that took it. Whoever comes while that worker's loop is blocked
    # gets the other one.
    one_connection = httpx2.Limits(max_connections=1, keepalive_expiry=None)
    async with (
        listening(*over_http(shop, "--workers", "2")) as program,
        httpx2.AsyncClient(limits=one_connection, timeout=SECONDS) as first_http,
        httpx2.AsyncClient(limits=one_connection, timeout=SECONDS) as second_http,
    ):
        first = Client(streamable_http_client(program.url, http_client=first_http), elicitation_callback=person())
        second = Client(streamable_http_client(program.url, http_client=second_http), elicitation_callback=person())
        async with first:
            asked_by_first = await begun(first)
            blocking = asyncio.create_task(first.call_tool("block"))
            await eventually(shop.with_name("blocked").exists)
            async with second:
                asked_by_second = await begun(second)
                finished_by_second = await finished(second, asked_by_first)
                shop.with_name("go").touch()
                await blocking
                finished_by_first = await finished(first, asked_by_second)
        program.signal(signal.SIGTERM)
        said = await program.ended()
    assert len({*finished_by_first, *finished_by_second}) == 2
    assert finished_by_first == finished_by_second[::-1]
    assert "store" not in said, "no warning is printed: the workers share a store of this run"
    assert "Traceback" not in said
    assert program.process.returncode in (0, -signal.SIGTERM)


@pytest.mark.long
async def test_a_call_goes_on_after_a_restart_with_the_same_keys(shop: Path) -> None:
    port = free_port()
    keys = secrets.token_urlsafe(32)
    async with listening(*over_http(shop), port=port, BESPEAK_STATE_KEYS=keys) as program:
        async with Client(program.url, elicitation_callback=person()) as client:
            asked = await begun(client)
        program.signal(signal.SIGTERM)
        assert "State keys are configured, but no shared store is" in await program.ended()
    async with (
        listening(*over_http(shop), port=port, BESPEAK_STATE_KEYS=keys) as again,
        Client(again.url, elicitation_callback=person()) as client,
    ):
        assert await finished(client, asked) == [str(program.process.pid), str(again.process.pid)]
