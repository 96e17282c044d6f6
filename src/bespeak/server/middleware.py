"""Middleware: hooks of an author around every request and around every call, for logs, limits and metrics.

A hook sees what is asked and how it ended, and may refuse it by raising an error. It cannot change a result.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bespeak.server.context import Context

InfoT = TypeVar("InfoT")
EndT = TypeVar("EndT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """A request that a hook is called for."""

    method: str
    target: str | None
    """The name of the tool or prompt, or the URI of the resource; `None` for other methods."""
    request_id: str | int
    protocol_version: str
    principal: str | None
    """Who sends it; `None` without authentication."""
    address: str | None
    """Where it comes from; `None` where that is not known."""


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """How a request ended."""

    error_code: int | None
    """The code of the error response; `None` for a result."""


@dataclass(frozen=True, slots=True)
class CallInfo:
    """One round of a call of a tool, prompt or resource that a hook is called for."""

    method: str
    name: str
    """The name of the tool or prompt, or the URI of the resource."""
    arguments: Mapping[str, Any]
    """As the client sent them, not validated. Values for resolved parameters have no effect."""
    context: Context[Any, Any]


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How one round of a call ended, if it did not raise."""

    asked: bool
    """Whether it asked something, and the client is to call again with the answers."""
    is_error: bool
    """Whether it is a result that says that the tool failed."""


RequestHook = Callable[[RequestInfo, Callable[[], Awaitable[RequestEnd]]], Awaitable[RequestEnd]]
"""Called for every request with what it is and `proceed`, which must be awaited once."""
CallHook = Callable[[CallInfo, Callable[[], Awaitable[CallEnd]]], Awaitable[CallEnd]]
"""Called for every round of a call, in the same way."""


class Around(Generic[InfoT, EndT, ResultT]):
    """Runs work inside hooks, the first of which is the outermost."""

    def __init__(
        self,
        hooks: Sequence[Callable[[InfoT, Callable[[], Awaitable[EndT]]], Awaitable[EndT]]],
        info: InfoT,
        work: Callable[[], Awaitable[ResultT]],
        end: Callable[[ResultT], EndT],
    ) -> None:
        self._hooks = hooks
        self._info = info
        self._work = work
        self._end = end
        self._results: list[ResultT] = []

    async def run(self) -> ResultT:
        """Return the result of the work. Raises what the work or a hook raises."""
        await self._proceed(0)
        if not self._results:
            raise RuntimeError("a hook returned without awaiting proceed(); raise an error to refuse a request")
        return self._results[0]

    async def _proceed(self, index: int) -> EndT:
        if index < len(self._hooks):
            return await self._hooks[index](self._info, lambda: self._proceed(index + 1))
        if self._results:
            raise RuntimeError("a hook awaited proceed() more than once")
        self._results.append(await self._work())
        return self._end(self._results[0])
