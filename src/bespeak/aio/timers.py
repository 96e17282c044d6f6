"""Calling back after some time."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def after(seconds: float | None, callback: Callable[[], object]) -> Generator[None]:
    """Call back when some time has passed, unless the block has ended by then; `None` is never."""
    timer = asyncio.get_running_loop().call_later(seconds, callback) if seconds is not None else None
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
