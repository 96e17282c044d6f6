"""The elicitation chain: answers a whole call from a fixture, with a function that blocks or is async."""

import asyncio
import copy
import functools
import time
from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import Any

import pytest

from bespeak.testing import (
    CannotAnswer,
    Chain,
    InputResponseFixture,
    MalformedResponse,
    MissingAnswer,
    Round,
    RoundsExceeded,
    run_elicitation_chain,
)
from tests.conversation.envelopes import DONE, FAILED, asking, field, form, listing

PARAMS: dict[str, Any] = {"name": "weather", "arguments": {"loc": "SFO"}}
OSLO: dict[str, Any] = {"action": "accept", "content": {"city": "Oslo"}}
FIXTURE = InputResponseFixture({"city": "Oslo", "login": {"url": "done"}})


class Server:
    """Answers with these responses, one after the other, and keeps what it was sent."""

    def __init__(self, *responses: Any) -> None:
        self.responses = list(responses)
        self.received: list[dict[str, Any]] = []

    def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        self.received.append(copy.deepcopy(params))
        return self.responses.pop(0)

    async def send(self, params: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return self(params)


class SendsItself(Server):
    """One whose object itself is awaited."""

    def __call__(self, params: dict[str, Any]) -> Any:
        return self.later(params)

    async def later(self, params: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return super().__call__(params)


def test_a_chain_of_rounds_ends_with_the_response_that_asks_nothing() -> None:
    server = Server(listing(field(), state="two"), DONE)
    chain = run_elicitation_chain(asking({"city": form()}, requestState="one"), PARAMS, FIXTURE, 5, server)
    assert chain == Chain(
        DONE,
        [
            Round({"city": "Which city?"}, {"city": OSLO}, state=True),
            Round({"city": "What city?"}, {"city": "Oslo"}, state=True),
        ],
    )
    assert server.received == [
        {**PARAMS, "inputResponses": {"city": OSLO}, "requestState": "one"},
        {**PARAMS, "inputResponses": [{"id": "city", "value": "Oslo"}], "requestState": "two"},
    ]


@pytest.mark.parametrize("first", [DONE, FAILED])
def test_a_response_that_asks_nothing_passes_through(first: Any) -> None:
    assert run_elicitation_chain(first, PARAMS, FIXTURE, 5, Server()) == Chain(first, [])


def test_params_may_be_any_mapping() -> None:
    server = Server(DONE)
    run_elicitation_chain(asking({"city": form()}), MappingProxyType(PARAMS), FIXTURE, 5, server)
    assert server.received == [{**PARAMS, "inputResponses": {"city": OSLO}}]


@pytest.mark.parametrize(
    ("first", "error", "said"),
    [
        (asking({"units": form()}), MissingAnswer, "there is no answer to 'units'"),
        (asking({"city": form(city={"type": "integer"})}), CannotAnswer, "must be a whole number"),
        (asking({"city": {}}), MalformedResponse, "the question 'city' has no method"),
        (None, MalformedResponse, "the response is not an object"),
    ],
)
def test_what_cannot_be_answered_is_raised_before_anything_is_sent(
    first: Any, error: type[Exception], said: str
) -> None:
    server = Server()
    with pytest.raises(error, match=said):
        run_elicitation_chain(first, PARAMS, FIXTURE, 5, server)
    assert server.received == []


def test_a_loop_of_states_alone_backs_off_and_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    server = Server(*[asking(requestState="s")] * 5)
    with pytest.raises(RoundsExceeded, match="nothing, only a state"):
        run_elicitation_chain(asking(requestState="s"), PARAMS, FIXTURE, 5, server)
    assert [pause for pause in pauses if pause] == [0.05, 0.1, 0.2, 0.25, 0.25]
    assert server.received == [{**PARAMS, "requestState": "s"}] * 5


Sends = Callable[[dict[str, Any]], Awaitable[Any]]
WAYS: dict[str, Callable[[Server], Sends]] = {
    "an async method": lambda server: server.send,
    "a partial of one": lambda server: functools.partial(server.send),
    "a function that returns a coroutine": lambda server: lambda params: server.send({**params}),
    "a function that returns a task": lambda server: lambda params: asyncio.ensure_future(server.send(params)),
    "an object that is called": lambda server: SendsItself(*server.responses),
}


@pytest.mark.parametrize("way", WAYS)
async def test_an_async_loop_backs_off_without_holding_up_others(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[float] = []
    pauses: list[float] = []
    yielding = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await yielding(0)

    monkeypatch.setattr(time, "sleep", held.append)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    send = WAYS[way](Server(asking(requestState="s"), DONE))
    await run_elicitation_chain(asking(requestState="s"), PARAMS, FIXTURE, 5, send)
    assert [pause for pause in pauses if pause] == [0.05, 0.1]
    assert not any(held)


@pytest.mark.parametrize("way", WAYS)
async def test_whatever_returns_something_to_be_awaited_makes_the_loop_async(way: str) -> None:
    send = WAYS[way](Server(asking({"city": form()}), DONE))
    chain = await run_elicitation_chain(asking({"city": form()}), PARAMS, FIXTURE, 5, send)
    assert (chain.response, len(chain.rounds)) == (DONE, 2)


async def test_an_async_loop_passes_through_a_response_that_asks_nothing() -> None:
    assert await run_elicitation_chain(DONE, PARAMS, FIXTURE, 5, Server().send) == Chain(DONE, [])


async def test_parallel_loops_keep_their_own_states() -> None:
    servers = [Server(asking({"city": form()}, requestState=f"second {number}"), DONE) for number in range(50)]
    await asyncio.gather(
        *(
            run_elicitation_chain(
                asking({"city": form()}, requestState=f"first {number}"), PARAMS, FIXTURE, 5, one.send
            )
            for number, one in enumerate(servers)
        )
    )
    states = [[sent["requestState"] for sent in one.received] for one in servers]
    assert states == [[f"first {number}", f"second {number}"] for number in range(50)]


def test_without_something_to_send_with_the_loop_says_what_is_missing() -> None:
    with pytest.raises(
        TypeError, match="next_response is missing: it sends the params it is given, and returns the response"
    ):
        run_elicitation_chain(DONE, PARAMS, FIXTURE)  # pyright: ignore[reportCallIssue] - that is what is tested
