"""A pool of connections for tests, which reaches whatever it is told to."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.conversation.server_targets import Target
from bespeak.conversation.servers import Reached
from bespeak.transports.interfaces import Transport
from tests.testing.canned import MODERN, Json


def reached(monkeypatch: pytest.MonkeyPatch, transport: Transport, printed: str = "") -> None:
    """Have a pool reach this instead of whatever it is to reach."""

    @asynccontextmanager
    async def reach(*_: Any) -> AsyncGenerator[Reached]:
        yield Reached(transport, lambda: printed)

    monkeypatch.setattr("bespeak.conversation.connection_pool.reach", reach)


def wanted(**other: Any) -> Wanted:
    usual: Json = {
        "name": "desk",
        "server": Target(command=["desk"]),
        "folder": Path("suites"),
        "mode": MODERN,
        "declared": {"elicitation": {}},
        "timeout": 5.0,
    }
    return Wanted(**{**usual, **other})


@asynccontextmanager
async def pool() -> AsyncGenerator[Pool]:
    one = Pool()
    try:
        yield one
    finally:
        await one.close()
