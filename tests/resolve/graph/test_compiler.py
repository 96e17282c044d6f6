"""The compiled graph: its order and its phases (design 4 and 5)."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, TypeVar

import pytest
from mcp_types import CreateMessageResult
from pydantic import BaseModel

from bespeak import Context, Elicit, Resolve, Sample
from bespeak.resolve.graph.model import Graph
from bespeak.server.features.tools import Tool

T = TypeVar("T")


class Consent(BaseModel):
    sure: bool


def graph_of(fn: Callable[..., Any]) -> Graph:
    return Tool.from_function(fn).graph


def names(graph: Graph, indices: tuple[int, ...] | None = None) -> list[str]:
    return [graph.nodes[index].name for index in (range(len(graph.nodes)) if indices is None else indices)]


async def stock(title: str) -> int: ...


async def price(stock: Annotated[int, Resolve(stock)]) -> float: ...


async def consent(title: str, price: Annotated[float, Resolve(price)]) -> Consent | Elicit[Consent]: ...


async def permission(context: Context) -> None: ...


# Order


def test_dependencies_come_before_dependents_and_parameters_in_signature_order() -> None:
    async def last(title: str) -> int: ...

    async def sell(
        title: str,
        consent: Annotated[Consent, Resolve(consent)],
        price: Annotated[float, Resolve(price)],
        last: Annotated[int, Resolve(last)],
        permission: Annotated[None, Resolve(permission)],
    ) -> None: ...

    assert names(graph_of(sell)) == ["stock", "price", "consent", "last", "permission"]


def test_order_is_depth_first_whatever_a_later_parameter_shares() -> None:
    async def right(title: str) -> int: ...

    async def left(right: Annotated[int, Resolve(right)], price: Annotated[float, Resolve(price)]) -> int: ...

    async def sell(
        title: str,
        left: Annotated[int, Resolve(left)],
        stock: Annotated[int, Resolve(stock)],
        right: Annotated[int, Resolve(right)],
    ) -> None: ...

    assert names(graph_of(sell)) == ["right", "stock", "price", "left"]


def test_a_resolver_with_several_consumers_is_in_the_graph_once() -> None:
    async def sell(
        title: str,
        one: Annotated[int, Resolve(stock)],
        two: Annotated[int, Resolve(stock)],
        price: Annotated[float, Resolve(price)],
    ) -> None: ...

    graph = graph_of(sell)

    assert names(graph) == ["stock", "price"]
    assert [want.node for want in graph.wants] == [0, 0, 1]


def test_a_consumer_without_markers_has_an_empty_graph() -> None:
    async def sell(title: str) -> None: ...

    graph = graph_of(sell)

    assert graph.nodes == graph.wants == graph.guards == graph.questions == graph.rest == ()


# Phases


def phases(fn: Callable[..., Any]) -> list[list[str]]:
    graph = graph_of(fn)
    return [names(graph, indices) for indices in (graph.guards, graph.questions, graph.rest)]


def test_guards_run_first_then_what_questions_need_then_the_rest() -> None:
    async def user(context: Context) -> str: ...

    async def allowed(user: Annotated[str, Resolve(user)]) -> None: ...

    async def shipping(price: Annotated[float, Resolve(price)]) -> int: ...

    async def receipt(consent: Annotated[Consent, Resolve(consent)], user: Annotated[str, Resolve(user)]) -> str: ...

    async def sell(
        title: str,
        shipping: Annotated[int, Resolve(shipping)],
        receipt: Annotated[str, Resolve(receipt)],
        allowed: Annotated[None, Resolve(allowed, guard=True)],
    ) -> None: ...

    assert phases(sell) == [["user", "allowed"], ["stock", "price", "consent"], ["shipping", "receipt"]]


async def unannotated(title: str): ...


async def vague(title: str) -> Any: ...


async def anything(title: str) -> object: ...


async def variable(title: T) -> T: ...


async def maybe(title: str) -> int | Any: ...


async def samples(title: str) -> CreateMessageResult | Sample: ...


async def plain(title: str) -> int: ...


async def nothing(title: str) -> None: ...


def generator(title: str) -> Iterator[int]:
    yield 1


async def unannotated_generator(title: str):
    yield 1


async def async_generator(title: str) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("fn", [unannotated, vague, anything, variable, maybe, samples], ids=lambda fn: fn.__name__)
def test_what_may_ask_runs_in_phase_one(fn: Callable[..., Any]) -> None:
    async def sell(title: str, value: Annotated[object, Resolve(fn)]) -> None: ...

    assert phases(sell) == [[], [fn.__name__], []]


@pytest.mark.parametrize(
    "fn", [plain, nothing, generator, unannotated_generator, async_generator], ids=lambda fn: fn.__name__
)
def test_what_cannot_ask_runs_in_phase_two(fn: Callable[..., Any]) -> None:
    async def sell(title: str, value: Annotated[object, Resolve(fn)]) -> None: ...

    assert phases(sell) == [[], [], [fn.__name__]]


def test_a_generator_that_a_question_or_a_guard_needs_opens_in_their_phase() -> None:
    async def ask(taken: Annotated[int, Resolve(generator)]) -> bool | Elicit[bool]: ...

    async def guard(taken: Annotated[int, Resolve(async_generator)]) -> None: ...

    async def sell(
        title: str, ask: Annotated[bool, Resolve(ask)], guard: Annotated[None, Resolve(guard, guard=True)]
    ) -> None: ...

    assert phases(sell) == [["async_generator", "guard"], ["generator", "ask"], []]


def test_a_question_rests_on_the_questions_and_once_values_below_it_in_graph_order() -> None:
    async def rate(title: str) -> float: ...

    async def between(consent: Annotated[Consent, Resolve(consent)]) -> int: ...

    async def ask(
        between: Annotated[int, Resolve(between)], rate: Annotated[float, Resolve(rate, once=True)]
    ) -> bool | Elicit[bool]: ...

    async def sell(title: str, ask: Annotated[bool, Resolve(ask)]) -> None: ...

    graph = graph_of(sell)

    assert names(graph, graph.nodes[-1].rests_on) == ["consent", "rate"]
