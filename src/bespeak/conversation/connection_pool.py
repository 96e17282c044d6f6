"""A pool of connections: opened when first needed, shared where possible, and closed at the end."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bespeak.client.errors import InvalidServerResponse
from bespeak.conversation.connection import Connection
from bespeak.conversation.server_targets import Target
from bespeak.conversation.servers import Unreachable, reach, said
from bespeak.protocol.errors import MCPError
from bespeak.transports.interfaces import MissingExtra


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which connection is needed. Equal settings share a connection."""

    name: str
    server: Target
    folder: Path
    mode: str
    declared: dict[str, Any]
    timeout: float
    fill: Callable[[str], str] = str
    """Fills the placeholders in the texts of the target; a target of the command line has none."""

    @property
    def key(self) -> str:
        told = [str(self.folder), self.name, asdict(self.server), self.mode, self.declared]
        return json.dumps(told, sort_keys=True)


@dataclass(slots=True)
class _Held:
    """An open connection with its own task: a context must be exited in the task in which it was entered."""

    task: asyncio.Task[None]
    leave: asyncio.Event
    connection: Connection
    printed: Callable[[], str]


@dataclass(slots=True)
class Pool:
    """All connections of a run."""

    _held: dict[str, _Held] = field(default_factory=dict[str, _Held])

    async def connection(self, wanted: Wanted) -> Connection:
        """Return the connection, opened if necessary. Raises `Unreachable`."""
        held = self._held.get(wanted.key)
        if held is not None and not held.task.done():
            held.connection.timeout = wanted.timeout
            return held.connection
        ready: asyncio.Future[_Held] = asyncio.get_running_loop().create_future()
        leave = asyncio.Event()
        task = asyncio.create_task(_keep(wanted, ready, leave), name="bespeak test connection")
        try:
            await asyncio.wait({ready, task}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            leave.set()
            task.cancel()
            await asyncio.wait({task})  # so that a started server is ended
            raise
        if not ready.done():
            await task  # raises the reason
            raise Unreachable("the connection was closed before it was open")
        connection, printed = ready.result().connection, ready.result().printed
        self._held[wanted.key] = _Held(task, leave, connection, printed)
        return connection

    def printed(self, wanted: Wanted) -> str:
        """Return the end of a server's output."""
        held = self._held.get(wanted.key)
        return held.printed() if held is not None and not held.task.done() else ""

    async def drop(self, wanted: Wanted) -> None:
        """Close a connection that must not be used again."""
        held = self._held.pop(wanted.key, None)
        if held is not None:
            held.leave.set()
            await asyncio.wait({held.task})
            _look_away(held.task)

    async def close(self) -> None:
        for held in self._held.values():
            held.leave.set()
        tasks = [held.task for held in self._held.values()]
        self._held.clear()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            _look_away(task)


def _look_away(task: "asyncio.Task[None]") -> None:
    """Ignore the error of a server that does not end properly."""
    if not task.cancelled():
        task.exception()


def _why(error: Exception) -> str:
    """Why a client cannot connect, without repetitions."""
    reason = str(error) or type(error).__name__
    if isinstance(error.__cause__, FileNotFoundError) and reason.startswith("cannot start the server"):
        reason = f"{reason.partition(':')[0]}: there is no such command"
    notes = [note for note in getattr(error, "__notes__", ()) if reason not in note]
    return "; ".join([reason, *notes])


async def _keep(wanted: Wanted, ready: "asyncio.Future[_Held]", leave: asyncio.Event) -> None:
    connection: Connection | None = None

    def stray(line: bytes) -> None:
        if connection is not None:
            connection.stray(line)

    async with reach(wanted.server, wanted.folder, wanted.fill, stray) as reached:
        try:
            connection = Connection(reached.transport, wanted.mode, wanted.declared, wanted.server.timeout)
            await connection.__aenter__()
            connection.timeout = wanted.timeout
        except (OSError, MCPError, InvalidServerResponse, MissingExtra, ValueError) as error:
            raise Unreachable(f"{_why(error)}{said(reached.printed())}") from None
        except Exception as error:  # a lifespan that fails, in this process
            raise Unreachable(f"the server cannot be started: {type(error).__name__}: {error}") from error
        task = asyncio.current_task()
        assert task is not None, "this runs in a task"
        ready.set_result(_Held(task, leave, connection, reached.printed))
        try:
            await leave.wait()
        finally:
            await connection.__aexit__(None, None, None)
