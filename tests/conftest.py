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


WIRES = ["memory", "stdio", "h11", "httptools"]


@pytest.fixture(params=WIRES)
def connect(request: pytest.FixtureRequest) -> Connect:
    """`connect(mcp, **options)` is a `Client` of that server, over the transport under test."""

    def over_memory(mcp: MCPServer[Any], **options: Any) -> Client:
        return Client(mcp, **options)

    def over_stdio(mcp: MCPServer[Any], **options: Any) -> Client:
        return Client(OverPipes(mcp), **options)

    def over_http(mcp: MCPServer[Any], **options: Any) -> Client:
        return Client(OverHttp(mcp, request.param), **options)

    return {"memory": over_memory, "stdio": over_stdio}.get(request.param, over_http)


@pytest.fixture
def in_process() -> Connect:
    """Like `connect`, for what only a client in the server's own process can have: the server's exceptions themselves."""
    return Client
