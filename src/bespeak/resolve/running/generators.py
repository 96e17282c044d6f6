"""Generator resolvers: opened one after another in the call's own task, closed there in reverse."""

import asyncio
import functools
import inspect
import logging
from collections.abc import AsyncGenerator, Generator, Iterator
from typing import Any, cast

from bespeak.aio.tasks import is_cancelled
from bespeak.aio.threads import in_thread
from bespeak.protocol.errors import ClientVisibleError
from bespeak.resolve.errors import CleanupUnfinished, ResolverFailed
from bespeak.resolve.graph.model import Node

logger = logging.getLogger("bespeak.resolve")

CLEANUP_SECONDS = 30.0


class OpenGenerators:
    """The generators a round has opened, in order."""

    def __init__(self) -> None:
        self._open: list[tuple[Node, Any]] = []

    async def open(self, node: Node, generator: Any) -> Any:
        """Run a generator to its `yield`, and return the value."""
        try:
            value = await _advance(generator, node.name)
        except (StopAsyncIteration, _Exhausted):
            raise ResolverFailed(node.name, node.path, "is a generator that never yielded") from None
        self._open.append((node, generator))
        return value

    async def close(self, error: BaseException | None, *, body_ran: bool) -> None:
        """Close all, the last opened first.

        After a body each generator resumes, or sees the body's exception; without one it is closed early, so that
        what follows its `yield` does not run. Raises the last exception, if that is not `error`.
        """
        standing = error
        unfinished: Node | None = None
        while self._open:
            node, generator = self._open.pop()
            cancelled = is_cancelled()
            try:
                async with asyncio.timeout(CLEANUP_SECONDS):
                    standing = await _close(node, generator, standing, body_ran=body_ran)
            except TimeoutError:
                logger.error("the cleanup of resolver %r took over %g s and was stopped", node.name, CLEANUP_SECONDS)
                unfinished = unfinished or node
            except asyncio.CancelledError as cut:
                logger.error("the cleanup of resolver %r was interrupted by a cancellation", node.name)
                standing = standing or cut
            if isinstance(standing, asyncio.CancelledError) and not is_cancelled() and (cancelled or body_ran):
                # Nobody cancelled the call: it was a scope that this generator held, and has now left.
                standing = ResolverFailed(
                    node.name, node.path, "ended the call: a cancel scope that it holds was cancelled"
                )
        if standing is None and unfinished is not None and body_ran:
            # The others have closed as after any body that ran: only the client must not take it for a success.
            raise CleanupUnfinished(unfinished.name)
        if standing is not None and standing is not error:
            raise standing


async def _close(node: Node, generator: Any, standing: BaseException | None, *, body_ran: bool) -> BaseException | None:
    """Close one generator; the exception that stands after it."""
    try:
        if not body_ran:
            await _shut(generator, node.name)
        elif standing is None:
            await _advance(generator, node.name)
            await _shut(generator, node.name)
            return ResolverFailed(node.name, node.path, "is a generator that yielded twice")
        else:
            await _throw(generator, standing, node.name)
            await _shut(generator, node.name)
    except (StopAsyncIteration, _Exhausted):
        pass
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and error is not standing and is_cancelled():
            raise
        return _after(node, error, standing, body_ran=body_ran)
    return standing


def _after(node: Node, error: BaseException, standing: BaseException | None, *, body_ran: bool) -> BaseException | None:
    """What stands after a cleanup raised: what it was given, or a failure of its own."""
    leaves = list(_leaves(error, standing))
    if all(leaf is standing for leaf in leaves):  # a task group wraps what passes through it
        return standing
    if not body_ran:
        if not all(isinstance(leaf, GeneratorExit) for leaf in leaves):
            logger.error("the cleanup of resolver %r failed", node.name, exc_info=error)
        return standing
    if isinstance(error, ClientVisibleError):
        return error
    failed = ResolverFailed(node.name, node.path, "failed in its cleanup")
    failed.__cause__ = error
    return failed


def _leaves(error: BaseException, standing: BaseException | None) -> Iterator[BaseException]:
    if error is not standing and isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(inner, standing)
    else:
        yield error


class _Exhausted(Exception):
    """A sync generator has ended. (`StopIteration` cannot cross a thread or a coroutine.)"""


def _next(generator: Generator[Any, None, None]) -> Any:
    try:
        return next(generator)
    except StopIteration:
        raise _Exhausted from None


def _throw_into(generator: Generator[Any, None, None], error: BaseException) -> None:
    try:
        generator.throw(error)
    except StopIteration:
        raise _Exhausted from None


async def _advance(generator: Any, name: str) -> Any:
    if inspect.isasyncgen(generator):
        return await anext(cast("AsyncGenerator[Any, None]", generator))
    return await in_thread(functools.partial(_next, generator), name)


async def _throw(generator: Any, error: BaseException, name: str) -> None:
    if inspect.isasyncgen(generator):
        await cast("AsyncGenerator[Any, None]", generator).athrow(error)
    else:
        await in_thread(functools.partial(_throw_into, generator, error), name)


async def _shut(generator: Any, name: str) -> None:
    if inspect.isasyncgen(generator):
        await cast("AsyncGenerator[Any, None]", generator).aclose()
    else:
        await in_thread(generator.close, name)
