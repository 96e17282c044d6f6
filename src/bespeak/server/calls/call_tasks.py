"""The tasks of calls that outlive their requests: kept by event loop, waited for at its end, and reported if they are cut off."""

import asyncio
import atexit
import logging
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any

from bespeak.resolve.errors import Refusal

logger = logging.getLogger("bespeak.server")

DRAIN_SECONDS = 30.0
"""How long claimed calls may still run when the last user of a server has left."""
CUT_OFF_SECONDS = 1.0
"""How long a body that is cut off may take to clean up after itself."""


class Outliving:
    """A call that runs in a task of its own."""

    refusal: Refusal | None = None
    """How a person ended it, if one did."""

    name: str
    """The name of the tool, prompt or resource that is called."""
    closed = False
    """Whether it must not be cancelled from outside: it is claimed, or cleans up."""
    approved = False
    """Whether an approval has been spent on what it runs."""
    given_up = False
    """Whether the server has cancelled that task. Any other cancellation comes from an author's code."""


Task = asyncio.Task[dict[str, Any]]


@dataclass(slots=True)
class _InLoop:
    """What one event loop has of them. Only its own thread changes it."""

    tasks: dict[Task, Outliving] = field(default_factory=dict[Task, Outliving])
    cut_off: list[str] = field(default_factory=list[str])
    """Names of the calls that could not be waited for."""


class CallTasks:
    """The tasks of the calls of one server, in all event loops that use it."""

    def __init__(self) -> None:
        self._loops: dict[asyncio.AbstractEventLoop, _InLoop] = {}
        self._lock = threading.Lock()
        """Held while the table of loops is changed or copied: each loop may have a thread of its own."""
        with _lock:
            _everywhere.add(self)

    def add(self, task: Task, call: Outliving) -> None:
        """Keep a task of the running loop until it is done."""
        loop = task.get_loop()
        here = self._loops.get(loop)
        if here is None:
            self._forget_closed_loops()
            with self._lock:
                here = self._loops[loop] = _InLoop()
        here.tasks[task] = call
        task.add_done_callback(self._ended)

    def _ended(self, task: Task) -> None:
        loop = task.get_loop()
        here = self._loops[loop]
        del here.tasks[task]
        if not here.tasks and not here.cut_off:
            with self._lock:
                del self._loops[loop]
        if not task.cancelled():
            task.exception()  # perhaps nobody waits for it any more; what it raised was stored or logged

    async def drain(self) -> None:
        """Wait for the calls of this loop that must not be interrupted, within a time limit. Cancel all others."""
        self._forget_closed_loops()
        here = self._loops.get(asyncio.get_running_loop())
        if here is None:
            return
        for task, call in here.tasks.items():
            if not call.closed:
                call.given_up = True
                task.cancel()
        if here.tasks:
            _, late = await asyncio.wait(set(here.tasks), timeout=DRAIN_SECONDS)
            for task in late:
                call = here.tasks[task]
                unknown = "; whether it took effect is unknown" if call.approved else ""
                logger.error(
                    "%s did not finish within %g s of shutdown and is abandoned%s",
                    task.get_name(),
                    DRAIN_SECONDS,
                    unknown,
                )
                _give_up(here, task, call)

    async def cut_off(self, reason: str) -> None:
        """End all calls of this loop now, and log which of them were approved."""
        here = self._loops.get(asyncio.get_running_loop())
        if here is None:
            return
        for task, call in here.tasks.items():
            if call.approved and not call.given_up:
                logger.error(
                    "%r was approved and is cut off by %s; whether it took effect is unknown", call.name, reason
                )
                _give_up(here, task, call)
            else:
                call.given_up = True
                task.cancel()
        if here.tasks:
            await asyncio.wait(set(here.tasks), timeout=CUT_OFF_SECONDS)

    def were_cut_off(self) -> list[str]:
        """Return the names of the calls of this loop that could not be waited for."""
        here = self._loops.get(asyncio.get_running_loop())
        return here.cut_off if here is not None else []

    def _forget_closed_loops(self) -> None:
        with self._lock:
            closed = [self._loops.pop(loop) for loop in list(self._loops) if loop.is_closed()]
        _report(closed, "its event loop was closed")

    def report_at_exit(self) -> None:
        """Log what is still under way when the program ends."""
        with self._lock:
            left = list(self._loops.items())
        _report([here for loop, here in left if loop.is_closed()], "its event loop was closed")
        _report([here for loop, here in left if not loop.is_closed()], "the program ended")


def _give_up(here: _InLoop, task: Task, call: Outliving) -> None:
    here.cut_off.append(call.name)
    call.given_up = True
    task.cancel()


def _report(loops: list[_InLoop], end: str) -> None:
    for here in loops:
        for task, call in list(here.tasks.items()):
            if call.approved and not call.given_up and not task.done():
                logger.error(
                    "%r was approved and still running when %s; whether it took effect is unknown", call.name, end
                )


# What ends with an event loop, or with the program, does so whatever server it belongs to.
_everywhere: weakref.WeakSet[CallTasks] = weakref.WeakSet()
_lock = threading.Lock()


def _all() -> list[CallTasks]:
    with _lock:
        return list(_everywhere)


async def cut_off_here(reason: str) -> None:
    """End all calls of the running loop now, of every server, and log which of them were approved."""
    for tasks in _all():
        await tasks.cut_off(reason)


def were_cut_off_here() -> list[str]:
    """Return the names of the calls that the running loop could not wait for, of every server."""
    return [name for tasks in _all() for name in tasks.were_cut_off()]


@atexit.register
def _report_at_exit() -> None:
    for tasks in _all():
        tasks.report_at_exit()
