"""Random plans of graphs and answers, and a client that drives a call of one to its end beside the reference."""

import asyncio
import os
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, InputRequiredResult

from bespeak import Client, MCPError
from bespeak.client import ClientRequestContext
from tests.answering import text
from tests.graphs import Node, Plan, Record, Reply, Take, Watched, build
from tests.sequential import Known, Reference, Verdict

many = settings(
    max_examples=30 * int(os.environ.get("BESPEAK_SOAK", "1")),
    deadline=None,
    # Explaining a failure would cost a minute more than finding it.
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# Random plans


Way = Literal["value", "outcome", "accepted", "default"]
WAYS: tuple[Way, ...] = ("value", "value", "outcome", "accepted", "default")
ROLES: Any = [
    *[("async", asks) for asks in ("never", "never", "sometimes", "sometimes", "always", "always", "vague") * 2],
    *[("async generator", "never")] * 3,
    *[("generator", "never"), ("sync", "never"), ("sync", "sometimes")],  # threads are slow
]
FAILURES: Any = [
    *[(0, "crash")] * 16,
    (1, "crash"),
    (1, "tool"),
    (2, "crash"),
    (2, "protocol"),
    (3, "tool"),
    (-1, "crash"),
]
PAUSES = [(0,), (1,), (3,), (0, 4), (5, 0), (2, 0, 6)]


@st.composite
def plans(draw: st.DrawFn, *, failing: bool = True) -> Plan:
    nodes: list[Node] = []
    asking: set[int] = set()  # resolvers that may ask, or depend on one that may
    for index in range(draw(st.sampled_from(range(1, 9)))):
        takes = draw(takes_of(index)) if index else ()
        kind, asks = draw(st.sampled_from(ROLES))
        below_asks = any(take.node in asking for take in takes)
        if asks != "never" or below_asks:
            asking.add(index)
        fails, failure = draw(st.sampled_from(FAILURES)) if failing else (0, "crash")
        option = draw(st.sampled_from(["", "", "once", "guard"])) if asks == "never" else ""
        nodes.append(
            Node(
                takes=takes,
                argument=draw(st.booleans()),
                shape=draw(st.sampled_from(["bool", "int", "form"])),
                kind=kind,
                asks=asks,
                once=option == "once" and "generator" not in kind,
                guard=option == "guard" and not below_asks,
                fails=fails,
                failure=failure,
                pauses=draw(st.sampled_from(PAUSES)),
            )
        )
    taken = {take.node for node in nodes for take in node.takes}
    ends = tuple(Take(index, draw(st.sampled_from(WAYS))) for index in range(len(nodes)) if index not in taken)
    wants = (*draw(takes_of(len(nodes))), *ends)
    flipped = wants[::-1] if draw(st.booleans()) else wants
    return Plan(tuple(nodes), flipped, failing and draw(st.integers(0, 9)) == 9, twins=draw(st.booleans()))


def takes_of(below: int) -> st.SearchStrategy[tuple[Take, ...]]:
    every = [Take(node, way) for way in WAYS for node in range(below)]
    return st.sampled_from([0, 1, 1, 2, 3]).flatmap(lambda count: st.tuples(*[st.sampled_from(every)] * count))


REPLIES = [*[Reply("accept", number) for number in range(4)] * 2, Reply("decline"), Reply("cancel")]


def scripts(size: int = 8) -> st.SearchStrategy[dict[int, Reply]]:
    """An answer to every question there could be, by resolver."""
    return st.lists(st.sampled_from(REPLIES), min_size=1, max_size=3).map(
        lambda few: {index: few[index % len(few)] for index in range(size)}
    )


# Watching a call


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def node_of(message: str) -> int:
    return int(message.partition(" ")[0].removeprefix("n"))


@dataclass
class Person:
    """Answers by script, and remembers what was asked."""

    plan: Plan
    script: dict[int, Reply]
    asked: list[int] = field(default_factory=list[int])

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        index = node_of(params.message)
        self.asked.append(index)
        return ElicitResult.model_validate(self.script[index].wire(self.plan.nodes[index].shape))


async def reply_of(sending: Coroutine[Any, Any, CallToolResult | InputRequiredResult]) -> str | InputRequiredResult:
    """The reply to a request as one text, or the questions it asks."""
    try:
        result = await sending
    except MCPError as error:
        return f"{error.code}: {error.message}"
    return text(result) if isinstance(result, CallToolResult) else result


def still_running() -> list[str]:
    """Resolvers that have outlived their round."""
    return [name for task in asyncio.all_tasks() if (name := task.get_name()).startswith("bespeak resolver")]


def allowed(verdict: Verdict, reference: Reference) -> set[str]:
    """The texts a round without questions may end with.

    Declines alone are settled by graph order. A failure ends the round when it is known, so several, or one after a
    decline in graph order, may race; one before a decline is waited for.
    """
    if verdict.text is not None:
        return {verdict.text}
    first = min([*verdict.failures, *verdict.aborts], key=reference.order.index)
    texts = set(verdict.failures.values())
    return texts | {verdict.aborts[first]} if first in verdict.aborts else texts


def check_round(verdict: Verdict, record: Record, reference: Reference, *, spent: bool = False) -> None:
    """Check what holds in every round: who ran, how often, and that what was opened was closed."""
    assert set(Counter(record.ran).values()) <= {1}, "a resolver ran twice in one round"
    due, ran = set(verdict.ran), set(record.ran)
    if not set(verdict.failures) & set(reference.guards):
        assert due & set(reference.guards) <= ran, "a guard was left out"
    if verdict.failures or verdict.aborts or spent:
        assert ran <= due, "a resolver ran that was not due"
    else:
        assert ran == due, "a resolver ran that was not due, or one that was did not"
    if spent:
        assert not ran & set(reference.rest), "phase two ran again"
    assert [index for index, _ in record.closed] == record.opened[::-1], "not all closed, or not in reverse"
    assert not record.overlapped, "generators opened at the same time"
    ends = {how for _, how in record.closed}
    if not record.bodies:
        assert ends <= {"closed early"}
    else:
        assert ends <= {"saw an exception" if reference.plan.body_fails else "finished"}


# Driven by a client


@dataclass
class Drive:
    """A call driven to its end by a client, and what the reference expects of it."""

    watched: Watched
    person: Person
    reply: str
    verdicts: list[Verdict]
    reference: Reference


async def drive(plan: Plan, x: int, script: dict[int, Reply], **more: Any) -> Drive:
    watched, person, reference = build(plan), Person(plan, script), Reference(plan)
    async with Client(watched, elicitation_callback=person, input_required_max_rounds=20) as client:
        reply = await reply_of(client.call_tool("consume", {"x": x, **more}))
        assert isinstance(reply, str)
        assert still_running() == []
    verdicts = [reference.round(1, x, Known(), {})]
    while verdicts[-1].asks:
        last = verdicts[-1]
        verdicts.append(
            reference.round(len(verdicts) + 1, x, last.known, {index: script[index] for index in last.open})
        )
    return Drive(watched, person, reply, verdicts, reference)
