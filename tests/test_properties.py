"""On random graphs a driven call follows the rules of design sections 4 to 6, whatever is answered and whatever fails."""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from bespeak import Client
from tests.graphs import BODY, Plan, Reply, parameter_name
from tests.random_graphs import allowed, check_round, drive, many, plans, run, scripts


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
