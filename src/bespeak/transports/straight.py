"""Awaiting without machinery: what is only needed for work that has to wait is only set up when it does."""

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def straight(work: Coroutine[Any, Any, T], suspended: Callable[[], None]) -> Generator[Any, Any, T]:
    """Await `work` in the same task, calling `suspended` if and when it first has to wait."""
    try:
        waiting = work.send(None)
        suspended()
        while True:
            try:
                value = yield waiting
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # noqa: BLE001 - a cancellation is the work's to take
                waiting = work.throw(error)
            else:
                waiting = work.send(value)
    except StopIteration as done:
        return done.value


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives. Raises `TimeoutError` if it takes longer; costs nothing if it does not wait at all."""
    limit = _Limit(seconds)
    try:
        return await straight(work, limit.start)
    except asyncio.CancelledError:
        if limit.stop() > 0 or not limit.passed:
            raise
        raise TimeoutError from None
    finally:
        limit.stop()


class _Limit:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self.passed = False
        self._taken_back = False
        self.task: asyncio.Task[Any]

    def start(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "work is awaited in a task"
        self.task = task
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    def _expire(self) -> None:
        self.passed = True
        self.task.cancel()

    def stop(self) -> int:
        """No longer count, and take back a cancellation that was this limit's; how many there are of others'."""
        if self._timer is None:
            return 0
        self._timer.cancel()
        if not self._taken_back and self.passed:
            self._taken_back = True
            return self.task.uncancel()
        return self.task.cancelling()
