"""A server as a program on stdio (protocol section 22): only messages leave by standard output."""

import asyncio
import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from bespeak import MCPServer
from bespeak.server import running
from tests.transports.stdio.wire import Message, call, content, request

pytestmark = pytest.mark.timing

LOUD = """
import os, subprocess, sys
from bespeak import MCPServer

def shout(where):
    print("print", where)
    print("flush", where, flush=True)
    sys.stdout.write("half a line, ")
    sys.__stdout__.write("dunder " + where + "\\n")
    sys.stdout.buffer.write(b"buffer " + where.encode() + b"\\n")
    os.write(1, b"write " + where.encode() + b"\\n")
    os.system("echo system " + where)
    subprocess.run([sys.executable, "-S", "-c", "print('child " + where + "')"])

AT_IMPORT
mcp = MCPServer("loud")

@mcp.tool()
async def loud() -> str:
    shout("in a body")
    return "done"

@mcp.tool()
def loud_thread() -> str:
    shout("in a thread")
    return "done"

@mcp.tool()
def listen() -> list[str]:
    try:
        heard = input()
    except EOFError:
        heard = "nothing"
    return [heard, subprocess.run(["cat"], capture_output=True, text=True).stdout, os.read(0, 10).decode()]

if __name__ == "__main__":
    mcp.run()
"""
WAYS_OUT = ("print", "flush", "dunder", "buffer", "write", "system", "child")


class Program:
    """A server in a process of its own."""

    def __init__(self, *command: str) -> None:
        # Where Python holds nothing back, what a script prints before it runs its server is out of anybody's hands.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )

    def send(self, *messages: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self.process.stdin.flush()

    def next(self) -> Message:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith(b"{"), f"this is no message: {line!r}"
        return json.loads(line)

    def ask(self, message: Message) -> Message:
        self.send(message)
        return self.next()

    def end(self) -> tuple[bytes, str, int]:
        """What else it wrote, its errors, and its exit code, once its input is closed."""
        out, errors = self.process.communicate(timeout=15)
        return out, errors.decode(), self.process.returncode


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    programs: list[Program] = []

    def run(*before: str, at_import: str = "") -> Program:
        script = tmp_path / "loud.py"
        script.write_text(LOUD.replace("AT_IMPORT", at_import))
        programs.append(Program(*before, str(script)))
        return programs[-1]

    yield run
    for program in programs:
        with contextlib.suppress(OSError):
            program.process.kill()
        program.process.communicate()


Start = Callable[..., Program]


@pytest.mark.long
def test_what_authors_print_at_import_and_in_tools_does_not_get_between_the_messages(start: Start) -> None:
    program = start("-m", "bespeak.cli", "run", at_import='shout("at import")')
    assert program.ask(request(1, "server/discover"))["id"] == 1
    assert content(program.ask(call(2, "loud"))) == "done"
    assert content(program.ask(call(3, "loud_thread"))) == "done"
    rest, errors, code = program.end()
    assert (rest, code) == (b"", 0)
    for where in ("at import", "in a body", "in a thread"):
        for way in WAYS_OUT:
            assert f"{way} {where}" in errors


@pytest.mark.long
def test_a_script_may_print_before_it_runs_and_its_tools_have_no_standard_input(start: Start) -> None:
    program = start(at_import='print("print at import")')
    assert program.ask(call(1, "listen"))["result"]["structuredContent"] == {"result": ["nothing", "", ""]}
    rest, errors, code = program.end()
    assert (rest, code) == (b"", 0)
    assert "print at import" in errors


# In this process


@contextlib.contextmanager
def standing_in(stdin: int, stdout: int) -> Generator[None]:
    """Other files as standard input and output."""
    kept = os.dup(0), os.dup(1)
    try:
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        yield
    finally:
        for number, fd in enumerate(kept):
            os.dup2(fd, number)
            os.close(fd)


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """The server's input and output, the client's output and input."""
    server_in, client_out = os.pipe()
    client_in, server_out = os.pipe()
    ends = (server_in, server_out, client_out, client_in)
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


Pipes = tuple[int, int, int, int]


def loud() -> MCPServer[Any]:
    mcp = MCPServer[Any]("loud")

    @mcp.tool()
    async def shout() -> str:
        print("from print")
        os.write(1, b"from write\n")
        return "done"

    return mcp


def same_file(first: int, second: int) -> bool:
    return os.path.sameopenfile(first, second)


async def test_an_application_can_serve_on_stdio_and_has_it_back_afterwards(
    pipes: Pipes, capfd: pytest.CaptureFixture[str]
) -> None:
    server_in, server_out, client_out, client_in = pipes
    os.write(client_out, json.dumps(call(1, "shout")).encode() + b"\n")
    os.close(client_out)
    with standing_in(server_in, server_out):
        await asyncio.wait_for(loud().run_stdio_async(), 10)
        assert same_file(0, server_in)
        assert same_file(1, server_out)
    os.close(server_out)
    sent = os.read(client_in, 1 << 16).splitlines()
    assert [content(json.loads(line)) for line in sent] == ["done"]
    assert "from write" in capfd.readouterr().err


async def test_standard_input_and_output_are_given_back_though_the_server_fails(pipes: Pipes) -> None:
    server_in, server_out, _, client_in = pipes

    def make() -> MCPServer[Any]:
        os.write(1, b"on the way\n")
        raise OSError("no such module")

    with standing_in(server_in, server_out):
        with pytest.raises(OSError, match="no such module"):
            running.run_stdio(make)
        assert same_file(0, server_in)
        assert same_file(1, server_out)
    os.close(server_out)
    assert os.read(client_in, 100) == b""


async def test_a_server_may_run_in_a_thread_where_no_signal_can_be_handled(pipes: Pipes) -> None:
    server_in, server_out, client_out, client_in = pipes
    os.write(client_out, json.dumps(request(1, "server/discover")).encode() + b"\n")
    os.close(client_out)
    with standing_in(server_in, server_out):
        await asyncio.wait_for(asyncio.to_thread(loud().run), 10)
    assert json.loads(os.read(client_in, 1 << 16))["id"] == 1


async def test_somebody_at_a_terminal_is_told_what_it_waits_for(
    pipes: Pipes, capfd: pytest.CaptureFixture[str]
) -> None:
    _, server_out, _, client_in = pipes
    keyboard, terminal = pty.openpty()
    try:
        os.write(keyboard, json.dumps(request(1, "server/discover")).encode() + b"\n\x04")
        with standing_in(terminal, server_out):
            await asyncio.wait_for(loud().run_stdio_async(), 10)
        assert json.loads(os.read(client_in, 1 << 16))["id"] == 1
    finally:
        os.close(keyboard)
        os.close(terminal)
    said = "Waiting for MCP messages on standard input, one per line. Press Ctrl-D to stop."
    assert said in capfd.readouterr().err
