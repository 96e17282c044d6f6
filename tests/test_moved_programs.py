"""Programs that move over from the official SDK by changing their imports, run as programs: over stdio and HTTP, in both eras.

`make interop` runs the same files with the official client, and on the official SDK with only their imports changed. The files
in `tests/official_programs` are written for the official SDK; here their import lines are changed, and nothing else.
"""

import ast
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from interop.arguments import FILES, PROGRAMS
from interop.checks import MODERN, Expected, Person
from interop.run import LEGACY, ROOT

from bespeak import Client, MCPError, StdioServerParameters
from bespeak.server.targets import load
from tests.cli.programs import COMMAND, listening, over_http


@asynccontextmanager
async def started(file: Path, transport: str) -> AsyncGenerator[str | StdioServerParameters]:
    """Where the program can be reached. Over stdio the client starts it."""
    if transport == "stdio":
        yield StdioServerParameters(COMMAND[0], [*COMMAND[1:], str(file)])
    else:
        async with listening(*over_http(file)) as program:
            yield program.url


OFFICIAL = ROOT / "tests" / "official_programs"


def with_our_imports(text: str) -> str:
    """Return a program of the official SDK whose imports from `mcp.server` come from `bespeak`. Every other line stays."""
    return re.sub(r"^from mcp\.server(\.\w+)* import ", "from bespeak import ", text, flags=re.MULTILINE)


def moved(name: str, folder: Path) -> Path:
    """Move a program of the official SDK to Bespeak, as a file in a folder."""
    file = folder / f"{name}.py"
    file.write_text(with_our_imports((OFFICIAL / file.name).read_text()))
    return file


@pytest.mark.parametrize("name", ["reserve", "delivery", "backorder", "refund_desk"])
def test_a_program_moves_over_by_its_import_lines_only(name: str, tmp_path: Path) -> None:
    before = (OFFICIAL / f"{name}.py").read_text().splitlines()
    after = moved(name, tmp_path).read_text().splitlines()
    changed = [old for old, new in zip(before, after, strict=True) if old != new]
    assert changed
    assert all(line.startswith("from mcp.server") for line in changed)
    imported = {node.module for node in ast.walk(ast.parse("\n".join(after))) if isinstance(node, ast.ImportFrom)}
    assert "bespeak" in imported
    assert not any(str(module).startswith("mcp.") for module in imported)


@pytest.mark.parametrize("revision", [MODERN, LEGACY])
@pytest.mark.parametrize("name", ["reserve", "delivery", "backorder", "refund_desk"])
async def test_a_program_of_the_official_sdk_runs_after_changing_its_imports(
    name: str, revision: str, tmp_path: Path
) -> None:
    server = load(str(moved(name, tmp_path)))
    del sys.modules[name]  # so that the next test can load a file of the same name

    def connect(person: Person | None, **options: Any) -> Client:
        return Client(server, mode=revision, elicitation_callback=person, **options)

    await PROGRAMS[name](connect, MCPError, Expected(revision, any_refusal=False))


@pytest.mark.timing
@pytest.mark.long
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_moved_desk_is_served(transport: str, tmp_path: Path) -> None:
    async with started(moved("refund_desk", tmp_path), transport) as server:

        def connect(person: Person | None, **options: Any) -> Client:
            return Client(server, elicitation_callback=person, read_timeout_seconds=20, **options)

        await PROGRAMS["refund_desk"](connect, MCPError, Expected(MODERN, any_refusal=False))


@pytest.mark.timing
@pytest.mark.long
@pytest.mark.parametrize("revision", [MODERN, LEGACY])
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_program_behaves_as_it_does_on_the_official_sdk(name: str, transport: str, revision: str) -> None:
    async with started(ROOT / FILES[name], transport) as server:

        def connect(person: Person | None, **options: Any) -> Client:
            return Client(server, mode=revision, elicitation_callback=person, read_timeout_seconds=20, **options)

        await PROGRAMS[name](connect, MCPError, Expected(revision, any_refusal=False))
