"""A client's side of stdio: a server as a child process, started, spoken to, restarted, and ended in order."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from bespeak.transports.conversation import Conversation
from bespeak.transports.lines import READ_BYTES
from bespeak.transports.transport import ANSWER_LIMIT, Outgoing

logger = logging.getLogger("bespeak.client")

LEAVE_SECONDS = 2.0
"""How long a child may take to leave when its input is closed, and again when it is asked to terminate."""
INHERITED = {
    "win32": "APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT SYSTEMDRIVE SYSTEMROOT TEMP USERNAME USERPROFILE",
}.get(sys.platform, "HOME LOGNAME PATH SHELL TERM USER").split()
"""What a child gets to know of the environment; a server is another program, and not all there is meant for it."""


@dataclass(frozen=True, slots=True)
class StdioServerParameters:
    """How to start a server as a child process."""

    command: str
    args: list[str] = field(default_factory=list[str])
    env: dict[str, str] | None = None
    """What the child needs beside the few variables it inherits, such as HOME and PATH."""
    cwd: str | Path | None = None


class StdioTransport:
    """Reaches a server by its standard input and output. A child that died is started again by the next request."""

    mirrors = False

    def __init__(
        self, parameters: StdioServerParameters, *, errlog: TextIO | None = None, limit: int = ANSWER_LIMIT
    ) -> None:
        self._parameters = parameters
        self._errlog = errlog
        self._limit = limit
        self._child: Child | None = None
        self._starting = asyncio.Lock()
        self._open = False

    async def __aenter__(self) -> "StdioTransport":
        self._open = True
        self._child = await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open = False
        child, self._child = self._child, None
        if child is not None:
            # In a task of its own, so that who is being cancelled still leaves no child behind.
            await asyncio.shield(asyncio.create_task(child.end(), name="bespeak child, ending"))

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None]) -> bytes:
        child = await self._living()
        return await child.conversation.exchange(request, notify)

    async def _living(self) -> "Child":
        async with self._starting:
            if not self._open or self._child is None:
                raise RuntimeError("the transport is not open; use it through `async with Client(...)`")
            if self._child.conversation.over is not None:
                if not self._child.conversation.answered:
                    raise self._child.conversation.over
                logger.warning("%s; it is started again", self._child.conversation.over)
                await self._child.end()
                self._child = await self._start()
            return self._child

    async def _start(self) -> "Child":
        given = self._parameters
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        grouped: Any = {} if sys.platform == "win32" else {"start_new_session": True}
        try:
            process = await asyncio.create_subprocess_exec(
                given.command,
                *given.args,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=self._errlog,
                env={**inherited, **(given.env or {})},
                cwd=given.cwd,
                **grouped,
            )
        except (OSError, ValueError) as error:
            raise ConnectionError(f"cannot start the server {given.command!r}: {error}") from error
        return Child(process, given.command, self._limit)


class Child:
    """One running server."""

    def __init__(self, process: asyncio.subprocess.Process, command: str, limit: int) -> None:
        self._process = process
        self._command = command
        self.conversation = Conversation(self._write, limit)
        self._reading = asyncio.create_task(self._read(), name="bespeak child, reading")

    async def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None, "the child was started with a pipe"
        self._process.stdin.write(line)
        with contextlib.suppress(ConnectionError):  # the reader will see that the child is gone, and say so
            await self._process.stdin.drain()

    async def _read(self) -> None:
        assert self._process.stdout is not None, "the child was started with a pipe"
        while piece := await self._process.stdout.read(READ_BYTES):
            self.conversation.feed(piece)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._process.wait()
        self.conversation.end(ConnectionError(f"the server {self._command!r} {self._fate()}"))

    def _fate(self) -> str:
        code = self._process.returncode
        if code is None:
            return "closed its output"
        return f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"

    async def end(self) -> None:
        """Close, wait, terminate, kill."""
        process = self._process
        try:
            if process.stdin is not None:
                process.stdin.close()
            if not await self._gone():
                self._signal("SIGTERM")
                if not await self._gone():
                    logger.warning("the server %r did not end in time and is killed", self._command)
        finally:
            if process.returncode is None:
                self._signal("SIGKILL")
                await process.wait()
            self._reading.cancel()
            await asyncio.wait({self._reading})
            self.conversation.end(ConnectionError("the client is closed"))

    async def _gone(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._process.wait()
        return self._process.returncode is not None

    def _signal(self, name: str) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.Signals[name])  # what the child started itself goes with it
