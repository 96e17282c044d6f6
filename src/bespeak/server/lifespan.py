"""A server's lifespan: entered by the first who uses the server, left by the last, both in one task of its own."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any


class Lifespan:
    """Shared by all users of one server. Enters and leaves in one task, whatever tasks its users live in."""

    def __init__(
        self,
        enter: Callable[[], AbstractAsyncContextManager[Any]] | None,
        drain: Callable[[], Awaitable[None]],
    ) -> None:
        self._enter = enter
        self._drain = drain
        """Runs when the last user has left and the lifespan is still there."""
        self._users = 0
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self.value: Any = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Any]:
        """Keep the lifespan entered; gives what it yields."""
        async with self._lock:
            if self._users == 0 and self._enter is not None:
                await self._start(self._enter)
            self._users += 1
        try:
            yield self.value
        finally:
            async with self._lock:
                self._users -= 1
                if self._users == 0:
                    await self._leave()

    async def _leave(self) -> None:
        try:
            await self._drain()
        finally:
            if self._task is not None:
                self._stop.set()
                task, self._task, self.value = self._task, None, None
                await task

    async def _start(self, enter: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        entered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(_hold(enter, entered, self._stop), name="bespeak lifespan")
        await asyncio.wait({self._task, entered}, return_when=asyncio.FIRST_COMPLETED)
        if not entered.done():
            task, self._task = self._task, None
            await task
            raise RuntimeError("the lifespan ended without yielding")
        self.value = entered.result()


async def _hold(
    enter: Callable[[], AbstractAsyncContextManager[Any]], entered: asyncio.Future[Any], stop: asyncio.Event
) -> None:
    async with enter() as value:
        entered.set_result(value)
        await stop.wait()
