"""The names in the keys of questions: the same on every worker and in every process (design 4)."""

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
from mcp_types import InputRequiredResult

from bespeak import Elicit, MCPServer, Resolve
from bespeak.resolve.reading.callables import base_key
from bespeak.server.features.tools import Tool
from tests.conftest import Connect


def key_names(fn: Callable[..., Any]) -> list[str]:
    return [node.key_name for node in Tool.from_function(fn).graph.nodes]


async def stock(title: str) -> int: ...


async def price(stock: Annotated[int, Resolve(stock)]) -> float: ...


def test_a_wire_key_is_module_and_qualified_name() -> None:
    async def sell(title: str, price: Annotated[float, Resolve(price)]) -> None: ...

    assert key_names(sell) == [f"{__name__}:stock", f"{__name__}:price"]


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
    graph = Tool.from_function(sell).graph

    assert {node.key_name: node.fn for node in graph.nodes if node.name == "closure"} == {
        base: third,
        f"{base}#1": second,
        f"{base}#2": first,
    }


def test_an_authors_key_is_exactly_what_is_used() -> None:
    async def sell(title: str, stock: Annotated[int, Resolve(stock, key="how many? #1")]) -> None: ...

    assert key_names(sell) == ["how many? #1"]


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


@pytest.mark.timing
@pytest.mark.parametrize(
    "command",
    [["shop/till.py"], ["-m", "shop.till"], ["-c", "import shop.till"]],
    ids=["script", "module", "imported"],
)
@pytest.mark.long
def test_keys_name_the_main_module_by_its_real_name(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "till.py").write_text(SERVER)

    done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True)

    module = "till" if command == ["shop/till.py"] else "shop.till"
    assert done.stdout.split() == [f"{module}:stock", f"{module}:Counter.count"]


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
