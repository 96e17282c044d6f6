"""Where a server says that it listens: the URL of its endpoint, at a terminal and in a file, for one process and for several."""

import asyncio
import logging
import socket
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.logging import DefaultFormatter

from bespeak import MCPServer
from bespeak.server.running import SHUTDOWN, http_server, serve_http
from bespeak.transports.http import uvicorn_server
from bespeak.transports.http.connection_limits import ConnectionLimits
from bespeak.transports.http.endpoint_line import EndpointLine
from bespeak.transports.http.uvicorn_server import run_workers
from tests.waiting import eventually

BOLD, NOT_BOLD = "\x1b[1m", "\x1b[0m"


def told(caplog: pytest.LogCaptureFixture, *, colours: bool = False) -> list[str]:
    """The lines about the address, as uvicorn writes them to a file or to a terminal."""
    formatter = DefaultFormatter("%(message)s", use_colors=colours)
    return [formatter.format(one) for one in caplog.records if "running on" in one.getMessage()]


async def served(mcp: MCPServer[Any], path: str, **options: Any) -> int:
    """Start a server, and stop it. Return its port."""
    app = mcp.streamable_http_app(streamable_http_path=path)
    server = http_server(app, "127.0.0.1", 0, {"log_config": None, **options}, path=path)
    task = asyncio.create_task(serve_http(server))
    await eventually(lambda: server.started)
    where = server.servers[0].sockets[0].getsockname()
    server.should_exit = True
    await asyncio.wait_for(task, 20)
    return where[1] if "uds" not in options else 0


@pytest.mark.timing
@pytest.mark.parametrize("path", ["/mcp", "/", "/shop/100%d"])
async def test_a_server_names_the_url_of_its_endpoint(caplog: pytest.LogCaptureFixture, path: str) -> None:
    caplog.set_level(logging.INFO)
    port = await served(MCPServer("shop"), path)
    url = f"http://127.0.0.1:{port}{path}"
    assert told(caplog) == [f"Uvicorn running on {url} (Press CTRL+C to quit)"]
    assert told(caplog, colours=True) == [f"Uvicorn running on {BOLD}{url}{NOT_BOLD} (Press CTRL+C to quit)"]


@pytest.mark.timing
async def test_a_socket_file_has_no_url(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.INFO)
    file = tmp_path / "s"
    await served(MCPServer("shop"), "/mcp", uds=str(file))
    assert told(caplog) == [f"Uvicorn running on unix socket {file} (Press CTRL+C to quit)"]


def nothing(_: object) -> None:
    pass


def test_workers_name_the_url_when_one_of_them_accepts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    before: list[str] = []

    def supervise(supervisor: Any) -> None:
        (listening,) = supervisor.sockets
        before.extend(told(caplog))
        assert isinstance(listening, socket.socket)
        listening.listen()
        supervisor.keep_subprocess_alive()

    monkeypatch.setattr(uvicorn_server.multiprocess.Multiprocess, "run", supervise)
    monkeypatch.setattr(uvicorn_server.multiprocess.Multiprocess, "keep_subprocess_alive", nothing)
    monkeypatch.setattr(uvicorn_server.multiprocess, "Process", uvicorn_server.multiprocess.Process)
    monkeypatch.setattr(uvicorn.Config, "configure_logging", nothing)
    run_workers("nowhere:app", 2, "127.0.0.1", 0, ConnectionLimits(), SHUTDOWN, path="/shop")
    (line,) = told(caplog)
    assert before == []
    assert line.startswith("Uvicorn running on http://127.0.0.1:")
    assert line.endswith("/shop (Press CTRL+C to quit)")


def test_other_lines_stay_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("bespeak.tests.endpoint")
    caplog.set_level(logging.INFO)
    with EndpointLine(log, "/mcp").shown():
        log.info("Started server process [%d]", 5)
        log.info("note:%d", 5)
    assert caplog.messages == ["Started server process [5]", "note:5"]
    assert log.filters == []
