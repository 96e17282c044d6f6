"""The servers that `converse` accepts: objects, parameters, and targets as on the command line."""

import re
import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bespeak import MCPServer, StdioServerParameters
from bespeak.testing import Conversed
from bespeak.testing import converse as hold
from tests.testing.conftest import Bench
from tests.wires import Listening

Converse = Callable[..., Awaitable[Conversed]]
LEGACY = "2025-11-25"
ANSWERS = {"city": "Rome", "units": "C"}


async def test_a_server_by_its_url(converse: Converse) -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.tool()
    async def plain() -> str:
        return "ok"

    async with Listening(mcp.streamable_http_app()) as listening:
        assert (await converse(listening.url, "plain")).text == "ok"


@pytest.mark.timing
@pytest.mark.bespeak_eras(LEGACY)
@pytest.mark.long
async def test_a_server_by_its_command(bench: Bench, converse: Converse) -> None:
    command = StdioServerParameters(sys.executable, ["-c", "from desk import mcp; mcp.run()"], cwd=bench.path)
    held = await converse(command, "forecast", {"loc": "SFO"}, answers=ANSWERS)
    assert held.text == "Rome in C"


async def test_a_server_by_its_file(bench: Bench, converse: Converse) -> None:
    held = await converse(f"{bench.path / 'desk.py'}:mcp", "forecast", {"loc": "SFO"}, answers=ANSWERS)
    assert held.text == "Rome in C"


OLDER = """
import json, sys

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    done = {"error": {"code": -32601, "message": "Method not found"}}
    if request["method"] == "initialize":
        info = {"name": "fs", "version": "1"}
        done = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
    if request["method"] in ("ping", "tools/call"):
        done = {"result": {"content": [{"type": "text", "text": "ok"}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **done}), flush=True)
"""


@pytest.mark.timing
async def test_a_server_by_a_command_in_a_string_is_named_if_it_lacks_the_revision(tmp_path: Path) -> None:
    (tmp_path / "older.py").write_text(OLDER)
    command = shlex.join([sys.executable, str(tmp_path / "older.py")])
    assert (await hold(command, "any", era=LEGACY)).text == "ok"
    with pytest.raises(ConnectionError, match=r"^server 'fs' speaks 2025-11-25, not 2026-07-28$"):
        await hold(command, "any")


TARGETS = "a URL, FILE[:OBJECT], MODULE[:OBJECT] or a command, as one string"


@pytest.mark.timing
@pytest.mark.parametrize(
    ("server", "kind", "message"),
    [
        ("no_such_desk:mcp", ValueError, f"no_such_desk.*; the server is {re.escape(TARGETS)}$"),
        (
            "no-such-desk --stdio",
            ConnectionError,
            f"cannot start .*no-such-desk.*; the server is {re.escape(TARGETS)}$",
        ),
        ("http://", ConnectionError, "the URL of the server is not valid; write one like"),
        ("ftp://127.0.0.1/mcp", ValueError, "a server is reached by http:// or https://, not by ftp://"),
        ("http://127.0.0.1:9/mcp", ConnectionError, "cannot connect to http://127.0.0.1:9/mcp"),
        (StdioServerParameters("nonsuch"), ConnectionError, "cannot start the server 'nonsuch'"),
        (object(), TypeError, "or StdioServerParameters, an MCPServer or a transport, not .*object"),
        (
            MCPServer,
            TypeError,
            f"must be {re.escape(TARGETS)}, or StdioServerParameters, an MCPServer or a transport, not",
        ),
    ],
    ids=["no module", "no command in a string", "no host", "no HTTP", "nobody there", "no command", "object", "class"],
)
async def test_what_is_not_a_server_is_reported(server: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        await hold(server, "any")
