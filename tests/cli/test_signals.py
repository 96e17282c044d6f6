"""Being told to stop while something runs that does not listen."""

import asyncio
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from bespeak.cli import signals
from bespeak.cli.signals import run, stoppable
from tests.waiting import eventually

pytestmark = pytest.mark.timing

SERVERS = {
    "a tool that never awaits": "async def t() -> str:\n    began()\n    while True:\n        pass\n",
    "a tool that sleeps": "async def t() -> str:\n    began()\n    time.sleep(50)\n    return 'late'\n",
    "a tool in a thread": "def t() -> str:\n    began()\n    time.sleep(50)\n    return 'late'\n",
    "a tool that waits": "async def t() -> str:\n    began()\n    await asyncio.sleep(50)\n    return 'late'\n",
}
HEAD = (
    "import asyncio, pathlib, time\nfrom bespeak import MCPServer\nmcp = MCPServer('s')\n"
    "def began() -> None:\n    pathlib.Path('began').touch()\n\n@mcp.tool()\n"
)
SUITE = "version: 1\nservers: {s: {python: 'server:mcp', timeout: 50}}\ntests:\n  - {name: a, tool: t}\n"


@contextlib.contextmanager
def running_in(folder: Path, suite: str = ".") -> Generator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "bespeak.cli", "test", suite, "--report", "json=report.json"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
@pytest.mark.parametrize("tool", SERVERS.values(), ids=SERVERS)
async def test_a_signal_ends_the_tool_whatever_a_server_in_its_process_does(tmp_path: Path, tool: str) -> None:
    (tmp_path / "server.py").write_text(HEAD + tool)
    (tmp_path / "a.bespeak.yaml").write_text(SUITE)
    with running_in(tmp_path) as process:
        await eventually((tmp_path / "began").exists, 30)
        process.send_signal(signal.SIGTERM)
        assert process.wait(25) == 130
    assert json.loads((tmp_path / "report.json").read_text())["summary"]["interrupted"] is True


@pytest.mark.long
async def test_a_signal_ends_the_tool_while_it_searches_for_a_pattern(tmp_path: Path) -> None:
    tests = "".join(
        f"  - {{name: t{number}, tool: t, expect: {{text: {{matches: '^(a|a)*$'}}}}}}\n" for number in range(20)
    )
    tool = "async def t() -> str:\n    began()\n    return 'a' * 60 + 'b'\n"
    (tmp_path / "server.py").write_text(HEAD + tool)
    (tmp_path / "a.bespeak.yaml").write_text(SUITE.partition("  - ")[0] + tests)
    with running_in(tmp_path) as process:
        await eventually((tmp_path / "began").exists, 30)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 130


@pytest.mark.long
async def test_a_signal_ends_the_tool_while_it_reads_suites(tmp_path: Path) -> None:
    suite = tmp_path / "a.bespeak.yaml"
    os.mkfifo(suite)
    ends: list[int] = []

    def is_read() -> bool:
        with contextlib.suppress(OSError):  # as long as nobody reads
            ends.append(os.open(suite, os.O_WRONLY | os.O_NONBLOCK))
        return bool(ends)

    with running_in(tmp_path, "a.bespeak.yaml") as process:
        await eventually(is_read, 30)
        process.send_signal(signal.SIGTERM)
        os.close(
            ends[0]
        )  # a signal just before the read begins does not interrupt it; its end does, and then the signal counts
        assert process.wait(20) == 130


def test_a_signal_interrupts_a_block_and_is_then_what_it_was_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), stoppable():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_outside_of_the_main_thread_signals_are_left_alone() -> None:
    async def work() -> int:
        return 1

    def both() -> None:
        with stoppable():
            found.append(run(work()))

    found: list[int] = []
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=both)
    thread.start()
    thread.join()
    assert (found, signal.getsignal(signal.SIGTERM)) == ([1], before)


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when the process would be seen to its end, which here is that of all tests."""
    event = threading.Event()
    monkeypatch.setattr(signals, "_leave", event.set)
    return event


def test_work_that_awaits_is_cancelled_and_cleans_up(left: threading.Event) -> None:
    cleaned: list[str] = []

    async def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(50)
        finally:
            await asyncio.sleep(0)
            cleaned.append("yes")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run(work())
    assert (cleaned, signal.getsignal(signal.SIGTERM)) == (["yes"], before)
    assert left.wait(10)


@pytest.mark.long
def test_work_that_never_awaits_is_broken_off_without_a_word(
    left: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(signals, "PATIENCE_SECONDS", 0.05)

    async def work() -> None:
        signal.raise_signal(signal.SIGTERM)
        while True:
            pass

    with pytest.raises(KeyboardInterrupt):
        run(work())
    gc.collect()
    assert left.wait(10)
    assert caplog.text == ""


def test_work_that_is_cancelled_by_itself_was_not_reported_to_stop() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run(work())


def test_the_process_is_ended_once_its_main_thread_has(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    ended = threading.Thread(target=lambda: None)
    ended.start()
    monkeypatch.setattr(threading, "main_thread", lambda: ended)
    monkeypatch.setattr(signals, "LEAVE_SECONDS", 0)
    monkeypatch.setattr(os, "_exit", done.append)
    leave: Callable[[], None] = getattr(signals, "_leave")  # noqa: B009 - it is for threads only
    leave()
    assert done == [130]


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.long)])
async def test_a_signal_ends_the_run_and_every_server_it_has_started(tmp_path: Path, number: signal.Signals) -> None:
    slow = (
        "import asyncio, os, pathlib\nfrom bespeak import MCPServer\nmcp = MCPServer('s')\n"
        "@mcp.tool()\nasync def t() -> str:\n    pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "    await asyncio.sleep(60)\n    return 'late'\n"
    )
    (tmp_path / "server.py").write_text(slow)
    (tmp_path / "a.bespeak.yaml").write_text(
        "version: 1\nservers: {s: {command: [bespeak, run, server.py, --http, --port, '${port}'], "
        "url: 'http://127.0.0.1:${port}/mcp', timeout: 60}}\ntests:\n  - {name: a, tool: t}\n"
    )
    command = [sys.executable, "-m", "bespeak.cli", "test", ".", "--report", "json=report.json"]
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, start_new_session=True)
    try:
        async with asyncio.timeout(30):
            await eventually((tmp_path / "pid").exists, 25)
            process.send_signal(number)
            assert await process.wait() == 130
        server = int((tmp_path / "pid").read_text())
        await eventually(lambda: not _lives(server), 10)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert json.loads((tmp_path / "report.json").read_text())["summary"]["interrupted"] is True


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_command_that_a_script_started_in_the_background_can_still_be_interrupted() -> None:
    """A shell without job control has such a command ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt), stoppable(interrupts=True):
            signal.raise_signal(signal.SIGINT)
        with stoppable():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
