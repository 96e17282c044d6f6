"""Starting the official Inspector."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bespeak.dev import inspector
from bespeak.dev.inspector import Inspector, NoInspector, find_npx, has_npx, inspector_command

URL = "http://127.0.0.1:8000/mcp"


def program(folder: Path, source: str) -> str:
    """A program in place of npx."""
    file = folder / "npx"
    file.write_text(f"#!{sys.executable}\n{source}")
    file.chmod(0o755)
    return str(file)


def test_the_inspector_is_given_the_endpoint() -> None:
    assert inspector_command("/bin/npx", URL) == [
        "/bin/npx",
        "--yes",
        "@modelcontextprotocol/inspector@2",
        "--transport",
        "http",
        "--server-url",
        URL,
    ]


def test_node_is_found_by_the_program_that_runs_its_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not has_npx()
    npx = tmp_path / ("npx.cmd" if sys.platform == "win32" else "npx")
    npx.touch(0o755)
    assert has_npx()


def test_without_node_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoInspector) as told:
        find_npx()
    assert str(told.value) == (
        "--inspector needs node 22.19 or newer, and there is no command npx; install node from https://nodejs.org, or leave out "
        "--inspector: the page of bespeak dev needs nothing"
    )
    npx = program(tmp_path, "")
    assert find_npx() == npx


@pytest.mark.timing
def test_it_is_ended_with_everything_that_it_has_started(tmp_path: Path) -> None:
    told, tell = os.pipe()
    # The pipe is closed when the last process that has it is gone.
    source = f"import os, subprocess, sys; os.write({tell}, b'x')\nsubprocess.run(['sleep', '60'], pass_fds=[{tell}])"
    npx = program(tmp_path, source)
    popen = subprocess.Popen
    started = Inspector.__new__(Inspector)
    process = popen([npx], pass_fds=[tell], start_new_session=True, stdin=subprocess.DEVNULL)
    started._process = process  # pyright: ignore[reportPrivateUsage] - the pipe has to be passed on
    os.close(tell)
    assert os.read(told, 1) == b"x"
    started.stop()
    assert os.read(told, 1) == b""
    os.close(told)
    started.stop()


@pytest.mark.timing
def test_one_that_has_ended_is_left_alone(tmp_path: Path) -> None:
    started = Inspector(program(tmp_path, ""), URL)
    started._process.wait()  # pyright: ignore[reportPrivateUsage] - it is what the test waits for
    started.stop()


@pytest.mark.timing
def test_one_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspector, "LEAVE_SECONDS", 0.05)
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    source = (
        f"import signal, time; signal.signal(15, signal.SIG_IGN); open({str(ready)!r}, 'w').close(); time.sleep(60)"
    )
    started = Inspector(program(tmp_path, source), URL)
    with ready.open():
        started.stop()
    assert started._process.wait() == -9  # pyright: ignore[reportPrivateUsage] - how it ended


def test_elsewhere_than_on_posix_only_the_process_itself_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Inspector(program(tmp_path, "import time; time.sleep(60)"), URL)
    monkeypatch.setattr(inspector.os, "name", "nt")
    started.stop()
    assert started._process.returncode == -15  # pyright: ignore[reportPrivateUsage] - how it ended
