"""The pages about moving over: imports on the right of their tables exist here, those on the left in the other package."""

import inspect
import re
import subprocess
from pathlib import Path

import pytest

from bespeak import MCPServer

ROOT = Path(__file__).parent.parent
HOW_TO = ROOT / "docs" / "how-to"
ROW = re.compile(r"^\| `(from \S+ import [^`]+)` \| `(from \S+ import [^`]+)` \|$", re.MULTILINE)
MISSING = re.compile(r"^## Options of `MCPServer` that are missing\n(.*?)^## ", re.DOTALL | re.MULTILINE)
OTHERS = {
    "move-from-the-official-sdk.md": ROOT / ".peer" / "bin" / "python",
    "move-from-fastmcp.md": ROOT / ".comparison" / "bin" / "python",
}
"""The pages, and the interpreters that have the other package. `make interop` and `make comparison` install them."""
ROWS = [(page, *row) for page in OTHERS for row in ROW.findall((HOW_TO / page).read_text())]


def ask(page: str, program: str) -> str:
    """Return what a program prints where the other package of a page is installed."""
    python = OTHERS[page]
    if not python.exists():
        pytest.skip(f"{python.parent.parent.name} is not installed")
    return subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("page", "ours"), sorted({(page, ours) for page, _, ours in ROWS}))
def test_what_is_imported_instead_exists(page: str, ours: str) -> None:
    exec(ours, {})


@pytest.mark.parametrize("page", OTHERS)
def test_a_page_has_imports(page: str) -> None:
    assert len([row for row in ROWS if row[0] == page]) > 10


@pytest.mark.long
@pytest.mark.parametrize("page", OTHERS)
def test_what_was_imported_exists_in_the_other_package(page: str) -> None:
    ask(page, "\n".join(theirs for where, theirs, _ in ROWS if where == page))


@pytest.mark.long
def test_the_page_lists_the_options_of_the_official_server_that_are_missing_here() -> None:
    page = "move-from-the-official-sdk.md"
    program = "import inspect; from mcp.server import MCPServer; print(*inspect.signature(MCPServer).parameters)"
    missing = set(ask(page, program).split()) - inspect.signature(MCPServer).parameters.keys()
    (table,) = MISSING.findall((HOW_TO / page).read_text())
    assert set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)))) == missing


FASTMCP = """
import inspect, asyncio
from fastmcp import Client, Context, FastMCP
from fastmcp.dependencies import CallArgument, Depends

def takes(fn, *names): assert {*names} <= inspect.signature(fn).parameters.keys(), (fn, names)

takes(Context.elicit, 'message', 'response_type')
takes(FastMCP.mount, 'namespace')
takes(FastMCP.tool, 'timeout', 'output_schema')
takes(Client, 'elicitation_handler')
takes(Client.call_tool, 'raise_on_error')
assert inspect.signature(Client.call_tool).parameters['raise_on_error'].default is True
assert all(hasattr(FastMCP, name) for name in ('http_app', 'from_openapi'))
assert all(hasattr(Context, name) for name in ('lifespan_context', 'set_state', 'input_responses'))

mcp = FastMCP('Bookshop')
async def copies_left(title: str = CallArgument()) -> int:
    return 7
@mcp.tool
async def count(title: str, copies: int = Depends(copies_left)) -> int:
    return copies
async def main():
    async with Client(mcp) as client:
        print((await client.call_tool('count', {'title': 'Dune'})).data)
asyncio.run(main())
"""


@pytest.mark.long
def test_what_the_page_says_of_fastmcp_is_so() -> None:
    assert ask("move-from-fastmcp.md", FASTMCP) == "7\n"


def test_the_page_names_the_version_of_fastmcp_that_the_comparison_uses() -> None:
    (version,) = re.findall(
        r"^fastmcp==(.+)$", (ROOT / "comparison/requirements/fastmcp.txt").read_text(), re.MULTILINE
    )
    assert f"FastMCP {version}." in (HOW_TO / "move-from-fastmcp.md").read_text()
