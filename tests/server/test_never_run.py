"""A program that defines a server and ends without using it says so at exit; every other program says nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timing

SHOP = "from bespeak import MCPServer\nmcp = MCPServer('Shop')\n@mcp.tool()\ndef greet() -> str:\n    return 'hello'\n"
ASYNC = SHOP + "import asyncio\n"
ADDED = """
if __name__ == "__main__":
    mcp.run()
"""
NOTE = f"shop.py defines a server and does not run it. Type: bespeak run shop.py, or add this at the end of the file:\n{ADDED}"


def said(folder: Path, source: str, *command: str) -> str:
    """What a program says on standard error."""
    (folder / "shop.py").write_text(source)
    run = subprocess.run(
        [sys.executable, *(command or ("shop.py",))],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return run.stderr


@pytest.mark.long
def test_a_file_that_defines_a_server_and_does_not_run_it_says_how_to_run_it(tmp_path: Path) -> None:
    assert said(tmp_path, SHOP) == NOTE


@pytest.mark.long
@pytest.mark.parametrize("command", [("-m", "shop"), ("./shop.py",)])
def test_it_does_not_matter_how_the_file_is_started(command: tuple[str, ...], tmp_path: Path) -> None:
    assert said(tmp_path, SHOP, *command) == NOTE


@pytest.mark.long
def test_several_servers_are_one_note(tmp_path: Path) -> None:
    assert said(tmp_path, SHOP + "other = MCPServer('Other')\n") == NOTE


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(SHOP + "mcp.run()\n", id="run"),
        pytest.param(ASYNC + "asyncio.run(mcp.run_stdio_async())\n", id="run_stdio_async", marks=pytest.mark.long),
        pytest.param(SHOP + "app = mcp.streamable_http_app()\n", id="an app", marks=pytest.mark.long),
        pytest.param(
            ASYNC
            + "from bespeak import Client\nasync def main():\n    async with Client(mcp) as client:\n"
            + "        await client.call_tool('greet')\nasyncio.run(main())\n",
            id="a client",
            marks=pytest.mark.long,
        ),
        pytest.param(ASYNC + "asyncio.run(mcp.call_tool('greet'))\n", id="call_tool", marks=pytest.mark.long),
        pytest.param(ASYNC + "asyncio.run(mcp.list_tools())\n", id="list_tools", marks=pytest.mark.long),
        pytest.param(
            SHOP + "outer = MCPServer('Outer')\nouter.include(mcp)\nouter.run()\n", id="include", marks=pytest.mark.long
        ),
        pytest.param(SHOP + "del mcp\n", id="no longer there", marks=pytest.mark.long),
        pytest.param(
            "from bespeak import MCPServer\ndef make():\n    return MCPServer('Shop')\nmcp = make()\n",
            id="made by a function",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_server_that_was_used_is_not_mentioned(source: str, tmp_path: Path) -> None:
    assert "defines a server" not in said(tmp_path, source)


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        ("-c", "import shop"),
        ("-c", "from shop import mcp"),
        ("-m", "bespeak", "list", "shop.py"),
        ("-m", "bespeak", "check", "shop.py"),
        ("-m", "bespeak", "run", "shop.py"),
        ("-m", "bespeak", "call", "shop.py", "greet"),
        ("-m", "pytest", "-p", "no:cacheprovider", "shop.py"),
        ("-i", "shop.py"),
    ],
    ids=" ".join,
)
def test_a_file_that_is_loaded_by_something_else_says_nothing(command: tuple[str, ...], tmp_path: Path) -> None:
    assert "defines a server" not in said(tmp_path, SHOP, *command)


@pytest.mark.long
def test_a_program_that_fails_says_only_why(tmp_path: Path) -> None:
    told = said(tmp_path, SHOP + "raise OSError('no database')\n")
    assert told.endswith("OSError: no database\n")


@pytest.mark.long
def test_a_file_with_what_the_note_says_to_add_can_be_listed(tmp_path: Path) -> None:
    assert said(tmp_path, SHOP + ADDED, "-m", "bespeak", "list", "shop.py") == ""
