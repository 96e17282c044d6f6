"""Runs an author's function, and turns its return value or exception into a wire result."""

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING, Any

from bespeak.aio.in_place import CancelledItself, at_once, catch_self_cancellation, this_task
from bespeak.aio.tasks import is_cancelled
from bespeak.aio.threads import BODIES, in_thread
from bespeak.protocol.errors import MISSING_REQUIRED_CLIENT_CAPABILITY, ClientVisibleError, MCPError
from bespeak.resolve.asking.progress import Progress
from bespeak.resolve.errors import UNASKED_CANCELLATION, MissingCapability
from bespeak.resolve.markers import Question
from bespeak.resolve.reading.callables import Kind
from bespeak.resolve.running.rounds import Round
from bespeak.server.calls.by_hand import asks_by_hand
from bespeak.server.calls.replies import Consumer
from bespeak.server.context import Context, end

if TYPE_CHECKING:
    from mcp_types import InputRequiredResult


_PLAIN = frozenset({str, bool, int, float, dict, list})
"""Types of values that are not questions, neither an author's nor one made by hand."""


async def run_plain(
    consumer: Consumer, sent: dict[str, Any], *, raise_exceptions: bool
) -> "dict[str, Any] | InputRequiredResult":
    """Return the wire result of a consumer without resolvers or context. No state has to be kept for such a call."""
    try:
        value = await run_body(consumer, consumer.arguments.read(sent))
        return value if asks_by_hand(value) else result_of(consumer, value)
    except Exception as error:  # noqa: BLE001 - the edge where an author's crash becomes an answer
        return failed(consumer, error, raise_exceptions=raise_exceptions)


async def run_straight(
    consumer: Consumer, sent: dict[str, Any], context: Context[Any, Any] | None, *, raise_exceptions: bool
) -> dict[str, Any]:
    """Return the wire result of a consumer whose resolvers never ask. No state has to be kept for such a call either.

    `context` may be left out if nobody takes it.
    """
    try:
        arguments = consumer.arguments.read(sent)
        graph = consumer.graph
        try:
            round_ = Round(graph, arguments=arguments, context=context, progress=Progress(), answers={}, declared={})
            if graph.guards:
                await round_.guard()
            values = {**arguments, **await round_.finish()}
            for name in consumer.context_parameters:
                values[name] = context
            value = await run_body(consumer, values)
        finally:
            if context is not None:
                end(context)
        return result_with_resolvers(consumer, value)
    except Exception as error:  # noqa: BLE001 - the same edge
        return failed(consumer, error, raise_exceptions=raise_exceptions)


async def run_body(consumer: Consumer, values: dict[str, Any]) -> Any:
    """Return what an author's function returns."""
    loop = asyncio.get_running_loop()
    try:
        if consumer.at_once:
            return await at_once(consumer.fn(**values), this_task(loop))
        if consumer.kind is Kind.ASYNC:
            return await catch_self_cancellation(consumer.fn(**values), this_task(loop))
        result = await in_thread(functools.partial(consumer.fn, **values), consumer.name, BODIES)
        if inspect.iscoroutine(result):
            return await catch_self_cancellation(result, this_task(loop))
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


def result_with_resolvers(consumer: Consumer, value: Any) -> dict[str, Any]:
    """Return the wire result for the return value of a function with resolvers, which must not ask by hand."""
    if type(value) in _PLAIN:
        return consumer.result(value)
    if asks_by_hand(value):
        raise TypeError(f"{consumer.name!r} has resolvers and returned an InputRequiredResult; ask in a resolver")
    return result_of(consumer, value)


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
