"""A request that waits for its response, with a time limit that is paused while a question is being answered."""

import asyncio
from collections.abc import Awaitable, Generator
from contextlib import contextmanager


class OpenRequest:
    """One request to a server that may ask questions in the meantime, and how long it may still take."""

    def __init__(self, seconds: float | None) -> None:
        self._left = seconds
        self._limit: asyncio.Timeout | None = None
        self._questions = 0
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when there is no use in waiting for the response."""
        self._failure: Exception | None = None

    async def run(self, work: Awaitable[bytes], what: str) -> bytes:
        """Wait for the response. Raises `TimeoutError`, or the exception that was given to `fail`."""
        seconds = self._left
        exchanging = asyncio.ensure_future(work)
        try:
            async with asyncio.timeout(seconds) as self._limit:
                await asyncio.wait({exchanging, self._ended}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise TimeoutError(f"no answer to {what} within {seconds:g} s") from None
        finally:
            self._limit = None
            if not exchanging.done():
                exchanging.cancel()
                await asyncio.wait({exchanging})
            elif not exchanging.cancelled():
                exchanging.exception()  # so that asyncio does not log it if another error is raised
        if self._failure is not None:
            raise self._failure
        return exchanging.result()

    def fail(self, error: Exception) -> None:
        """Make `run` raise this error, whatever the response is. Called when a question could not be answered."""
        self._failure = error

    def end(self) -> None:
        """Stop waiting for the response."""
        if not self._ended.done():
            self._ended.set_result(None)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the time limit."""
        self._questions += 1
        if self._questions == 1 and self._limit is not None and not self._limit.expired():
            when = self._limit.when()
            self._left = None if when is None else when - asyncio.get_running_loop().time()
            self._limit.reschedule(None)
        try:
            yield
        finally:
            self._questions -= 1
            limit = None if self._questions else self._limit
            if limit is not None and self._left is not None and not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time() + self._left)
