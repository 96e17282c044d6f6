"""A folder with a server and suites, in which tests run pytest and `bespeak test`."""

import json
import textwrap
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bespeak.cli.commands import app
from bespeak.state.seal import AESGCMRequestStateCodec

# What an inner run is the first to load is unloaded after it; cryptography and httpx2 do not survive that.
for module in (
    *("bespeak.cli.test_command", "bespeak.testing.conversations", "bespeak.testing.pytest_run"),
    *("ruamel.yaml", "httpx2", "httpcore2"),
):
    import_module(module)
AESGCMRequestStateCodec([bytes(32)])

DESK = """
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel

from bespeak import Elicit, MCPServer, Resolve

Path(__file__).with_name("loaded").touch()


class City(BaseModel):
    city: str


class Units(BaseModel):
    units: str


async def ask_city(loc: str) -> Elicit[City]:
    return Elicit(f"Which city is {loc}?", City)


async def ask_units(city: Annotated[City, Resolve(ask_city, key="city")]) -> Elicit[Units]:
    return Elicit(f"Which units in {city.city}?", Units)


async def forecast(
    loc: str,
    city: Annotated[City, Resolve(ask_city, key="city")],
    units: Annotated[Units, Resolve(ask_units, key="units")],
) -> str:
    return f"{city.city} in {units.units}"


async def say(text: str) -> str:
    return text


async def shout(text: str) -> str:
    return text.upper()


mcp, other = MCPServer("desk", version="1"), MCPServer("other desk", version="2")
for server in (mcp, other):
    server.add_tool(forecast)
mcp.add_tool(say)
other.add_tool(shout, name="say")
"""
"""Two servers in one file: they ask for a city and its units, and say a text again."""

HEAD = 'version: 1\nservers: {desk: {python: "desk:mcp"}, other: {python: "desk:other"}}\nserver: desk\ntests:\n'

QUIET = [
    word
    for name in ("anyio", "cacheprovider", "hypothesispytest", "pytest_cov", "timeout", "xdist", "xdist.looponfail")
    for word in ("-p", f"no:{name}")
]
"""What an inner run does without."""


class Bench:
    """The folder of one test. Inner runs are in this process; what they load is unloaded again."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        pytester.makepyfile(desk=DESK)

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return file

    def suite(self, tests: str, name: str = "desk.bespeak.yaml") -> Path:
        """A suite of the desk with these tests, each a line or more of YAML."""
        return self.write(name, HEAD + textwrap.indent(textwrap.dedent(tests).strip("\n"), "  ") + "\n")

    def pytest(self, *args: str) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess(*QUIET, *args)

    def bespeak(self, *args: str) -> "tuple[int, str]":
        """The exit code of the command line, and what it printed."""
        ran = CliRunner().invoke(app, list(args))
        return ran.exit_code, ran.output

    def pytest_report(self, *args: str) -> bytes:
        self.pytest("--bespeak-report", "json=pytest.json", *args)
        return (self.path / "pytest.json").read_bytes()

    def bespeak_report(self, *args: str) -> bytes:
        self.bespeak("test", "--report", "json=bespeak.json", *args)
        return (self.path / "bespeak.json").read_bytes()


@pytest.fixture
def bench(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for name in ("CI", "BUILD_NUMBER"):  # there pytest says more, and we record nothing
        monkeypatch.delenv(name, raising=False)
    return Bench(pytester)


def told(report: bytes) -> dict[str, Any]:
    """A json report, read."""
    return json.loads(report)


def said(ran: pytest.RunResult) -> str:
    return ran.stdout.str() + ran.stderr.str()


def titles(listed: Sequence[str]) -> list[str]:
    """The names in lines of node ids."""
    return [line.partition("::")[2] for line in listed if "::" in line]
