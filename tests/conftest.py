"""Fixtures for all tests: one backend, and one way to connect a client, whatever lies between it and the server."""

import os
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest

from bespeak import Client, MCPServer
from tests.wires import OverHttp, OverPipes

Connect = Callable[..., Client]

# How long an example takes says how busy the machine is; the very first text ever drawn takes seconds.
_PATIENT = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("patient", _PATIENT)
# What lands must not hang on luck: CI tries the same examples every time. `make soak` is there to find new ones.
hypothesis.settings.register_profile("ci", _PATIENT, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "patient")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


WIRES = ("memory", "stdio", "h11", "httptools")
ASKING = ("2025-11-25", "2025-06-18")
"""Older revisions whose clients can be asked with a form."""
SILENT = ("2025-03-26",)
"""One whose clients cannot."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One matrix: every transport, and every revision that the marks of a test name.

    A test runs at 2026-07-28 over all transports. `asking_revisions` adds those revisions that have forms, and
    `every_revision` those that have none as well: what should not depend on the revision is asserted at all of them.
    """
    if "connect" in metafunc.fixturenames:
        every = metafunc.definition.get_closest_marker("every_revision")
        asking = every or metafunc.definition.get_closest_marker("asking_revisions")
        older = (*(ASKING if asking else ()), *(SILENT if every else ()))
        cells = [*WIRES, *(f"{wire}-{revision}" for revision in older for wire in ("memory", "stdio", "httptools"))]
        metafunc.parametrize("connect", cells, indirect=True)


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Connect:
    """`connect(mcp, **options)` is a `Client` of that server, over the transport and at the revision under test."""
    cell: str = request.param
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
