"""Rounds without a server: a consumer, the round before, and the answers to what that asked."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from bespeak.resolve.asking.progress import Progress
from bespeak.resolve.graph.compiler import compile_graph
from bespeak.resolve.reading.signatures import read
from bespeak.resolve.running.rounds import Round
from tests.answering import short


class Consent(BaseModel):
    ok: bool


class Surroundings:
    """Stands for the server's context, of which the engine knows nothing."""


YES = {"action": "accept", "content": {"ok": True}}
NO = {"action": "decline"}


FORMS: Mapping[str, Any] = {"elicitation": {}}


def start(
    consumer: Callable[..., Any],
    before: Round | None = None,
    declared: Mapping[str, Any] = FORMS,
    **answers: dict[str, Any],
) -> Round:
    """A round of a consumer whose argument is `title="Dune"`, after another; answers go by the end of their keys."""
    graph = compile_graph(read(consumer), context_type=Surroundings)
    keys = {short(node.key_name): node.key_name for node in graph.nodes}
    return Round(
        graph,
        arguments={"title": "Dune"},
        context=Surroundings(),
        progress=Progress.decode(before.progress.encode()) if before else Progress(),
        answers={keys[name]: answer for name, answer in answers.items()},
        declared=declared,
    )


async def asked(round_: Round) -> list[str]:
    return [short(key) for key in await round_.ask()]


async def values(consumer: Callable[..., Any]) -> dict[str, Any]:
    """What the body gets, in a call that asks nothing."""
    round_ = start(consumer)
    assert await round_.ask() == {}
    resolved = await round_.finish()
    await round_.close(body_ran=True)
    return resolved


async def run_to_end(consumer: Callable[..., Any], error: BaseException | None = None) -> None:
    """A round to its end, with a body that returns or raises."""
    round_ = start(consumer)
    assert await round_.ask() == {}
    await round_.finish()
    await round_.close(error, body_ran=True)


async def pause(times: int = 1) -> None:
    """Give the event loop so many turns that everything else happens first that waits for nothing."""
    for _ in range(20 * times):
        await asyncio.sleep(0)
