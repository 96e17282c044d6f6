"""Starts and reaches servers: over stdio, by URL, or as an object in this process."""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TextIO, cast
from urllib.parse import urlsplit

from bespeak.conversation.http_watch import HttpWatch
from bespeak.conversation.server_targets import Target
from bespeak.server.targets import NoServer, load
from bespeak.terminal.safe_text import printable
from bespeak.transports.http.client import HttpTransport
from bespeak.transports.http.url_redaction import public
from bespeak.transports.interfaces import MissingExtra, Transport
from bespeak.transports.memory import MemoryTransport
from bespeak.transports.stdio.client import INHERITED, StdioServerParameters, StdioTransport

READY_SECONDS = 30.0
"""How long a started server may take to listen."""
POLL_SECONDS = 0.05
KNOCK_SECONDS = 2.0
"""How long one attempt to connect may take."""
LEAVE_SECONDS = 5.0
UNAUTHORIZED = (
    'it needs credentials: in a suite, give the server headers: {Authorization: "Bearer ${env:TOKEN}"}; '
    'with bespeak call, use --header "Authorization: Bearer $TOKEN"'
)
"""What to do about HTTP status 401."""
LONGEST_COMMAND = 60
"""How many characters of a command a message shows."""
TAIL_BYTES = 2000
"""How much of a server's output is shown when it fails."""


class Unreachable(Exception):
    """A server cannot be reached. The message says why."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        """Whether the server was there, but did not agree to the connection."""


class CannotBeLoaded(Unreachable):
    """A Python server cannot be loaded: its file is not there, or fails. `__cause__` is the reason."""


@dataclass(slots=True)
class Reached:
    """A transport that is not open yet, and the server's output so far."""

    transport: Transport
    printed: Callable[[], str] = str
    watch: HttpWatch = field(default_factory=HttpWatch)
    """What is found in responses over HTTP."""


@asynccontextmanager
async def reach(
    server: Target, folder: Path, fill: Callable[[str], str], stray: Callable[[bytes], None]
) -> AsyncGenerator[Reached]:
    """Reach a server, and start it first if it has a command; it is ended on leaving. Raises `Unreachable`.

    `fill` fills the placeholders in the texts of the target. `stray` gets each line that is not a message.
    """
    if server.python is not None:
        yield Reached(MemoryTransport(_loaded(fill(server.python), folder)))
        return
    with tempfile.NamedTemporaryFile("a", encoding="utf-8", errors="replace") as log:
        if server.url is None:
            parameters = parameters_of(server, folder, fill)
            yield Reached(_stdio(parameters, log, stray, called(server)), lambda: tail(log))
            return
        async with contextlib.AsyncExitStack() as stack:
            url, headers = fill(server.url), {name: fill(value) for name, value in server.headers.items()}
            try:
                watch = HttpWatch()
                client = await stack.enter_async_context(watch.client())
                transport = HttpTransport(
                    url, headers=headers, stray=stray, unauthorized=UNAUTHORIZED, http_client=client
                )
            except (ValueError, MissingExtra) as error:
                raise Unreachable(str(error)) from None
            if server.command is not None:
                started = _listening(parameters_of(server, folder, fill), url, log, called(server) or "the server")
                await stack.enter_async_context(started)
            yield Reached(transport, lambda: tail(log), watch)


def called(server: Target) -> str | None:
    """Return what messages call a server with a command: its name and the command, with placeholders as they are written."""
    if not server.name or not server.command:
        return None
    words = printable(shlex.join(server.command))
    return f"server {server.name!r} ({words if len(words) <= LONGEST_COMMAND else f'{words[:LONGEST_COMMAND]}...'})"


def _stdio(
    parameters: StdioServerParameters, log: IO[str], stray: Callable[[bytes], None], named: str | None
) -> StdioTransport:
    """A server over stdio. It is not restarted if it dies, and it is killed if it does not end."""
    errlog = cast("TextIO", log)
    return StdioTransport(parameters, errlog=errlog, stray=stray, restarts=False, patience=LEAVE_SECONDS, called=named)


def _loaded(target: str, folder: Path) -> Any:
    head, _, name = target.rpartition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        # A module of the suite's own folder is meant before any other of that name.
        for path in (folder / head, folder / f"{head.replace('.', '/')}.py"):
            if head and path.is_file():
                return load(f"{path}:{name}")
        return load(str(folder / target) if (folder / target).is_file() else target)
    except NoServer as error:
        raise CannotBeLoaded(str(error)) from error


def parameters_of(server: Target, folder: Path, fill: Callable[[str], str]) -> StdioServerParameters:
    """Return how to start a server's command. Raises `Unreachable`."""
    command, *args = map(fill, server.command or ())
    env = {name: fill(value) for name, value in server.env.items()}
    # What this Python has installed comes first: `python` is this one, whether its environment is activated or not.
    path = os.pathsep.join(
        filter(None, [str(Path(sys.executable).parent), env.get("PATH", os.environ.get("PATH", ""))])
    )
    where = folder_of(server, folder, fill)
    if not where.is_dir():
        raise Unreachable(f"there is no folder {str(where)!r} to run the command in (cwd)")
    return StdioServerParameters(_program(command, where, path), args, {**env, "PATH": path}, where)


def folder_of(server: Target, folder: Path, fill: Callable[[str], str]) -> Path:
    """Return the folder that a server's command runs in."""
    return folder if server.cwd is None else folder / fill(server.cwd)


def _program(command: str, folder: Path, path: str) -> str:
    """The path of a command, searched from a folder."""
    if os.sep in command:
        return command if Path(command).is_absolute() else str(folder / command)
    return shutil.which(command, path=path) or command


@asynccontextmanager
async def _listening(parameters: StdioServerParameters, url: str, log: IO[str], named: str) -> AsyncGenerator[None]:
    """Start a server by its command, and wait until it listens at its URL."""
    if await _listens(url):
        raise Unreachable(
            f"another program already listens at {public(url)}; stop it, or use ${{port}} for a free port"
        )
    process = await start(parameters, log, named)
    try:
        await _ready(process, url, log, named)
        yield
    finally:
        await asyncio.shield(asyncio.create_task(end(process), name="bespeak server, ending"))


async def start(parameters: StdioServerParameters, log: IO[str], what: str) -> asyncio.subprocess.Process:
    """Start a command whose output goes to a file. Raises `Unreachable`."""
    env = {**{name: os.environ[name] for name in INHERITED if name in os.environ}, **(parameters.env or {})}
    try:
        return await asyncio.create_subprocess_exec(
            parameters.command,
            *parameters.args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=env,
            cwd=parameters.cwd,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise Unreachable(f"cannot start {what}: there is no command {parameters.command!r}") from None
    except (OSError, ValueError) as error:
        raise Unreachable(f"cannot start {what} {parameters.command!r}: {error}") from None


async def _ready(process: asyncio.subprocess.Process, url: str, log: IO[str], named: str) -> None:
    try:
        async with asyncio.timeout(READY_SECONDS):
            while process.returncode is None:
                if await _listens(url):
                    return
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise Unreachable(f"{named} did not start to listen within {READY_SECONDS:g} s{said(tail(log))}") from None
    raise Unreachable(f"{named} exited with code {process.returncode}{said(tail(log))}")


async def _listens(url: str) -> bool:
    where = urlsplit(url)
    try:
        async with asyncio.timeout(KNOCK_SECONDS):  # a host that drops everything would keep us for minutes
            _, writer = await asyncio.open_connection(
                where.hostname, where.port or (443 if where.scheme == "https" else 80)
            )
        writer.close()
        await writer.wait_closed()
    except OSError:
        return False
    return True


async def end(process: asyncio.subprocess.Process) -> None:
    """Terminate the process group, and kill what is left of it."""
    for name in ("SIGTERM", "SIGKILL"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.Signals[name])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await process.wait()


def said(printed: str) -> str:
    """Return a server's output, to append to an error message."""
    return f"; it printed:\n{indented(printed)}" if printed else ""


def indented(printed: str) -> str:
    """Return the output of a server, so that it cannot be mistaken for a message."""
    return "\n".join(f"  {line}" if line else "" for line in printed.splitlines())


def tail(log: IO[str]) -> str:
    """Return the end of the output of a command."""
    end = os.fstat(log.fileno()).st_size
    text = Path(log.name).read_bytes()[-TAIL_BYTES:].decode(errors="replace")
    # What is cut in the middle of a line may be half of what must not be shown.
    whole = text if end <= TAIL_BYTES else text.partition("\n")[2]
    return whole.strip() or (f"(a line of more than {TAIL_BYTES} bytes)" if text.strip() else "")
