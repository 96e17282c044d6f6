"""Running a server by its own methods: what uvicorn is told, what the options reach, what is refused, and how it ends."""

import asyncio
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from bespeak import Client, MCPError, MCPServer
from bespeak.server.running import http_server
from bespeak.transports.http.graceful_shutdown import GRACE_SECONDS
from bespeak.transports.http.modern_responses import BROKEN_OFF
from bespeak.transports.http.uvicorn_server import KEEP_ALIVE_SECONDS, uvicorn_options
from tests.answering import text
from tests.waiting import eventually

pytestmark = pytest.mark.timing


@pytest.fixture(autouse=True)
def loggers_as_before() -> Generator[None]:
    """uvicorn configures its own; the other tests read theirs."""
    named = [logging.getLogger(name) for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")]
    before = [(one, list(one.handlers), one.propagate, one.level) for one in named]
    yield
    for one, handlers, propagate, level in before:
        one.handlers, one.propagate = handlers, propagate
        one.setLevel(level)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def shop(events: list[str] | None = None) -> MCPServer[Any]:
    log = events if events is not None else []

    @asynccontextmanager
    async def lifespan(server: MCPServer[None]) -> AsyncGenerator[None]:
        log.append("began")
        yield
        log.append("ended")

    mcp = MCPServer[None]("shop", lifespan=lifespan)

    @mcp.tool()
    def hello() -> str:
        return "hello"

    @mcp.tool()
    async def nap() -> str:
        log.append("napping")
        await asyncio.sleep(30)
        return "rested"

    return mcp


async def answering(port: int, path: str = "/health") -> httpx2.Response:
    """What is at a path, as soon as there is somebody to ask."""
    async with httpx2.AsyncClient() as client:
        for _ in range(1000):
            try:
                return await client.get(f"http://127.0.0.1:{port}{path}")
            except httpx2.ConnectError:
                await asyncio.sleep(0.02)
    raise AssertionError("nobody listens")


# What uvicorn is told


def test_uvicorn_is_told_what_these_apps_want() -> None:
    config = http_server(shop().streamable_http_app(), "127.0.0.1", 8123, {}).config
    assert (config.host, config.port) == ("127.0.0.1", 8123)
    assert config.lifespan == "on"  # without it a server is never ready
    assert config.access_log is False
    assert config.proxy_headers is False
    assert config.timeout_keep_alive == KEEP_ALIVE_SECONDS
    assert config.timeout_graceful_shutdown == GRACE_SECONDS


def test_what_its_user_wants_of_uvicorn_comes_first() -> None:
    options = uvicorn_options("127.0.0.1", 8123, {"port": 9, "access_log": True, "log_level": "warning"})
    assert (options["port"], options["access_log"], options["log_level"]) == (9, True, "warning")
    assert options["host"] == "127.0.0.1"


def test_serving_over_http_without_uvicorn_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ImportError, match=r"serving over HTTP needs uvicorn: pip install 'bespeak\[http\]'"):
        shop().run("streamable-http")


# What is refused


@pytest.mark.parametrize("transport", ["sse", None])
def test_an_unknown_transport_is_refused(transport: Any) -> None:
    with pytest.raises(ValueError, match=f"transport must be 'stdio' or 'streamable-http', not {transport!r}"):
        shop().run(transport)


def test_stdio_takes_no_options() -> None:
    with pytest.raises(TypeError, match=r"run\('stdio'\) does not accept options, but got host, port; options are"):
        shop().run(host="127.0.0.1", port=1)


@pytest.mark.parametrize(
    ("option", "told"),
    [("prt", "did you mean 'port'?"), ("nonsense", "the options are event_store, health_path, host, ")],
)
def test_an_unknown_option_is_refused(option: str, told: str) -> None:
    expected = f"run('streamable-http') does not accept the option {option!r}; {told}"
    with pytest.raises(TypeError, match=re.escape(expected)):
        shop().run("streamable-http", **{option: 1})


@pytest.mark.parametrize("port", [-1, 65536, "8000", None])
def test_a_port_that_does_not_exist_is_refused(port: Any) -> None:
    with pytest.raises(ValueError, match=f"port must be a whole number from 0 to 65535, not {port!r}"):
        shop().run("streamable-http", port=port)


@pytest.mark.parametrize(
    ("transport", "instead"), [("stdio", "run_stdio_async"), ("streamable-http", "run_streamable_http_async")]
)
async def test_async_code_is_told_what_to_await_instead_of_run(transport: Any, instead: str) -> None:
    with pytest.raises(RuntimeError, match=rf"cannot be called in async code; write `await mcp\.{instead}\(\.\.\.\)`"):
        shop().run(transport)


def test_a_port_in_use_is_reported_before_the_lifespan_starts(capfd: pytest.CaptureFixture[str]) -> None:
    events: list[str] = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as caught:
            shop(events).run("streamable-http", port=port)
    assert caught.value.code == 3
    said = capfd.readouterr().err
    assert f"Cannot listen at http://127.0.0.1:{port}: the port is in use. Stop the program that uses it" in said
    assert "Traceback" not in said
    assert events == []


def test_a_lifespan_that_fails_ends_with_a_failure_that_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    @asynccontextmanager
    async def lifespan(server: MCPServer[None]) -> AsyncGenerator[None]:
        raise OSError("no database")
        yield

    with pytest.raises(SystemExit) as caught:
        MCPServer[None]("shop", lifespan=lifespan).run("streamable-http", port=free_port())
    assert caught.value.code not in (0, None)
    assert "OSError: no database" in capfd.readouterr().err


# Running and ending


@pytest.mark.long
async def test_run_listens_where_it_is_told_until_it_is_told_to_stop() -> None:
    events: list[str] = []
    port = free_port()
    # Nobody can signal another thread: it ends by itself, after the health check, the discovery and the call.
    options: Any = {"port": port, "streamable_http_path": "/here", "uvicorn_config": {"limit_max_requests": 3}}
    running = threading.Thread(target=shop(events).run, args=["streamable-http"], kwargs=options, daemon=True)
    running.start()
    assert (await answering(port)).status_code == 200
    async with Client(f"http://127.0.0.1:{port}/here") as client:
        assert text(await client.call_tool("hello")) == "hello"
    await asyncio.to_thread(running.join, 10)
    assert not running.is_alive()
    assert events == ["began", "ended"]


@pytest.mark.long
async def test_run_streamable_http_async_listens_with_the_options_of_the_app() -> None:
    port = free_port()
    running = asyncio.create_task(
        shop().run_streamable_http_async(
            # the health check, the discovery, and what a client tries then
            port=port,
            health_path="/alive",
            max_request_body_size=10,
            uvicorn_config={"limit_max_requests": 3},
        )
    )
    assert (await answering(port, "/alive")).status_code == 200
    with pytest.raises(MCPError, match="the body is larger than 10 bytes"):
        await Client(f"http://127.0.0.1:{port}/mcp").__aenter__()
    await asyncio.wait_for(running, 10)


@pytest.mark.long
async def test_a_signal_ends_it_and_a_call_that_takes_too_long_gets_an_answer() -> None:
    events: list[str] = []
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        port = free_port()
        mcp = shop(events)
        grace = {"timeout_graceful_shutdown": 0.1}
        running = asyncio.create_task(mcp.run_streamable_http_async(port=port, uvicorn_config=grace))
        await answering(port)
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            call = asyncio.create_task(client.call_tool("nap"))
            await eventually(lambda: "napping" in events)
            os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises(MCPError, match=BROKEN_OFF):
                await call
        await asyncio.wait_for(running, 10)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert events == ["began", "napping", "ended"]
    assert heard == [signal.SIGTERM]  # whoever listened before is told as well


CANCELLED = """
import asyncio, socket, sys
from contextlib import asynccontextmanager
from bespeak import MCPServer

@asynccontextmanager
async def lifespan(server):
    yield
    print("lifespan ended")

async def main(port):
    running = asyncio.create_task(MCPServer("shop", lifespan=lifespan).run_streamable_http_async(port=port))
    listening = False
    while not listening:
        await asyncio.sleep(0.02)
        with socket.socket() as probe:
            listening = probe.connect_ex(("127.0.0.1", port)) == 0
    running.cancel()
    await asyncio.wait({running}, timeout=5)
    with socket.socket() as again:
        print("port free" if again.connect_ex(("127.0.0.1", port)) else "port taken")
    sys.stdout.flush()

asyncio.run(asyncio.wait_for(main(int(sys.argv[1])), 10))
"""


@pytest.mark.long
def test_cancelling_it_ends_the_lifespan_and_frees_the_port() -> None:
    # in a process of its own: what it leaves behind must not be found by another test
    command = [sys.executable, "-c", CANCELLED, str(free_port())]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=15, check=False)
    assert ended.stdout.splitlines() == ["lifespan ended", "port free"]
