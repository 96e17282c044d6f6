"""Runs every framework's client against our servers, and reports a line for each check.

`python -m frameworks.run` from the root of the project; `make frameworks` installs the frameworks before.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from frameworks.checks import Servers

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS = 30.0
CLIENT_SECONDS = 1800.0
LEAVE_SECONDS = 15.0
POLL_SECONDS = 0.05
DESK = "examples/refund_desk/server.py"


@dataclass(frozen=True, slots=True)
class Framework:
    """A client, and the environment whose Python runs it."""

    name: str
    client: str

    def python(self, environments: Path) -> str:
        return str(environments / self.name / "bin" / "python")


FRAMEWORKS = [
    Framework("langgraph", "langgraph_client"),
    Framework("pydantic-ai", "pydantic_ai_client"),
    Framework("openai-agents", "openai_agents_client"),
    Framework("strands", "strands_client"),
    Framework("strands-mcp1", "strands_client"),
    Framework("agno", "agno_client"),
    Framework("langchain-mcp-adapters", "langchain_mcp_adapters_client"),
]


class Failed(Exception):
    """A framework could not be checked. Says what was printed on the way."""


async def run(chosen: list[Framework], environments: Path, calls: int) -> int:
    """Run them one after another. How many checks failed, a client that ended otherwise included."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _cancel, asyncio.current_task())
    failures = 0
    for framework in chosen:
        try:
            failures += await _checked(framework, environments, calls)
        except Failed as failure:
            failures += 1
            print(f"FAILED  {framework.name}: {failure}", flush=True)
    return failures


async def _checked(framework: Framework, environments: Path, calls: int) -> int:
    """How many checks of a framework failed."""
    async with _servers(calls) as servers:
        command = [framework.python(environments), "-m", f"frameworks.clients.{framework.client}"]
        process = await _spawn([*command, json.dumps(asdict(servers))], stderr=PIPE)
        printing = asyncio.create_task(_drained(process.stderr))
        failures = reported = 0
        due = -1
        try:
            async with asyncio.timeout(CLIENT_SECONDS):
                assert process.stdout is not None, "it was started with a pipe"
                async for line in process.stdout:  # frameworks print lines of their own, too
                    if line.startswith(b'{"check":'):
                        reported += 1
                        failures += not _report(framework, line)
                    elif line.startswith(b'{"checks":'):
                        due = json.loads(line)["checks"]
                await process.wait()
        except TimeoutError:
            raise Failed(f"the client did not end in {CLIENT_SECONDS:.0f} seconds") from None
        finally:
            _signal(process, signal.SIGKILL)
            await process.wait()
            printed = await printing
        if reported != due:
            raise Failed(f"the client exited with code {process.returncode} after {reported} checks\n{printed}")
        return failures


def _report(framework: Framework, line: bytes) -> bool:
    """Print the outcome of one check. Whether it held."""
    check = json.loads(line)
    name = f"{framework.name}: {check['check']}"
    print(f"{'ok' if check['held'] else 'FAILED':8}{name:52}{check['seconds']:6.1f} s  {check['note']}", flush=True)
    return check["held"]


@asynccontextmanager
async def _servers(calls: int) -> AsyncGenerator[Servers]:
    """Every server over HTTP, each a process of its own."""
    files = {
        "desk": DESK,
        "questions": "frameworks/questions.py",
        "moving_price": "frameworks/moving_price.py",
        "paid_once": "frameworks/paid_once.py",
    }
    bespeak = [sys.executable, "-m", "bespeak.cli", "run"]
    async with AsyncExitStack() as stack:
        urls: dict[str, str] = {}
        for name, file in files.items():
            port = _free_port()
            await stack.enter_async_context(_started([*bespeak, file, "--http", "--port", str(port)], port))
            urls[name] = f"http://127.0.0.1:{port}/mcp"
        yield Servers(**urls, desk_command=[*bespeak, str(ROOT / DESK)], calls=calls)


@asynccontextmanager
async def _started(command: list[str], port: int) -> AsyncGenerator[None]:
    """A server that listens, in a process group of its own, which is gone at the end whatever happens."""
    process = await _spawn(command, stderr=STDOUT)
    printing = asyncio.create_task(_drained(process.stdout))
    try:
        if not await _listening(process, port):
            raise Failed(f"a server exited with code {process.returncode}: {' '.join(command)}\n{await printing}")
        yield
        _signal(process, signal.SIGTERM)
        async with asyncio.timeout(LEAVE_SECONDS):
            await process.wait()
    except TimeoutError:
        raise Failed(f"a server did not listen or leave in time: {' '.join(command)}") from None
    finally:
        _signal(process, signal.SIGKILL)  # also what it left behind in its group
        await process.wait()
        await printing


async def _spawn(command: list[str], stderr: int) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, stdin=DEVNULL, stdout=PIPE, stderr=stderr, start_new_session=True
        )
    except OSError as error:
        raise Failed(f"cannot start {command[0]}: {error}; `make frameworks` installs what is needed") from None


async def _drained(stream: asyncio.StreamReader | None) -> str:
    """What a process printed, read to the end so that it never waits for a reader."""
    assert stream is not None, "it was started with a pipe"
    return (await stream.read()).decode(errors="replace").strip()


def _signal(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def _listening(process: Process, port: int) -> bool:
    """Wait until something listens. Whether the process still runs then."""
    async with asyncio.timeout(READY_SECONDS):
        while process.returncode is None:
            with contextlib.suppress(ConnectionError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                await writer.wait_closed()
                return True
            await asyncio.sleep(POLL_SECONDS)
    return False


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def _cancel(task: "asyncio.Task[int] | None") -> None:
    if task is not None:
        task.cancel()


def main() -> None:
    names = [framework.name for framework in FRAMEWORKS]
    parser = argparse.ArgumentParser(prog="python -m frameworks.run", description="Agent frameworks with our servers.")
    parser.add_argument(
        "--environments", type=Path, default=Path(".frameworks"), help="where each framework is installed"
    )
    parser.add_argument("--calls", type=int, default=1000, help="how many calls are suspended and resumed")
    parser.add_argument(
        "only", nargs="*", metavar="FRAMEWORK", help=f"some of {', '.join(names)}; all if none is given"
    )
    given = parser.parse_args()
    unknown = sorted(set(given.only) - set(names))
    if unknown:
        parser.error(f"unknown framework {', '.join(unknown)}; there are {', '.join(names)}")
    chosen = [framework for framework in FRAMEWORKS if not given.only or framework.name in given.only]
    failures = asyncio.run(run(chosen, given.environments.resolve(), given.calls))
    if failures:
        sys.exit(f"{failures} checks failed")


if __name__ == "__main__":
    main()
