"""Several worker processes behind one port: each loads the server for itself, and all share its state keys."""

import os
import secrets
import sys
from dataclasses import dataclass

from bespeak.server.running import CUT_OFF_STATUS, SHUTDOWN, require_uvicorn
from bespeak.server.targets import load
from bespeak.state.seal import KEYS_VARIABLE
from bespeak.transports.http.app import HttpApp
from bespeak.transports.http.connection_limits import ConnectionLimits

_PREFIX = "BESPEAK_RUN_"


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


def run(settings: Settings, number: int) -> None:
    """Run workers until they are stopped. State keys are made here, once, unless they are configured."""
    require_uvicorn()
    from bespeak.transports.http.uvicorn_server import STARTUP_FAILURE, run_workers

    if not os.environ.get(KEYS_VARIABLE, "").strip(" ,"):
        os.environ[KEYS_VARIABLE] = secrets.token_urlsafe(32)
    settings.hand_down()
    limits = ConnectionLimits(trusted_proxies=settings.proxies)
    statuses = run_workers("bespeak.cli.workers:make_app", number, settings.host, settings.port, limits, SHUTDOWN)
    for status in (STARTUP_FAILURE, CUT_OFF_STATUS):
        if status in statuses:
            sys.exit(status)


def make_app() -> HttpApp:
    """A worker's app, without sessions: a session lives in one process, and the next request may reach another."""
    settings = Settings.inherited()
    return load(settings.target).streamable_http_app(
        host=settings.host,
        streamable_http_path=settings.path,
        stateless_http=True,
        trusted_proxies=settings.proxies,
    )
