"""Several workers in one process: each a server of its own with its own port, all with the same keys and the same store."""

import asyncio
import secrets
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from bespeak import MCPServer
from bespeak.state.seal import RequestStateSecurity
from bespeak.state.stores.redis_connection import RedisConnection
from tests.transports.http.legacy.older_client import NOVEMBER, Desk, Older, Served, served

NAME = "desk"
KEYS = [secrets.token_urlsafe(32)]


class Worker:
    """One worker, and a client's way to it."""

    def __init__(self, desk: Desk, served: Served) -> None:
        self.desk = desk
        self.served = served
        self.port = served.port
        self.url = f"http://127.0.0.1:{served.port}/mcp"

    @property
    def name(self) -> str:
        """Its name among the workers."""
        worker = self.desk.mcp.shared_sessions
        assert worker is not None
        return worker.name

    def client(self, session: str | None = None, version: str = NOVEMBER) -> Older:
        """A client that reaches this worker, in a session that perhaps another worker has opened."""
        return Older(self.port, version, session)


@asynccontextmanager
async def workers(
    store: str, number: int = 2, change: Callable[[MCPServer[Any]], object] = lambda _: None, **options: Any
) -> AsyncGenerator[list[Worker]]:
    """Run workers that share a store. `options` are those of the app."""
    async with AsyncExitStack() as stack:
        found: list[Worker] = []
        for _ in range(number):
            desk = Desk(store=store, request_state_security=RequestStateSecurity(keys=KEYS))
            change(desk.mcp)
            one = await stack.enter_async_context(served(desk.mcp, **options))
            found.append(Worker(desk, one))
        yield found


async def session_at(worker: Worker, version: str = NOVEMBER) -> str:
    """Open a session at a worker."""
    client = Older(worker.port)
    await client.initialize(version)
    assert client.session is not None
    return client.session


async def kill(store: str, worker: Worker) -> None:
    """Have a worker count as dead, as if it had given no sign of life for a while."""
    if store.startswith("sqlite:"):
        connection = sqlite3.connect(store.removeprefix("sqlite:").partition("?")[0])
        with connection:
            connection.execute("UPDATE workers SET alive_until = 0 WHERE worker = ?", (worker.name,))
        connection.close()
    else:
        redis = RedisConnection(store, NAME)
        await redis.command("DEL", f"{redis.prefix}w:{worker.name}")
        await redis.close()


async def everything_in(store: str) -> bytes:
    """All that lies in a store."""
    if store.startswith("sqlite:"):
        file = Path(store.removeprefix("sqlite:").partition("?")[0])
        return b"".join(one.read_bytes() for one in file.parent.iterdir() if one.name.startswith(file.name))
    redis = RedisConnection(store, NAME)
    try:
        found = b""
        for key in await redis.command("KEYS", f"{redis.prefix}*"):
            found += key + (await redis.command("DUMP", key) or b"")
        return found
    finally:
        await redis.close()


async def soon(attempt: Callable[[], Any], seconds: float = 10.0) -> None:
    """Return when something holds."""
    async with asyncio.timeout(seconds):
        while not attempt():  # noqa: ASYNC110 - another worker brings it about
            await asyncio.sleep(0.01)
