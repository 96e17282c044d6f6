"""A pool of connections: opened when first needed, shared where possible, and closed at the end."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bespeak.client.errors import InvalidServerResponse
from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_answers import ConnectionAnswers
from bespeak.conversation.server_targets import Target
from bespeak.conversation.servers import Unreachable, reach, said
from bespeak.protocol.errors import MCPError
from bespeak.protocol.quoting import one_line
from bespeak.protocol.versions import SPOKEN, is_modern
from bespeak.transports.interfaces import MissingExtra

MOST_LINES, LONGEST_LINE = 20, 200
_REFUSALS = (OSError, MCPError, InvalidServerResponse, MissingExtra, ValueError)
"""What a client raises when it cannot connect."""
"""How much a message shows of what a server wrote to stdout before it could be reached."""


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
    answers: ConnectionAnswers = field(default_factory=ConnectionAnswers)
    """The answers to questions that belong to no call. A server has the same ones in all tests."""

    @property
    def called(self) -> str:
        """What messages call the server. That of a command line has no name."""
        return f"server {self.name!r}" if self.name else "the server"

    @property
    def key(self) -> str:
        return json.dumps([self.server_key, self.mode, self.declared], sort_keys=True)

    @property
    def server_key(self) -> str:
        """Which server it is, whatever is agreed with it."""
        return json.dumps([str(self.folder), self.name, asdict(self.server)], sort_keys=True)


@dataclass(slots=True)
class _Held:
    """An open connection with its own task: a context must be exited in the task in which it was entered."""

    task: asyncio.Task[None]
    leave: asyncio.Event
    connection: Connection
    printed: Callable[[], str]
    wanted: Wanted
    """What it was opened with. Its `fill` knows the port that was chosen."""
    shown: str = ""
    """The end of the server's output when it was last shown."""


@dataclass(slots=True)
class Pool:
    """All connections of a run."""

    _held: dict[str, _Held] = field(default_factory=dict[str, _Held])
    _given_up: dict[str, str] = field(default_factory=dict[str, str])
    """Why connections, or all connections to a server, cannot be opened. That is tried once."""
    _spoken: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The revisions that each server has agreed to so far."""
    _agreed: dict[str, str] = field(default_factory=dict[str, str])
    """The revisions that were asked for without keeping the connection."""

    async def connection(self, wanted: Wanted) -> Connection:
        """Return the connection, opened if necessary. Raises `Unreachable`, and does not try a second time then."""
        held = self._held.get(wanted.key)
        if held is not None and not held.task.done():
            held.connection.timeout = wanted.timeout
            return held.connection
        for key in (wanted.server_key, wanted.key):
            if key in self._given_up:
                raise Unreachable(self._given_up[key])
        try:
            connection = await self._opened(wanted)
        except Unreachable as error:
            refused = await self._refused(wanted, error) if error.refused else None
            speaks = bool(self._spoken.get(wanted.server_key))
            self._given_up[wanted.key if speaks else wanted.server_key] = refused or str(error)
            if refused is None:
                raise
            raise Unreachable(refused) from None
        self._spoken.setdefault(wanted.server_key, set()).add(connection.version)
        return connection

    async def version(self, wanted: Wanted) -> str | None:
        """Return the revision that a server agrees to; `None` if it cannot be reached now. A new connection is not kept."""
        held = self._held.get(wanted.key)
        if held is not None and not held.task.done():
            return held.connection.version
        if wanted.server_key in self._given_up or wanted.key in self._given_up:
            return None
        if wanted.key not in self._agreed:
            try:
                self._agreed[wanted.key] = (await self._opened(wanted)).version
            except Unreachable:
                return None  # it may need what the commands of the test prepare
            await self.drop(wanted)
        return self._agreed[wanted.key]

    async def _refused(self, wanted: Wanted, error: Unreachable) -> str | None:
        """Return why a server does not connect, with the revisions that it speaks; `None` if that adds nothing."""
        if wanted.mode == "auto":
            return None
        spoken = await self._learned(wanted)
        if not spoken or wanted.mode in spoken:
            return None
        speaks = " and ".join(sorted(spoken))
        if wanted.mode in SPOKEN:
            return f"{wanted.called} speaks {speaks}, not {wanted.mode}"
        head, line, printed = str(error).partition("; it printed:\n")
        return f"{head}; it speaks {speaks}{line}{printed}"

    async def _learned(self, wanted: Wanted) -> set[str]:
        """Connect as newer and as older clients do, if need be. Return the revisions that the server speaks."""
        spoken = self._spoken.setdefault(wanted.server_key, set())
        modern = any(map(is_modern, spoken))
        if not modern and not (spoken and is_modern(wanted.mode)) and not await self._tried(wanted, "auto", spoken):
            return spoken
        if all(map(is_modern, spoken)) and wanted.mode != "legacy":
            await self._tried(wanted, "legacy", spoken)
        return spoken

    async def _tried(self, wanted: Wanted, mode: str, spoken: set[str]) -> bool:
        """Try to connect in a mode, and note the revision. Return whether that was possible."""
        other = replace(wanted, mode=mode)
        if other.key in self._held:
            return True
        try:
            spoken.add((await self._opened(other)).version)
        except Unreachable:
            return False
        await self.drop(other)
        return True

    async def _opened(self, wanted: Wanted) -> Connection:
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
        self._held[wanted.key] = _Held(task, leave, connection, printed, wanted)
        return connection

    def opened(self, wanted: Wanted) -> Wanted:
        """Return what the open connection was opened with."""
        held = self._held.get(wanted.key)
        return wanted if held is None else held.wanted

    def beside(self, wanted: Wanted, mode: str) -> Wanted:
        """Return another connection to the same server. One that listens is running already, and is not started again."""
        server = wanted.server
        if server.url is not None:
            server = replace(server, command=None, env={}, cwd=None)
        return replace(wanted, server=server, mode=mode)

    def printed(self, wanted: Wanted) -> str:
        """Return the end of a server's output."""
        held = self._held.get(wanted.key)
        return held.printed() if held is not None and not held.task.done() else ""

    def newly_printed(self, wanted: Wanted) -> str:
        """Return the end of a server's output, without what this has returned before."""
        held, printed = self._held.get(wanted.key), self.printed(wanted)
        if held is None:
            return ""
        before, held.shown = held.shown, printed
        return _after(before, printed)

    async def drop(self, wanted: Wanted, *, at_once: bool = False) -> None:
        """Close a connection that must not be used again. `at_once` does not wait until the server leaves by itself."""
        held = self._held.pop(wanted.key, None)
        if held is not None:
            if at_once:
                held.connection.hurry()
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


def _after(before: str, printed: str) -> str:
    """The lines of an output after those of an earlier look at it, whose first lines may have left the window."""
    lines = printed.splitlines()
    for known in (before.splitlines(), before.splitlines()[:-1]):  # its last line may have been incomplete
        for start in range(len(known)):
            if lines[: len(known) - start] == known[start:]:
                return "\n".join(lines[len(known) - start :])
    return printed


def _look_away(task: "asyncio.Task[None]") -> None:
    """Ignore the error of a server that does not end properly."""
    if not task.cancelled():
        task.exception()


def _why(error: Exception, wanted: Wanted, version: str | None) -> str:
    """Why a client cannot connect, without repetitions. `version` is the last revision that it has tried."""
    reason = str(error) or type(error).__name__
    if isinstance(error, MCPError) and version is not None:
        request = "server/discover" if is_modern(version) else "the handshake (initialize)"
        reason = f"{wanted.called} refused {request} at {version}: {one_line(reason)} ({error.code})"
    if isinstance(error.__cause__, FileNotFoundError) and reason.startswith("cannot start "):
        reason = f"{reason.removesuffix(f': {error.__cause__}')}: there is no such command"
    notes = [note for note in getattr(error, "__notes__", ()) if reason not in note]
    for note in notes:
        reason += f" {note[:1].upper()}{note[1:]}" if reason.endswith("?") else f"; {note}"
    return reason


async def _keep(wanted: Wanted, ready: "asyncio.Future[_Held]", leave: asyncio.Event) -> None:
    connection: Connection | None = None
    begun: list[str] = []

    def stray(line: bytes) -> None:
        if len(begun) < MOST_LINES:
            begun.append(line[:LONGEST_LINE].decode(errors="replace").rstrip())
        if connection is not None:
            connection.stray(line)

    async with reach(replace(wanted.server, name=wanted.name), wanted.folder, wanted.fill, stray) as reached:
        try:
            connection = Connection(
                reached.transport,
                wanted.mode,
                wanted.declared,
                wanted.server.timeout,
                wanted.answers,
                watch=reached.watch,
            )
            await connection.__aenter__()
            connection.timeout = wanted.timeout
        except Exception as error:
            in_process = wanted.server.python is not None
            if not isinstance(error, _REFUSALS) or (in_process and isinstance(error, OSError)):  # a lifespan that fails
                raise Unreachable(f"the server cannot be started: {type(error).__name__}: {error}") from error
            refused = isinstance(error, MCPError | ConnectionError | InvalidServerResponse)
            lines = "\n".join(filter(None, [*begun, reached.printed()]))
            raise Unreachable(
                f"{_why(error, wanted, connection and connection.version)}{said(lines)}", refused=refused
            ) from None
        task = asyncio.current_task()
        assert task is not None, "this runs in a task"
        ready.set_result(_Held(task, leave, connection, reached.printed, wanted))
        try:
            await leave.wait()
        finally:
            await connection.__aexit__(None, None, None)
