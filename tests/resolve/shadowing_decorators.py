"""Decorators of another module, in which `Marked` and `Outcome` are the names of unmarked things."""

import functools
from collections.abc import Callable
from typing import Any

Marked = bool
Outcome = bool


def copying(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Shows the annotations of what it wraps, and does not say what it wraps."""

    async def wrapper(order: Any, ok: Any) -> Any:
        return await fn(order, ok)

    wrapper.__annotations__ = dict(fn.__annotations__)
    return wrapper


def sharing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The same with the very same dictionary, and a name."""

    async def wrapper(order: Any, ok: Any) -> Any:
        return await fn(order, ok)

    wrapper.__annotations__ = fn.__annotations__
    wrapper.__name__ = fn.__name__
    return wrapper


def forgetting(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Copies all that `functools.wraps` copies, without a way back to what it wraps."""

    @functools.wraps(fn)
    async def wrapper(order: Any, ok: Any) -> Any:
        return await fn(order, ok)

    del wrapper.__wrapped__  # pyright: ignore[reportAttributeAccessIssue] - functools sets it
    return wrapper


class Wrapper:
    """A decorator that is a class, and copies annotations onto its `__call__`'s stand-in."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn

    async def __call__(self, order: Any, ok: Any) -> Any:
        return await self.fn(order, ok)


def honest(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await fn(*args, **kwargs)

    return wrapper
