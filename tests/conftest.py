"""Fixtures for all tests: one backend, and one way to connect a client, whatever lies between it and the server."""

import os
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest

from bespeak import Client, MCPServer
from tests.wires import OverHttp, OverPipes

pytest_plugins = ["pytester"]

Connect = Callable[..., Client]

# How long an example takes says how busy the machine is; the very first text ever drawn takes seconds.
_PATIENT = hypothesis.settings(
    deadline=None,
    max_examples=100 if os.environ.get("BESPEAK_MATRIX") else 20,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
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
TURNS = 4
CELLS = (
    *WIRES,
    *(f"{wire}-{revision}" for revision in (*ASKING, *SILENT) for wire in ("memory", "stdio", "httptools")),
)
TOOL = "the test tool"
_NUMBERS = {TOOL: 0, **{cell: number for number, cell in enumerate(CELLS)}}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One matrix: every transport, and every revision that the marks of a test name.

    A test runs at 2026-07-28 over all transports. `asking_revisions` adds those revisions that have forms, and
    `every_revision` those that have none as well: what should not depend on the revision is asserted at all of them.
    """
    if "connect" in metafunc.fixturenames:
        every = metafunc.definition.get_closest_marker("every_revision")
        asking = every or metafunc.definition.get_closest_marker("asking_revisions")
        older = (*(ASKING if asking else ()), *(SILENT if every else ()))
        cells = [cell for cell in CELLS if cell in WIRES or cell.endswith(older)]
        metafunc.parametrize("connect", cells, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The rows of a table take turns on the cells: all of them in memory, every fourth in each other cell.

    So every test is in every cell, and the suite stays short. Of the test tool's long tables, every eighth row is run.
    `make matrix` runs all rows everywhere, and what is long; so does naming a test.
    """
    if os.environ.get("BESPEAK_MATRIX") or any("::" in argument for argument in config.args):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if not item.get_closest_marker("long")]
    rows: dict[str, dict[str, int]] = {}
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        cell, row = _place(item)
        known = rows.setdefault(item.nodeid.partition("[")[0], {})
        turn = known.setdefault(row, len(known))
        turns = 2 * TURNS if cell == TOOL else TURNS
        mine = cell is None or cell == "memory" or not row or (turn + _NUMBERS[cell]) % turns == 0
        (kept if mine else left).append(item)
    few = {name for name, known in rows.items() if len(known) < TURNS}
    kept += [item for item in left if item.nodeid.partition("[")[0] in few]
    left = [item for item in left if item.nodeid.partition("[")[0] not in few]
    order = {item: number for number, item in enumerate(items)}
    config.hook.pytest_deselected(items=left)
    items[:] = sorted(kept, key=order.__getitem__)


def _place(item: pytest.Item) -> tuple[str | None, str]:
    """In which cell a test is, and in which row of its table."""
    call = getattr(item, "callspec", None)
    if call is None:
        return None, ""
    if "connect" not in call.params:
        return (TOOL, call.id) if item.nodeid.startswith(("tests/testing/", "tests/cli/")) else (None, "")
    cell: str = call.params["connect"]
    return cell, "-".join(one for one in call.id.split("-") if one not in cell.split("-"))


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
