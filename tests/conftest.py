"""Fixtures for all tests: one backend, and ways to connect a client, whatever lies between it and the server."""

import os
import signal
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest

from bespeak import Client, MCPServer
from tests.dev.browser import SKIPPED as CHROMIUM_SKIPPED
from tests.nginx import SKIPPED as NGINX_SKIPPED
from tests.state.stores.redis_servers import SKIPPED as REDIS_SKIPPED
from tests.wires import OverHttp, OverPipes

pytest_plugins = ["pytester"]

Connect = Callable[..., Client]

# How long an example takes says how busy the machine is; the very first text ever drawn takes seconds.
# What lands must not hang on luck: CI tries the same examples every time. `make soak` is there to find new ones.
_PATIENT = hypothesis.settings(
    deadline=None,
    max_examples=20,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("short", _PATIENT)
hypothesis.settings.register_profile("thorough", _PATIENT, max_examples=100)
hypothesis.settings.load_profile("short")


# A shell starts background jobs with interrupts ignored, and child processes inherit that. Tests send interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Naming a test runs it, though it is long."""
    if config.option.markexpr == "not long" and any("::" in argument for argument in config.args):
        config.option.markexpr = ""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it in one line if tests were skipped because a program is missing."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    for reason in (REDIS_SKIPPED, NGINX_SKIPPED, CHROMIUM_SKIPPED):
        if any(reason in one for one in skipped):
            terminalreporter.write_line(reason, yellow=True)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


MODERN = ("memory", "stdio", "h11", "httptools")
ASKING = ("memory-2025-11-25", "stdio-2025-11-25", "httptools-2025-11-25", "memory-2025-06-18")
"""Older revisions whose clients can be asked with a form: the last one over every transport."""
SILENT = ("memory-2025-03-26", "httptools-2025-03-26")
"""One whose clients cannot, and whose HTTP requests do not name it."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One matrix: every transport, and every revision that the marks of a test name.

    `connect` is for rules: each is proved at 2026-07-28 over all transports. The mark `asking_revisions` adds those older
    revisions that have forms, and `every_revision` one that has none as well. `in_memory` is for the variations of a rule:
    the same revisions, without a transport.
    """
    every = metafunc.definition.get_closest_marker("every_revision")
    asking = every or metafunc.definition.get_closest_marker("asking_revisions")
    cells = (*MODERN, *(ASKING if asking else ()), *(SILENT if every else ()))
    if "connect" in metafunc.fixturenames:
        metafunc.parametrize("connect", cells, indirect=True)
    if "in_memory" in metafunc.fixturenames:
        metafunc.parametrize("in_memory", [cell for cell in cells if cell.startswith("memory")], indirect=True)


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Connect:
    """`connect(mcp, **options)` is a `Client` of that server, over the transport and at the revision under test."""
    return connecting(request.param)


@pytest.fixture
def in_memory(request: pytest.FixtureRequest) -> Connect:
    """Like `connect`, in the server's own process, at the revision under test."""
    return connecting(request.param)


def connecting(cell: str) -> Connect:
    """How one cell of the matrix connects: a transport, and an older revision if there is one."""
    wire, _, revision = cell.partition("-")
    mode = {"mode": revision} if revision else {}

    def connected(mcp: MCPServer[Any], **options: Any) -> Client:
        if wire == "memory":
            return Client(mcp, **mode, **options)
        if wire == "stdio":
            return Client(OverPipes(mcp), **mode, **options)
        return Client(OverHttp(mcp, "h11" if wire == "h11" else "httptools"), **mode, **options)

    return connected


@pytest.fixture
def in_process() -> Connect:
    """Like `connect`, for what only a client in the server's own process can have: the server's exceptions themselves."""
    return Client
