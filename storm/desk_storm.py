"""The storm at the refund desk: several clients at once at `bespeak run --workers 4`, which has no other settings."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bespeak.state.seal import KEYS_VARIABLE
from bespeak.state.stores.store_urls import STORE_VARIABLE
from storm.desk_doubles import DoublingClient
from storm.desk_visits import Visits
from storm.exchanges import exchanges
from storm.judgement import EXITED, TRACEBACK, Violation
from storm.logs import complaints, tracebacks
from storm.ports import reserved_ports
from storm.records import Era

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "examples" / "refund_desk" / "server.py"
WORKERS = 4
START_SECONDS = 30.0
STOP_SECONDS = 30.0
PROGRAM_SECONDS = 900.0
REFUSED_STATE = "requestState"
"""What both the client's error and the server's log contain when a state is refused."""


@dataclass(frozen=True, slots=True)
class Program:
    """One of the clients."""

    name: str
    command: Sequence[str]
    share: float
    """Of all calls."""


@dataclass(frozen=True, slots=True)
class DeskStorm:
    """What happened at the desk."""

    visits: dict[str, Visits]
    seconds: float
    log: str
    status: int

    def violations(self) -> list[Violation]:
        found = [Violation(TRACEBACK, one) for one in tracebacks(self.log)]
        if self.status not in (0, -signal.SIGTERM):
            found.append(Violation(EXITED, f"status {self.status}"))
        found += [Violation("no state is refused", line) for line in self._refused]
        for name, visits in self.visits.items():
            found += judge(name, visits)
        return found

    @property
    def _refused(self) -> list[str]:
        return [line for line in self.log.splitlines() if REFUSED_STATE in line]

    def figures(self) -> list[str]:
        calls = sum(visits.calls for visits in self.visits.values())
        lines = [f"{calls} calls with two questions each in {self.seconds:.0f} s, {WORKERS} workers"]
        for name, visits in self.visits.items():
            refused = sum(REFUSED_STATE in one for one in visits.failures)
            lines.append(
                f"{name}: {visits.calls} calls, {visits.refunded} refunded once, {refused} refused states, "
                f"{visits.doubled} double refunds, {visits.unasked} unasked, {len(visits.failures)} failures, "
                f"slowest call {visits.slowest:.1f} s"
            )
        lines += [f"log, {times} x {line}" for line, times in complaints([self.log]).most_common()]
        return lines


def judge(name: str, visits: Visits) -> list[Violation]:
    """Return everything that must not have happened to the calls of one client."""
    found = [Violation("every call at the desk is refunded", f"{name}: {one}") for one in visits.failures]
    if visits.refunded + len(visits.failures) < visits.calls or not visits.calls:
        found.append(Violation("every call at the desk is refunded", f"{name}: {visits.refunded} of {visits.calls}"))
    if visits.doubled:
        found.append(Violation("an approval is refunded once", f"{name}: {visits.doubled} times twice"))
    if visits.unasked:
        found.append(Violation("every question is asked", f"{name}: {visits.unasked} calls were not"))
    return found


def programs(peer: str, node: str) -> list[Program]:
    """Return the clients that are programs. They make 80 % of the calls, and 50 % are made by older ones."""
    ours = [sys.executable, "-m", "storm.our_desk_client"]
    official = [peer, "-m", "storm.official_desk_client"]
    older = [Era.OLDER.value, "legacy"]
    return [
        Program("our client, 2026-07-28", [*ours, "URL", Era.MODERN.value, Era.MODERN.value], 0.3),
        Program("our client, 2025-11-25", [*ours, "URL", *older], 0.16),
        Program("official Python client, 2025-11-25", [*official, "URL", *older], 0.17),
        Program("TypeScript client 1.x, 2025-11-25", [node, str(ROOT / "storm" / "desk_client.mjs"), "URL"], 0.17),
    ]


DOUBLES = {"sent twice at once, 2026-07-28": True, "sent at once with two answers, 2026-07-28": False}
"""The clients that double their last requests, and whether with the same answer. Each makes 10 % of the calls."""


async def rage(calls: int, directory: Path, peer: str, node: str) -> DeskStorm:
    """Make all calls."""
    started = time.perf_counter()
    async with _desk(directory / "desk.log") as (url, server), exchanges(url) as line:
        names: list[str] = []
        work: list[asyncio.Task[Visits]] = []
        async with asyncio.TaskGroup() as group:
            for program in programs(peer, node):
                names.append(program.name)
                work.append(group.create_task(_run(program, url, round(calls * program.share))))
            for name, same in DOUBLES.items():
                names.append(name)
                work.append(group.create_task(DoublingClient(line, same=same).visit(calls // 10)))
        seconds = time.perf_counter() - started
        server.terminate()
        status = await asyncio.to_thread(server.wait, STOP_SECONDS)
    visits = {name: one.result() for name, one in zip(names, work, strict=True)}
    return DeskStorm(visits, seconds, (directory / "desk.log").read_text(errors="replace"), status)


async def _run(program: Program, url: str, calls: int) -> Visits:
    """Run a client to its end."""
    command = [url if word == "URL" else word for word in program.command]
    process = await asyncio.create_subprocess_exec(
        *command, str(calls), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PROGRAM_SECONDS):
            printed, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = errors.decode(errors="replace").strip()
        return Visits(failures=[f"the program exited with status {process.returncode}: {said}"])
    return Visits(**json.loads(printed))


@asynccontextmanager
async def _desk(log: Path) -> AsyncGenerator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Start the refund desk. Its workers get no keys and no store from us."""
    environment = {name: value for name, value in os.environ.items() if name not in (KEYS_VARIABLE, STORE_VARIABLE)}
    command = [sys.executable, "-m", "bespeak.cli", "run", str(SERVER), "--http"]
    with reserved_ports(1) as (port,):
        server = _start([*command, "--port", str(port), "--workers", str(WORKERS)], environment, log)
        try:
            await _listening(port, server)
            yield f"http://127.0.0.1:{port}/mcp", server
        finally:
            if server.poll() is None:
                server.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    await asyncio.to_thread(server.wait, STOP_SECONDS)
                server.kill()
                server.wait()


def _start(command: list[str], environment: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as file:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment)


async def _listening(port: int, server: "subprocess.Popen[bytes]") -> None:
    async with asyncio.timeout(START_SECONDS):
        while server.poll() is None:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)
    raise ConnectionError(f"the desk did not start, exit status {server.returncode}")
