"""What a server does when its store cannot be used, at start and in the middle of a call, and which store it uses."""

import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import httpx2
import pytest
from mcp_types import CallToolResult, InputRequiredResult

from bespeak import Client, MCPServer
from tests.answering import accept, text
from tests.cli.programs import COMMAND, SECONDS, begun, free_port, listening
from tests.deployment import KEYS, person, port_of, serving, write_shop
from tests.state.stores.redis_servers import RedisServer, own_server
from tests.transports.http.legacy.older_client import Older, call

pytestmark = pytest.mark.timing

UNREACHABLE = "the server cannot use the store that remembers which calls were approved, so this request ran nothing"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_shop(tmp_path)


@pytest.fixture
def redis(tmp_path: Path) -> Generator[RedisServer]:
    with own_server(tmp_path) as server:
        yield server


async def answered(client: Client, asked: InputRequiredResult) -> CallToolResult:
    """Send the answer to the question of `buy`, and return the result."""
    assert asked.input_requests is not None
    answers = dict.fromkeys(asked.input_requests, accept(value=True))
    return await client.session.call_tool("buy", input_responses=answers, request_state=asked.request_state)


# In the middle of a call


@pytest.mark.long
async def test_a_store_that_is_gone_lets_nothing_run_and_is_used_again_when_it_is_back(
    tmp_path_factory: pytest.TempPathFactory, shop: Path
) -> None:
    with own_server(tmp_path_factory.mktemp("lasting"), "--appendonly", "yes") as redis:
        await _lets_nothing_run(redis, shop)


async def _lets_nothing_run(redis: RedisServer, shop: Path) -> None:
    async with (
        listening(*serving(shop, redis.url), BESPEAK_STATE_KEYS=KEYS) as server,
        Client(server.url, elicitation_callback=person()) as client,
    ):
        asked = await begun(client)
        redis.stop()
        refused = await answered(client, asked)
        assert refused.is_error
        assert UNREACHABLE in text(refused)
        assert UNREACHABLE in text(await client.call_tool("buy"))
        assert not (shop.parent / "bought").exists()
        redis.start()
        assert not (await answered(client, asked)).is_error
        assert (shop.parent / "bought").read_text() == "x"


@pytest.mark.long
async def test_without_its_store_a_server_is_healthy_and_serves_what_needs_none(redis: RedisServer, shop: Path) -> None:
    async with (
        listening(*serving(shop, redis.url), BESPEAK_STATE_KEYS=KEYS) as server,
        Client(server.url, elicitation_callback=person()) as client,
        httpx2.AsyncClient() as http,
    ):
        older = Older(port_of(server))
        await older.initialize("2025-11-25")
        redis.stop()
        assert (await http.get(server.url.replace("/mcp", "/health"))).json() == {"status": "ok"}
        assert text(await client.call_tool("where")) == str(server.process.pid)
        refused = await older.post(call("where"))
        assert refused.status == 503
        assert refused.reason == "the server cannot reach the store that its workers share; try again later"
        redis.start()
        assert (await older.post(call("where"))).status == 404, "this Redis server keeps nothing on disk"
        await Older(older.port).initialize("2025-11-25")


# At start


def start(shop: Path, store: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a server that is expected not to start."""
    return subprocess.run(
        [*COMMAND, str(shop), "--store", store, *options],
        env={**os.environ, "BESPEAK_STATE_KEYS": KEYS},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(["--http"], id="http", marks=pytest.mark.long),
        pytest.param(["--http", "--workers", "2"], id="workers"),
        pytest.param([], id="stdio", marks=pytest.mark.long),
    ],
)
def test_a_store_that_cannot_be_reached_is_an_error_without_its_password(shop: Path, how: list[str]) -> None:
    address = f"127.0.0.1:{free_port()}/0"
    ended = start(shop, f"redis://app:secret@{address}", *how, *(["--port", str(free_port())] if how else []))
    assert ended.returncode == 3
    assert f"the server cannot start: the store redis://{address} cannot be used: " in ended.stderr
    assert "secret" not in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.long
def test_a_redis_server_that_may_drop_keys_is_refused(shop: Path) -> None:
    with own_server(shop.parent, "--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru") as redis:
        ended = start(shop, redis.url, "--http", "--port", str(free_port()))
    assert ended.returncode == 3
    assert "has the maxmemory-policy allkeys-lru" in ended.stderr
    assert "Set maxmemory-policy to noeviction" in ended.stderr


# Which store


def test_the_store_in_the_code_comes_before_the_one_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BESPEAK_STATE_KEYS", KEYS)
    monkeypatch.setenv("BESPEAK_STORE", f"sqlite:{tmp_path / 'shop.db'}")  # which --store sets
    assert MCPServer("shop").store_is_shared
    assert not MCPServer("shop", store="memory:").store_is_shared
