"""What a graph says about a call before it runs: rounds, capabilities, and who fills each parameter."""

from collections.abc import Callable
from typing import Annotated, Any

from bespeak import Context, Elicit, ElicitUrl, ListRoots, Resolve, Sample
from bespeak.resolve.graph.model import Graph
from bespeak.resolve.graph.overview import as_json, first_rounds, most_rounds, needed_capabilities, summary, traits
from bespeak.server.features.tools import Tool


def graph_of(fn: Callable[..., Any]) -> Graph:
    return Tool.from_function(fn).graph


async def stock(title: str) -> int: ...


async def consent(title: str, stock: Annotated[int, Resolve(stock)]) -> bool | Elicit[bool]: ...


async def copies(consent: Annotated[bool, Resolve(consent)]) -> Elicit[int]: ...


async def summarised(copies: Annotated[int, Resolve(copies)]) -> Sample: ...


async def total(copies: Annotated[int, Resolve(copies)]) -> int: ...


async def key() -> str | ElicitUrl: ...


async def folders() -> ListRoots: ...


async def plain(title: str, stock: Annotated[int, Resolve(stock)]) -> None: ...


async def order(
    title: str,
    context: Context,
    stock: Annotated[int, Resolve(stock)],
    total: Annotated[int, Resolve(total)],
    summarised: Annotated[Any, Resolve(summarised)],
) -> None: ...


def by_name(graph: Graph) -> dict[str, int]:
    return {node.name: rounds for node, rounds in zip(graph.nodes, first_rounds(graph), strict=True)}


def test_a_question_is_one_round_later_than_the_questions_it_depends_on() -> None:
    graph = graph_of(order)
    assert by_name(graph) == {"stock": 0, "consent": 1, "copies": 2, "total": 2, "summarised": 3}
    assert most_rounds(graph) == 4


def test_questions_that_do_not_depend_on_each_other_share_a_round() -> None:
    async def both(a: Annotated[bool, Resolve(consent)], b: Annotated[Any, Resolve(folders)], title: str) -> None: ...

    assert most_rounds(graph_of(both)) == 2


def test_the_capabilities_are_those_of_all_questions() -> None:
    async def many(
        title: str,
        total: Annotated[int, Resolve(total)],
        summarised: Annotated[Any, Resolve(summarised)],
        key: Annotated[str, Resolve(key)],
        folders: Annotated[Any, Resolve(folders)],
    ) -> None: ...

    graph = graph_of(many)
    assert needed_capabilities(graph) == ["elicitation.form", "elicitation.url", "sampling", "roots"]
    assert summary(graph) == (
        "at most 4 rounds, and more until the web page is done; "
        "the client needs elicitation.form, elicitation.url, sampling, roots"
    )


def test_a_call_that_asks_nothing_has_one_round_and_says_so() -> None:
    graph = graph_of(plain)
    assert summary(graph) == "1 round: asks nothing"
    assert most_rounds(graph) == 1
    assert [traits(graph, node) for node in graph.nodes] == [[]]


def test_a_call_with_one_question_has_a_round_that_asks_and_a_round_that_runs_the_body() -> None:
    async def ask(title: str, consent: Annotated[bool, Resolve(consent)]) -> None: ...

    assert summary(graph_of(ask)) == "at most 2 rounds; the client needs elicitation.form"


def test_a_resolver_that_does_not_say_what_it_returns_may_ask_anything() -> None:
    async def anything(title: str): ...  # pyright: ignore[reportUnknownParameterType]

    async def ask(title: str, value: Annotated[Any, Resolve(anything)]) -> None: ...  # pyright: ignore[reportUnknownArgumentType]

    graph = graph_of(ask)
    assert summary(graph) == "at most 2 rounds; what is asked is not in every annotation"
    assert traits(graph, graph.nodes[0]) == ["may ask anything in round 1"]
    assert as_json(graph)["resolvers"][0]["asks"] == []


def test_as_plain_data_it_has_all_that_the_pictures_show() -> None:
    told = as_json(graph_of(order))
    assert told["parameters"] == [
        {"parameter": "title", "from": "model"},
        {"parameter": "context", "from": "context"},
        {"parameter": "stock", "from": "computed", "resolver": 0},
        {"parameter": "total", "from": "computed", "resolver": 3},
        {"parameter": "summarised", "from": "asked", "resolver": 4},
    ]
    assert told["resolvers"][1] == {
        "name": "consent",
        "asks": ["Elicit"],
        "round": 1,
        "guard": False,
        "once": False,
        "parameters": [
            {"parameter": "title", "from": "model"},
            {"parameter": "stock", "from": "computed", "resolver": 0},
        ],
    }
    assert told["resolvers"][0]["asks"] is None
    assert (told["mostRounds"], told["capabilities"]) == (4, ["elicitation.form", "sampling"])
