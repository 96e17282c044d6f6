"""A mistake of a newcomer: a small server, and what is typed or run. `message` makes it and returns everything that is said."""

import io
import logging
import subprocess
import sys
import traceback
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bespeak.cli.commands import app
from bespeak.cli.server_log import AuthorLines
from bespeak.state.seal import KEYS_VARIABLE

SERVER = "server.py"
SHOP = """\
import asyncio
from typing import Annotated
from mcp_types import ElicitResult
from pydantic import BaseModel
from bespeak import Client, Context, Elicit, ElicitationResult, ElicitUrl, MCPServer, Resolve, Sample
mcp = MCPServer("Bookshop")
class Stock(BaseModel):
    title: str
    copies: int
async def copies_left(title: str) -> int:
    return {"Dune": 7}.get(title, 0)
async def confirm(title: str) -> Elicit[bool]:
    return Elicit(f"Order {title!r}?", bool)
"""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A server, `server.py`, and the words that are typed after `bespeak`; with no words, the file itself is run."""

    source: str
    words: tuple[str, ...] = ()
    alone: bool = False
    """Whether the file is run in a process of its own."""


def checked(source: str) -> Mistake:
    """A mistake that is found when the server is registered."""
    return Mistake(SHOP + source, ("check", SERVER))


def called(source: str, *words: str) -> Mistake:
    """A mistake that is found when the tool `order_book` is called."""
    return Mistake(SHOP + source, ("call", SERVER, "order_book", *(words or ("title=Dune",))))


def typed(*words: str, source: str = "") -> Mistake:
    """A mistake on the command line. The server has the tools `order_book`, which asks, and `count_copies`."""
    return Mistake(f"{SHOP}{TOOLS}{source}", words)


def program(source: str) -> Mistake:
    """A mistake in a program. The server is that of `typed`."""
    return Mistake(f"{SHOP}{TOOLS}{source}")


def alone(source: str) -> Mistake:
    """A mistake in a program, that is found when it starts to serve or ends."""
    return Mistake(program(source).source, alone=True)


def client(*lines: str, connected: str = "mcp") -> Mistake:
    """A mistake in a program that uses a client."""
    body = "".join(f"        {line}\n" for line in lines)
    return program(f"async def main():\n    async with Client({connected}) as client:\n{body}asyncio.run(main())\n")


TOOLS = '''\
@mcp.tool()
async def order_book(title: str, sure: Annotated[bool, Resolve(confirm)]) -> str:
    """Order a book."""
    return "Ordered." if sure else "Not ordered."
@mcp.tool()
async def count_copies(title: str, copies: Annotated[int, Resolve(copies_left)], at_least: int = 0) -> bool:
    return copies >= at_least
'''


def message(mistake: Mistake, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a mistake in this process, and return everything that is printed, logged, warned of and raised."""
    (folder / SERVER).write_text(mistake.source)
    monkeypatch.chdir(folder)
    monkeypatch.delenv(KEYS_VARIABLE, raising=False)
    with _as_before(), _logged() as log, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if mistake.alone:
            said = subprocess.run([sys.executable, SERVER], capture_output=True, text=True, check=False).stderr
        else:
            said = _typed(mistake.words) if mistake.words else _run(mistake.source)
    return "\n".join([said, log.getvalue(), *(f"{one.category.__name__}: {one.message}" for one in warned)])


def _typed(words: tuple[str, ...]) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert "Traceback" not in result.output
    return result.output


def _run(source: str) -> str:
    try:
        exec(compile(source, SERVER, "exec"), {"__name__": "server"})
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a mistake raises
        return "".join(traceback.format_exception_only(error))
    return ""


@contextmanager
def _logged() -> Generator[io.StringIO]:
    """What a server logs in the block, formatted as the commands format it."""
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(AuthorLines())
    logger = logging.getLogger("bespeak")
    logger.addHandler(handler)
    try:
        yield log
    finally:
        logger.removeHandler(handler)


@contextmanager
def _as_before() -> Generator[None]:
    """Forget the server's module, what loading it did to the search path, and that a package was said to be missing."""
    path, uvicorn = list(sys.path), sys.modules.get("uvicorn")
    sys.modules.pop("server", None)  # of an earlier test
    try:
        yield
    finally:
        sys.path[:] = path
        if sys.modules.get("uvicorn", uvicorn) is None:
            sys.modules.pop("uvicorn", None)
            if uvicorn is not None:
                sys.modules["uvicorn"] = uvicorn
        sys.modules.pop("server", None)
