"""What a command knows while an author's file is loaded: whether registration errors are collected, and that nothing may run yet.

The file's own code runs in between, so this cannot be passed as an argument.
"""

import asyncio
import inspect
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from bespeak.resolve.errors import Fault, InvalidSignature
from bespeak.resolve.graph.drawing import draw_path
from bespeak.resolve.reading.callables import annotated_function, peel_partial, place_of


class RunWhileLoading(Exception):
    """A file runs its server, or an event loop, while a command loads it."""

    def __init__(self, does: str = "runs its server") -> None:
        super().__init__(
            f"the file {does} while it is loaded; put the call under `if __name__ == '__main__':`, so that the "
            "command can load the file first"
        )


@dataclass(slots=True)
class Loading:
    """One file being loaded."""

    collects: bool = False
    """Whether registration errors are collected, instead of ending the load."""
    errors: list[InvalidSignature] = field(default_factory=list[InvalidSignature])
    """Those that were collected, in the order of the file."""


_CURRENT: ContextVar[Loading | None] = ContextVar("bespeak_loading", default=None)


@contextmanager
def loading(*, collects: bool = False) -> Generator[Loading]:
    """Mark what runs in the block as the loading of a file. A load inside another load belongs to it."""
    current = _CURRENT.get() or Loading(collects)
    token = _CURRENT.set(current)
    try:
        yield current
    finally:
        _CURRENT.reset(token)


def refuse_running() -> None:
    """Raises `RunWhileLoading` if a file is being loaded."""
    if _CURRENT.get() is not None:
        raise RunWhileLoading


def explained(error: BaseException) -> BaseException:
    """Return the exception of a file, or `RunWhileLoading` if it says that `asyncio.run` was called in the command's event loop.

    The coroutine that was passed is closed, because Python would warn that it was never awaited.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if type(error) is not RuntimeError or frames[-1].f_code is not asyncio.run.__code__:
        return error
    for value in frames[-1].f_locals.values():
        if inspect.iscoroutine(value):
            value.close()
    return RunWhileLoading("calls asyncio.run()").with_traceback(error.__traceback__)


def register(add: Callable[[], object], fn: Callable[..., Any]) -> None:
    """Register a function. What is wrong with it is raised, or collected if the command collects."""
    current = _CURRENT.get()
    collected = current.errors if current is not None and current.collects else None
    try:
        add()
    except InvalidSignature as invalid:
        if collected is None:  # it names the places in the author's code; our own frames would only hide them
            raise invalid.with_traceback(None) from invalid.__cause__
        collected.append(invalid)
    except ValueError as error:
        if collected is None:
            raise
        collected.append(_as_invalid(error, fn))


def _as_invalid(error: ValueError, fn: Callable[..., Any]) -> InvalidSignature:
    """A name or an option that is refused, as a fault with a place. Such messages say themselves what to do."""
    name: str = getattr(peel_partial(fn), "__name__", type(fn).__name__)
    place = place_of(fn, annotated_function(fn))
    problem, _, fix = str(error).partition("; ")
    return InvalidSignature(name, (Fault(problem, fix or "see the message", place, draw_path((f"{name}   {place}",))),))
