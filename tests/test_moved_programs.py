"""Programs that move over from the official SDK by changing their imports, run as programs: over stdio and HTTP, in both eras.

`make interop` runs the same files with the official client, and on the official SDK with only their imports changed.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from interop.arguments import FILES, PROGRAMS
from interop.checks import MODERN, Expected, Person
from interop.run import LEGACY, ROOT

from bespeak import Client, MCPError, StdioServerParameters
from tests.cli.programs import COMMAND, listening, over_http


@asynccontextmanager
async def started(file: Path, transport: str) -> AsyncGenerator[str | StdioServerParameters]:
    """Where the program can be reached. Over stdio the client starts it."""
    if transport == "stdio":
        yield StdioServerParameters(COMMAND[0], [*COMMAND[1:], str(file)])
    else:
        async with listening(*over_http(file)) as program:
            yield program.url


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
