"""On random graphs no call runs twice, whatever a client sends again or forks (design 7); and endings found on the way."""

import asyncio
import gc
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from mcp_types import InputRequiredResult

from bespeak import Client, MCPServer, Resolve
from bespeak.protocol.question_keys import bare_name
from tests.answering import text, unresolved
from tests.graphs import Node, Plan, Record, Reply, Take, Watched, build
from tests.random_graphs import Person, allowed, check_round, drive, many, plans, reply_of, run, scripts, still_running
from tests.sequential import Known, Reference, Verdict

OTHERWISE = (
    "Error executing tool consume: this call was already settled with other answers; check whether it took effect "
    "before you start a new one"
)


@dataclass(frozen=True)
class Held:
    """A state the client holds, and what it should carry."""

    call: int
    token: str | None = None
    round: int = 0
    known: Known = field(default_factory=Known)


@dataclass(frozen=True)
class Move:
    """One request: which of the states held goes back, with which answers."""

    which: int
    script: dict[int, Reply]
    left_out: frozenset[int]
    twice: bool
    spoil: Literal["nothing", "arguments", "token"]


moves = st.builds(
    Move,
    st.integers(-3, 3),
    scripts(),
    st.frozensets(st.integers(0, 7), max_size=2),
    st.sampled_from([False, False, True]),
    st.sampled_from(["nothing"] * 8 + ["arguments", "token"]),
)


@dataclass
class Desk:
    """A client that sends whatever it likes, and the replies that the design lets it get."""

    client: Client
    watched: Watched
    reference: Reference
    x: int
    held: list[Held] = field(default_factory=lambda: [Held(0)])
    claims: dict[int, tuple[dict[int, Any], str]] = field(default_factory=dict[int, tuple[dict[int, Any], str]])
    """By call: the answers it was settled with, and its one reply."""
    requests: dict[int, tuple[str | None, dict[str, Any]]] = field(
        default_factory=dict[int, tuple[str | None, dict[str, Any]]]
    )
    """By call: the state and the answers that settled it."""
    late: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])
    """Runs of phase two, by call and resolver."""
    calls: int = 1

    def answers(self, sent: dict[int, Reply]) -> dict[str, Any]:
        nodes, keys = self.reference.plan.nodes, self.reference.keys
        return {keys[index]: reply.wire(nodes[index].shape) for index, reply in sent.items() if index in keys}

    async def send(self, held: Held, sent: dict[int, Reply], x: int) -> str | InputRequiredResult:
        return await reply_of(
            self.client.session.call_tool(
                "consume",
                {"x": x},
                input_responses={**self.answers(sent), "nobody": {"action": "decline"}},
                request_state=held.token,
                allow_input_required=True,
            )
        )

    async def make(self, move: Move) -> None:
        held = self.held[move.which % len(self.held)]
        if held.token is None:
            held, self.calls = replace(held, call=self.calls), self.calls + 1
        elif move.spoil != "nothing":
            await self.refused(held, move)
            return
        sent = {index: move.script[index] for index in self.reference.order if index not in move.left_out}
        verdict = self.reference.round(held.round + 1, self.x, held.known, sent)
        times = 2 if move.twice and held.token is not None else 1
        replies = await asyncio.gather(*(self.send(held, sent, self.x) for _ in range(times)))
        assert still_running() == []
        records = self.watched.rounds[-times:]
        rest = set(self.reference.rest)
        # Of two at once, the one that was let through comes first.
        pairs = list(zip(replies, records, strict=True))
        pairs.sort(key=lambda pair: (pair[0] == OTHERWISE, -len(rest & {*pair[1].ran}) - len(pair[1].bodies)))
        for reply, record in pairs:
            self.late.update((held.call, index) for index in record.ran if index in rest)
            self.check(held, sent, verdict, reply, record, together=times > 1)

    async def refused(self, held: Held, move: Move) -> None:
        spoiled = replace(held, token=f"{held.token}A") if move.spoil == "token" else held
        reply = await self.send(spoiled, {}, self.x + (move.spoil == "arguments"))
        assert (
            reply
            == "-32602: invalid or expired requestState; if the call may have taken effect, check before you start it again"
        )
        assert self.watched.rounds[-1].ran == []

    def check(
        self,
        held: Held,
        sent: dict[int, Reply],
        verdict: Verdict,
        reply: str | InputRequiredResult,
        record: Record,
        *,
        together: bool,
    ) -> None:
        if held.call in self.claims and self.requests[held.call] == (held.token, self.answers(sent)):
            # Of two that are sent together, one may fail before the other claims the call. That is not final.
            early = together and not verdict.claims and reply in verdict.failures.values()
            assert early or reply == self.claims[held.call][1], "the very same request got another reply"
            assert not record.bodies
            return
        if verdict.asks and held.call in self.claims:
            assert reply == OTHERWISE, "a settled call asked again"
            return
        if verdict.asks:
            assert isinstance(reply, InputRequiredResult)
            keys = [self.reference.keys[index] for index in verdict.open]
            assert [bare_name(key) for key in reply.input_requests or {}] == keys
            self.held.append(Held(held.call, reply.request_state, held.round + 1, verdict.known))
            check_round(verdict, record, self.reference)
            return
        assert isinstance(reply, str)
        texts = allowed(verdict, self.reference)
        nodes = self.reference.plan.nodes
        answers = {index: one.wire(nodes[index].shape) for index, one in verdict.known.settled.items()}
        final = verdict.claims or reply not in verdict.failures.values()
        spent = self.claims.get(held.call) if final and held.token is not None else None
        check_round(verdict, record, self.reference, spent=spent is not None)
        if spent is None:
            assert reply in texts
            if final and held.token is not None:
                self.claims[held.call] = (answers, reply)
                self.requests[held.call] = (held.token, self.answers(sent))
            return
        assert not record.bodies
        settled, told = spent
        if settled == answers:
            assert reply == told, "the same claim again got another reply"
        else:
            assert reply in {OTHERWISE, told} if verdict.aborts and told in texts else reply == OTHERWISE


@many
@given(plans(), st.integers(0, 3), st.lists(moves, min_size=2, max_size=8))
@pytest.mark.long
def test_old_states_forks_and_repeated_retries_never_run_a_call_twice(plan: Plan, x: int, made: list[Move]) -> None:
    async def scenario() -> None:
        watched = build(plan)
        async with Client(watched, elicitation_callback=Person(plan, {})) as client:
            desk = Desk(client, watched, Reference(plan), x)
            await desk.make(replace(made[0], which=0))
            for move in made[1:]:
                await desk.make(move)
        event(f"{len(desk.held) - 1} states, {len(desk.claims)} claims")
        bodies = Counter(call for record in watched.rounds for call in record.bodies)
        assert set(bodies.values()) <= {1}
        assert set(desk.late.values()) <= {1}

    run(scenario())


@many
@given(plans(failing=False), st.integers(0, 3), st.lists(scripts(), min_size=2, max_size=4))
@pytest.mark.long
def test_of_different_answers_sent_at_the_same_time_one_wins(plan: Plan, x: int, made: list[dict[int, Reply]]) -> None:
    async def scenario() -> None:
        watched, reference = build(plan), Reference(plan)
        async with Client(watched, elicitation_callback=Person(plan, {})) as client:
            desk = Desk(client, watched, reference, x)
            held = desk.held[0]
            while True:
                verdict = reference.round(held.round + 1, x, held.known, made[0])
                if not verdict.asks:
                    break
                await desk.make(Move(len(desk.held) - 1, made[0], frozenset(), False, "nothing"))
                held = desk.held[-1]
            if held.token is None:
                return
            verdicts = [reference.round(held.round + 1, x, held.known, script) for script in made]
            before = len(watched.rounds)
            replies = await asyncio.gather(*(desk.send(held, script, x) for script in made))
        ended = {reply for reply in replies if isinstance(reply, str) and reply != OTHERWISE}
        assert len(ended) == 1
        assert ended <= {one for verdict in verdicts if not verdict.asks for one in allowed(verdict, reference)}
        assert sum(len(record.bodies) for record in watched.rounds[before:]) <= 1
        for reply, verdict in zip(replies, verdicts, strict=True):
            assert isinstance(reply, InputRequiredResult) == verdict.asks or (verdict.asks and reply == OTHERWISE)

    run(scenario())


# Endings that random graphs came upon, each as its smallest graph

ASKING = Node(asks="always")
DECLINED = {index: Reply("decline") for index in range(8)}


def failed(plan: Plan, index: int) -> str:
    return f"Error executing tool consume: resolver 'n{index}' failed ({Reference(plan).paths[index]})"


def declined(parameter: str) -> str:
    return f"Error executing tool consume: {unresolved(parameter, 'decline')}"


async def test_a_declined_call_sent_again_gets_the_same_reply_though_resolvers_finish_in_another_order() -> None:
    # The second question takes longer in the first retry, so that the decline of the first overtakes it only there.
    plan = Plan((ASKING, replace(ASKING, pauses=(0, 5, 0))), (Take(0), Take(1)))
    watched = build(plan)
    async with Client(watched, elicitation_callback=Person(plan, {})) as client:
        desk = Desk(client, watched, Reference(plan), 0)
        await desk.make(Move(0, DECLINED, frozenset(), False, "nothing"))
        held = desk.held[-1]
        replies = [await desk.send(held, DECLINED, 0) for _ in range(3)]
    assert replies == [declined("body_0")] * 3


async def test_no_author_code_runs_in_a_round_that_only_fetches_a_stored_result() -> None:
    plan = Plan((Node(guard=True), ASKING), (Take(0), Take(1, "outcome")))
    watched = build(plan)
    async with Client(watched, elicitation_callback=Person(plan, {})) as client:
        desk = Desk(client, watched, Reference(plan), 0)
        await desk.make(Move(0, DECLINED, frozenset(), False, "nothing"))
        first, again = [await desk.send(desk.held[-1], DECLINED, 0) for _ in range(2)]
    assert first == again
    assert [record.ran.count(0) for record in watched.rounds] == [1, 1, 0]


@pytest.mark.long
async def test_failures_beside_the_reported_one_do_not_make_the_event_loop_complain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A log record would keep the traceback, and with it the tasks whose end is waited for here.
    monkeypatch.setattr(logging.getLogger("bespeak.server"), "disabled", True)
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))
    await drive(Plan((Node(fails=1), Node(fails=1)), (Take(0), Take(1))), 0, {})
    gc.collect()
    assert complaints == []


@pytest.mark.parametrize("pause", [1, 2, 3])
async def test_a_failing_generator_does_not_hide_a_decline_known_before_it(pause: int) -> None:
    generator = Node(fails=2, kind="async generator", pauses=(pause,))
    plan = Plan((ASKING, generator, replace(ASKING, takes=(Take(1),))), (Take(0), Take(2)))
    assert (await drive(plan, 0, DECLINED)).reply == declined("body_0")


@pytest.mark.parametrize("pause", [0, 1, 2, 3])
async def test_a_failing_generator_lets_nothing_run_on_after_the_round(pause: int) -> None:
    # The third becomes ready just when the generator fails.
    generator = Node(fails=1, kind="async generator", pauses=(pause,))
    plan = Plan((Node(pauses=(0,)), generator, Node((Take(0),), pauses=(50,))), (Take(1), Take(2)))
    assert (await drive(plan, 0, {})).reply == failed(plan, 1)  # `drive` looks for what still runs


async def test_no_generator_is_opened_once_a_failure_is_known() -> None:
    opening = Node(kind="async generator", pauses=(3,))
    plan = Plan((Node(fails=1), opening, replace(opening, pauses=(0,))), (Take(0), Take(1), Take(2)))
    call = await drive(plan, 0, {})
    assert 2 not in call.watched.rounds[0].ran


async def test_a_sync_generator_that_a_failure_interrupts_while_it_opens_is_closed_all_the_same() -> None:
    mcp = MCPServer[Any]("threads")
    loop, started = asyncio.get_running_loop(), asyncio.Event()
    go_on, closed = threading.Event(), threading.Event()

    def slow() -> Iterator[int]:
        loop.call_soon_threadsafe(started.set)
        go_on.wait(20)
        try:
            yield 1
        finally:
            closed.set()

    async def failing() -> int:
        await started.wait()
        raise RuntimeError("not for the client")

    @mcp.tool()
    async def consume(  # pyright: ignore[reportUnusedFunction] - called by name
        opened: Annotated[int, Resolve(slow)], value: Annotated[int, Resolve(failing)]
    ) -> str:
        return "done"

    async with Client(mcp) as client:
        result = await client.call_tool("consume")
        assert "resolver 'failing' failed" in text(result)
        go_on.set()
        assert await asyncio.to_thread(closed.wait, 20)
