"""A server's lifespan: entered by the first who uses the server, left after the last, both in one task of its own."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio


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
        self._held: _Held | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def value(self) -> Any:
        """What the lifespan yielded; `None` while it is not entered."""
        return self._held.entered.result() if self._held and self._held.entered.done() else None

    @property
    def attended(self) -> bool:
        """Whether somebody keeps it entered, and will wait for what outlives its requests."""
        return self._users > 0

    @property
    def ready(self) -> bool:
        """Whether there is nothing to enter, or it is entered."""
        return self._enter is None or (self._held is not None and self._held.entered.done())

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Any]:
        """Keep the lifespan entered; gives what it yields."""
        self._forget_dead_loop()
        self._users += 1
        try:
            if self._enter is not None:
                if self._held is None or self._held.stopping:
                    self._held = _Held(self._enter, after=self._held)
                await self._held.start()
            yield self.value
        finally:
            self._users -= 1
            # A body that is waited for may use the server itself, and must not wait for itself.
            if not self._users and (self._leaving is None or self._leaving.done()):
                # In a task of its own, so that a user who is being cancelled still leaves in order.
                self._leaving = asyncio.create_task(self._leave(), name="bespeak lifespan, leaving")
                with anyio.CancelScope(shield=True):
                    await asyncio.shield(self._leaving)

    def _forget_dead_loop(self) -> None:
        """Users who were cut off with their event loop can no longer leave."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._users, self._held, self._leaving = loop, 0, None, None

    async def _leave(self) -> None:
        await self._drain()
        failure: Exception | None = None
        while (held := self._held) is not None and not self._users:
            try:
                await held.stop()
            except Exception as error:  # noqa: BLE001 - raised when there is nothing more to leave
                failure = failure or error
            if self._held is held:  # unless somebody came and began anew meanwhile
                self._held = None
        if failure is not None:
            raise failure


class _Held:
    """One entering of a lifespan, in its own task."""

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[Any]], after: "_Held | None") -> None:
        self.entered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.stopping = False
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._hold(enter, after), name="bespeak lifespan")

    async def _hold(self, enter: Callable[[], AbstractAsyncContextManager[Any]], after: "_Held | None") -> None:
        if after is not None:
            await asyncio.wait({after._task})
        async with enter() as value:
            self.entered.set_result(value)
            await self._stop.wait()

    async def start(self) -> None:
        """Wait until it is entered. Raises what entering raises."""
        await asyncio.wait({self._task, self.entered}, return_when=asyncio.FIRST_COMPLETED)
        if not self.entered.done():
            self.stopping = True
            await self._task
            raise RuntimeError("the lifespan ended without yielding")

    async def stop(self) -> None:
        """Leave it, if it was entered. Raises what leaving raises."""
        self.stopping = True
        self._stop.set()
        if self.entered.done():
            await self._task
        else:  # nobody has waited long enough to use it
            self._task.cancel()
            await asyncio.wait({self._task})
