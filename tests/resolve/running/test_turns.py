"""Turns, and rounds that push (design section 5, "Legacy era"): one question at a time in graph order, without a server."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, cast

import pytest

from bespeak.protocol.capabilities import NOT_DECLARED, Obstacle
from bespeak.resolve.asking.progress import Progress
from bespeak.resolve.errors import Aborted, BadAnswer, MissingCapability, NotAnswered, ResolverFailed
from bespeak.resolve.graph.compiler import compile_graph
from bespeak.resolve.markers import Elicit, ListRoots, Resolve
from bespeak.resolve.outcomes import ElicitationResult, NotAsked
from bespeak.resolve.reading.signatures import read
from bespeak.resolve.running.rounds import Round
from bespeak.resolve.running.turns import Turns
from tests.answering import short
from tests.resolve.running.round_harness import NO, YES, Consent, Surroundings
from tests.waiting import eventually

Sent = dict[str, Any]


class Scripted:
    """A push whose answers come when the test says so, or at once if they are scripted."""

    def __init__(self, answers: Mapping[str, Any] | None = None, *, why: str | None = None, shows: bool = True) -> None:
        self._answers = dict(answers or {})
        self._shows = shows
        self._waiting: dict[str, asyncio.Future[Sent]] = {}
        self._why = why
        self.pushed: list[str] = []
        self.messages: list[str] = []
        self.taken_back: list[str] = []

    def obstacle(self, request: Mapping[str, Any], missing: Mapping[str, Any]) -> Obstacle | None:
        if missing:
            return Obstacle("not_declared", self._why)
        return None if self._shows else Obstacle("no_way_back", "it has no eyes")

    async def __call__(self, key: str, request: Mapping[str, Any]) -> Sent:
        name = short(key)
        self.pushed.append(name)
        self.messages.append(request.get("params", {}).get("message", ""))
        answer = _next(self._answers.get(name))
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return answer
        waiting = self._waiting[name] = asyncio.get_running_loop().create_future()
        try:
            return await waiting
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # to take a question back takes its time
            self.taken_back.append(name)
            raise

    def answer(self, name: str, answer: Sent) -> None:
        self._waiting[name].set_result(answer)


def _next(answer: Any) -> Any:
    return cast("list[Any]", answer).pop(0) if isinstance(answer, list) else answer


async def soon() -> None:
    """Let everything happen that waits for nothing."""
    for _ in range(10):
        await asyncio.sleep(0)


# Turns


def turns(push: Scripted, *places: int) -> Turns:
    return Turns(push, places)


def asking(one: Turns, place: int, limit: Callable[[], int] = lambda: 100) -> "asyncio.Task[Sent | None]":
    return asyncio.create_task(one.ask(place, f"q{place}", {}, limit))


async def test_the_first_in_graph_order_asks_at_once_and_the_next_when_it_has_settled() -> None:
    push = Scripted()
    one = turns(push, 5, 3)
    later, earlier = asking(one, 5), asking(one, 3)
    await soon()
    assert push.pushed == ["q3"]
    push.answer("q3", YES)
    assert await earlier == YES
    await soon()
    assert push.pushed == ["q3"], "an answer may be a slip: the turn passes when it has settled"
    one.settled(3)
    await soon()
    push.answer("q5", NO)
    assert await later == NO


async def test_a_turn_passes_when_one_settles_that_did_not_ask() -> None:
    push = Scripted({"q5": YES})
    one = turns(push, 3, 4, 5)
    later = asking(one, 5)
    one.settled(4)
    await soon()
    assert push.pushed == []
    one.settled(3)
    assert await later == YES


async def test_one_may_ask_again_before_it_settles() -> None:
    push = Scripted({"q1": [NO, YES]})
    one = turns(push, 1, 2)
    later = asking(one, 2)
    assert [await one.ask(1, "q1", {}, lambda: 100), await one.ask(1, "q1", {}, lambda: 100)] == [NO, YES]
    await soon()
    assert push.pushed == ["q1", "q1"]
    one.settled(1)
    await soon()
    assert push.pushed[-1] == "q2"
    later.cancel()
    await asyncio.wait({later})


async def test_what_never_asks_takes_no_turn() -> None:
    push = Scripted({"q2": YES})
    one = turns(push, 2)
    one.settled(0)
    one.settled(1)
    assert await one.ask(2, "q2", {}, lambda: 100) == YES
    one.settled(2)
    one.settled(2)


async def test_after_a_drop_nobody_is_asked_anything() -> None:
    push = Scripted()
    one = turns(push, 1, 2, 3)
    opened, queued = asking(one, 1), asking(one, 2)
    await soon()
    one.drop()
    one.drop()
    assert [await opened, await queued, await one.ask(3, "q3", {}, lambda: 100)] == [None, None, None]
    assert (push.pushed, push.taken_back) == (["q1"], ["q1"])


async def test_a_drop_in_the_moment_of_asking_comes_before_the_question() -> None:
    push = Scripted()
    one = turns(push, 1)
    first = asking(one, 1)
    asyncio.get_running_loop().call_soon(one.drop)
    assert await first is None
    assert push.pushed == push.taken_back, "whatever was shown is taken back"


async def test_from_the_limit_on_nobody_is_asked() -> None:
    push, limit = Scripted(), [100]
    one = turns(push, 1, 2)
    later = asking(one, 2, lambda: limit[0])
    await soon()
    limit[0] = 2
    one.settled(1)
    assert await later is None
    assert push.pushed == []


async def test_what_a_push_raises_is_raised_where_it_was_asked() -> None:
    push = Scripted({"q1": NotAnswered("gone")})
    with pytest.raises(NotAnswered, match="gone"):
        await turns(push, 1).ask(1, "q1", {}, lambda: 100)


async def test_a_cancelled_question_is_taken_back_before_the_cancellation_goes_on() -> None:
    push = Scripted()
    first = asking(turns(push, 1), 1)
    await soon()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert push.taken_back == ["q1"]


async def test_one_cancelled_while_it_waits_for_its_turn_is_never_pushed_and_holds_up_nobody() -> None:
    push = Scripted({"q3": YES})
    one = turns(push, 1, 2, 3)
    second, third = asking(one, 2), asking(one, 3)
    await soon()
    second.cancel()
    await asyncio.wait({second})
    one.settled(1)
    one.settled(2)
    assert await third == YES
    assert push.pushed == ["q3"]


# Rounds


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

    with pytest.raises(MissingCapability, match=r"asks the client for elicitation\.form, and it is too old"):
        await run(body, Scripted(why="it is too old"), {})
    with pytest.raises(MissingCapability, match=r"asks the client for elicitation\.form, and it has no eyes"):
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
        def obstacle(self, request: Mapping[str, Any], missing: Mapping[str, Any]) -> Obstacle | None:
            if request["method"] == "elicitation/create":
                return Obstacle("no_way_back", "it has no eyes")
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
    await soon()
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


async def test_no_answer_names_the_resolver() -> None:
    push = Scripted({"confirm": NotAnswered("nobody there")})
    with pytest.raises(NotAnswered, match=r"resolver '.*confirm' got no answer: nobody there"):
        await run(both, push)


async def test_a_resolver_in_a_thread_may_ask() -> None:
    def in_thread() -> Elicit[int]:
        return Elicit("How many?", int)

    def body(it: Annotated[int, Resolve(in_thread)]) -> None: ...

    assert await run(body, Scripted({"in_thread": {"action": "accept", "content": {"value": 3}}})) == {"it": 3}


async def test_a_marker_from_what_is_annotated_not_to_ask_is_an_error_that_names_the_resolver() -> None:
    async def sly() -> int:
        asked: Any = Elicit("How many?", int)
        return asked

    def body(it: Annotated[int, Resolve(sly)]) -> None: ...

    push = Scripted()
    with pytest.raises(ResolverFailed, match="sly' asked a question, though its return annotation says that it does"):
        await run(body, push)
    assert push.pushed == []


async def test_a_once_value_that_does_not_survive_its_serialisation_is_refused_before_anybody_is_asked() -> None:
    async def odd() -> dict[Any, int]:
        return {1: 1}  # whose key is text in JSON

    async def sure(odd: Annotated[object, Resolve(odd, once=True)]) -> Elicit[int]:
        return Elicit(f"Really {odd}?", int)

    def body(it: Annotated[int, Resolve(sure)]) -> None: ...

    push = Scripted()
    with pytest.raises(ResolverFailed, match="odd' gave a value that"):
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
