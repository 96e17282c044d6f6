"""Awaiting without machinery: what is only needed for work that has to wait is only set up when it does."""

import asyncio
import signal
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def straight(work: Coroutine[Any, Any, T], suspended: Callable[[], None]) -> Generator[Any, Any, T]:
    """Await `work` in the same task, calling `suspended` if and when it first has to wait."""
    try:
        waiting = work.send(None)
    except StopIteration as done:
        return done.value
    suspended()
    return (yield from _resumed(work, waiting))


@types.coroutine
def within(seconds: float, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await `work` in the same task. Raises `TimeoutError` if it takes longer; costs nothing if it does not wait at all."""
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
    """Work cancelled the very task it runs in, which nobody else wants cancelled."""


@types.coroutine
def contained(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await `work` in the same task. Raises `CancelledItself` if it ends in a cancellation of its own making.

    Whoever else cancels a task does so while it waits. So a cancellation that comes up while the work runs is its own,
    unless it is an interrupt from the keyboard.
    """
    task = asyncio.current_task()
    assert task is not None, "work is awaited in a task"
    before, own = task.cancelling(), 0
    step: Callable[[Any], Any] = work.send
    sent: Any = None
    try:
        while True:
            count = task.cancelling()
            try:
                waiting = step(sent)
            except StopIteration as done:
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
    finally:
        del task, sent, step  # a task holds what it raised, and the traceback of that holds this frame


def _may_be_interrupt(task: "asyncio.Task[Any]") -> bool:
    """Whether a cancellation may come from `asyncio.run`: it cancels its main task, and so whatever that awaits, at once."""
    handler: Any = signal.getsignal(signal.SIGINT)
    main: asyncio.Task[Any] | None = getattr(handler, "keywords", {}).get("main_task")
    return main is not None and (main is task or main.cancelling() > 0)


def _absorbed(task: "asyncio.Task[Any]", times: int) -> Generator[Any, Any, None]:
    """Take cancellations back. One that was not delivered yet is, at the next chance, and goes no further."""
    try:
        yield
    except asyncio.CancelledError:
        pass
    finally:
        for _ in range(times):
            task.uncancel()


def _resumed(work: Coroutine[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """Go on with work that has begun, and waits for something."""
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
        """No longer count, and take back a cancellation that was this limit's; how many others there were meanwhile."""
        self._timer.cancel()
        if self.passed and not self._taken_back:
            self._taken_back = True
            self._task.uncancel()
        return self._task.cancelling() - self._before
