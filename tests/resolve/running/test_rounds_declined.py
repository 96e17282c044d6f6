"""A decline that ends the call (design 5): what it cancels, what it waits for, and what wins over it."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from bespeak.resolve.errors import Aborted, ResolverFailed
from bespeak.resolve.markers import Elicit, Resolve
from bespeak.resolve.outcomes import DeclinedElicitation, ElicitationResult
from bespeak.resolve.running.rounds import Round
from tests.answering import unresolved
from tests.resolve.running.round_harness import NO, YES, Consent, pause, start

MayAsk = int | Elicit[Consent]
"""Puts a resolver into phase one, beside the questions."""


async def after_asking(consumer: Callable[..., Any], **answers: dict[str, Any]) -> Round:
    """The second round of a consumer that asks in its first."""
    first = start(consumer)
    assert await first.ask()
    await first.close(body_ran=False)
    return start(consumer, first, **answers)


async def confirm() -> Consent | Elicit[Consent]:
    return Elicit("Really?", Consent)


async def confirm_late() -> Consent | Elicit[Consent]:
    await asyncio.sleep(0)  # those after it have started by then, where tasks start at once too
    return Elicit("Really?", Consent)


async def confirm_again() -> Consent | Elicit[Consent]:
    return Elicit("Really, really?", Consent)


async def test_a_decline_ends_the_call_with_the_name_of_the_parameter() -> None:
    def body(consent: Annotated[Consent, Resolve(confirm)]) -> None: ...

    round_ = await after_asking(body, confirm=NO)
    with pytest.raises(Aborted, match=f"^{unresolved('consent', 'decline')}$"):
        await round_.ask()


async def test_a_decline_whose_consumers_take_it_or_have_a_default_ends_nothing() -> None:
    async def taking(consent: Annotated[ElicitationResult[Consent], Resolve(confirm)]) -> str:
        return consent.action

    def body(
        action: Annotated[str, Resolve(taking)],
        consent: Annotated[Consent | None, Resolve(confirm)] = None,
        outcome: Annotated[ElicitationResult[Consent] | None, Resolve(confirm)] = None,
    ) -> None: ...

    round_ = await after_asking(body, confirm=NO)
    assert await round_.ask() == {}
    assert await round_.finish() == {"action": "decline", "consent": None, "outcome": DeclinedElicitation()}


async def test_a_decline_cancels_what_comes_later_and_waits_for_what_comes_earlier() -> None:
    second, events = asyncio.Event(), list[str]()

    async def earlier() -> MayAsk:
        await pause(2)
        if second.is_set():
            events.append("earlier ran")
        return 1

    async def later() -> MayAsk:
        if second.is_set():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                events.append("later cancelled")
                raise
        return 1

    def body(
        a: Annotated[int, Resolve(earlier)],
        b: Annotated[Consent, Resolve(confirm_late)],
        c: Annotated[int, Resolve(later)],
    ) -> None: ...

    round_ = await after_asking(body, confirm_late=NO)
    second.set()
    with pytest.raises(Aborted, match="parameter 'b'"):
        await round_.ask()
    assert events == ["later cancelled", "earlier ran"]


async def test_after_a_decline_what_comes_earlier_still_starts_and_what_comes_later_does_not() -> None:
    started: list[str] = []

    async def slow() -> MayAsk:
        await pause()
        return 1

    async def earlier(slow: Annotated[int, Resolve(slow)]) -> MayAsk:
        started.append("earlier")
        return 1

    async def later(slow: Annotated[int, Resolve(slow)]) -> MayAsk:
        started.append("later")
        return 1

    def body(
        a: Annotated[int, Resolve(earlier)], b: Annotated[Consent, Resolve(confirm)], c: Annotated[int, Resolve(later)]
    ) -> None: ...

    round_ = await after_asking(body, confirm=NO)
    started.clear()
    with pytest.raises(Aborted, match="parameter 'b'"):
        await round_.ask()
    assert started == ["earlier"]


async def test_an_earlier_failure_wins_over_a_later_decline() -> None:
    second = asyncio.Event()

    async def earlier() -> MayAsk:
        await pause()
        if second.is_set():
            raise ValueError
        return 1

    def body(a: Annotated[int, Resolve(earlier)], b: Annotated[Consent, Resolve(confirm)]) -> None: ...

    round_ = await after_asking(body, confirm=NO)
    second.set()
    with pytest.raises(ResolverFailed, match="'earlier'"):
        await round_.ask()


async def test_a_decline_wins_over_a_later_failure_known_at_the_same_time() -> None:
    second = asyncio.Event()

    async def later() -> MayAsk:
        if second.is_set():
            raise ValueError
        return 1

    def body(a: Annotated[Consent, Resolve(confirm)], b: Annotated[int, Resolve(later)]) -> None: ...

    round_ = await after_asking(body, confirm=NO)
    second.set()
    with pytest.raises(Aborted, match="parameter 'a'"):
        await round_.ask()


async def test_a_decline_wins_over_what_a_resolver_it_cancelled_raises() -> None:
    second = asyncio.Event()

    async def later() -> MayAsk:
        if second.is_set():
            try:
                await asyncio.Event().wait()
            finally:
                raise ValueError("in the cleanup")
        return 1

    async def slow_confirm() -> Consent | Elicit[Consent]:
        await pause()
        return Elicit("Really?", Consent)

    def body(a: Annotated[Consent, Resolve(slow_confirm)], b: Annotated[int, Resolve(later)]) -> None: ...

    round_ = await after_asking(body, slow_confirm=NO)
    second.set()
    with pytest.raises(Aborted, match="parameter 'a'"):
        await round_.ask()


async def test_of_two_declines_the_first_in_graph_order_is_reported_whichever_is_known_first() -> None:
    async def slow() -> Consent | Elicit[Consent]:
        await pause()
        return Elicit("Slowly?", Consent)

    def body(a: Annotated[Consent, Resolve(slow)], b: Annotated[Consent, Resolve(confirm)]) -> None: ...

    round_ = await after_asking(body, slow=NO, confirm=NO)
    with pytest.raises(Aborted, match="parameter 'a'"):
        await round_.ask()


async def test_a_round_that_ends_the_call_asks_nothing() -> None:
    def body(a: Annotated[Consent, Resolve(confirm)], b: Annotated[Consent, Resolve(confirm_again)]) -> None: ...

    round_ = await after_asking(body, confirm_again=NO)
    with pytest.raises(Aborted, match="parameter 'b'"):
        await round_.ask()


async def test_what_is_declined_leaves_the_other_answers_settled() -> None:
    def body(a: Annotated[Consent, Resolve(confirm)], b: Annotated[Consent, Resolve(confirm_again)]) -> None: ...

    round_ = await after_asking(body, confirm=YES, confirm_again=NO)
    with pytest.raises(Aborted, match="parameter 'b'"):
        await round_.ask()
    assert [entry.action for entry in round_.progress.settled.values()] == ["accept", "decline"]


async def test_a_resolver_cancelled_by_a_decline_is_cancelled_once_and_may_clean_up() -> None:
    second, cleaned = asyncio.Event(), list[str]()

    async def quick() -> MayAsk:
        await pause()
        return 1

    async def slow() -> MayAsk:
        await pause(2)
        return 1

    async def later() -> MayAsk:
        if second.is_set():
            try:
                await asyncio.Event().wait()
            finally:
                await pause(4)
                cleaned.append("later")
        return 1

    def body(
        a: Annotated[int, Resolve(quick)],
        b: Annotated[int, Resolve(slow)],
        c: Annotated[Consent, Resolve(confirm_late)],
        d: Annotated[int, Resolve(later)],
    ) -> None: ...

    round_ = await after_asking(body, confirm_late=NO)
    second.set()
    with pytest.raises(Aborted, match="parameter 'c'"):
        await round_.ask()
    assert cleaned == ["later"]
