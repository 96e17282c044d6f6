"""Fixtures for stores: a Redis that all tests share, and one that a test has for itself."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.state.stores.redis_servers import RedisServer, own_server, shared_server


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with shared_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def own_redis(tmp_path: Path) -> Generator[RedisServer]:
    with own_server(tmp_path) as server:
        yield server
