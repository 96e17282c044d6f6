"""On random graphs: questions pushed one at a time end like questions asked in rounds and answered one per round."""

from collections import Counter

from hypothesis import event, given
from hypothesis import strategies as st

from bespeak import Client
from tests.graphs import Plan, Reply, build
from tests.random_graphs import Person, allowed, many, plans, reply_of, run, scripts, still_running
from tests.sequential import Known, Reference
from tests.waiting import eventually


@many
@given(plans(failing=False), st.integers(0, 3), scripts(), st.sampled_from(["2025-11-25", "2025-06-18"]))
def test_pushed_questions_end_like_one_answer_per_round(
    plan: Plan, x: int, script: dict[int, Reply], revision: str
) -> None:
    async def scenario() -> None:
        watched, person, reference = build(plan), Person(plan, script), Reference(plan)
        async with Client(watched, mode=revision, elicitation_callback=person) as client:
            reply = await reply_of(client.call_tool("consume", {"x": x}))
            assert still_running() == []

        verdict, asked = reference.round(1, x, Known(), {}), list[int]()
        while verdict.asks:
            first = min(verdict.open, key=reference.order.index)
            asked.append(first)
            verdict = reference.round(len(asked) + 1, x, verdict.known, {first: script[first]})
        event(f"{len(asked)} questions, ended by {'body' if verdict.text else 'decline'}")

        assert person.asked == asked, "not the questions, or not the order, of the graph"
        assert reply in allowed(verdict, reference)
        (record,) = watched.rounds
        assert set(Counter(record.ran).values()) <= {1}, "a resolver ran twice"
        assert [index for index, _ in record.closed] == record.opened[::-1], "not all closed, or not in reverse"
        assert len(record.bodies) == (1 if verdict.text else 0)

    run(scenario())


@many
@given(plans(), st.integers(0, 3), scripts())
def test_whatever_fails_a_call_with_pushed_questions_ends_and_leaves_nothing_behind(
    plan: Plan, x: int, script: dict[int, Reply]
) -> None:
    async def scenario() -> None:
        watched, person = build(plan), Person(plan, script)
        async with Client(watched, mode="legacy", elicitation_callback=person) as client:
            assert isinstance(await reply_of(client.call_tool("consume", {"x": x})), str)
            assert still_running() == []
        (record,) = watched.rounds
        assert len(set(person.asked)) == len(person.asked)
        assert set(Counter(record.ran).values()) <= {1}
        if len(record.closed) < len(record.opened):
            # One that was being opened in a thread when the call failed is closed there, when it has opened.
            await eventually(lambda: len(record.closed) == len(record.opened), 30)
            assert sorted(index for index, _ in record.closed) == sorted(record.opened)
        else:
            assert [index for index, _ in record.closed] == record.opened[::-1]
        assert len(record.bodies) <= 1

    run(scenario())
