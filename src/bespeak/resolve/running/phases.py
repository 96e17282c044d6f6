"""Runs the resolvers of one phase: each as soon as everything it takes is there.

One that is ready alone is awaited in place; several each get a task. Generators are the exception: they open one after
another in the call's own task, because a scope they hold across their `yield` belongs to that task. While one opens, the
others go on, start what they make ready, and interrupt it if one of them ends the call.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from typing import Any

from bespeak.aio.tasks import cancel_all, spawn
from bespeak.resolve.errors import UNASKED_CANCELLATION, ResolverFailed
from bespeak.resolve.graph.model import Graph, Node


class Phase:
    """One phase of one round. Knows nothing of questions, only of what is done and where to stop."""

    _context: Context
    """The variables of the call's own task: when a resolver starts makes no difference to what it sees."""

    def __init__(
        self,
        graph: Graph,
        indices: Sequence[int],
        done: Sequence[bool],
        step: Callable[[Node], Coroutine[Any, Any, None]],
        limit: Callable[[], int],
    ) -> None:
        self._graph = graph
        self._done = done
        self._step = step
        self._limit = limit
        """Nothing from this place in graph order on is of use any more."""
        nodes = graph.nodes
        self._waiting = {index: sum(not done[need] for need in nodes[index].needs) for index in indices}
        self._ready = [index for index in indices if not self._waiting[index]]
        self._running: dict[asyncio.Task[None], int] = {}
        self._cancelled: set[asyncio.Task[None]] = set()
        self._failures: dict[int, BaseException] = {}
        self._turn: int | None = None
        self._host: asyncio.Task[None] | None = None
        self._interrupted = False
        self._stopped = False
        self._wake: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Run all resolvers of the phase. After a failure, raises the first known one in graph order."""
        try:
            while self._ready or self._running:
                self._ready = [index for index in self._ready if index < self._limit()]
                if len(self._ready) == 1 and not self._running:
                    index = self._ready.pop()
                    await self._step(self._graph.nodes[index])
                    self._settle(index)
                    continue
                self._context = copy_context()
                self._start()
                generator = next((index for index in self._ready), None)
                if generator is not None:
                    self._ready.remove(generator)
                    await self._open(self._graph.nodes[generator])
                elif self._running:
                    await self._change()
                self._collect()
                if self._failures:
                    raise self._failures[min(self._failures)]
        finally:
            self._stopped = True
            self._failures.clear()  # their tracebacks hold this phase
            await cancel_all([task for task in self._running if task not in self._cancelled])
            if self._cancelled:
                await asyncio.gather(*self._cancelled, return_exceptions=True)

    def _start(self) -> None:
        """Give every ready resolver a task; generators stay, to be opened in place."""
        left: list[int] = []
        for index in sorted(self._ready):
            node = self._graph.nodes[index]
            if index >= self._limit():  # one that started before it has just ended the call
                continue
            if node.kind.is_generator:
                left.append(index)
                continue
            task = spawn(self._step(node), f"bespeak resolver {node.name}", self._context.copy())
            self._running[task] = index
            task.add_done_callback(self._finished)
        self._ready = left

    def _finished(self, task: asyncio.Task[None]) -> None:
        """A task has ended: start what it makes ready, and stop what it makes useless."""
        index = self._running.pop(task, None)
        if index is None:
            return
        error = self._error(task, self._graph.nodes[index])
        if error is not None and index < self._limit():
            self._failures[index] = error
        self._settle(index)
        if not (self._failures or self._stopped):
            self._start()
        for other, place in self._running.items():
            if place > self._limit() and other not in self._cancelled:
                self._cancelled.add(other)
                other.cancel()
        self._interrupt()
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _error(self, task: asyncio.Task[None], node: Node) -> BaseException | None:
        if not task.cancelled():
            return task.exception()
        if task in self._cancelled or self._stopped:
            return None
        return ResolverFailed(node.name, node.path, UNASKED_CANCELLATION)

    def _collect(self) -> None:
        """Take note of tasks that have ended though nobody has been told yet: what is known counts, not who was first."""
        for task in [task for task in self._running if task.done()]:
            self._finished(task)

    def _settle(self, index: int) -> None:
        if not self._done[index]:
            return
        for dependent in {use.consumer for use in self._graph.uses[index]}:
            if dependent in self._waiting:
                self._waiting[dependent] -= 1
                if not self._waiting[dependent]:
                    self._ready.append(dependent)

    async def _change(self) -> None:
        """Wait until a task has ended."""
        self._wake = asyncio.get_running_loop().create_future()
        await self._wake

    # Generators

    async def _open(self, node: Node) -> None:
        """Open a generator in place, unless what runs beside it ends the call first."""
        self._host, self._turn, self._interrupted = asyncio.current_task(), node.index, False
        try:
            await self._step(node)
        except asyncio.CancelledError:
            if not self._interrupted or (self._host is not None and self._host.cancelling() > 1):
                raise
        except Exception as error:  # noqa: BLE001 - reported with the others, in graph order
            self._turn = None
            self._collect()
            if node.index < self._limit() and not self._interrupted:
                self._failures[node.index] = error
        finally:
            if self._interrupted and self._host is not None:
                self._host.uncancel()
            self._turn = None
        self._context = copy_context()
        self._settle(node.index)

    def _interrupt(self) -> None:
        useless = self._failures or (self._turn is not None and self._turn > self._limit())
        if self._turn is not None and useless and not self._interrupted and self._host is not None:
            self._interrupted = True
            self._host.cancel()
