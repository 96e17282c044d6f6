"""The stores that workers share in a storm: a Redis server of its own, and a SQLite file."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from storm.ports import reserved_ports

REDIS = "redis-server"
START_SECONDS = 10.0
POLL_SECONDS = 0.05


def has_redis() -> bool:
    """Return whether Redis is installed. In CI it must be: exits with a message if it is not."""
    if shutil.which(REDIS) is not None:
        return True
    if os.environ.get("CI"):
        sys.exit(f"{REDIS} is not installed; in CI the storm must be run with Redis too (apt-get install {REDIS})")
    return False


@asynccontextmanager
async def redis(directory: Path) -> AsyncGenerator[str]:
    """Start a Redis server that keeps nothing on disk. Return its URL."""
    with reserved_ports(1) as (port,), (directory / "redis.log").open("wb") as log:
        options = [
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(directory),
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        process = await asyncio.create_subprocess_exec(
            REDIS, *options, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            await _listening(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            await process.wait()


@asynccontextmanager
async def sqlite(directory: Path) -> AsyncGenerator[str]:
    """Return the URL of a file that the workers make."""
    yield f"sqlite:{directory / 'store.db'}"


async def _listening(port: int) -> None:
    async with asyncio.timeout(START_SECONDS):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(POLL_SECONDS)
