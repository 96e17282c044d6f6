"""A server's lifespan: entered for its first user and left after its last user, both in the same task."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio


class Lifespan:
    """The lifespan of one server. All users in one event loop share it; each event loop enters its own.

    It is entered and left in the same task, whatever tasks its users run in.
    """

    def __init__(
        self,
        enter: Callable[[], AbstractAsyncContextManager[Any]] | None,
        drain: Callable[[], Awaitable[None]],
        around: Callable[[], AbstractAsyncContextManager[None]] | None = None,
    ) -> None:
        self._own = enter
        self._around = around
        """Entered before everything else, and left last: the store that other processes use too."""
        self._included: list[Lifespan] = []
        """Those of included servers, which are entered inside this one."""
        self._drain = drain
        """Runs when the last user in a loop has left and the lifespan is still there."""
        self._loops: dict[asyncio.AbstractEventLoop, _InLoop] = {}
        self._lock = threading.Lock()
        """Held while the table of loops is changed: each loop may have a thread of its own."""

    def include(self, other: "Lifespan") -> None:
        """Enter the lifespan of another server inside this one."""
        self._included.append(other)

    @property
    def needed(self) -> bool:
        """Whether there is anything to enter."""
        if self._own is not None or self._around is not None:
            return True
        return bool(self._included) and any(one.needed for one in self._included)

    @asynccontextmanager
    async def _enter(self) -> AsyncGenerator[Any]:
        async with AsyncExitStack() as stack:
            if self._around is not None:
                await stack.enter_async_context(self._around())
            value = await stack.enter_async_context(_checked(self._own())) if self._own is not None else None
            for one in self._included:
                if one.needed:
                    await stack.enter_async_context(one.running())
            yield value

    @property
    def value(self) -> Any:
        """What the lifespan yielded in the running loop; `None` while it is not entered."""
        here = self._here() if self._own is not None and self._loops else None
        return here.value if here is not None else None

    @property
    def attended(self) -> bool:
        """Whether it is in use in the running loop, and will wait at its end for calls that outlive their requests."""
        here = self._here()
        return here is not None and here.users > 0

    @property
    def ready(self) -> bool:
        """Whether the server has no lifespan, or it is entered in the running loop."""
        if (self._own is None and self._around is None and not self._included) or not self.needed:
            return True
        here = self._here()
        return here is not None and here.entered

    def _here(self) -> "_InLoop | None":
        try:
            return self._loops.get(asyncio.get_running_loop())
        except RuntimeError:  # no loop is running
            return None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Any]:
        """Keep the lifespan entered while the block is open. Yields the lifespan's value."""
        here = self._join()
        try:
            if self.needed:
                if here.held is None or here.held.stopping:
                    here.held = _Held(self._enter, after=here.held)
                await here.held.start()
            yield here.value
        finally:
            here.users -= 1
            # A body that is waited for may use the server itself, and must not wait for itself.
            if not here.users and (here.leaving is None or here.leaving.done()):
                # In a task of its own, so that a user who is being cancelled still leaves in order.
                here.leaving = asyncio.create_task(self._leave(here), name="bespeak lifespan, leaving")
                with anyio.CancelScope(shield=True):
                    await asyncio.shield(here.leaving)

    def _join(self) -> "_InLoop":
        """Count one more user in the running loop."""
        loop = asyncio.get_running_loop()
        here = self._loops.get(loop)
        if here is None:
            with self._lock:
                # Users who were cut off with their event loop can no longer leave. Those of a loop that lives still will.
                for closed in [other for other in self._loops if other.is_closed()]:
                    del self._loops[closed]
                here = self._loops[loop] = _InLoop()
        here.users += 1
        return here

    async def _leave(self, here: "_InLoop") -> None:
        failure: Exception | None = None
        try:
            await self._drain()
            while (held := here.held) is not None and not here.users:
                try:
                    await held.stop()
                except Exception as error:  # noqa: BLE001 - raised when there is nothing more to leave
                    failure = failure or error
                if here.held is held:  # unless a new user has entered it again meanwhile
                    here.held = None
        finally:
            if not here.users:
                with self._lock:
                    self._loops.pop(asyncio.get_running_loop(), None)
        if failure is not None:
            raise failure


@dataclass(slots=True)
class _InLoop:
    """What one event loop has of it. Only its own thread changes it."""

    users: int = 0
    held: "_Held | None" = None
    leaving: asyncio.Task[None] | None = None

    @property
    def entered(self) -> bool:
        return self.held is not None and self.held.entered.done()

    @property
    def value(self) -> Any:
        return self.held.entered.result() if self.held and self.held.entered.done() else None


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
        else:  # its users left before it was entered
            self._task.cancel()
            await asyncio.wait({self._task})


def _checked(made: Any) -> AbstractAsyncContextManager[Any]:
    """Return what an author's lifespan made. Raises `TypeError` if it cannot be entered."""
    if isinstance(made, AbstractAsyncContextManager):
        return cast("AbstractAsyncContextManager[Any]", made)
    raise TypeError(
        f"the lifespan returned {type(made).__name__}, not an async context manager; write @asynccontextmanager above it, and "
        "let it yield once"
    )
