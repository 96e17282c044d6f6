"""Resolvers that never wait: run in place, one after another in graph order, as if each had a task (design 5)."""

import asyncio
import contextvars
from typing import Annotated, Any

import pytest

from bespeak.protocol.errors import MCPError
from bespeak.resolve.errors import ResolverFailed, ToolError
from bespeak.resolve.markers import Elicit, ElicitUrl, Resolve
from bespeak.resolve.outcomes import AcceptedElicitation, DeclinedElicitation
from tests.resolve.running.round_harness import asked, start, values


async def one() -> int:
    return 1


async def two() -> int:
    return 2


async def three(one: Annotated[int, Resolve(one)], two: Annotated[int, Resolve(two)]) -> int:
    return one + two


async def test_resolvers_that_never_wait_run_in_the_calls_own_task_in_graph_order() -> None:
    ran: list[tuple[str, Any]] = []

    async def first() -> int:
        ran.append(("first", asyncio.current_task()))
        return 1

    async def second() -> int:
        ran.append(("second", asyncio.current_task()))
        return 2

    def body(b: Annotated[int, Resolve(second)], a: Annotated[int, Resolve(first)]) -> None: ...

    assert await values(body) == {"a": 1, "b": 2}
    assert ran == [("second", asyncio.current_task()), ("first", asyncio.current_task())]


async def test_what_an_independent_resolver_sets_in_its_context_is_not_seen_by_others() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    async def sets() -> str:
        variable.set("set")
        return variable.get()

    async def reads() -> str:
        return variable.get()

    def body(a: Annotated[str, Resolve(sets)], b: Annotated[str, Resolve(reads)]) -> None: ...

    assert await values(body) == {"a": "set", "b": "unset"}
    assert variable.get() == "unset"


@pytest.mark.parametrize("error", [LookupError("no"), ToolError("no"), MCPError(-32000, "no")], ids=repr)
async def test_the_first_failure_in_graph_order_ends_the_phase(error: Exception) -> None:
    ran: list[str] = []

    async def fails() -> int:
        raise error

    async def late() -> int:
        ran.append("late")
        return 2

    def body(
        a: Annotated[int, Resolve(three)], b: Annotated[int, Resolve(fails)], c: Annotated[int, Resolve(late)]
    ) -> None: ...

    with pytest.raises(ResolverFailed if isinstance(error, LookupError) else type(error), match=r"fails|no"):
        await values(body)
    assert ran == []


async def test_an_outcome_that_ends_the_call_leaves_out_what_comes_later() -> None:
    ran: list[str] = []

    async def declines() -> Any:
        return DeclinedElicitation()

    async def late() -> int:
        ran.append("late")
        return 2

    def body(a: Annotated[int, Resolve(declines)], b: Annotated[int, Resolve(late)]) -> None: ...

    with pytest.raises(ToolError, match="elicitation was decline"):
        await values(body)


async def test_a_resolver_whose_need_has_no_value_is_left_out() -> None:
    ran: list[str] = []

    async def accepts() -> AcceptedElicitation[int]:
        return AcceptedElicitation(data=7)

    async def above(accepts: Annotated[int, Resolve(accepts)]) -> int:
        ran.append("above")
        return accepts

    def body(a: Annotated[int, Resolve(above)], b: Annotated[int, Resolve(one)]) -> None: ...

    assert await values(body) == {"a": 7, "b": 1}
    assert ran == ["above"]


async def test_a_question_from_a_resolver_that_says_it_does_not_ask_is_an_error() -> None:
    async def asks() -> bool:
        return Elicit("Sure?", bool)  # pyright: ignore[reportReturnType]  # the mistake itself

    def body(a: Annotated[bool, Resolve(asks)], b: Annotated[int, Resolve(one)]) -> None: ...

    with pytest.raises(ResolverFailed, match="returned a question, but its return annotation does not allow one"):
        await values(body)


async def returns_though_cancelled() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "done"


async def raises_though_nobody_cancelled() -> str:
    raise asyncio.CancelledError


async def raises_what_it_cancelled() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    raise asyncio.CancelledError


async def test_a_value_stands_though_the_resolver_cancelled_the_task() -> None:
    def body(a: Annotated[str, Resolve(returns_though_cancelled)], b: Annotated[int, Resolve(one)]) -> None: ...

    assert await values(body) == {"a": "done", "b": 1}
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)  # nothing is cancelled any more


@pytest.mark.parametrize(
    ("resolver", "reason"),
    [
        (raises_though_nobody_cancelled, "raised CancelledError although nothing cancelled it"),
        (raises_what_it_cancelled, "cancelled its own task"),
    ],
)
async def test_a_resolver_that_cancels_is_named(resolver: Any, reason: str) -> None:
    def body(a: Annotated[str, Resolve(resolver)], b: Annotated[int, Resolve(one)]) -> None: ...

    with pytest.raises(ResolverFailed) as caught:
        await values(body)
    assert resolver.__name__ in str(caught.value)
    assert reason in str(caught.value)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


# Resolvers that ask


async def test_independent_resolvers_that_ask_run_in_place_and_are_asked_together() -> None:
    tasks: set[Any] = set()

    async def asks() -> Elicit[bool]:
        tasks.add(asyncio.current_task())
        return Elicit("First?", bool)

    async def asks_too() -> Elicit[bool]:
        tasks.add(asyncio.current_task())
        return Elicit("Second?", bool)

    def body(a: Annotated[bool, Resolve(asks)], b: Annotated[bool, Resolve(asks_too)]) -> None: ...

    assert await asked(start(body)) == ["asks", "asks_too"]
    assert tasks == {asyncio.current_task()}


async def test_what_depends_on_an_open_question_is_left_for_another_round() -> None:
    ran: list[str] = []

    async def asks() -> Elicit[bool]:
        return Elicit("First?", bool)

    async def above(sure: Annotated[bool, Resolve(asks)]) -> Elicit[bool]:
        ran.append("above")
        return Elicit(f"Second, after {sure}?", bool)

    async def beside() -> Elicit[bool]:
        return Elicit("Third?", bool)

    def body(a: Annotated[bool, Resolve(above)], b: Annotated[bool, Resolve(beside)]) -> None: ...

    assert await asked(start(body)) == ["asks", "beside"]
    assert ran == []


async def test_a_resolver_that_sends_people_to_a_page_has_a_task_because_it_may_be_run_again() -> None:
    tasks: set[Any] = set()

    async def pays() -> str | ElicitUrl:
        tasks.add(asyncio.current_task())
        return ElicitUrl("Pay", "https://pay.example.com/7")

    async def asks() -> Elicit[bool]:
        tasks.add(asyncio.current_task())
        return Elicit("First?", bool)

    def body(a: Annotated[str, Resolve(pays)], b: Annotated[bool, Resolve(asks)]) -> None: ...

    round_ = start(body, declared={"elicitation": {"form": {}, "url": {}}})
    assert await asked(round_) == ["pays", "asks"]
    assert len(tasks) == 2
