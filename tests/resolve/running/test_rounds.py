"""One round without a server: what runs in which phase, and what is asked (design 5)."""

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from bespeak.resolve.asking.digests import NOTHING
from bespeak.resolve.asking.progress import Kept
from bespeak.resolve.errors import ResolverFailed
from bespeak.resolve.markers import Elicit, Resolve
from tests.resolve.running.round_harness import YES, Consent, Surroundings, asked, pause, start, values


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


def says_any() -> Any:
    return Elicit("Really?", Consent)


async def says_so() -> Elicit[Consent]:
    return Elicit("Really?", Consent)


@pytest.mark.parametrize("resolver", [says_any, says_so])
async def test_an_annotation_that_does_not_exclude_a_question_lets_a_resolver_ask(resolver: Callable[..., Any]) -> None:
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

    expected = rf"resolver '{resolver.__name__}' returned a question, but its return annotation does not allow one"
    round_ = start(body)
    assert await asked(round_) == []
    with pytest.raises(ResolverFailed, match=rf"{expected} \(.*body -> a -> {resolver.__name__}\)"):
        await round_.finish()


async def test_independent_questions_are_asked_together_in_graph_order_and_dependent_ones_later() -> None:
    async def size() -> Elicit[Consent]:
        await pause()
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
        await pause()
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
    assert "the once=True value of 'price' no longer matches its return type; it will be computed again" in caplog.text


async def test_a_question_in_what_a_lambda_returns_is_awaited_and_asked() -> None:
    async def ask() -> Consent | Elicit[Consent]:
        return Elicit("Really?", Consent)

    wrapped: Callable[..., Any] = lambda: ask()  # noqa: E731, PLW0108 - a lambda is what is tested

    def body(a: Annotated[Consent, Resolve(wrapped, key="wrapped")]) -> None: ...

    assert await asked(start(body)) == ["wrapped"]


async def test_a_resolver_gets_arguments_by_name_the_context_and_its_own_defaults() -> None:
    async def named(title: str, around: Surroundings, copies: int = 3) -> tuple[str, bool, int]:
        return title, type(around) is Surroundings, copies

    def body(title: str, a: Annotated[tuple[str, bool, int], Resolve(named)]) -> None: ...

    assert await values(body) == {"a": ("Dune", True, 3)}
