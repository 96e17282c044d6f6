"""uvicorn as the server of a process: the first signal, the second, and workers. As a program: tests/test_stopping.py."""

import asyncio
import logging
import pickle
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from bespeak import Client, Elicit, MCPServer, Resolve
from bespeak.cli import workers
from bespeak.server.running import SHUTDOWN, end_program, http_server, run_http, serve_http
from bespeak.transports.http import graceful_shutdown, uvicorn_server
from bespeak.transports.http.connection_limits import ConnectionLimits
from bespeak.transports.http.uvicorn_server import H11Connection, HttpProtocols, HttpServer, Worker
from tests.answering import Person, accept
from tests.waiting import eventually
from tests.wires import Parser

pytestmark = [pytest.mark.timing, pytest.mark.skipif(sys.platform == "win32", reason="signals")]
CUT_OFF = "'buy' was approved and is cut off by a second interrupt; whether it took effect is unknown"


class Desk:
    """A server whose approved tool waits until it is let go, and whose lifespan may hang at its end."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.log: list[str] = []
        self.may_leave = asyncio.Event()
        if not hangs:
            self.may_leave.set()
        self.let_go = asyncio.Event()
        self.mcp = MCPServer[None]("desk", lifespan=self._lifespan)
        self.mcp.add_tool(self.buy)
        options = {"log_config": None}
        self.http = http_server(self.mcp.streamable_http_app(), "127.0.0.1", 0, options)

    @asynccontextmanager
    async def _lifespan(self, server: MCPServer[None]) -> AsyncGenerator[None]:
        yield
        await self.may_leave.wait()
        self.log.append("left")

    @staticmethod
    async def sure() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    async def buy(self, sure: Annotated[bool, Resolve(sure)]) -> str:
        self.log.append("begun")
        await self.let_go.wait()
        self.log.append("ended")
        return "bought"

    async def call(self) -> None:
        port = self.http.servers[0].sockets[0].getsockname()[1]
        person = Person({"sure": accept(value=True)})
        async with Client(f"http://127.0.0.1:{port}/mcp", elicitation_callback=person) as client:
            await client.call_tool("buy")


@pytest.fixture
def heard() -> Generator[list[int]]:
    """The signals that whoever listened before the server gets to hear."""
    heard: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda number, _: heard.append(number)) for number in numbers]
    yield heard
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@asynccontextmanager
async def serving(desk: Desk) -> AsyncGenerator[asyncio.Task[None]]:
    task = asyncio.create_task(serve_http(desk.http))
    await eventually(lambda: desk.http.started)
    yield task
    await asyncio.wait_for(task, 20)


@pytest.mark.long
async def test_the_first_signal_waits_for_an_approved_body(heard: list[int]) -> None:
    desk = Desk()
    async with serving(desk):
        call = asyncio.create_task(desk.call())
        await eventually(lambda: desk.log == ["begun"])
        signal.raise_signal(signal.SIGINT)
        await eventually(lambda: not desk.http.servers[0].is_serving())
        desk.let_go.set()
        await call
    assert desk.log == ["begun", "ended", "left"]
    assert (list(desk.http.ending.cut_off), heard) == ([], [signal.SIGINT])


@pytest.mark.long
async def test_a_second_interrupt_cuts_an_approved_body_off_and_still_leaves_the_lifespan(
    heard: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    desk = Desk()
    async with serving(desk):
        call = asyncio.create_task(desk.call())
        await eventually(lambda: desk.log == ["begun"])
        signal.raise_signal(signal.SIGINT)
        await eventually(lambda: not desk.http.servers[0].is_serving())
        signal.raise_signal(signal.SIGINT)
        await asyncio.wait({call})
        assert call.exception() is not None
    assert desk.log == ["begun", "left"]
    assert (desk.http.ending.cut_off, heard) == (["buy"], [signal.SIGINT] * 2)
    assert caplog.messages == [CUT_OFF], "and no traceback of the request that was cancelled"


@pytest.mark.long
async def test_two_interrupts_at_once_are_two(heard: list[int]) -> None:
    desk = Desk()
    async with serving(desk):
        call = asyncio.create_task(desk.call())
        await eventually(lambda: desk.log == ["begun"])
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
        await asyncio.wait({call})
        assert call.exception() is not None
    assert (desk.log, desk.http.ending.cut_off) == (["begun", "left"], ["buy"])


@pytest.mark.long
async def test_a_lifespan_that_hangs_does_not_survive_a_second_interrupt(
    heard: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graceful_shutdown, "FORCED_SECONDS", 0.5)
    desk = Desk(hangs=True)
    async with serving(desk) as task:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
        await asyncio.wait_for(asyncio.wait({task}), 10)
    assert desk.http.force_exit
    assert desk.log == []
    desk.may_leave.set()  # so that nothing is left behind
    await eventually(lambda: desk.log == ["left"])


def test_a_second_interrupt_ends_an_app_that_does_not_start() -> None:
    server = HttpServer(uvicorn.Config("nowhere:app", log_config=None), SHUTDOWN)
    server.handle_exit(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        server.handle_exit(signal.SIGINT, None)


def test_a_second_termination_changes_nothing() -> None:
    # a supervisor and a terminal may both send one
    server = HttpServer(uvicorn.Config("nowhere:app", log_config=None), SHUTDOWN)
    server.started = True
    for _ in range(2):
        server.handle_exit(signal.SIGTERM, None)
    assert (server.should_exit, server.ending.hurried) == (True, False)


@pytest.fixture
def terminable(heard: list[int]) -> Generator[None]:
    """SIGTERM as it is in a new process: it would kill it."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


async def terminated(desk: Desk) -> None:
    async def terminate() -> None:
        await eventually(lambda: desk.http.started)
        signal.raise_signal(signal.SIGTERM)

    terminating = asyncio.create_task(terminate())
    # Not in a task of its own, whose exception nobody would retrieve: it would be logged in the middle of another test.
    await serve_http(desk.http)
    await terminating


@pytest.mark.usefixtures("terminable")
@pytest.mark.long
def test_a_termination_that_nobody_else_handles_ends_whoever_awaits_the_server() -> None:
    desk: list[Desk] = []

    async def main() -> None:
        desk.append(Desk())
        await terminated(desk[0])

    with pytest.raises(SystemExit) as ended:
        asyncio.run(main())
    assert ended.value.code == 128 + signal.SIGTERM
    assert desk[0].log == ["left"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.usefixtures("terminable")
@pytest.mark.long
def test_in_a_worker_a_late_termination_changes_nothing() -> None:
    async def main() -> None:
        desk = Desk()
        desk.http.ending.is_last = True
        await terminated(desk)

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


# The status


class Ran(HttpServer):
    """A server that has run before it is run."""

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        raise KeyboardInterrupt


def test_a_program_whose_server_ended_in_order_goes_on() -> None:
    run_http(Ran(uvicorn.Config("nowhere:app", log_config=None), SHUTDOWN))
    end_program([])


def test_a_program_that_has_cut_an_approved_call_off_ends_with_an_error() -> None:
    server = Ran(uvicorn.Config("nowhere:app", log_config=None), SHUTDOWN)
    server.ending.cut_off = ["buy"]
    with pytest.raises(SystemExit) as ended:
        run_http(server)
    assert ended.value.code == 1


# Workers


def test_a_worker_s_server_is_one_of_these() -> None:
    worker = Worker(SHUTDOWN, set(), uvicorn.Config("nowhere:app", log_config=None), [])
    assert isinstance(worker.server, HttpServer)
    assert worker.server is worker.server
    assert worker.server.ending.is_last
    worker.parent_conn.close()
    worker.child_conn.close()


@pytest.mark.parametrize(("statuses", "status"), [({0}, None), ({0, 1}, 1), ({3, 1}, 3), ({-9, 0}, None)])
def test_the_status_of_workers_is_that_of_their_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, statuses: set[int], status: int | None
) -> None:
    def ran(*_: object) -> Any:
        return statuses

    monkeypatch.setattr(uvicorn_server, "run_workers", ran)
    monkeypatch.setenv("BESPEAK_STATE_KEYS", "a-key-for-this-test-only-long-enough")
    for name in ("TARGET", "HOST", "PORT", "PATH"):
        monkeypatch.setenv(f"BESPEAK_RUN_{name}", "")  # which the run sets, and monkeypatch takes back

    def loaded(_: str) -> MCPServer[Any]:
        return MCPServer("shop")

    monkeypatch.setenv("BESPEAK_STORE", f"sqlite:{tmp_path / 'shop.db'}")
    settings = workers.Settings("shop.py", "127.0.0.1", 0, "/mcp")
    if status is None:
        return workers.run(settings, 2, loaded)
    with pytest.raises(SystemExit) as ended:
        workers.run(settings, 2, loaded)
    assert ended.value.code == status
    return None


# Protocols


@pytest.mark.parametrize("parser", ["h11", "httptools"])
def test_protocols_are_made_anew_in_a_worker(parser: Parser) -> None:
    protocols = HttpProtocols(ConnectionLimits(max_connections=7), parser)
    assert pickle.loads(pickle.dumps(protocols)).table.most == 7


async def test_without_httptools_there_is_h11(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn.protocols.http.httptools_impl", None)
    config = uvicorn.Config(MCPServer("shop").streamable_http_app(), http="h11", log_config=None)
    made = HttpProtocols(ConnectionLimits())(config, ServerState(), {})
    assert isinstance(made, H11Connection)
    with pytest.raises(ImportError):
        HttpProtocols(ConnectionLimits(), "httptools")
