"""The client of stdio: runs a server as a child process, restarts it when it dies, and ends it cleanly."""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, cast

from bespeak.transports.interfaces import ANSWER_LIMIT, Ask, Outgoing, SessionGone, Witness
from bespeak.transports.stdio.client_requests import ClientRequests

logger = logging.getLogger("bespeak.client")

LEAVE_SECONDS = 2.0
"""How long a child may take to exit when its input is closed. After that it is asked to terminate."""
TERMINATE_SECONDS = 35.0
"""How long it may take to terminate. A child that finishes an approved call needs some time."""
HURRY_SECONDS = 0.5
"""How long a child that does not respond may take to terminate."""
LAST_WORDS_SECONDS = 0.2
"""How long to wait, after a child has ended, for the rest of its output."""
INHERITED = {
    "win32": "APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT SYSTEMDRIVE SYSTEMROOT TEMP USERNAME USERPROFILE",
}.get(sys.platform, "HOME LOGNAME PATH SHELL TERM USER").split()
"""The environment variables that a child inherits. Others may be secrets that are not meant for it."""


@dataclass(frozen=True, slots=True)
class StdioServerParameters:
    """How to start a server as a child process."""

    command: str
    args: list[str] = field(default_factory=list[str])
    env: dict[str, str] | None = None
    """Additional environment variables for the child. It inherits only a few, such as HOME and PATH."""
    cwd: str | Path | None = None


class StdioTransport:
    """Reaches a server through its standard input and output. The next request restarts a server that has died."""

    sends_headers = False

    def __init__(
        self,
        parameters: StdioServerParameters,
        *,
        errlog: TextIO | None = None,
        limit: int = ANSWER_LIMIT,
        stray: Callable[[bytes], None] | None = None,
        restarts: bool = True,
        patience: float | None = None,
        called: str | None = None,
    ) -> None:
        self._called = called or f"the server {parameters.command!r}"
        """What messages call the server."""
        self._restarts = restarts
        self._patience = patience
        """How long a child may take to terminate, in seconds, before it is killed; as long as a server needs, if not given."""
        self._parameters = parameters
        self._errlog = errlog
        self._limit = limit
        self._stray = stray
        self._witness: Witness | None = None
        self._child: Child | None = None
        self._known: Child | None = None
        """The child a handshake was made with."""
        self._starting = asyncio.Lock()

    def watch(self, witness: Witness) -> None:
        """Tell a witness of late messages. Call this before the child is started."""
        self._witness = witness

    def hurry(self) -> None:
        """End the child soon when the transport is closed: it does not respond, so it will not leave by itself."""
        if self._child is not None:
            self._child.hurry()

    async def __aenter__(self) -> "StdioTransport":
        self._child = await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # In a task of its own, so that who is being cancelled still leaves no child behind.
        await asyncio.shield(asyncio.create_task(self._leave(), name="bespeak child, ending"))

    async def _leave(self) -> None:
        async with self._starting:
            child, self._child = self._child, None
        if child is not None:
            await child.end()

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        """Send a request and return the response. A server that has exited is started again."""
        child = await self._living(begin=request.method == "initialize")
        if child is not self._known and self._known is not None and request.method != "initialize":
            raise SessionGone("the server was started again, and does not know this client yet")
        return await child.requests.exchange(request, notify, ask)

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        """Send a message that has no response."""
        if self._child is None:
            raise RuntimeError("the transport is not open; use it through `async with Client(...)`")
        await self._child.requests.say(message)

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        """Called after a handshake. `notify` and `ask` get messages that do not belong to a request."""
        self._known = self._child
        if self._child is not None:
            self._child.requests.begin(notify, ask)

    async def _living(self, *, begin: bool) -> "Child":
        """The child, started again if it has died. One that never answered is given another chance only to begin with."""
        async with self._starting:
            child = self._child
            if child is None:
                raise RuntimeError("the transport is not open; use it through `async with Client(...)`")
            over = child.requests.over
            if over is not None:
                if not (child.requests.answered or begin) or not self._restarts:
                    raise over
                logger.warning("%s; restarting it", over)
                await child.end()
                self._child = child = await self._start()
            return child

    async def _start(self) -> "Child":
        given = self._parameters
        env = {**{name: os.environ[name] for name in INHERITED if name in os.environ}, **(given.env or {})}
        # Windows starts no scripts, such as npx.cmd, unless they are named in full.
        command = (
            shutil.which(given.command, path=env.get("PATH")) if sys.platform == "win32" else None
        ) or given.command
        grouped: Any = {} if sys.platform == "win32" else {"start_new_session": True}
        try:
            _, child = await asyncio.get_running_loop().subprocess_exec(
                lambda: Child(self._called, self._limit, self._stray, self._patience, self._witness),
                command,
                *given.args,
                stderr=self._errlog,
                env=env,
                cwd=given.cwd,
                **grouped,
            )
        except (OSError, ValueError) as error:
            raise ConnectionError(f"cannot start {self._called}: {error}") from error
        return child


class Child(asyncio.SubprocessProtocol):
    """One running server."""

    def __init__(
        self,
        called: str,
        limit: int,
        stray: Callable[[bytes], None] | None = None,
        patience: float | None = None,
        witness: Witness | None = None,
    ) -> None:
        self._called = called
        self._patience = patience
        self._leave_seconds = LEAVE_SECONDS
        self._transport: asyncio.SubprocessTransport | None = None
        self._exited = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._output_lost = False
        self.requests = ClientRequests(self._write, limit, stray, witness)

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if isinstance(data, bytes):
            self.requests.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self._writable.set()
        else:
            self._output_lost = True
        if self._exited.is_set() and self._output_lost:
            self._over("")
        else:  # it usually exits at once, and how is worth knowing
            what = "input" if fd == 0 else "output"
            asyncio.get_running_loop().call_later(LAST_WORDS_SECONDS, self._over, f"closed its {what}")

    def process_exited(self) -> None:
        self._exited.set()
        if self._output_lost:
            self._over("")
        else:
            asyncio.get_running_loop().call_later(LAST_WORDS_SECONDS, self._over, "")

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _over(self, how: str) -> None:
        code = self._transport.get_returncode() if self._transport else None
        if code is not None:
            how = f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
        self.requests.end(ConnectionError(f"{self._called} {how}"))

    # What the client does

    async def _write(self, line: bytes) -> None:
        pipe = self._input()
        if pipe is None or pipe.is_closing():
            return  # how it ended is reported soon
        pipe.write(line)
        await self._writable.wait()

    def _input(self) -> asyncio.WriteTransport | None:
        return cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0)) if self._transport else None

    def hurry(self) -> None:
        """Have `end` wait no longer than a server needs that is stopped by a signal."""
        self._leave_seconds, self._patience = 0.0, HURRY_SECONDS

    async def end(self) -> None:
        """Close, wait, terminate, kill."""
        pipe = self._input()
        try:
            if pipe is not None:
                pipe.close()
            left = await self._gone(self._leave_seconds)
            self._signal("SIGTERM")  # also to processes of its group that are still there after it has left
            if not left:
                if not await self._gone(TERMINATE_SECONDS if self._patience is None else self._patience):
                    logger.warning("%s did not exit in time; killing it", self._called)
                self._signal("SIGKILL")  # to processes of its group that have ignored it
                await self._gone(LEAVE_SECONDS)
        finally:
            if not self._exited.is_set():
                self._signal("SIGKILL")
                await self._gone(LEAVE_SECONDS)
            if self._transport is not None:
                self._transport.close()
            self.requests.end(ConnectionError("the client is closed"))

    async def _gone(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        return self._exited.is_set()

    def _signal(self, name: str) -> None:
        if self._transport is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._transport.kill()
            else:
                os.killpg(self._transport.get_pid(), signal.Signals[name])  # what the child started itself goes with it
