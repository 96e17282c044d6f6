"""A resolver may be any sort of callable: each is read, run, told apart and named (design 4)."""

import asyncio
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel

from bespeak import InvalidSignature, MCPServer, Resolve
from bespeak.resolve.reading.callables import Kind, kind_of, may_wait
from bespeak.server.features.tools import Tool


def function(title: str) -> str:
    return f"function {title}"


async def async_function(title: str) -> str:
    return f"async_function {title}"


class Shop:
    def __init__(self, name: str = "Shop") -> None:
        self.name = name
        self.calls = 0

    def method(self, title: str) -> str:
        self.calls += 1
        return f"{self.name} {title}"

    async def async_method(self, title: str) -> str:
        return f"{self.name} {title}"

    @classmethod
    def class_method(cls, title: str) -> str:
        return f"{cls.__name__} {title}"

    @staticmethod
    async def static_method(title: str) -> str:
        return f"static {title}"


class AsyncCalled:
    async def __call__(self, title: str) -> str:
        return f"AsyncCalled {title}"


class Text:
    """What the classes below have in common: they say what they were made from."""

    title: str

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.title}"


class Plain(Text):
    def __init__(self, title: str) -> None:
        self.title = title


class OnlyNew(Text):
    def __new__(cls, title: str) -> "OnlyNew":
        made = super().__new__(cls)
        made.title = title
        return made


@dataclass
class Data(Text):
    title: str
    __str__ = Text.__str__


class Model(BaseModel):
    title: str

    def __str__(self) -> str:
        return f"Model {self.title}"


class Row(NamedTuple):
    title: str

    def __str__(self) -> str:
        return f"Row {self.title}"


def joined(prefix: str, title: str, *, suffix: str) -> str:
    return f"{prefix} {title} {suffix}"


def closing_over(prefix: str) -> Callable[..., Any]:
    def closure(title: str) -> str:
        return f"{prefix} {title}"

    return closure


def wrapped_in_sync(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


def wrapped_in_async(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


class Awaited:
    """Can be awaited, and is not a coroutine."""

    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return "awaited"


def returns_awaitable(title: str) -> Awaitable[str]:
    return Awaited()


def says_nothing(title: str) -> Any:
    return async_function(title)


def generator(title: str) -> Iterator[str]:
    yield f"generator {title}"


async def async_generator(title: str) -> AsyncIterator[str]:
    yield f"async_generator {title}"


class Generating:
    def __call__(self, title: str) -> Iterator[str]:
        yield f"Generating {title}"


@functools.cache
def cached(title: str) -> str:
    return f"cached {title}"


def a_lambda() -> Callable[..., Any]:
    return lambda title: f"lambda {title}"  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType] - no hints


SORTS: dict[str, tuple[Callable[..., Any], str, str, Kind]] = {
    "function": (function, "function Dune", "function", Kind.SYNC),
    "async function": (async_function, "async_function Dune", "async_function", Kind.ASYNC),
    "method": (Shop().method, "Shop Dune", "Shop.method", Kind.SYNC),
    "class method": (Shop.class_method, "Shop Dune", "Shop.class_method", Kind.SYNC),
    "static method": (Shop.static_method, "static Dune", "Shop.static_method", Kind.ASYNC),
    "async callable object": (AsyncCalled(), "AsyncCalled Dune", "AsyncCalled", Kind.ASYNC),
    "class": (Plain, "Plain Dune", "Plain", Kind.SYNC),
    "class with __new__": (OnlyNew, "OnlyNew Dune", "OnlyNew", Kind.SYNC),
    "dataclass": (Data, "Data Dune", "Data", Kind.SYNC),
    "model": (Model, "Model Dune", "Model", Kind.SYNC),
    "named tuple": (Row, "Row Dune", "Row", Kind.SYNC),
    "partial": (functools.partial(joined, "a", suffix="z"), "a Dune z", "joined", Kind.SYNC),
    "partial of a partial": (
        functools.partial(functools.partial(joined, "a"), suffix="z"),
        "a Dune z",
        "joined",
        Kind.SYNC,
    ),
    "partial of an async method": (
        functools.partial(Shop().async_method),
        "Shop Dune",
        "Shop.async_method",
        Kind.ASYNC,
    ),
    "closure": (closing_over("closed"), "closed Dune", "closing_over.<locals>.closure", Kind.SYNC),
    "lambda": (a_lambda(), "lambda Dune", "a_lambda.<locals>.<lambda>", Kind.SYNC),
    "async, decorated": (wrapped_in_sync(async_function), "async_function Dune", "async_function", Kind.SYNC),
    "decorated twice": (wrapped_in_async(wrapped_in_sync(function)), "function Dune", "function", Kind.ASYNC),
    "cached": (cached, "cached Dune", "cached", Kind.SYNC),
    "function that returns an awaitable": (
        returns_awaitable,
        "awaited",
        "returns_awaitable",
        Kind.SYNC,
    ),
    "function whose coroutine is not declared": (
        says_nothing,
        "async_function Dune",
        "says_nothing",
        Kind.SYNC,
    ),
    "generator": (generator, "generator Dune", "generator", Kind.GENERATOR),
    "async generator": (async_generator, "async_generator Dune", "async_generator", Kind.ASYNC_GENERATOR),
    "object that generates": (Generating(), "Generating Dune", "Generating", Kind.GENERATOR),
}
every_sort = pytest.mark.parametrize(("fn", "value", "key", "kind"), SORTS.values(), ids=SORTS)


def tool_taking(fn: Callable[..., Any]) -> Callable[..., Any]:
    async def sell(title: str, taken: Annotated[object, Resolve(fn)]) -> str:
        return str(taken)

    return sell


@every_sort
async def test_every_sort_of_callable_resolves_for_a_tool_and_for_a_resolver(
    fn: Callable[..., Any], value: str, key: str, kind: Kind
) -> None:
    mcp = MCPServer("shop")

    async def middle(taken: Annotated[object, Resolve(fn)]) -> str:
        return str(taken)

    @mcp.tool()
    async def sell(title: str, taken: Annotated[object, Resolve(fn)], middle: Annotated[str, Resolve(middle)]) -> str:
        return f"{taken}; {middle}"

    result = await mcp.call_tool("sell", {"title": "Dune", "taken": "sent"})

    assert result.structured_content == {"result": f"{value}; {value}"}


@every_sort
def test_every_sort_of_callable_is_named_and_run_by_its_outermost_function(
    fn: Callable[..., Any], value: str, key: str, kind: Kind
) -> None:
    (node,) = Tool.from_function(tool_taking(fn)).graph.nodes

    assert node.key_name == f"{__name__}:{key}"
    assert kind_of(fn) is kind


# Where a fault of each sort is said to be


def needy(missing: int) -> str: ...


class Needy:
    def method(self, missing: int) -> str: ...

    def __call__(self, missing: int) -> str: ...


class NeedyPlain:
    def __init__(self, missing: int) -> None: ...


@dataclass
class NeedyData:
    missing: int


class NeedyModel(BaseModel):
    missing: int


@pytest.mark.parametrize(
    ("fn", "offset"),
    [
        (needy, 0),
        (wrapped_in_async(needy), 0),
        (functools.partial(needy), 0),
        (Needy().method, 4),
        (Needy(), 6),
        (NeedyPlain, None),
        (NeedyData, None),
        (NeedyModel, None),
    ],
    ids=["function", "decorated", "partial", "method", "object", "class", "dataclass", "model"],
)
def test_a_fault_is_placed_in_the_authors_own_file(fn: Callable[..., Any], offset: int | None) -> None:
    with pytest.raises(
        InvalidSignature, match=r"parameter 'missing' of resolver .* cannot be resolved: nothing fills it"
    ) as caught:
        Tool.from_function(tool_taking(fn))

    (fault,) = caught.value.faults
    file, _, line = fault.place.rpartition(":")
    assert file == __file__
    if offset is not None:
        assert int(line) == needy.__code__.co_firstlineno + offset


# Who is who


async def test_equal_objects_are_resolvers_of_their_own() -> None:
    @dataclass(eq=True)
    class Counter:
        calls: list[str] = field(default_factory=list[str], compare=False)

        def __call__(self, title: str) -> int:
            self.calls.append(title)
            return len(self.calls)

    first, second = Counter(), Counter()
    mcp = MCPServer("shop")

    @mcp.tool()
    async def sell(title: str, one: Annotated[int, Resolve(first)], two: Annotated[int, Resolve(second)]) -> None: ...

    await mcp.call_tool("sell", {"title": "Dune"})

    assert (first, first.calls, second.calls) == (second, ["Dune"], ["Dune"])


async def computes() -> int:
    return 1


async def awaits() -> int:
    return await computes()


async def iterates() -> list[int]:
    return [one async for one in numbers()]


async def enters() -> None:
    async with AsyncExitStack():
        pass


async def numbers() -> AsyncGenerator[int]:
    yield 1


def plain() -> int:
    return 1


class Till:
    async def total(self) -> int:
        return 1

    async def __call__(self) -> int:
        return 1


@pytest.mark.parametrize("fn", [computes, Till().total, functools.partial(computes)])
def test_an_async_function_that_awaits_nothing_cannot_wait(fn: Any) -> None:
    assert not may_wait(fn)


@pytest.mark.parametrize("fn", [awaits, iterates, enters, numbers, plain, Till(), len, functools.partial(awaits)])
def test_whatever_else_is_called_may_wait(fn: Any) -> None:
    assert may_wait(fn)
