"""Fixtures for all tests: one backend, and one way to connect a client, whatever lies between it and the server."""

import os
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest

from bespeak import Client, MCPServer

Connect = Callable[..., Client]

# What lands must not hang on luck: CI tries the same examples every time. `make soak` is there to find new ones.
hypothesis.settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["memory"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """`connect(mcp, **options)` is a `Client` of that server, over the transport under test."""

    def over_memory(mcp: MCPServer[Any], **options: Any) -> Client:
        return Client(mcp, **options)

    return {"memory": over_memory}[request.param]
