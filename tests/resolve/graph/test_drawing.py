"""The drawing of a graph, as `bespeak graph` prints it (design 4)."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

from bespeak import Context, Elicit, Resolve
from bespeak.resolve.graph.drawing import draw_graph
from bespeak.resolve.graph.model import Graph
from bespeak.server.features.tools import Tool


def graph_of(fn: Callable[..., Any]) -> Graph:
    return Tool.from_function(fn).graph


async def stock(title: str) -> int: ...


async def price(stock: Annotated[int, Resolve(stock)]) -> float: ...


async def consent(title: str, price: Annotated[float, Resolve(price)]) -> bool | Elicit[bool]: ...


async def permission(context: Context) -> None: ...


def generator(title: str) -> Iterator[int]:
    yield 1


async def async_generator(title: str) -> AsyncIterator[int]:
    yield 1


def test_the_drawing_shows_every_parameter_with_its_resolver_and_what_is_special_about_it() -> None:
    async def rate(title: str) -> float: ...

    async def sell(
        title: str,
        allowed: Annotated[None, Resolve(permission, guard=True)],
        consent: Annotated[bool, Resolve(consent)],
        session: Annotated[int, Resolve(generator)],
        lines: Annotated[int, Resolve(async_generator)],
        rate: Annotated[float, Resolve(rate, once=True)],
    ) -> None: ...

    assert draw_graph(graph_of(sell), "sell").splitlines() == [
        f"sell   {__file__}:{sell.__code__.co_firstlineno}",
        "├─ title <- the model",
        "├─ allowed <- permission [guard, runs in every round]",
        "│  └─ context <- the context",
        "├─ consent <- consent [may ask the user in round 1]",
        "│  ├─ title <- the model",
        "│  └─ price <- price [runs in every round]",
        "│     └─ stock <- stock [runs in every round]",
        "│        └─ title <- the model",
        "├─ session <- generator [a generator, runs after the last answer]",
        "│  └─ title <- the model",
        "├─ lines <- async_generator [an async generator, runs after the last answer]",
        "│  └─ title <- the model",
        "└─ rate <- rate [once, runs after the last answer]",
        "   └─ title <- the model",
    ]


def test_a_resolver_with_several_consumers_is_drawn_once() -> None:
    async def sell(title: str, a: Annotated[float, Resolve(price)], b: Annotated[float, Resolve(price)]) -> None: ...

    assert draw_graph(graph_of(sell), "sell").splitlines()[2:] == [
        "├─ a <- price",
        "│  └─ stock <- stock",
        "│     └─ title <- the model",
        "└─ b <- price (drawn above)",
    ]
