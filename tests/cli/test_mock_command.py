"""`bespeak mock`: cassettes over stdio and HTTP, and what is said of those that cannot be served."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bespeak.testing import converse
from bespeak.transports.interfaces import MissingExtra
from bespeak.transports.stdio.client import StdioServerParameters
from tests.cli.desks import bespeak, told

TAPES = str(Path(__file__).parents[2] / "interop" / "tapes")
ANSWERS = {"city": "San Francisco", "units": "C"}
BOTH = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
MOCK = ["-m", "bespeak.cli", "mock", TAPES]


@pytest.mark.timing
@BOTH
@pytest.mark.long
async def test_a_recorded_conversation_is_served_over_stdio(era: str) -> None:
    target = StdioServerParameters(sys.executable, MOCK)
    said = await converse(target, "forecast", {"loc": "SFO"}, answers=ANSWERS, era=era)
    assert said.text == "San Francisco in C"


@pytest.mark.timing
@pytest.mark.long
async def test_a_recorded_conversation_is_served_over_http() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *MOCK, "--http", "--port", str(port), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        where = f"http://127.0.0.1:{port}/mcp"
        first = (await process.stderr.readline()).decode()
        assert first == f"bespeak: serving 2 cassettes (2026-07-28, 2025-11-25) at {where}\n"
        async with asyncio.timeout(60):
            while b"running on" not in await process.stderr.readline():
                pass
        for era in ("2025-11-25", "2026-07-28"):
            said = await converse(where, "forecast", {"loc": "SFO"}, answers=ANSWERS, era=era)
            assert said.text == "San Francisco in C"
    finally:
        process.terminate()
        await process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([TAPES, "--port", "8000"], 2, "--port needs --http"),
        (["nowhere.json"], 4, "there is no cassette nowhere.json"),
        (
            [__file__],
            4,
            "bespeak: test_mock_command.py is not a cassette of format 1; "
            "bespeak test SUITE --cassettes FOLDER --record once writes some\n",
        ),
    ],
)
def test_what_cannot_be_served_is_said(words: list[str], code: int, said: str) -> None:
    assert said in told(bespeak("mock", *words), code)


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port: int = taken.getsockname()[1]
        said = told(bespeak("mock", TAPES, "--http", "--port", str(port)), 3)
    assert said == (
        f"bespeak: Cannot listen at http://127.0.0.1:{port}: the port is in use. "
        "Stop the program that uses it, or choose another port: --port\n"
    )


@pytest.mark.timing
@pytest.mark.long
def test_a_client_that_leaves_ends_it() -> None:
    ended = subprocess.run([sys.executable, *MOCK], input="", capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr == "bespeak: serving 2 cassettes (2026-07-28, 2025-11-25) on stdio\n"


def test_http_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtra("serving over HTTP needs uvicorn: pip install 'bespeak[http]'")

    monkeypatch.setattr("bespeak.server.running.require_uvicorn", missing)
    assert "serving over HTTP needs uvicorn" in told(bespeak("mock", TAPES, "--http"), 2)
