"""Turns: one pushed question at a time, in graph order (design 5, "Legacy era")."""

import asyncio
from collections.abc import Callable

import pytest

from bespeak.resolve.errors import NotAnswered
from bespeak.resolve.running.turns import Turns
from tests.resolve.running.round_harness import NO, YES, pause
from tests.resolve.running.scripted_push import Scripted, Sent


def turns(push: Scripted, *places: int) -> Turns:
    return Turns(push, places)


def asking(one: Turns, place: int, limit: Callable[[], int] = lambda: 100) -> "asyncio.Task[Sent | None]":
    return asyncio.create_task(one.ask(place, f"q{place}", {}, limit))


async def test_the_first_in_graph_order_asks_at_once_and_the_next_when_it_has_settled() -> None:
    push = Scripted()
    one = turns(push, 5, 3)
    later, earlier = asking(one, 5), asking(one, 3)
    await pause()
    assert push.pushed == ["q3"]
    push.answer("q3", YES)
    assert await earlier == YES
    await pause()
    assert push.pushed == ["q3"], "an answer may be a slip: the turn passes when it has settled"
    one.settled(3)
    await pause()
    push.answer("q5", NO)
    assert await later == NO


async def test_a_turn_passes_when_one_settles_that_did_not_ask() -> None:
    push = Scripted({"q5": YES})
    one = turns(push, 3, 4, 5)
    later = asking(one, 5)
    one.settled(4)
    await pause()
    assert push.pushed == []
    one.settled(3)
    assert await later == YES


async def test_one_may_ask_again_before_it_settles() -> None:
    push = Scripted({"q1": [NO, YES]})
    one = turns(push, 1, 2)
    later = asking(one, 2)
    assert [await one.ask(1, "q1", {}, lambda: 100), await one.ask(1, "q1", {}, lambda: 100)] == [NO, YES]
    await pause()
    assert push.pushed == ["q1", "q1"]
    one.settled(1)
    await pause()
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
    await pause()
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
    await pause()
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
    await pause()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert push.taken_back == ["q1"]


async def test_one_cancelled_while_it_waits_for_its_turn_is_never_pushed_and_holds_up_nobody() -> None:
    push = Scripted({"q3": YES})
    one = turns(push, 1, 2, 3)
    second, third = asking(one, 2), asking(one, 3)
    await pause()
    second.cancel()
    await asyncio.wait({second})
    one.settled(1)
    one.settled(2)
    assert await third == YES
    assert push.pushed == ["q3"]
