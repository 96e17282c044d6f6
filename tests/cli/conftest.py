"""Fixtures for the tests of the command line."""

import os
import socket
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from bespeak.state.seal import KEYS_VARIABLE

Write = Callable[..., Path]
ONE = "from bespeak import MCPServer\nmcp = MCPServer('one')\n"
FORGOTTEN = """
from typing import Annotated
from pydantic import BaseModel
from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("travel")

class Dest(BaseModel):
    city: str

async def ask_city() -> Elicit[Dest]:
    return Elicit("Where to?", Dest)

@mcp.tool()
async def hotel(dest: Annotated[Dest, Resolve(ask_city)]) -> str:
    return dest.city

@mcp.tool()
async def book(dest: Dest) -> str:
    return dest.city
"""
"""A server with a tool whose parameter lacks its marker."""
FORGOTTEN_WARNING = (
    "book: 'dest' comes from the model, but hotel takes it from resolver ask_city; "
    "mark it too if a model must not choose it: Annotated[Dest, Resolve(ask_city)]"
)


@pytest.fixture
def write(tmp_path: Path) -> Generator[Write]:
    """Writes a file to load. What loading does to this process is undone."""
    modules, path = set(sys.modules), list(sys.path)

    def to(name: str, source: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        return file

    yield to
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """What uvicorn was told to run, instead of running it; the environment is a copy."""
    told: list[tuple[Any, dict[str, Any]]] = []

    class Idle:
        """A supervisor whose workers never start."""

        def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
            self.processes: list[Any] = []
            for one in sockets:
                one.close()
            told.append((config.app, vars(config)))

        def run(self) -> None: ...

    monkeypatch.setattr("uvicorn.supervisors.multiprocess.Multiprocess", Idle)
    environment = dict(os.environ)
    environment.pop(KEYS_VARIABLE, None)
    monkeypatch.setattr(os, "environ", environment)
    return told
