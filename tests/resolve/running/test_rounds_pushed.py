"""Rounds that push their questions to an older client (design 5, "Legacy era"), without a server."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import pytest

from bespeak.protocol.capabilities import NOT_DECLARED, AskingObstacle
from bespeak.resolve.asking.progress import Progress
from bespeak.resolve.errors import Aborted, BadAnswer, MissingCapability, NotAnswered, ResolverFailed
from bespeak.resolve.graph.compiler import compile_graph
from bespeak.resolve.markers import Elicit, ListRoots, Resolve
from bespeak.resolve.outcomes import ElicitationResult, NotAsked
from bespeak.resolve.reading.signatures import read
from bespeak.resolve.running.rounds import Round
from tests.resolve.running.round_harness import NO, YES, Consent, Surroundings, pause
from tests.resolve.running.scripted_push import Scripted, Sent
from tests.waiting import eventually


def start(consumer: Callable[..., Any], push: Scripted, declared: Sent | None = None) -> Round:
    return Round(
        compile_graph(read(consumer), context_type=Surroundings),
        arguments={"title": "Dune"},
        context=Surroundings(),
        progress=Progress(),
        answers={},
        declared={"elicitation": {}} if declared is None else declared,
        push=push,
    )


async def run(consumer: Callable[..., Any], push: Scripted, declared: Sent | None = None) -> Sent:
    round_ = start(consumer, push, declared)
    try:
        assert await round_.ask() == {}, "nothing is left for another round"
        return await round_.finish()
    finally:
        await round_.close(body_ran=False)


async def confirm() -> Elicit[Consent]:
    return Elicit("Really?", Consent)


async def confirm_again() -> Elicit[Consent]:
    return Elicit("Really, really?", Consent)


async def roots() -> ListRoots:
    return ListRoots()


def both(a: Annotated[Consent, Resolve(confirm)], b: Annotated[Consent, Resolve(confirm_again)]) -> None: ...


async def test_a_round_that_pushes_ends_with_values() -> None:
    push = Scripted({"confirm": YES, "confirm_again": YES})
    assert await run(both, push) == {"a": Consent(ok=True), "b": Consent(ok=True)}
    assert push.pushed == ["confirm", "confirm_again"]


@pytest.mark.parametrize("order", ["confirm first", "roots first"])
async def test_whatever_a_client_cannot_answer_is_said_at_once_and_nobody_is_asked(order: str) -> None:
    def one(a: Annotated[Consent, Resolve(confirm)], b: Annotated[Any, Resolve(roots)]) -> None: ...
    def other(b: Annotated[Any, Resolve(roots)], a: Annotated[Consent, Resolve(confirm)]) -> None: ...

    push = Scripted({"roots": {"roots": []}})
    with pytest.raises(MissingCapability, match=r"the client must declare roots for this call$"):
        await run(one if order == "confirm first" else other, push, {"elicitation": {}})
    assert push.pushed == []


async def test_all_that_is_missing_is_said() -> None:
    def body(a: Annotated[Consent, Resolve(confirm)], b: Annotated[Any, Resolve(roots)]) -> None: ...

    with pytest.raises(MissingCapability) as raised:
        await run(body, Scripted(), {})
    assert raised.value.required == {"elicitation": {"form": {}}, "roots": {}}


async def test_a_reason_that_the_push_knows_is_said_too() -> None:
    def body(a: Annotated[Consent, Resolve(confirm)]) -> None: ...

    with pytest.raises(MissingCapability, match=r"asks the client for elicitation\.form, but it is too old"):
        await run(body, Scripted(why="it is too old"), {})
    with pytest.raises(MissingCapability, match=r"asks the client for elicitation\.form, but it has no eyes"):
        await run(body, Scripted(shows=False))


async def test_what_everybody_can_do_without_is_not_asked_and_the_others_are() -> None:
    def body(
        a: Annotated[Consent, Resolve(confirm)],
        b: Annotated[ElicitationResult[Any] | NotAsked, Resolve(roots)],
        c: Annotated[Any, Resolve(roots)] = None,
    ) -> None: ...

    push = Scripted({"confirm": YES})
    expected = {"a": Consent(ok=True), "b": NotAsked("not_declared", {"roots": {}}), "c": None}
    assert await run(body, push) == expected


async def test_a_reason_for_what_is_not_missing_is_not_said() -> None:
    class NoForms(Scripted):
        def obstacle(self, request: Mapping[str, Any], missing: Mapping[str, Any]) -> AskingObstacle | None:
            if request["method"] == "elicitation/create":
                return AskingObstacle("no_way_back", "it has no eyes")
            return NOT_DECLARED if missing else None

    def body(b: Annotated[Any, Resolve(roots)], a: Annotated[Consent | None, Resolve(confirm)] = None) -> None: ...

    with pytest.raises(MissingCapability, match=r"the client must declare roots for this call$"):
        await run(body, NoForms())


@pytest.mark.parametrize("kind", ["lone", "first of two"])
async def test_a_failing_resolver_takes_an_open_question_back(kind: Literal["lone", "first of two"]) -> None:
    push, queued = Scripted(), kind != "lone"

    async def fails() -> int | Elicit[int]:
        await eventually(lambda: push.pushed)
        raise ValueError

    def one(a: Annotated[Consent, Resolve(confirm)], b: Annotated[int, Resolve(fails)]) -> None: ...
    def two(
        a: Annotated[Consent, Resolve(confirm)],
        b: Annotated[Consent, Resolve(confirm_again)],
        c: Annotated[int, Resolve(fails)],
    ) -> None: ...

    with pytest.raises(ResolverFailed, match="fails"):
        await run(two if queued else one, push)
    assert (push.pushed, push.taken_back) == (["confirm"], ["confirm"])


async def test_a_decline_drops_the_queue_and_cancels_later_resolvers() -> None:
    push, cancelled = Scripted(), list[str]()

    async def later() -> int | Elicit[int]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("later")
            raise
        return 1

    def body(
        a: Annotated[Consent, Resolve(confirm)],
        b: Annotated[Consent, Resolve(confirm_again)],
        c: Annotated[int, Resolve(later)],
    ) -> None: ...

    running = asyncio.create_task(run(body, push))
    await eventually(lambda: push.pushed)
    push.answer("confirm", NO)
    with pytest.raises(Aborted, match="'a' could not resolve: elicitation was decline"):
        await running
    assert (push.pushed, cancelled) == (["confirm"], ["later"])


async def test_phase_two_waits_until_everything_is_answered() -> None:
    push, ran = Scripted(), list[str]()

    async def rest() -> int:
        ran.append("rest")
        return 1

    def body(a: Annotated[Consent, Resolve(confirm)], b: Annotated[int, Resolve(rest)]) -> None: ...

    running = asyncio.create_task(run(body, push))
    await eventually(lambda: push.pushed)
    await pause()
    assert ran == []
    push.answer("confirm", YES)
    await running
    assert ran == ["rest"]


@pytest.mark.parametrize("answer", [{}, {"action": "accept"}, {"action": "accept", "content": {"ok": "yes"}}])
async def test_the_clients_fault_ends_the_round_and_nobody_is_asked_again(answer: Sent) -> None:
    push = Scripted({"confirm": answer})
    with pytest.raises(BadAnswer, match="confirm"):
        await run(both, push)
    assert push.pushed == ["confirm"]


async def test_the_error_of_a_question_without_an_answer_names_the_resolver() -> None:
    push = Scripted({"confirm": NotAnswered("nobody there")})
    with pytest.raises(NotAnswered, match=r"resolver '.*confirm' got no answer: nobody there"):
        await run(both, push)


async def test_a_resolver_in_a_thread_may_ask() -> None:
    def in_thread() -> Elicit[int]:
        return Elicit("How many?", int)

    def body(it: Annotated[int, Resolve(in_thread)]) -> None: ...

    assert await run(body, Scripted({"in_thread": {"action": "accept", "content": {"value": 3}}})) == {"it": 3}


async def test_a_once_value_that_does_not_survive_its_serialisation_is_refused_before_anybody_is_asked() -> None:
    async def odd() -> dict[Any, int]:
        return {1: 1}  # whose key is text in JSON

    async def sure(odd: Annotated[object, Resolve(odd, once=True)]) -> Elicit[int]:
        return Elicit(f"Really {odd}?", int)

    def body(it: Annotated[int, Resolve(sure)]) -> None: ...

    push = Scripted()
    with pytest.raises(ResolverFailed, match="odd' returned a value that"):
        await run(body, push)
    assert push.pushed == []


async def test_what_follows_a_question_in_a_chain_runs_with_its_answer() -> None:
    async def next_(consent: Annotated[Consent, Resolve(confirm)]) -> Elicit[Consent]:
        return Elicit(f"{consent.ok}, really?", Consent)

    async def last(consent: Annotated[Consent, Resolve(next_)]) -> int | Elicit[int]:
        return int(consent.ok)

    def body(it: Annotated[int, Resolve(last)]) -> None: ...

    push = Scripted({"confirm": YES, "next_": YES})
    assert await run(body, push) == {"it": 1}
    assert push.messages == ["Really?", "True, really?"]


async def test_a_refused_question_in_a_chain_ends_it_there() -> None:
    async def next_(consent: Annotated[Consent, Resolve(confirm)]) -> Elicit[Consent]:
        raise AssertionError

    def body(it: Annotated[Consent, Resolve(next_)]) -> None: ...

    push = Scripted({"confirm": NO})
    with pytest.raises(Aborted, match="parameter 'consent' could not resolve: elicitation was decline"):
        await run(body, push)


async def test_a_round_says_whether_anything_was_pushed() -> None:
    async def might() -> int | Elicit[int]:
        return 1

    def quiet(it: Annotated[int, Resolve(might)]) -> None: ...

    silent, asking_ = start(quiet, Scripted()), start(both, Scripted({"confirm": YES, "confirm_again": YES}))
    await silent.ask()
    await asking_.ask()
    assert (silent.asked, asking_.asked) == (False, True)
