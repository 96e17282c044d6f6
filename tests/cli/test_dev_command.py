"""`bespeak dev`: what it refuses before it starts, and, as a program, its URLs, its lines and its restarts."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest

from bespeak import Client
from bespeak.cli import dev_command
from bespeak.cli.dev_command import Flags, develop
from bespeak.cli.dev_worker import serve_once
from bespeak.dev.source_files import SourceFiles
from bespeak.transports.interfaces import MissingExtra
from tests.answering import Person, accept, text
from tests.cli.conftest import ONE, Write
from tests.cli.programs import SECONDS, free_port
from tests.waiting import eventually

COMMAND = [sys.executable, "-m", "bespeak.cli", "dev"]
SHOP = """
from typing import Annotated
from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("shop")

async def sure(title: str) -> Elicit[bool]:
    return Elicit("Sure?", bool)

@mcp.tool()
async def buy(title: str, sure: Annotated[bool, Resolve(sure)]) -> str:
    return f"{title} at 1"
"""


BROKEN_LIFESPAN = """
from contextlib import asynccontextmanager

@asynccontextmanager
async def broken(server):
    raise OSError("no disk")
    yield
"""


class Idle:
    """A supervisor that does not start anything."""

    def __init__(self, start: Any, say: Any, source: SourceFiles) -> None:
        self.start = start

    def run(self, ready: Any) -> int:
        ready()
        return 0


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev_command, "Supervisor", Idle)
    monkeypatch.setattr(dev_command, "has_npx", lambda: False)


# Before it starts


def test_it_prints_the_full_urls_of_the_endpoint_and_of_the_page(
    idle: None, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    assert develop(Flags(str(write("one.py", ONE)), port, False)) == 0
    first, endpoint, page = capsys.readouterr().err.splitlines()
    assert first.startswith("bespeak: Serving ")
    assert first.endswith("one.py; it starts again when its source changes. Press Ctrl-C to stop.")
    assert endpoint.split() == ["MCP", "endpoint:", f"http://127.0.0.1:{port}/mcp"]
    found = re.fullmatch(rf" +Page: +http://127\.0\.0\.1:{port}/bespeak-dev/([\w-]+)/", page)
    assert found
    assert len(found[1]) == 32


class Terminal(StringIO):
    """A terminal of eighty columns."""

    def isatty(self) -> bool:
        return True


def test_at_a_terminal_each_url_stays_in_one_piece(idle: None, write: Write) -> None:
    port = free_port()
    with redirect_stderr(Terminal()) as stderr:
        develop(Flags(str(write("one.py", ONE)), port, False))
    endpoint, page = (line for line in stderr.getvalue().splitlines() if "http" in line)
    assert endpoint == f"         MCP endpoint: http://127.0.0.1:{port}/mcp"
    assert re.fullmatch(rf" {{9}}Page:         http://127\.0\.0\.1:{port}/bespeak-dev/[\w-]{{32}}/", page)


def test_where_node_is_installed_it_says_how_to_open_the_inspector(
    idle: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev_command, "has_npx", lambda: True)
    develop(Flags("server.py", free_port(), False))
    assert capsys.readouterr().err.endswith("\n         Inspector:    add --inspector to open the MCP Inspector\n")


def test_an_inspector_that_is_started_is_not_suggested(
    idle: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev_command, "has_npx", lambda: True)
    monkeypatch.setattr(dev_command, "find_npx", lambda: "npx")
    monkeypatch.setattr(dev_command, "Inspector", mock.Mock())
    develop(Flags("server.py", free_port(), True))
    assert "--inspector" not in capsys.readouterr().err


def test_each_run_has_another_token(idle: None, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    pages: set[str] = set()
    for _ in range(2):
        develop(Flags(str(write("one.py", ONE)), free_port(), False))
        pages.add(capsys.readouterr().err.split()[-1].rpartition("/bespeak-dev/")[2])
    assert len(pages) == 2


def test_a_port_in_use_is_reported_with_what_to_do(idle: None, capsys: pytest.CaptureFixture[str]) -> None:
    with dev_command.socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert develop(Flags("server.py", port, False)) == 3
    said = capsys.readouterr().err
    assert f"Cannot listen at http://127.0.0.1:{port}: the port is in use." in said
    assert "--port" in said


def test_without_uvicorn_it_says_how_to_install_it(
    idle: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise MissingExtra("serving over HTTP needs uvicorn: pip install 'bespeak[http]'")

    monkeypatch.setattr(dev_command, "require_uvicorn", missing)
    assert develop(Flags("server.py", None, False)) == 2
    assert capsys.readouterr().err == "bespeak: serving over HTTP needs uvicorn: pip install 'bespeak[http]'\n"


def test_without_httpx2_it_says_how_to_install_it(
    idle: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    assert develop(Flags("server.py", None, False)) == 2
    assert capsys.readouterr().err == "bespeak: the page of bespeak dev needs httpx2: pip install 'bespeak[http]'\n"


def test_without_node_there_is_no_inspector(
    idle: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert develop(Flags("server.py", None, True)) == 2
    assert "--inspector needs node 22.19 or newer, and there is no command npx" in capsys.readouterr().err


def test_the_inspector_is_started_when_the_server_serves_and_ended_with_it(
    idle: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, done = free_port(), list[str]()

    class Inspector:
        def __init__(self, npx: str, url: str) -> None:
            done.append(f"{npx} {url}")

        def stop(self) -> None:
            done.append("stopped")

    monkeypatch.setattr(dev_command, "find_npx", lambda: "npx")
    monkeypatch.setattr(dev_command, "Inspector", Inspector)
    assert develop(Flags("server.py", port, True)) == 0
    assert done == [f"npx http://127.0.0.1:{port}/mcp", "stopped"]


def test_a_process_is_started_with_the_socket_and_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Sequence[Any]] = []

    class Starting(Idle):
        def run(self, ready: Any) -> int:
            self.start(True)
            return 0

    monkeypatch.setattr(dev_command, "Supervisor", Starting)

    def start(*given: Any) -> None:
        started.append(given)

    monkeypatch.setattr(dev_command, "ServerProcess", start)
    port = free_port()
    develop(Flags("server.py:mcp", port, False))
    ((main, _, settings, first),) = started
    assert main is serve_once
    assert (settings.target, settings.port, first) == ("server.py:mcp", port, True)


# As a program


class Program:
    """`bespeak dev` in a process of its own, and what it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        assert process.stderr is not None
        self._reading = asyncio.create_task(asyncio.to_thread(self._read, process.stderr))

    def _read(self, stderr: Any) -> None:
        for line in stderr:
            self.lines.append(line.rstrip("\n"))

    async def printed(self, pattern: str) -> str:
        """Return the first line that matches, once there is one."""
        await eventually(lambda: any(re.search(pattern, line) for line in self.lines), SECONDS)
        return next(line for line in self.lines if re.search(pattern, line))

    async def url(self, what: str) -> str:
        return (await self.printed(f" {what}: ")).split()[-1]

    async def ended(self) -> int:
        code = await asyncio.to_thread(self.process.wait, SECONDS)
        await self._reading
        return code


def started(file: Path, *more: str) -> subprocess.Popen[str]:
    command = [*COMMAND, str(file), "--port", str(free_port()), *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@asynccontextmanager
async def running(file: Path, *more: str) -> AsyncGenerator[Program]:
    process = started(file, *more)
    program = Program(process)
    try:
        yield program
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        await program.ended()
        assert process.stderr is not None
        process.stderr.close()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.py"
    file.write_text(SHOP)
    return file


async def buy(program: Program) -> str:
    person = Person({"sure": accept(value=True)})
    async with Client(await program.url("MCP endpoint"), elicitation_callback=person) as client:
        return text(await client.call_tool("buy", {"title": "Dune"}))


def save(file: Path, source: str) -> None:
    """Save as editors do: write another file, and put it in the place of the old one."""
    beside = file.with_suffix(".tmp")
    beside.write_text(source)
    beside.replace(file)


async def state(page: str) -> dict[str, Any]:
    async with httpx2.AsyncClient(trust_env=False, timeout=SECONDS) as http:
        return json.loads((await http.get(f"{page}api/server")).content)


@pytest.mark.timing
@pytest.mark.long
async def test_a_change_of_the_source_is_served_at_the_same_urls(shop: Path) -> None:
    async with running(shop) as program:
        page = await program.url("Page")
        assert await buy(program) == "Dune at 1"
        before = await state(page)
        save(shop, SHOP.replace("at 1", "at 2"))
        await program.printed(r"shop\.py changed; the server starts again")
        assert await buy(program) == "Dune at 2"
        assert (await state(page))["started"] != before["started"]
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 0
    assert sum(" Page: " in line for line in program.lines) == 1
    assert "Traceback" not in "\n".join(program.lines)


@pytest.mark.timing
@pytest.mark.long
async def test_a_module_that_the_server_imports_counts_as_its_source(shop: Path) -> None:
    prices = shop.with_name("prices_of_shop.py")
    save(prices, "price = 1")
    save(shop, "from prices_of_shop import price\n" + SHOP.replace("at 1", "at {price}"))
    async with running(shop) as program:
        assert await buy(program) == "Dune at 1"
        save(prices, "price = 22")
        await program.printed("prices_of_shop.py changed")
        assert await buy(program) == "Dune at 22"


@pytest.mark.timing
@pytest.mark.long
async def test_a_file_that_breaks_is_explained_and_recovers_when_it_is_mended(shop: Path) -> None:
    async with running(shop) as program:
        page = await program.url("Page")
        assert await buy(program) == "Dune at 1"
        save(shop, SHOP + "\ndef (\n")
        assert "SyntaxError" in await program.printed("cannot be loaded")
        assert "SyntaxError" in (await state(page))["error"]
        save(shop, SHOP.replace("Annotated[bool, Resolve(sure)]", "Resolve(sure)"))
        await program.printed("sure.*Annotated")
        save(shop, SHOP.replace("at 1", "at 3"))
        await eventually_bought(program, "Dune at 3")
        assert (await state(page))["error"] is None
        assert program.process.poll() is None
    assert "Traceback" not in "\n".join(program.lines)


async def eventually_bought(program: Program, wanted: str) -> None:
    await eventually(lambda: sum("changed; the server starts again" in line for line in program.lines) >= 3, SECONDS)
    assert await buy(program) == wanted


@pytest.mark.timing
@pytest.mark.long
async def test_each_round_of_a_call_is_one_line_without_the_answer(shop: Path) -> None:
    save(shop, SHOP.replace("bool", "str").replace('"Sure?", str', '"Which card?", str'))
    person = Person({"sure": accept(value="card-4711")})
    async with running(shop) as program:
        async with Client(await program.url("MCP endpoint"), elicitation_callback=person) as client:
            await client.call_tool("buy", {"title": "Dune"})
        async with Client(await program.url("MCP endpoint"), elicitation_callback=person, mode="legacy") as client:
            await client.call_tool("buy", {"title": "Dune"})
        await eventually(lambda: sum("buy, round" in line for line in program.lines) >= 3)
    calls = [re.sub(r"\d+ ms", "N ms", line[9:]) for line in program.lines if re.match(r"\d\d:\d\d:\d\d ", line)]
    assert calls == [
        "buy, round 1: asked 1 question, N ms",
        "buy, round 2: done, N ms",
        "buy, round 1: done after 1 question, N ms",
    ]
    assert "4711" not in "\n".join(program.lines)


@pytest.mark.timing
@pytest.mark.long
async def test_a_process_that_dies_is_reported_and_comes_back_with_a_change(shop: Path) -> None:
    dying = SHOP + "\n@mcp.tool()\nasync def die() -> None:\n    import os\n    os._exit(7)\n"
    save(shop, dying)
    async with running(shop) as program:
        with pytest.raises(OSError, match="carried out is not known"):
            async with Client(await program.url("MCP endpoint")) as client:
                await client.call_tool("die")
        await program.printed("the server's process ended with code 7; it starts again when a file changes")
        save(shop, SHOP)
        assert await buy(program) == "Dune at 1"


@pytest.mark.timing
@pytest.mark.long
async def test_a_lifespan_that_fails_the_first_time_ends_it_as_it_ends_bespeak_run(shop: Path) -> None:
    save(shop, BROKEN_LIFESPAN + SHOP.replace('"shop")', '"shop", lifespan=broken)'))
    async with running(shop) as program:
        assert await program.ended() == 3
    assert "no disk" in "\n".join(program.lines)


@pytest.mark.timing
@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("shpo.py", "there is no file 'shpo.py' (did you mean 'shop.py'?)"),
        ("shop.py:nothing", "shop.py has no MCPServer called 'nothing'; it has mcp"),
        ("http://127.0.0.1:1/mcp", "is a URL, but this command needs a Python server to load"),
    ],
)
def test_a_wrong_target_ends_it_as_it_ends_bespeak_run(shop: Path, target: str, said: str) -> None:
    ended = {
        name: subprocess.run(
            [*COMMAND[:-1], name, target, *options],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            cwd=shop.parent,
        )
        for name, options in (("dev", ["--port", str(free_port())]), ("run", []))
    }
    assert said in ended["dev"].stderr
    assert ended["dev"].stderr == ended["run"].stderr
    assert ended["dev"].returncode == ended["run"].returncode == 2
