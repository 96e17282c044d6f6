"""Runs every pairing of a client and a server over both transports, and says what held.

`python -m interop.run` from the root of the project; `make interop` installs the peers before.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

from interop.arguments import FILES
from interop.bookshop import PROGRAMS as BOOKSHOP

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS = 30.0
CLIENT_SECONDS = 120.0
LEAVE_SECONDS = 15.0
POLL_SECONDS = 0.05
AT_ONCE = 2
LEGACY = "2025-11-25"


class Failed(Exception):
    """A pairing did not hold. Says what was printed on the way."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that can be started."""

    name: str
    stdio: list[str]
    http: Callable[[int], list[str]]
    """How it is started on a port."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """A client at a server."""

    client: str
    command: list[str]
    server: Server
    over_http: bool

    def __str__(self) -> str:
        return f"{self.client} -> {self.server.name}, {'HTTP' if self.over_http else 'stdio'}"

    async def run(self) -> list[str]:
        """What held. Raises `Failed`."""
        if not self.over_http:
            return await _visit([*self.command, *self.server.stdio])
        port = _free_port()
        async with _started(self.server.http(port)) as output:
            await _ready(port, output)
            try:
                return await _visit([*self.command, f"http://127.0.0.1:{port}/mcp"])
            except Failed as failure:
                raise Failed(f"{failure}\nthe server printed:\n{output.text()}") from None


class Output:
    """A child, and what it has printed so far."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._printed = bytearray()
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None, "it was started with a pipe"
        while piece := await self.process.stdout.read(65536):
            self._printed += piece

    def text(self) -> str:
        return self._printed.decode(errors="replace").strip()


@contextlib.asynccontextmanager
async def _started(command: list[str]) -> AsyncGenerator[Output]:
    """A server in a process group of its own, which is gone at the end whatever happens."""
    output = Output(await _spawn(command, stderr=STDOUT))
    process = output.process
    try:
        yield output
        _signal(process, signal.SIGTERM)
        async with asyncio.timeout(LEAVE_SECONDS):
            await process.wait()
    except TimeoutError:
        raise Failed(f"the server did not leave in {LEAVE_SECONDS:.0f} seconds\n{output.text()}") from None
    finally:
        _signal(process, signal.SIGKILL)  # also what it left behind in its group
        await process.wait()
        output.reading.cancel()


async def _spawn(command: list[str], stderr: int) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, stdin=DEVNULL, stdout=PIPE, stderr=stderr, start_new_session=True
        )
    except OSError as error:
        raise Failed(f"cannot start {command[0]}: {error}; `make interop` installs what is needed") from None


def _signal(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def _ready(port: int, output: Output) -> None:
    """Wait until something listens."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            while output.process.returncode is None:
                with contextlib.suppress(ConnectionError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    await writer.wait_closed()
                    return
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise Failed(f"the server did not listen in {READY_SECONDS:.0f} seconds\n{output.text()}") from None
    await output.reading
    raise Failed(f"the server exited with code {output.process.returncode}\n{output.text()}")


async def _visit(command: list[str]) -> list[str]:
    """Run a client to its end. What it says held, one a line."""
    process = await _spawn(command, stderr=PIPE)
    try:
        async with asyncio.timeout(CLIENT_SECONDS):
            stdout, stderr = await process.communicate()
    except TimeoutError:
        raise Failed(f"the client did not end in {CLIENT_SECONDS:.0f} seconds") from None
    finally:
        _signal(process, signal.SIGKILL)
        await process.wait()
    held = stdout.decode(errors="replace").splitlines()
    if process.returncode != 0 or not held:
        printed = stderr.decode(errors="replace").strip()
        raise Failed(
            f"the client exited with code {process.returncode}; held: {', '.join(held) or 'nothing'}\n{printed}"
        )
    return held


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def pairings(peer: str, node: str) -> list[Pairing]:
    """Each of our two sides with each of theirs, in both eras."""
    run = [sys.executable, "-m", "bespeak.cli", "run"]
    official = [peer, "-m", "interop.official_server"]
    ours = _server("our server", [*run, FILES["refund_desk"]], "--http", "--port")
    patient = _server("our patient server", [*run, "interop/patient_desk.py"], "--http", "--port")
    python = _server("Python server", [*official, FILES["refund_desk"]])
    typescript = _server("TypeScript server", [node, "interop/server.mjs"])
    typescript_1 = _server("TypeScript 1.x server", [node, "interop/legacy_server.mjs"])

    python_client = [peer, "-m", "interop.python_client"]
    typescript_client = [node, "interop/client.mjs"]
    typescript_1_client = [node, "interop/legacy_client.mjs"]
    our_client = [sys.executable, "-m", "interop.our_client"]
    legacy = ["--mode", "legacy", "--revision", LEGACY]
    visits = [
        ("Python client", python_client, ours),
        ("TypeScript client", typescript_client, ours),
        ("our client", our_client, python),
        ("our client", our_client, typescript),
        ("Python client, legacy", [*python_client, *legacy], ours),
        ("TypeScript client, legacy", [*typescript_client, "--legacy"], ours),
        *(
            (f"TypeScript 1.x client, {revision}", [*typescript_1_client, revision], ours)
            for revision in (LEGACY, "2025-06-18", "2025-03-26")
        ),
        ("TypeScript 1.x, slow person", [node, "interop/slow_person.mjs"], patient),
        ("our client, legacy", [*our_client, *legacy, "--any-refusal"], python),
        ("our client, legacy", [*our_client, *legacy, "--any-refusal"], typescript_1),
        ("our client", [*our_client, "--revision", LEGACY, "--any-refusal"], typescript_1),
    ]
    for name in ("trip_desk", "sprint_board"):
        program = ["--program", name]
        server = _server(f"our {name}", [*run, FILES[name]], "--http", "--port")
        visits += [
            ("Python client", [*python_client, *program], server),
            ("Python client, legacy", [*python_client, *legacy, *program], server),
            ("TypeScript client", [*typescript_client, *program], server),
            ("TypeScript client, legacy", [*typescript_client, "--legacy", *program], server),
            ("TypeScript 1.x client", [*typescript_1_client, LEGACY, *program], server),
        ]
    board = ["--program", "sprint_board"]
    after = [*board, "--another-program"]
    python_board = _server("Python sprint_board", [*official, FILES["sprint_board"]])
    visits += [
        ("our client", [*our_client, *board], python_board),
        ("our client, legacy", [*our_client, *legacy, *board, "--no-subscriptions"], python_board),
        ("our client", [*our_client, *after], _server("TypeScript board", [node, "interop/board.mjs"])),
        (
            "our client, legacy",
            [*our_client, *legacy, *after],
            _server("TypeScript 1.x board", [node, "interop/legacy_board.mjs"]),
        ),
    ]
    briefing = ["--program", "briefing"]
    visits += [
        (
            "Python client",
            [*python_client, *briefing],
            _server("our briefing", [*run, FILES["briefing"]], "--http", "--port"),
        ),
        ("our client", [*our_client, *briefing], _server("Python briefing", [*official, FILES["briefing"]])),
        ("our client", [*our_client, *briefing], _server("TypeScript briefing", [node, "interop/briefing.mjs"])),
    ]
    for name in BOOKSHOP:
        program = ["--program", name]
        shop = _server(f"our {name}", [*run, FILES[name]], "--http", "--port")
        visits += [
            ("Python client", [*python_client, *program], shop),
            ("Python client, legacy", [*python_client, *legacy, *program], shop),
            ("our client", [*our_client, *program], _server(f"Python {name}", [*official, FILES[name]])),
        ]
    mock = _server("our mock", [sys.executable, "-m", "bespeak.cli", "mock", "interop/tapes"], "--http", "--port")
    for era in ([], ["--legacy"]):
        named = ", legacy" if era else ""
        visits += [
            (f"Python client{named}", [peer, "-m", "interop.mock_client", *era], mock),
            (f"TypeScript client{named}", [node, "interop/mock_client.mjs", *era], mock),
        ]
    return [
        Pairing(client, command, server, over_http) for client, command, server in visits for over_http in (True, False)
    ]


def _server(name: str, command: list[str], *http: str) -> Server:
    return Server(name, command, lambda port: [*command, *http, str(port)])


async def run(chosen: list[Pairing]) -> int:
    """Run them, a few at once, saying in their order what held. How many failed."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _cancel, asyncio.current_task())
    turns = asyncio.Semaphore(AT_ONCE)
    failures = 0
    async with asyncio.TaskGroup() as group:
        for running in [group.create_task(_report(pairing, turns)) for pairing in chosen]:
            held, line = await running
            failures += not held
            print(line, flush=True)
    return failures


async def _report(pairing: Pairing, turns: asyncio.Semaphore) -> tuple[bool, str]:
    """Whether it held, and the line that says so."""
    async with turns:
        began = time.monotonic()
        try:
            held = await pairing.run()
        except Failed as failure:
            return False, f"FAILED  {pairing!s:58}{failure}"
        return True, f"ok      {pairing!s:58}{', '.join(held)}  ({time.monotonic() - began:.1f} s)"


def _cancel(task: "asyncio.Task[int] | None") -> None:
    if task is not None:
        task.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m interop.run", description="Clients and servers of two SDKs with ours."
    )
    parser.add_argument("--peer", default=".peer/bin/python", help="a Python that has the official SDK")
    parser.add_argument("--node", default="node", help="a Node that runs the TypeScript SDK")
    parser.add_argument("--only", default="", help="run the pairings that have this in their names")
    given = parser.parse_args()
    chosen = [pairing for pairing in pairings(given.peer, given.node) if given.only in str(pairing)]
    if not chosen:
        parser.error(f"no pairing has {given.only!r} in its name")
    failures = asyncio.run(run(chosen))
    if failures:
        sys.exit(f"{failures} pairings failed")


if __name__ == "__main__":
    main()
