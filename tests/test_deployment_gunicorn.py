"""gunicorn, which forks its workers: with `--preload` after the server was made, and perhaps used."""

import os
import signal
import sys
from pathlib import Path

import pytest
from mcp_types import ElicitResult, InputRequiredResult

from bespeak import Client, MCPError
from tests.answering import accept, text
from tests.cli.programs import listening
from tests.deployment import KEYS
from tests.state.stores.redis_servers import own_server

pytestmark = [pytest.mark.timing, pytest.mark.long]

WORKERS = 4

APP = """
import asyncio, os, sys
from pathlib import Path
from typing import Annotated
from bespeak import Client, Elicit, MCPServer, Resolve

mcp = MCPServer("shop")
HERE = Path(__file__).parent

async def confirm(item: str) -> Elicit[bool]:
    return Elicit(f"Buy {item}?", bool)

@mcp.tool()
async def buy(item: str, sure: Annotated[bool, Resolve(confirm)]) -> str:
    with (HERE / item).open("a") as file:
        file.write("x")
    return str(os.getpid())

@mcp.on_request
async def note(request, proceed):
    with (HERE / "pids").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    return await proceed()

async def yes(context, params):
    from mcp_types import ElicitResult
    return ElicitResult(action="accept", content={"value": True})

async def self_test():
    async with Client(mcp, elicitation_callback=yes) as client:
        assert not (await client.call_tool("buy", {"item": "warm-up"})).is_error

if "WARM_UP" in os.environ:
    asyncio.run(self_test())
app = mcp.streamable_http_app()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


async def yes(context: object, params: object) -> ElicitResult:
    return accept(value=True)


async def answer(url: str, asked: InputRequiredResult) -> str:
    """Send the answer, and return what the tool returned, or that it was refused."""
    answers = {key: accept(value=True) for key in asked.input_requests or {}}
    async with Client(url, mode="2026-07-28", elicitation_callback=yes) as client:
        try:
            result = await client.session.call_tool(
                "buy", {"item": "book"}, input_responses=answers, request_state=asked.request_state
            )
            return text(result)
        except MCPError as error:
            return f"refused: {error.code}"


async def buy(shop: Path, *options: str, **environment: str) -> list[str]:
    """Ask one worker, send the answer to each of them, and return what they said."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "gunicorn",
        *options,
        "--workers",
        str(WORKERS),
        "--chdir",
        str(shop),
    ]
    command += [
        "--bind",
        "127.0.0.1:PORT",
        "--worker-class",
        "uvicorn_worker.UvicornWorker",
        "--log-level",
        "error",
        "app:app",
    ]
    async with listening(*command, port=None, **environment) as server:
        async with Client(server.url, mode="2026-07-28", elicitation_callback=yes) as client:
            asked = await client.session.call_tool("buy", {"item": "book"}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        said: list[str] = []
        stopped: list[int] = []
        try:
            for _ in range(WORKERS):
                said.append(await answer(server.url, asked))
                pid = int((shop / "pids").read_text().split()[-1])
                os.kill(pid, signal.SIGSTOP)  # the next connection goes to another one
                stopped.append(pid)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
    assert len(set(stopped)) == WORKERS
    return said


@pytest.mark.parametrize("warm_up", [{}, {"WARM_UP": "1"}], ids=["cold", "warm"])
@pytest.mark.parametrize("options", [(), ("--preload",)], ids=["fork", "preload"])
async def test_without_configured_keys_an_approval_is_spent_by_the_worker_that_asked_and_by_no_other(
    shop: Path, options: tuple[str, ...], warm_up: dict[str, str]
) -> None:
    said = await buy(shop, *options, **warm_up)
    assert said.count("refused: -32602") == WORKERS - 1
    assert (shop / "book").read_text() == "x"


@pytest.mark.parametrize("warm_up", [{}, {"WARM_UP": "1"}], ids=["cold", "warm"])
@pytest.mark.parametrize("store", ["sqlite", "redis"])
async def test_with_keys_and_a_shared_store_all_preloaded_workers_spend_an_approval_once(
    shop: Path, tmp_path_factory: pytest.TempPathFactory, store: str, warm_up: dict[str, str]
) -> None:
    with own_server(tmp_path_factory.mktemp("redis")) as redis:
        url = redis.url if store == "redis" else f"sqlite:{shop}/store.db"
        said = await buy(shop, "--preload", BESPEAK_STATE_KEYS=KEYS, BESPEAK_STORE=url, **warm_up)
    assert len(set(said)) == 1
    assert said[0].isdigit()
    assert (shop / "book").read_text() == "x"
