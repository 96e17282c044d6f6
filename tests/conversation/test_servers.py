"""Servers are started and reached by a command, a URL, both, or as an object in this process; and they are ended."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation import servers
from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.server_targets import Target
from bespeak.conversation.servers import Unreachable, reach
from bespeak.testing.suite.variables import lookup, text_filler
from tests.testing.canned import Json
from tests.waiting import eventually

pytestmark = pytest.mark.timing
MESSAGES = """
import json, os, pathlib, sys, time
pathlib.Path(os.environ.get("PIDS", "pids")).open("a").write(f"{os.getpid()}\\n")
def answer(message, **more):
    told = {"resultType": "complete", "content": [], "ttlMs": 0, "cacheScope": "private", "tools": [],
            "supportedVersions": ["2026-07-28"], "capabilities": {}}
    seen = {"env": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv[1:], "python": sys.executable, **more}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {**told, "structuredContent": seen}})
"""
STDIO = f"""{MESSAGES}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(answer(message), flush=True)
"""
HTTP = f"""{MESSAGES}
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = answer(message, headers={{k.lower(): v for k, v in self.headers.items()}}, path=self.path).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
URL = "http://127.0.0.1:${port}/mcp"


def stray(line: bytes) -> None:
    raise AssertionError(f"nothing should be written like {line!r}")


def filler(**environment: str) -> Callable[[str], str]:
    return text_filler(lookup(environment, {}), port=True)


async def seen(server: Target, folder: Path, fill: Callable[[str], str] | None = None, timeout: float = 10) -> Json:
    """What a server sees of its world."""
    async with reach(server, folder, fill or filler(), stray) as reached:
        async with Connection(reached.transport, "2026-07-28", EVERYTHING, timeout) as connection:
            received = await connection.send("tools/call", {"name": "look", "arguments": {}}, nobody)
        return received.envelope["result"]["structuredContent"]


async def nobody(question: Any) -> Any:
    raise AssertionError("nobody is asked")


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Path]:
    (tmp_path / "stdio.py").write_text(STDIO)
    (tmp_path / "http_.py").write_text(HTTP)
    yield tmp_path
    for pid in pids(tmp_path):
        if alive(pid):  # a test has failed, and leaves nobody behind all the same
            os.kill(pid, signal.SIGKILL)


def same(one: str, other: str | Path) -> bool:
    return Path(one).samefile(other)


def pids(folder: Path) -> list[int]:
    path = folder / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has asked after yet does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


# A command over stdio


async def test_a_command_is_run_in_the_suites_folder_with_its_arguments(folder: Path) -> None:
    found = await seen(Target(command=["python", "stdio.py", "a b", "${env:WORD}"]), folder, filler(WORD="c"))
    assert found["argv"] == ["a b", "c"]
    assert same(found["cwd"], folder)


async def test_a_command_is_run_where_cwd_says_seen_from_the_suite(folder: Path) -> None:
    (folder / "inner").mkdir()
    found = await seen(Target(command=["python", "../stdio.py"], cwd="${env:WHERE}"), folder, filler(WHERE="inner"))
    assert same(found["cwd"], folder / "inner")


async def test_a_command_gets_what_env_says_and_little_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET_OF_OURS", "hidden")
    server = Target(command=["python", "stdio.py"], env={"TOKEN": "x-${env:TOKEN}", "EMPTY": ""})
    env = (await seen(server, folder, filler(TOKEN="t")))["env"]
    assert (env["TOKEN"], env["EMPTY"]) == ("x-t", "")
    assert "A_SECRET_OF_OURS" not in env


@pytest.mark.parametrize("given", [None, "/somewhere/else"])
async def test_what_this_python_has_installed_comes_first(folder: Path, given: str | None) -> None:
    server = Target(command=["python", "stdio.py"], env={} if given is None else {"PATH": given})
    found = await seen(server, folder)
    first, *others = found["env"]["PATH"].split(os.pathsep)
    assert Path(first) == Path(sys.executable).parent
    assert others == (given or os.environ["PATH"]).split(os.pathsep)
    assert same(found["python"], sys.executable)


async def test_a_command_with_a_slash_is_found_from_its_folder(folder: Path) -> None:
    (folder / "inner").mkdir()
    program = folder / "inner" / "run"
    program.write_text(f"#!{sys.executable}\n{STDIO}")
    program.chmod(0o755)
    assert (await seen(Target(command=["inner/run"]), folder))["argv"] == []
    assert (await seen(Target(command=["./run"], cwd="inner"), folder))["argv"] == []


async def test_a_folder_with_the_name_of_a_command_is_skipped(folder: Path) -> None:
    first, second = folder / "first", folder / "second"
    (first / "serve").mkdir(parents=True)
    second.mkdir()
    (second / "serve").write_text(f"#!{sys.executable}\n{STDIO}")
    (second / "serve").chmod(0o755)
    server = Target(command=["serve", "here"], env={"PATH": f"{first}{os.pathsep}{second}"})
    assert (await seen(server, folder))["argv"] == ["here"]


async def test_a_command_over_stdio_is_ended_with_its_connection(folder: Path) -> None:
    await seen(Target(command=["python", "stdio.py"]), folder)
    (pid,) = pids(folder)
    assert not alive(pid)


# A command that listens


async def test_a_host_that_answers_no_attempt_to_connect_does_not_keep_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "KNOCK_SECONDS", 0.02)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        taken = [socket.socket() for _ in range(4)]
        for one in taken:  # once the queue is full, the next attempts get no answer at all
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        target = Target(["python", "-c", "pass"], url=f"http://127.0.0.1:{full.getsockname()[1]}/mcp")
        with pytest.raises(Unreachable, match="the server exited with code 0"):
            async with reach(target, tmp_path, str, stray):
                pass
        for one in taken:
            one.close()


async def test_a_command_with_a_url_is_started_and_then_reached_on_a_free_port(folder: Path) -> None:
    server = Target(
        command=["python", "http_.py", "${port}"],
        env={"PORT": "${port}"},
        url=URL,
        headers={"X-Token": "x-${env:TOKEN}-${port}"},
    )
    found = await seen(server, folder, filler(TOKEN="t"))
    (port,) = found["argv"]
    assert found["env"]["PORT"] == port
    assert (found["headers"]["x-token"], found["path"]) == (f"x-t-{port}", "/mcp")
    (pid,) = pids(folder)
    assert not alive(pid)


async def test_a_url_that_is_in_use_is_reported_without_its_secrets(folder: Path) -> None:
    other = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with other:
        port = other.sockets[0].getsockname()[1]
        server = Target(
            command=["python", "http_.py", str(port)], url=f"http://n:hunter2@127.0.0.1:{port}/mcp?k=hunter2"
        )
        with pytest.raises(Unreachable) as caught:
            await seen(server, folder)
    assert str(caught.value) == (
        f"another program already listens at http://127.0.0.1:{port}/mcp; stop it, or use ${{port}} for a free port"
    )


async def test_two_servers_get_two_ports(folder: Path) -> None:
    server = Target(command=["python", "http_.py", "${port}"], url=URL)
    first, second = await asyncio.gather(seen(server, folder), seen(server, folder))
    assert first["argv"] != second["argv"]


@pytest.mark.long
async def test_a_server_that_does_not_want_to_end_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "LEAVE_SECONDS", 0.2)
    (folder / "deaf.py").write_text(f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{HTTP}")
    await seen(Target(command=["python", "deaf.py", "${port}"], url=URL), folder)
    (pid,) = pids(folder)
    assert not alive(pid)


LEAVING = "sleep 60 & echo $! > pids; exec python"


@pytest.mark.parametrize(
    "server",
    [
        Target(command=["sh", "-c", f"{LEAVING} stdio.py"]),
        Target(command=["sh", "-c", f"{LEAVING} http_.py $0", "${port}"], url=URL),
    ],
    ids=["stdio", "http"],
)
async def test_what_a_server_has_started_itself_is_ended_with_it(folder: Path, server: Target) -> None:
    await seen(server, folder)
    first, second = pids(folder)
    await eventually(lambda: not alive(first) and not alive(second))


async def test_a_server_is_ended_when_its_test_is_cancelled(folder: Path) -> None:
    server = Target(command=["python", "http_.py", "${port}"], url=URL)

    async def stay() -> None:
        async with reach(server, folder, filler(), stray):
            await asyncio.Event().wait()

    staying = asyncio.create_task(stay())
    await eventually(lambda: pids(folder))
    staying.cancel()
    await asyncio.wait({staying})
    await eventually(lambda: not alive(pids(folder)[0]))


# An object in this process


SERVER = """
from bespeak import MCPServer
{name} = MCPServer("desk")

@{name}.tool()
async def look() -> dict[str, str]:
    return {{"where": "here"}}
"""


@pytest.mark.parametrize("target", ["{module}.py", "{module}.py:desk", "{module}:desk"])
async def test_an_object_in_a_file_beside_the_suite_is_reached(tmp_path: Path, target: str) -> None:
    module = f"desk_{target.count('.py')}{target.count(':')}"
    (tmp_path / f"{module}.py").write_text(SERVER.format(name="desk"))
    assert await seen(Target(python=target.format(module=module)), tmp_path) == {"where": "here"}


# Servers that cannot be reached


UNREACHABLE: list[tuple[Json, str]] = [
    (
        {"python": "nowhere:mcp"},
        "there is no file 'nowhere'; a target is FILE[:OBJECT] or MODULE[:OBJECT], such as server.py:mcp",
    ),
    ({"python": "nowhere.py"}, "there is no file 'nowhere.py'"),
    ({"python": "raises_a.py"}, "raises_a.py cannot be loaded: ZeroDivisionError: division by zero"),
    ({"python": "broken_a.py:mcp"}, "broken_a.py cannot be loaded: SyntaxError: "),
    ({"python": "empty_a.py"}, "empty_a.py has no MCPServer at its top level"),
    ({"python": "empty_b.py:mcp"}, "empty_b.py has no MCPServer called 'mcp'; it has none"),
    ({"python": "several_a.py"}, "several_a.py has several servers (one, two); name one, for example "),
    ({"url": "nonsense"}, "the URL of the server is not valid; write one like https://mcp.example.com/mcp"),
    (
        {"url": "http://127.0.0.1:1/mcp", "headers": {"X": "a\nb"}},
        "the value of the header 'X' is not one line of plain",
    ),
    (
        {"command": ["sh", "-c", "echo no port; exit 4"], "url": URL},
        "the server exited with code 4; it printed:\n  no port",
    ),
    (
        {"command": ["sh", "-c", "echo hm; exec sleep 9"], "url": URL},
        "the server did not start to listen within 0.5 s; it printed:\n  hm",
    ),
    ({"command": ["nobody-has-this"], "url": URL}, "there is no command 'nobody-has-this'"),
    ({"command": ["sh"], "url": URL, "cwd": "nowhere"}, "/nowhere' to run the command in (cwd)"),
    ({"command": ["sh", "\0"], "url": URL}, "cannot start the server "),
    ({"command": ["sleep", "9"], "url": "http://127.0.0.1:99999/mcp"}, "the URL of the server is not valid"),
    ({"command": ["sleep", "9"], "url": "nonsense"}, "the URL of the server is not valid"),
]


@pytest.mark.parametrize(("server", "message"), UNREACHABLE, ids=lambda one: str(one)[:60])
async def test_a_server_that_cannot_be_reached_says_why(
    tmp_path: Path, server: Json, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "READY_SECONDS", 0.5)
    (tmp_path / "raises_a.py").write_text("1 / 0")
    (tmp_path / "broken_a.py").write_text("def")
    for name in ("empty_a.py", "empty_b.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "several_a.py").write_text(SERVER.format(name="one") + SERVER.format(name="two"))
    with pytest.raises(Unreachable) as raised:
        async with reach(Target(**server), tmp_path, filler(), stray):
            pass
    assert message in str(raised.value)
    assert "PosixPath" not in str(raised.value)


def test_a_file_that_exits_while_it_is_loaded_is_a_server_that_cannot_be_reached(tmp_path: Path) -> None:
    (tmp_path / "exits_a.py").write_text("raise SystemExit(3)")

    async def reached() -> None:
        async with reach(Target(python="exits_a.py"), tmp_path, filler(), stray):
            pass

    with pytest.raises(Unreachable, match=r"exits_a\.py cannot be loaded: it ends the program \(SystemExit: 3\)"):
        asyncio.run(reached())


async def test_only_the_end_of_what_a_server_printed_is_shown(folder: Path) -> None:
    talks = "import sys; print(*range(100_000), 'the end', sep='\\n'); sys.exit(1)"
    with pytest.raises(Unreachable) as raised:
        await seen(Target(command=["python", "-c", talks, "${port}"], url=URL), folder)
    assert str(raised.value).endswith("\n  99999\n  the end")
    assert len(str(raised.value)) < 3000


async def test_the_stderr_of_a_server_is_available(folder: Path) -> None:
    (folder / "talks.py").write_text(f"import sys\nprint('öffnet', file=sys.stderr, flush=True)\n{STDIO}")
    server = Target(command=["python", "talks.py"], env={"PYTHONIOENCODING": "utf-8"})
    async with reach(server, folder, filler(), stray) as reached, Connection(reached.transport, "auto", {}, 10):
        assert reached.printed() == "öffnet"
