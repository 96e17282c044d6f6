"""One round, without a server (design 5.3 to 5.6): phases, and what runs at once."""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Annotated, Any, TypeVar

import anyio
import anyio.to_thread
import pytest

from bespeak.resolve.asking.digests import NOTHING
from bespeak.resolve.asking.progress import Kept
from bespeak.resolve.errors import ResolverFailed
from bespeak.resolve.markers import Elicit, Resolve
from tests.resolve.running.round_harness import YES, Consent, asked, start, values

T = TypeVar("T")

# Concurrency


async def slow_one() -> int:
    await asyncio.sleep(0.2)
    return 1


async def slow_two() -> int:
    await asyncio.sleep(0.2)
    return 2


def blocking_one() -> int:
    time.sleep(0.2)
    return 1


def blocking_two() -> int:
    time.sleep(0.2)
    return 2


@pytest.mark.parametrize(
    ("first", "second"), [(slow_one, slow_two), (blocking_one, blocking_two), (slow_one, blocking_two)]
)
async def test_two_independent_resolvers_of_200_ms_take_200_ms(
    first: Callable[..., Any], second: Callable[..., Any]
) -> None:
    def body(a: Annotated[int, Resolve(first)], b: Annotated[int, Resolve(second)]) -> None: ...

    took: list[float] = []
    while len(took) < 3 and min(took, default=1.0) >= 0.26:  # a busy machine gets three tries
        round_ = start(body)
        began = time.perf_counter()
        await round_.ask()
        assert await round_.finish() == {"a": 1, "b": 2}
        took.append(time.perf_counter() - began)
    assert min(took) < 0.26


async def test_a_resolver_starts_as_soon_as_what_it_depends_on_is_there() -> None:
    reached = asyncio.Event()

    async def waiting() -> int:
        await reached.wait()
        return 1

    async def quick() -> int:
        return 2

    async def above_quick(quick: Annotated[int, Resolve(quick)]) -> int:
        reached.set()
        return quick + 1

    def body(a: Annotated[int, Resolve(waiting)], b: Annotated[int, Resolve(above_quick)]) -> None: ...

    with anyio.fail_after(1):
        assert await values(body) == {"a": 1, "b": 3}


async def test_a_resolver_runs_once_a_round_however_many_consumers_it_has() -> None:
    runs: list[str] = []

    async def shared() -> int:
        runs.append("shared")
        await asyncio.sleep(0)
        return 1

    async def left(shared: Annotated[int, Resolve(shared)]) -> int:
        return shared + 1

    async def right(shared: Annotated[int, Resolve(shared)], left: Annotated[int, Resolve(left)]) -> int:
        return shared + left

    def body(
        a: Annotated[int, Resolve(left)], b: Annotated[int, Resolve(right)], c: Annotated[int, Resolve(shared)]
    ) -> None: ...

    assert await values(body) == {"a": 2, "b": 3, "c": 1}
    assert runs == ["shared"]


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name
        self.visits = 0

    async def visit(self) -> str:
        self.visits += 1
        return self.name


async def test_a_method_is_one_resolver_for_each_object_it_is_bound_to() -> None:
    here, there = Shop("here"), Shop("there")

    def body(
        a: Annotated[str, Resolve(here.visit)],
        b: Annotated[str, Resolve(here.visit)],
        c: Annotated[str, Resolve(there.visit)],
    ) -> None: ...

    assert await values(body) == {"a": "here", "b": "here", "c": "there"}
    assert (here.visits, there.visits) == (1, 1)


async def test_a_lone_ready_resolver_is_awaited_in_place() -> None:
    tasks: list[Any] = []

    async def first() -> int:
        tasks.append(asyncio.current_task())
        return 1

    async def second(first: Annotated[int, Resolve(first)]) -> int:
        tasks.append(asyncio.current_task())
        return first

    def body(a: Annotated[int, Resolve(second)]) -> None: ...

    await values(body)
    assert tasks == [asyncio.current_task()] * 2


async def test_several_ready_resolvers_each_get_a_task() -> None:
    tasks: set[Any] = set()

    async def first() -> int:
        tasks.add(asyncio.current_task())
        return 1

    async def second() -> int:
        tasks.add(asyncio.current_task())
        return 2

    def body(a: Annotated[int, Resolve(first)], b: Annotated[int, Resolve(second)]) -> None: ...

    await values(body)
    assert len(tasks) == 2
    assert asyncio.current_task() not in tasks


async def within_fail_after() -> str:
    with anyio.fail_after(0.01):
        await anyio.sleep(5)
    return "never"


async def within_timeout() -> str:
    async with asyncio.timeout(0.01):
        await asyncio.sleep(5)
    return "never"


async def within_a_task_group() -> str:
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 5)
        await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    raise TimeoutError


@pytest.mark.parametrize("scoped", [within_fail_after, within_timeout, within_a_task_group])
@pytest.mark.parametrize("company", [0, 2])
async def test_scopes_and_timeouts_inside_a_resolver_work_alone_and_in_company(
    scoped: Callable[[], Awaitable[str]], company: int
) -> None:
    async def patient() -> str:
        try:
            return await scoped()
        except TimeoutError:
            return "in time"

    async def other() -> str:
        await asyncio.sleep(0.02)
        return "done"

    others = [functools.partial(other) for _ in range(2)]

    def alone(a: Annotated[str, Resolve(patient)]) -> None: ...
    def among(
        a: Annotated[str, Resolve(patient)],
        b: Annotated[str, Resolve(others[0])],
        c: Annotated[str, Resolve(others[1])],
    ) -> None: ...

    resolved = await values(among if company else alone)
    assert resolved == {"a": "in time", "b": "done", "c": "done"} if company else {"a": "in time"}


async def test_sync_resolvers_have_a_limiter_of_their_own() -> None:
    def blocking() -> int:
        return 1

    def body(a: Annotated[int, Resolve(blocking)]) -> None: ...

    default = anyio.to_thread.current_default_thread_limiter()
    async with AsyncExitStack() as stack:
        for borrower in range(int(default.available_tokens)):
            default.acquire_on_behalf_of_nowait(borrower)
            stack.callback(default.release_on_behalf_of, borrower)
        with anyio.fail_after(1):
            assert await values(body) == {"a": 1}


# Phases


async def test_phase_one_runs_what_the_questions_need_and_nothing_else() -> None:
    runs: list[str] = []

    async def needed() -> int:
        runs.append("needed")
        return 1

    async def confirm(needed: Annotated[int, Resolve(needed)]) -> Consent | Elicit[Consent]:
        runs.append("confirm")
        return Elicit("Really?", Consent)

    async def unrelated() -> int:
        runs.append("unrelated")
        return 2

    async def after(confirm: Annotated[Consent, Resolve(confirm)], needed: Annotated[int, Resolve(needed)]) -> int:
        runs.append("after")
        return 3

    def body(
        a: Annotated[int, Resolve(unrelated)],
        b: Annotated[Consent, Resolve(confirm)],
        c: Annotated[int, Resolve(after)],
    ) -> None: ...

    first = start(body)
    assert await asked(first) == ["confirm"]
    assert runs == ["needed", "confirm"]
    second = start(body, first, confirm=YES)
    assert await asked(second) == []
    assert runs == ["needed", "confirm"] * 2
    assert await second.finish() == {"a": 2, "b": Consent(ok=True), "c": 3}
    assert sorted(runs[4:]) == ["after", "unrelated"]


def says_nothing():  # pyright: ignore[reportUnknownParameterType] - without an annotation is what is tested
    return Elicit("Really?", Consent)


def says_any() -> Any:
    return Elicit("Really?", Consent)


def says_object() -> object:
    return Elicit("Really?", Consent)


def says_a_variable(title: T) -> T:
    return Elicit("Really?", Consent)  # pyright: ignore[reportReturnType] - unsound on purpose


async def says_so() -> Elicit[Consent]:
    return Elicit("Really?", Consent)


@pytest.mark.parametrize("resolver", [says_nothing, says_any, says_object, says_a_variable, says_so])
async def test_an_annotation_that_says_nothing_against_it_lets_a_resolver_ask(resolver: Callable[..., Any]) -> None:
    def body(title: str, a: Annotated[object, Resolve(resolver)]) -> None: ...

    assert await asked(start(body)) == [resolver.__name__]


def says_consent() -> Consent:
    return Elicit("Really?", Consent)  # pyright: ignore[reportReturnType] - wrong on purpose


async def says_none() -> None:
    return Elicit("Really?", Consent)  # pyright: ignore[reportReturnType] - wrong on purpose


@pytest.mark.parametrize("resolver", [says_consent, says_none])
async def test_a_question_from_a_resolver_that_says_it_does_not_ask_is_an_error_that_names_it(
    resolver: Callable[..., Any],
) -> None:
    def body(a: Annotated[object, Resolve(resolver)]) -> None: ...

    expected = rf"resolver '{resolver.__name__}' asked a question, though its return annotation says that it does not"
    round_ = start(body)
    assert await asked(round_) == []
    with pytest.raises(ResolverFailed, match=rf"{expected} \(.*body -> a -> {resolver.__name__}\)"):
        await round_.finish()


async def test_independent_questions_are_asked_together_in_graph_order_and_dependent_ones_later() -> None:
    async def size() -> Elicit[Consent]:
        await asyncio.sleep(0.01)
        return Elicit("Large?", Consent)

    async def colour() -> Elicit[Consent]:
        return Elicit("Red?", Consent)

    async def between(colour: Annotated[Consent, Resolve(colour)]) -> bool:
        return colour.ok

    async def lacquer(red: Annotated[bool, Resolve(between)]) -> Elicit[Consent]:
        return Elicit("Glossy?", Consent)

    def body(
        a: Annotated[Consent, Resolve(size)],
        b: Annotated[Consent, Resolve(lacquer)],
        c: Annotated[Consent, Resolve(colour)],
    ) -> None: ...

    first = start(body)
    assert await asked(first) == ["size", "colour"]
    second = start(body, first, size=YES, colour=YES)
    assert await asked(second) == ["lacquer"]
    third = start(body, second, lacquer=YES)
    assert await asked(third) == []


async def test_a_resolver_that_may_ask_and_knows_the_answer_costs_no_round() -> None:
    async def confirm() -> Consent | Elicit[Consent]:
        return Consent(ok=False)

    def body(a: Annotated[Consent, Resolve(confirm)]) -> None: ...

    assert await values(body) == {"a": Consent(ok=False)}


async def test_guards_and_what_they_depend_on_run_before_anything_else_in_every_round() -> None:
    runs: list[str] = []

    async def user() -> str:
        await asyncio.sleep(0.01)
        runs.append("user")
        return "reader"

    async def allowed(user: Annotated[str, Resolve(user)]) -> None:
        runs.append("allowed")

    async def confirm(user: Annotated[str, Resolve(user)]) -> Consent | Elicit[Consent]:
        runs.append("confirm")
        return Elicit("Really?", Consent)

    def body(a: Annotated[Consent, Resolve(confirm)], b: Annotated[None, Resolve(allowed, guard=True)]) -> None: ...

    first = start(body)
    assert await asked(first) == ["confirm"]
    second = start(body, first, confirm=YES)
    assert await asked(second) == []
    assert runs == ["user", "allowed", "confirm"] * 2


async def test_a_guard_that_raises_ends_the_round_before_anybody_is_asked() -> None:
    runs: list[str] = []

    async def confirm() -> Consent | Elicit[Consent]:
        runs.append("confirm")
        return Elicit("Really?", Consent)

    async def allowed() -> None:
        raise PermissionError("not you")

    def body(a: Annotated[Consent, Resolve(confirm)], b: Annotated[None, Resolve(allowed, guard=True)]) -> None: ...

    round_ = start(body)
    with pytest.raises(ResolverFailed, match=r"resolver 'allowed' failed \(.*body -> b -> allowed\)"):
        await round_.ask()
    assert runs == []
    assert round_.progress.shown == {}


async def test_a_once_value_that_no_longer_fits_is_computed_again(caplog: pytest.LogCaptureFixture) -> None:
    """A server whose return type has changed meets a state of its older self."""

    async def price() -> int:
        return 7

    async def confirm(price: Annotated[int, Resolve(price, once=True)]) -> bool | Elicit[bool]:
        return True

    def body(price: Annotated[int, Resolve(price, once=True)], sure: Annotated[bool, Resolve(confirm)]) -> None: ...

    round_ = start(body)
    round_.progress.once[round_.graph.nodes[0].key_name] = Kept(NOTHING, "not a number")
    assert await round_.ask() == {}
    assert await round_.finish() == {"price": 7, "sure": True}
    assert "the once=True value of 'price' no longer fits its return type; it is computed again" in caplog.text
