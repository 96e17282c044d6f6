"""`bespeak run`: start a server over stdio or HTTP."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bespeak.cli import workers
from bespeak.cli.call_lines import show_calls
from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.output import complain
from bespeak.cli.run_directories import UnsafeDirectory
from bespeak.server.author_frames import author_lines
from bespeak.server.running import run_stdio
from bespeak.server.server import MCPServer
from bespeak.server.targets import NoServer, load
from bespeak.state.stores.store import BadStore, StoreUnavailable
from bespeak.state.stores.store_urls import STORE_VARIABLE, open_store
from bespeak.transports.http.client_addresses import ClientAddresses
from bespeak.transports.http.listening_address import listening_problem
from bespeak.transports.interfaces import CannotStart, MissingExtra


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line of `bespeak run`."""

    target: str
    http: bool
    host: str | None
    port: int | None
    path: str | None
    workers: int
    proxies: Sequence[str]
    store: str | None = None


class BadFlags(Exception):
    """Flags that do not go together, or a value that cannot be used."""


class CannotListen(Exception):
    """The address cannot be used. The message says why."""


def run_server(flags: Flags) -> int:
    """Run the server until it is told to stop. Return the exit code."""
    try:
        _check(flags)
        if flags.store is not None:
            os.environ[STORE_VARIABLE] = flags.store
        if flags.http:
            _run_http(flags)
        else:
            run_stdio(lambda: _loaded(flags))
    except (BadFlags, BadStore, NoServer, MissingExtra, UnsafeDirectory) as error:
        return complain(str(error), ExitCode.BAD_USAGE, error)
    except CannotListen as error:
        return complain(str(error), ExitCode.UNREACHABLE)
    except (CannotStart, StoreUnavailable) as error:
        return complain(f"the server cannot start: {error}", ExitCode.UNREACHABLE)
    except Exception as error:
        lines = author_lines(error, only_own=True)
        if not lines:
            raise
        told = f"the lifespan of {flags.target} failed: {type(error).__name__}: {error}"
        return complain("\n".join([told, *lines]), ExitCode.UNREACHABLE, error)
    return ExitCode.OK


def _check(flags: Flags) -> None:
    if flags.path is not None and not flags.path.startswith("/"):
        raise BadFlags(f"--path must start with '/'; {flags.path!r} does not")
    if not flags.http and flags.workers > 1:
        raise BadFlags("--workers needs --http: over stdio there is only one client")
    if not flags.http and (flags.host, flags.port, flags.path, *flags.proxies) != (None, None, None):
        raise BadFlags("--host, --port, --path and --trusted-proxy need --http")
    try:
        ClientAddresses(flags.proxies)
    except ValueError as error:
        raise BadFlags(f"--{str(error).replace('trusted_proxies', 'trusted-proxy')}") from None
    if flags.store is not None:
        try:
            open_store(flags.store, "bespeak")
        except BadStore as error:
            raise BadFlags(f"--store: {error}") from None


def _loaded(flags: Flags) -> MCPServer[Any]:
    server = load(flags.target)
    if flags.store is not None and server.has_own_store:
        raise BadFlags(
            f"{flags.target} passes a store to MCPServer, so --store would have no effect; remove one of them"
        )
    show_calls(all_of_them=sys.stderr.isatty())
    return server


def _run_http(flags: Flags) -> None:
    host, port, path, proxies = (
        flags.host or "127.0.0.1",
        flags.port or 8000,
        flags.path or "/mcp",
        tuple(flags.proxies),
    )

    def load_here(_: str = flags.target) -> MCPServer[Any]:
        server = _loaded(flags)
        if problem := listening_problem(host, port):  # before workers start, and in the form of all our messages
            raise CannotListen(problem)
        return server

    if flags.workers > 1:
        workers.run(workers.Settings(flags.target, host, port, path, proxies), flags.workers, load_here)
    else:
        server = load_here()
        server.run("streamable-http", host=host, port=port, streamable_http_path=path, trusted_proxies=proxies)
