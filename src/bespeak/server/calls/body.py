"""Runs an author's function, and turns its return value or exception into a wire result."""

import asyncio
import functools
import inspect
from typing import Any

from mcp_types import InputRequiredResult

from bespeak.aio.in_place import CancelledItself, catch_self_cancellation
from bespeak.aio.tasks import is_cancelled
from bespeak.aio.threads import BODIES, in_thread
from bespeak.protocol.errors import MISSING_REQUIRED_CLIENT_CAPABILITY, ClientVisibleError, MCPError
from bespeak.resolve.errors import UNASKED_CANCELLATION, MissingCapability
from bespeak.resolve.markers import Question
from bespeak.resolve.reading.callables import Kind
from bespeak.server.calls.replies import Consumer


async def run_plain(
    consumer: Consumer, sent: dict[str, Any], *, raise_exceptions: bool
) -> dict[str, Any] | InputRequiredResult:
    """Return the wire result of a consumer without resolvers or context. No state has to be kept for such a call."""
    try:
        value = await run_body(consumer, consumer.arguments.read(sent))
        return value if isinstance(value, InputRequiredResult) else result_of(consumer, value)
    except Exception as error:  # noqa: BLE001 - the edge where an author's crash becomes an answer
        return failed(consumer, error, raise_exceptions=raise_exceptions)


async def run_body(consumer: Consumer, values: dict[str, Any]) -> Any:
    """Return what an author's function returns."""
    loop = asyncio.get_running_loop()
    try:
        if consumer.kind is Kind.ASYNC:
            return await catch_self_cancellation(consumer.fn(**values))
        result = await in_thread(functools.partial(consumer.fn, **values), consumer.name, BODIES)
        if inspect.iscoroutine(result):
            return await catch_self_cancellation(result)
        return await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise RuntimeError(f"{consumer.name!r} {UNASKED_CANCELLATION}") from error
    except CancelledItself as error:
        raise RuntimeError(f"{consumer.name!r} cancelled its own task") from error
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        if loop.is_closed():  # the program ended under it; the function itself did not fail
            raise
        raise RuntimeError(f"{consumer.name!r} raised {type(error).__name__}") from error


def result_of(consumer: Consumer, value: Any) -> dict[str, Any]:
    """Return the wire result for a function's return value."""
    if isinstance(value, Question):
        raise TypeError(
            f"{consumer.name!r} returned {type(value).__name__}, which only a resolver may return; ask in a resolver, and take "
            "the answer as a parameter: Annotated[..., Resolve(ask)]"
        )
    return consumer.result(value)


def failed(consumer: Consumer, error: Exception, *, raise_exceptions: bool) -> dict[str, Any]:
    """Return the wire result for a failure.

    Raises `MCPError` for a protocol error, and a crash as it is if `raise_exceptions` is set.
    """
    if raise_exceptions and not isinstance(error, (ClientVisibleError, MissingCapability)):
        raise error
    return failure_of(consumer, error)


def failure_of(consumer: Consumer, error: Exception) -> dict[str, Any]:
    """Return the wire result for a failure. Raises `MCPError` for a protocol error."""
    if isinstance(error, MissingCapability):
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, str(error), {"requiredCapabilities": error.required})
    return consumer.failure(error)
