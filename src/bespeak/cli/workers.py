"""Several worker processes behind one port: each loads the server for itself, and all share its state keys and its store."""

import os
import secrets
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bespeak.cli.call_lines import show_calls
from bespeak.cli.output import tell
from bespeak.cli.run_directories import LEDGER, hold, run_directory
from bespeak.server.running import CUT_OFF_STATUS, SHUTDOWN, require_uvicorn
from bespeak.server.server import MCPServer
from bespeak.server.targets import load
from bespeak.state.seal import KEYS_VARIABLE, environment_keys
from bespeak.state.stores.store_urls import STORE_VARIABLE, check_store, store_from_environment
from bespeak.transports.http.app import HttpApp
from bespeak.transports.http.connection_limits import ConnectionLimits
from bespeak.transports.interfaces import CannotStart

_PREFIX = "BESPEAK_RUN_"
_DIRECTORY = f"{_PREFIX}DIRECTORY"
KEYS_OUTLIVE = "State keys outlive this run, its ledger does not; give --store"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a worker. They are passed in environment variables, which a worker inherits."""

    target: str
    host: str
    port: int
    path: str
    proxies: tuple[str, ...] = ()

    def hand_down(self) -> None:
        values = (self.target, self.host, str(self.port), self.path, ",".join(self.proxies))
        for name, value in zip(self.__slots__, values, strict=True):
            os.environ[_PREFIX + name.upper()] = value

    @staticmethod
    def inherited() -> "Settings":
        target, host, port, path, proxies = (os.environ[_PREFIX + name.upper()] for name in Settings.__slots__)
        return Settings(target, host, int(port), path, tuple(filter(None, proxies.split(","))))


def run(settings: Settings, number: int, load_here: Callable[[str], MCPServer[Any]] = load) -> None:
    """Run workers until they are stopped. Keys and a store are made here, once, unless they are configured.

    The server is loaded here first: an error in it is reported once, not by each worker.
    Raises `CannotStart` if the server would not share its approvals, `StoreUnavailable` or `UnsafeDirectory`.
    """
    require_uvicorn()
    from bespeak.transports.http.uvicorn_server import STARTUP_FAILURE, run_workers

    keys_given = bool(environment_keys())
    with _shared_store() as made, _shared_keys():
        server = load_here(settings.target)
        if not server.store_is_shared:
            raise CannotStart(
                f"{settings.target} passes a store of one process to MCPServer, so each worker would accept the same approval "
                "once. Pass a shared store, such as 'sqlite:/path/to/file', or none"
            )
        if made and keys_given and not server.has_own_store:
            tell(KEYS_OUTLIVE)
        settings.hand_down()
        limits = ConnectionLimits(trusted_proxies=settings.proxies)
        statuses = run_workers(
            "bespeak.cli.workers:make_app", number, settings.host, settings.port, limits, SHUTDOWN, settings.path
        )
    for status in (STARTUP_FAILURE, CUT_OFF_STATUS):
        if status in statuses:
            sys.exit(status)


@contextmanager
def _shared_store() -> Generator[bool]:
    """Have the workers share the configured store, or one of their own for this run. Yields whether it was made here."""
    url = store_from_environment()
    if url is not None:
        check_store(url)
        yield False
        return
    with run_directory() as directory:
        file = quote(str(directory / LEDGER))
        check_store(f"sqlite:{file}?durable=no")  # which creates it
        os.environ[STORE_VARIABLE] = f"sqlite:{file}?create=no&durable=no"
        os.environ[_DIRECTORY] = str(directory)
        try:
            yield True
        finally:
            for name in (STORE_VARIABLE, _DIRECTORY):
                os.environ.pop(name, None)


@contextmanager
def _shared_keys() -> Generator[None]:
    """Have the workers share the configured state keys, or one that is made for this run."""
    if environment_keys():
        yield
        return
    os.environ[KEYS_VARIABLE] = secrets.token_urlsafe(32)
    try:
        yield
    finally:
        os.environ.pop(KEYS_VARIABLE, None)


def make_app() -> HttpApp:
    """A worker's app."""
    settings = Settings.inherited()
    if _DIRECTORY in os.environ:
        hold(Path(os.environ[_DIRECTORY]))
    server = load(settings.target)
    # What the author's code starts, or prints, has no need of them.
    for name in (KEYS_VARIABLE, STORE_VARIABLE):
        os.environ.pop(name, None)
    show_calls(all_of_them=sys.stderr.isatty())
    return server.streamable_http_app(
        host=settings.host, streamable_http_path=settings.path, trusted_proxies=settings.proxies
    )
