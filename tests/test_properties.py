"""Whatever the graph, the answers, the failures and the replays: the rules of design sections 4 to 7, on random graphs."""

import asyncio
import os
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, InputRequiredResult

from bespeak import Client, MCPError
from bespeak.client import CallbackContext
from tests.answering import text
from tests.graphs import BODY, Node, Plan, Record, Reply, Take, Watched, build, parameter_name
from tests.sequential import Known, Reference, Verdict

many = settings(
    max_examples=(80 if os.environ.get("BESPEAK_MATRIX") else 30) * int(os.environ.get("BESPEAK_SOAK", "1")),
    deadline=None,
    # Explaining a failure would cost a minute more than finding it.
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# Random graphs


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

    async def __call__(self, context: CallbackContext, params: ElicitRequestParams) -> ElicitResult:
        index = node_of(params.message)
        self.asked.append(index)
        return ElicitResult.model_validate(self.script[index].wire(self.plan.nodes[index].shape))


async def reply_of(sending: Coroutine[Any, Any, CallToolResult | InputRequiredResult]) -> str | InputRequiredResult:
    """What a request comes to, as one text, unless it asks."""
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
    """What holds in every round: who ran, how often, and that what was opened was closed."""
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


@many
@given(plans(), st.integers(0, 3), scripts())
def test_a_driven_call_ends_as_a_plain_sequential_evaluation_does(plan: Plan, x: int, script: dict[int, Reply]) -> None:
    async def scenario() -> None:
        call = await drive(plan, x, script)
        last = call.verdicts[-1]
        event(f"{len(call.verdicts)} rounds, ended by {'body' if last.text else 'failure or decline'}")
        assert call.reply in allowed(last, call.reference)

    run(scenario())


@many
@given(plans(), st.integers(0, 3), scripts())
def test_every_question_is_shown_once_and_as_early_as_it_can_be(plan: Plan, x: int, script: dict[int, Reply]) -> None:
    async def scenario() -> None:
        call = await drive(plan, x, script)
        assert call.person.asked == [index for verdict in call.verdicts if verdict.asks for index in verdict.open]
        assert len(set(call.person.asked)) == len(call.person.asked)

    run(scenario())


@many
@given(plans(), st.integers(0, 3), scripts())
def test_each_round_runs_what_is_due_once_and_closes_what_it_opens(
    plan: Plan, x: int, script: dict[int, Reply]
) -> None:
    async def scenario() -> None:
        call = await drive(plan, x, script)
        assert len(call.watched.rounds) == len(call.verdicts)
        for verdict, record in zip(call.verdicts, call.watched.rounds, strict=True):
            check_round(verdict, record, call.reference)
        runs = Counter(index for record in call.watched.rounds for index in record.ran)
        for index in call.reference.order:
            if plan.nodes[index].once or index in call.reference.rest:
                assert runs[index] <= 1
        assert sum(len(record.bodies) for record in call.watched.rounds) <= 1

    run(scenario())


@many
@given(plans(failing=False), st.data(), st.integers(0, 3), scripts())
def test_the_order_in_which_resolvers_finish_changes_nothing(
    plan: Plan, data: st.DataObject, x: int, script: dict[int, Reply]
) -> None:
    paces = [tuple(data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3))) for _ in plan.nodes]
    other = replace(plan, nodes=tuple(replace(n, pauses=p) for n, p in zip(plan.nodes, paces, strict=True)))

    async def scenario() -> None:
        one, two = await drive(plan, x, script), await drive(other, x, script)
        assert one.reply == two.reply
        assert one.person.asked == two.person.asked

    run(scenario())


@many
@given(
    plans(failing=False),
    st.integers(0, 3),
    scripts(),
    st.one_of(st.none(), st.integers(), st.just({"action": "accept"})),
)
def test_values_sent_under_marked_names_change_nothing_and_are_not_in_the_schema(
    plan: Plan, x: int, script: dict[int, Reply], sent: Any
) -> None:
    marked = [parameter_name(BODY, position) for position in range(len(plan.wants))]

    async def scenario() -> None:
        call = await drive(plan, x, script, **dict.fromkeys([*marked, "n0_0", "ctx"], sent))
        assert call.reply in allowed(call.verdicts[-1], call.reference)
        async with Client(call.watched) as client:
            (tool,) = (await client.list_tools()).tools
        assert set(tool.input_schema["properties"]) == {"x"}

    run(scenario())
