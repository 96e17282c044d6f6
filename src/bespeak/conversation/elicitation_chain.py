"""The elicitation chain: sends a call, and answers its questions from a fixture until it is complete."""

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, cast, overload

from bespeak.conversation.call_rounds import DEFAULT_MAX_ELICITATION_ROUNDS, Conversation, Round
from bespeak.conversation.fixtures import InputResponseFixture, responses_to
from bespeak.conversation.responses import Verdict


@dataclass(frozen=True, slots=True)
class Chain:
    """A complete call."""

    response: dict[str, Any]
    """The last response, which asks nothing."""
    rounds: list[Round]

    def __await__(self) -> "Generator[Any, Any, Chain]":
        """Return itself, so that callers may always await the result."""
        yield from ()
        return self


@overload
def run_elicitation_chain(
    initial_response: Any,
    initial_params: Any,
    fixture: InputResponseFixture,
    max_rounds: int,
    next_response: Callable[[dict[str, Any]], Awaitable[Any]],
) -> Awaitable[Chain]: ...
@overload
def run_elicitation_chain(
    initial_response: Any,
    initial_params: Any,
    fixture: InputResponseFixture,
    max_rounds: int,
    next_response: Callable[[dict[str, Any]], dict[str, Any]],
) -> Chain: ...
def run_elicitation_chain(
    initial_response: Any,
    initial_params: Any,
    fixture: InputResponseFixture,
    max_rounds: int = DEFAULT_MAX_ELICITATION_ROUNDS,
    next_response: Callable[[dict[str, Any]], Any] | None = None,
) -> Chain | Awaitable[Chain]:
    """Answer a call's questions from a fixture until a response asks nothing.

    `next_response` sends the params it is given, and returns the response; if it is async, so is this. Raises
    `RoundsExceeded` for a question beyond the cap, `CannotAnswer` and `MalformedResponse`.
    """
    if next_response is None:
        raise TypeError("next_response is missing: it sends the params it is given, and returns the response")
    params = dict(cast("Mapping[str, Any]", initial_params)) if isinstance(initial_params, Mapping) else {}
    conversation = Conversation("tools/call", params, max_rounds)
    if _is_async(next_response):
        return _walk_async(conversation, fixture, initial_response, next_response)
    response, unknown = initial_response, _in_a_loop()
    while _asks(conversation, fixture, response):
        if not unknown:  # it may turn out to be async, and then nobody else is to be held up
            time.sleep(conversation.pause)
        response, unknown = next_response(conversation.to_send), False
        if inspect.isawaitable(response):
            return _walk_async(conversation, fixture, response, next_response)
    return Chain(response, conversation.rounds)


def _is_async(call: Callable[..., Any]) -> bool:
    while isinstance(call, functools.partial):
        call = call.func
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _walk_async(
    conversation: Conversation,
    fixture: InputResponseFixture,
    response: Any,
    next_response: Callable[[dict[str, Any]], Awaitable[Any]],
) -> Chain:
    if inspect.isawaitable(response):
        await asyncio.sleep(conversation.pause)
        response = await response
    while _asks(conversation, fixture, response):
        await asyncio.sleep(conversation.pause)
        response = await next_response(conversation.to_send)
    return Chain(response, conversation.rounds)


def _asks(conversation: Conversation, fixture: InputResponseFixture, response: Any) -> bool:
    """Answer a response if it asks; whether it did."""
    read = conversation.receive(response)
    if read.verdict is not Verdict.ASKING:
        return False
    conversation.answer(responses_to(read.questions, fixture.answer_for))
    return True
