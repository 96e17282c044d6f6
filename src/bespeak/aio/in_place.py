"""Awaiting a coroutine in the current task: time limits and cancellation without a task of its own.

Whatever is needed only for work that waits is set up when it first waits. Most calls never wait.
"""

import asyncio
import signal
import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@types.coroutine
def await_in_place(work: Coroutine[Any, Any, T], on_first_wait: Callable[[], None]) -> Generator[Any, Any, T]:
    """Await `work` in the current task. Calls `on_first_wait` when it waits for the first time, if it does."""
    try:
        waiting = work.send(None)
    except StopIteration as done:
        return done.value
    on_first_wait()
    return (yield from _resumed(work, waiting))


class Begun(Generic[T]):
    """Work that is waiting for something. Awaiting it continues the work."""

    __slots__ = ("_waiting", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], waiting: Any) -> None:
        self._work = work
        self._waiting = waiting

    def __await__(self) -> Generator[Any, Any, T]:
        return _resumed(self._work, self._waiting)

    async def rest(self) -> T:
        """Continue the work, as a coroutine."""
        return await self


def begin(work: Coroutine[Any, Any, T]) -> "T | Begun[T]":
    """Run work until it ends or waits. Returns its result, or the rest of it, which must be awaited at once."""
    try:
        waiting = work.send(None)
    except StopIteration as done:
        return done.value
    return Begun(work, waiting)


@types.coroutine
def within(seconds: float, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await `work` in the current task. Raises `TimeoutError` if it takes longer. Sets no timer if it never waits."""
    try:
        waiting = work.send(None)
    except StopIteration as done:
        return done.value
    limit = _Limit(seconds)
    try:
        return (yield from _resumed(work, waiting))
    except asyncio.CancelledError:
        if limit.stop() > 0 or not limit.passed:
            raise
        raise TimeoutError from None
    finally:
        limit.stop()


class CancelledItself(Exception):
    """Work cancelled the task it runs in, and nobody else did."""


def this_task(loop: asyncio.AbstractEventLoop | None = None) -> "asyncio.Task[Any]":
    """Return the current task of the running loop, which takes less if the loop is given."""
    task = asyncio.current_task(loop)
    assert task is not None, "work is awaited in a task"
    return task


@types.coroutine
def catch_self_cancellation(work: Coroutine[Any, Any, T], task: "asyncio.Task[Any]") -> Generator[Any, Any, T]:
    """Await `work` in `task`, the current one. Raises `CancelledItself` if the work cancels this task itself.

    Other code can only cancel the task while the work waits. So a cancellation that happens while the work runs comes from
    the work, unless it is a keyboard interrupt.
    """
    count = before = task.cancelling()
    own = 0
    step: Callable[[Any], Any] = work.send
    sent: Any = None
    try:
        while True:
            try:
                waiting = step(sent)
            except StopIteration as done:
                if task.cancelling() != count:
                    own += max(0, task.cancelling() - count)
                if own and not _may_be_interrupt(task):
                    yield from _absorbed(task, own)
                return done.value
            except asyncio.CancelledError:
                own += max(0, task.cancelling() - count)
                if own and task.cancelling() - own <= before and not _may_be_interrupt(task):
                    yield from _absorbed(task, own)
                    raise CancelledItself from None
                raise
            except BaseException:
                own += max(0, task.cancelling() - count)
                if own and not _may_be_interrupt(task):
                    yield from _absorbed(task, own)
                raise
            own += max(0, task.cancelling() - count)
            try:
                sent = yield waiting
                step = work.send
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # noqa: BLE001 - a cancellation is the work's to take
                step, sent = work.throw, error
            count = task.cancelling()
    finally:
        del task, sent, step  # a task holds what it raised, and the traceback of that holds this frame


async def at_once(work: Coroutine[Any, Any, T], task: "asyncio.Task[Any]") -> T:
    """As `catch_self_cancellation`, for less, for work that never waits. Then nobody else can cancel the task meanwhile."""
    before = task.cancelling()
    try:
        return await work
    except asyncio.CancelledError:
        if task.cancelling() > before and not _may_be_interrupt(task):
            raise CancelledItself from None
        raise
    finally:
        if task.cancelling() > before:
            await take_back(task, before)
        del task


async def take_back(task: "asyncio.Task[Any]", before: int) -> None:
    """Take back what work that never waits has cancelled of the current task, which had so many cancellations before."""
    if not _may_be_interrupt(task):
        await _taken_back(task, task.cancelling() - before)


@types.coroutine
def in_context(work: Coroutine[Any, Any, T], context: Context) -> Generator[Any, Any, T]:
    """Await `work`, which hardly ever waits, with other context variables."""
    step: Callable[[Any], Any] = work.send
    sent: Any = None
    while True:
        try:
            waiting = context.run(step, sent)
        except StopIteration as done:
            return done.value
        try:
            sent = yield waiting
            step = work.send
        except GeneratorExit:
            context.run(work.close)
            raise
        except BaseException as error:  # noqa: BLE001 - a cancellation is the work's to take
            step, sent = work.throw, error


@types.coroutine
def _taken_back(task: "asyncio.Task[Any]", times: int) -> Generator[Any, Any, None]:
    yield from _absorbed(task, times)


def _may_be_interrupt(task: "asyncio.Task[Any]") -> bool:
    """Whether a cancellation may come from `asyncio.run`, which cancels its main task on a keyboard interrupt."""
    handler: Any = signal.getsignal(signal.SIGINT)
    main: asyncio.Task[Any] | None = getattr(handler, "keywords", {}).get("main_task")
    return main is not None and (main is task or main.cancelling() > 0)


def _absorbed(task: "asyncio.Task[Any]", times: int) -> Generator[Any, Any, None]:
    """Take cancellations back. One that was not delivered yet is delivered here and ends here."""
    try:
        yield
    except asyncio.CancelledError:
        pass
    finally:
        for _ in range(times):
            task.uncancel()


def _resumed(work: Coroutine[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """Continue work that has begun and is waiting."""
    try:
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


class _Limit:
    """Cancels the current task when its time is up."""

    def __init__(self, seconds: float) -> None:
        task = asyncio.current_task()
        assert task is not None, "work is awaited in a task"
        self._task = task
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)
        self._before = task.cancelling()
        self._taken_back = False
        self.passed = False

    def _expire(self) -> None:
        self.passed = True
        self._task.cancel()

    def stop(self) -> int:
        """Stop the timer and take back its cancellation. Return how many other cancellations there were meanwhile."""
        self._timer.cancel()
        if self.passed and not self._taken_back:
            self._taken_back = True
            self._task.uncancel()
        return self._task.cancelling() - self._before
