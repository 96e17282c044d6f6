"""The compiled graph: its order, wire keys, phases and drawing (design 4 and 5.3 to 5.6)."""

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar

import pytest
from mcp_types import CreateMessageResult, InputRequiredResult
from pydantic import BaseModel

from bespeak import Context, Elicit, MCPServer, Resolve, Sample
from bespeak.resolve.graph.model import Graph
from bespeak.resolve.reading.callables import base_key
from bespeak.server.features.tools import Tool
from tests.conftest import Connect

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


def test_keyword_only_parameters_keep_their_place_in_the_signature() -> None:
    async def sell(
        permission: Annotated[None, Resolve(permission)], *, title: str, stock: Annotated[int, Resolve(stock)]
    ) -> None: ...

    assert names(graph_of(sell)) == ["permission", "stock"]


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


# Keys


def test_a_wire_key_is_module_and_qualified_name() -> None:
    async def sell(title: str, price: Annotated[float, Resolve(price)]) -> None: ...

    assert [node.key_name for node in graph_of(sell).nodes] == [f"{__name__}:stock", f"{__name__}:price"]


def made(count: int) -> list[Callable[..., Any]]:
    def make(number: int) -> Callable[..., Any]:
        def closure() -> int:
            return number

        return closure

    return [make(number) for number in range(count)]


def test_further_resolvers_of_one_base_are_numbered_in_graph_order() -> None:
    first, second, third = made(3)

    async def between(one: Annotated[int, Resolve(third)]) -> int: ...

    async def sell(
        between: Annotated[int, Resolve(between)],
        second: Annotated[int, Resolve(second)],
        again: Annotated[int, Resolve(third)],
        first: Annotated[int, Resolve(first)],
    ) -> None: ...

    base = f"{__name__}:made.<locals>.make.<locals>.closure"
    graph = graph_of(sell)

    assert {node.key_name: node.fn for node in graph.nodes if node.name == "closure"} == {
        base: third,
        f"{base}#1": second,
        f"{base}#2": first,
    }


def test_an_authors_key_is_exactly_what_is_used() -> None:
    async def sell(title: str, stock: Annotated[int, Resolve(stock, key="how many? #1")]) -> None: ...

    assert [node.key_name for node in graph_of(sell).nodes] == ["how many? #1"]


async def test_the_client_sees_the_names_each_with_a_suffix_of_eight_digits(connect: Connect) -> None:
    mcp = MCPServer("shop")

    async def one(title: str) -> bool | Elicit[bool]:
        return Elicit("one?", bool)

    async def two(title: str) -> bool | Elicit[bool]:
        return Elicit("two?", bool)

    @mcp.tool()
    async def sell(
        title: str, one: Annotated[bool, Resolve(one)], two: Annotated[bool, Resolve(two, key="confirm")]
    ) -> None: ...

    async def never(context: Any, params: Any) -> Any: ...

    async with connect(mcp, elicitation_callback=never) as client:
        result = await client.session.call_tool("sell", {"title": "Dune"}, allow_input_required=True)

    assert isinstance(result, InputRequiredResult)
    assert [key[:-9] for key in result.input_requests or {}] == [
        f"{__name__}:test_the_client_sees_the_names_each_with_a_suffix_of_eight_digits.<locals>.one",
        "confirm",
    ]
    assert all(re.fullmatch("~[0-9a-f]{8}", key[-9:]) for key in result.input_requests or {})


SERVER = """
from typing import Annotated
from bespeak import Resolve
from bespeak.server.features.tools import Tool

def stock() -> int: ...
class Counter:
    def count(self) -> int: ...
def sell(stock: Annotated[int, Resolve(stock)], count: Annotated[int, Resolve(Counter().count)]) -> None: ...

print(*[node.key_name for node in Tool.from_function(sell).graph.nodes])
"""


@pytest.mark.parametrize(
    "command",
    [["shop/till.py"], ["-m", "shop.till"], ["-c", "import shop.till"]],
    ids=["script", "module", "imported"],
)
def test_keys_name_the_main_module_by_its_real_name(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "till.py").write_text(SERVER)

    done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True)

    module = "till" if command == ["shop/till.py"] else "shop.till"
    assert done.stdout.split() == [f"{module}:stock", f"{module}:Counter.count"]


@pytest.mark.long
def test_keys_are_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "till.py").write_text(SERVER)

    def keys(*command: str) -> str:
        run = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True)
        return run.stdout

    assert keys("till.py") == keys("-m", "till") == keys("-c", "import till")


def main_module(name: str | None = None, file: str | None = None) -> ModuleType:
    module = ModuleType("__main__")
    module.__spec__ = ModuleSpec(name, None) if name else None
    module.__file__ = file
    return module


@pytest.mark.parametrize(
    ("main", "name"),
    [
        (main_module("shop.till"), "shop.till"),
        (main_module("shop.__main__"), "shop.__main__"),
        (main_module(file="shop/till.py"), "till"),
        (main_module(), "__main__"),
    ],
    ids=["module", "package", "script", "typed in"],
)
def test_the_real_name_of_main_is_that_of_its_spec_or_its_file(
    monkeypatch: pytest.MonkeyPatch, main: ModuleType, name: str
) -> None:
    def fn() -> int: ...

    fn.__module__, fn.__qualname__ = "__main__", "fn"
    monkeypatch.setitem(sys.modules, "__main__", main)

    assert base_key(fn) == f"{name}:fn"


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


# Drawing


def test_the_drawing_shows_every_parameter_with_its_resolver_and_what_is_special_about_it() -> None:
    async def rate(title: str) -> float: ...

    async def sell(
        title: str,
        allowed: Annotated[None, Resolve(permission, guard=True)],
        consent: Annotated[Consent, Resolve(consent)],
        session: Annotated[int, Resolve(generator)],
        lines: Annotated[int, Resolve(async_generator)],
        rate: Annotated[float, Resolve(rate, once=True)],
    ) -> None: ...

    graph = graph_of(sell)

    assert graph.drawing().splitlines() == [
        f"sell   {__file__}:{sell.__code__.co_firstlineno}",
        "├─ allowed <- permission [guard, phase 0]",
        "│  └─ context <- the context",
        "├─ consent <- consent [may ask, phase 1]",
        "│  ├─ title <- the argument",
        "│  └─ price <- price [phase 1]",
        "│     └─ stock <- stock [phase 1]",
        "│        └─ title <- the argument",
        "├─ session <- generator [a generator, phase 2]",
        "│  └─ title <- the argument",
        "├─ lines <- async_generator [an async generator, phase 2]",
        "│  └─ title <- the argument",
        "└─ rate <- rate [once, phase 2]",
        "   └─ title <- the argument",
    ]


def test_the_drawing_of_a_consumer_without_markers_is_one_line() -> None:
    async def sell(title: str) -> None: ...

    assert graph_of(sell).drawing() == f"sell   {__file__}:{sell.__code__.co_firstlineno}"
