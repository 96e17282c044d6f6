"""Connections for `converse`: to a server named as on the command line, by its parameters, or as an object."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from bespeak.client.errors import InvalidServerResponse
from bespeak.conversation.connection import Connection
from bespeak.conversation.server_targets import parse_target
from bespeak.conversation.servers import CannotBeLoaded, Reached, Unreachable, reach, said
from bespeak.protocol.errors import MCPError
from bespeak.protocol.versions import SPOKEN
from bespeak.transports.interfaces import Answering, Transport
from bespeak.transports.memory import MemoryTransport
from bespeak.transports.stdio.client import StdioServerParameters, StdioTransport

AnyServer = Answering | Transport | StdioServerParameters | str
ACCEPTED = "a URL, FILE[:OBJECT], MODULE[:OBJECT] or a command, as one string"
"""The targets of the command line."""
Stray = Callable[[bytes], None]


@asynccontextmanager
async def connected(
    server: AnyServer, mode: str, declared: Mapping[str, Any], timeout: float
) -> AsyncGenerator[Connection]:
    """Connect to a server. A target that is a string is read as on the command line, from the current folder.

    Raises `ValueError` for a target that cannot be used, and `ConnectionError` if the server does not speak the revision.
    """
    async with AsyncExitStack() as stack:
        try:
            connection = await stack.enter_async_context(_opened(server, mode, declared, timeout))
        except (MCPError, ConnectionError, InvalidServerResponse):
            lacking = await _lacking(server, mode, declared, timeout)
            if lacking is None:
                raise
            raise ConnectionError(lacking) from None
        yield connection


async def _lacking(server: AnyServer, mode: str, declared: Mapping[str, Any], timeout: float) -> str | None:
    """Return that a server does not speak the revision, if it speaks another. A transport cannot be opened twice."""
    if mode not in SPOKEN or not isinstance(server, str | StdioServerParameters):
        return None
    try:
        async with _opened(server, "auto", declared, timeout) as other:
            name, version = other.server_name, other.version
    except (MCPError, OSError, InvalidServerResponse):
        return None
    called = f"server {name!r}" if name else "the server"
    return None if version == mode else f"{called} speaks {version}, not {mode}"


@asynccontextmanager
async def _opened(
    server: AnyServer, mode: str, declared: Mapping[str, Any], timeout: float
) -> AsyncGenerator[Connection]:
    connection: Connection | None = None

    def stray(line: bytes) -> None:
        if connection is not None:
            connection.stray(line)

    async with AsyncExitStack() as stack:
        try:
            reached = await stack.enter_async_context(_reached(server, stray))
            connection = Connection(reached.transport, mode, declared, timeout, watch=reached.watch)
            try:
                await stack.enter_async_context(connection)
            except ConnectionError as error:
                raise ConnectionError(f"{error}{said(reached.printed())}{_meant(server, error)}") from error
        except CannotBeLoaded as error:
            raise ValueError(f"{error}; the server is {ACCEPTED}") from error
        except Unreachable as error:
            raise ConnectionError(str(error)) from None
        yield connection


def _meant(server: AnyServer, error: ConnectionError) -> str:
    """What a target can be, if a word was taken for a command that does not exist."""
    missing = isinstance(server, str) and isinstance(error.__cause__, FileNotFoundError)
    return f"; the server is {ACCEPTED}" if missing else ""


@asynccontextmanager
async def _reached(server: Any, stray: Stray) -> AsyncGenerator[Reached]:
    if isinstance(server, str):
        async with reach(parse_target(server), Path.cwd(), str, stray) as reached:
            yield reached
    else:
        yield Reached(_transport(server, stray))


def _transport(server: Any, stray: Stray) -> Transport:
    if isinstance(server, StdioServerParameters):
        return StdioTransport(server, stray=stray)
    if not isinstance(server, type):
        if hasattr(server, "answer") and hasattr(server, "running"):
            return MemoryTransport(server)
        if hasattr(server, "exchange"):
            return server
    kind = type(server).__name__
    raise TypeError(f"the server must be {ACCEPTED}, or StdioServerParameters, an MCPServer or a transport, not {kind}")
