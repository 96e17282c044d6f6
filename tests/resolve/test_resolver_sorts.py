"""Every sort of function is a resolver, whatever its call turns out to return, and gets what it names (design 4, 5)."""

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any

import pytest

from bespeak.resolve.markers import Elicit, Resolve
from tests.resolve.running import Consent, Surroundings, asked, start, values


async def coroutine_function() -> str:
    return "value"


def sync_function() -> str:
    return "value"


def returns_a_coroutine() -> Coroutine[Any, Any, str]:
    return coroutine_function()


class Awaited:
    """Something to await that is no coroutine."""

    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return "value"


def returns_an_awaitable() -> Awaitable[str]:
    return Awaited()


class SyncObject:
    def __call__(self) -> str:
        return "value"


class AsyncObject:
    async def __call__(self) -> str:
        return "value"

    async def method(self) -> str:
        return "value"

    @classmethod
    async def of_the_class(cls) -> str:
        return "value"

    @staticmethod
    def of_nobody() -> str:
        return "value"


class Text(str):
    """A class, whose call is its value."""

    def __new__(cls) -> "Text":
        return super().__new__(cls, "value")


async def greet(word: str) -> str:
    return word


def untold() -> Any:
    return coroutine_function()


SORTS: list[Callable[..., Any]] = [
    coroutine_function,
    sync_function,
    lambda: "value",
    lambda: coroutine_function(),  # noqa: PLW0108 - a sync function that returns a coroutine
    returns_a_coroutine,
    returns_an_awaitable,
    untold,
    SyncObject(),
    AsyncObject(),
    AsyncObject().method,
    AsyncObject.of_the_class,
    AsyncObject.of_nobody,
    functools.partial(greet, word="value"),
    functools.partial(functools.partial(greet), word="value"),
    Text,
]


@pytest.mark.parametrize("sort", SORTS)
async def test_every_sort_of_function_is_a_resolver(sort: Callable[..., Any]) -> None:
    def body(a: Annotated[str, Resolve(sort)]) -> None: ...

    assert await values(body) == {"a": "value"}


async def test_a_question_in_what_a_lambda_returns_is_awaited_and_asked() -> None:
    async def ask() -> Consent | Elicit[Consent]:
        return Elicit("Really?", Consent)

    wrapped: Callable[..., Any] = lambda: ask()  # noqa: E731, PLW0108 - a lambda is what is tested

    def body(a: Annotated[Consent, Resolve(wrapped, key="wrapped")]) -> None: ...

    assert await asked(start(body)) == ["wrapped"]


async def test_a_sync_resolver_runs_in_a_worker_thread_and_an_async_one_does_not() -> None:
    def blocking() -> int:
        return threading.get_ident()

    async def waiting() -> int:
        return threading.get_ident()

    def body(a: Annotated[int, Resolve(blocking)], b: Annotated[int, Resolve(waiting)]) -> None: ...

    resolved = await values(body)
    assert resolved["a"] != threading.get_ident()
    assert resolved["b"] == threading.get_ident()


async def test_a_resolver_gets_arguments_by_name_the_context_and_its_own_defaults() -> None:
    async def named(title: str, around: Surroundings, copies: int = 3) -> tuple[str, bool, int]:
        return title, type(around) is Surroundings, copies

    def body(title: str, a: Annotated[tuple[str, bool, int], Resolve(named)]) -> None: ...

    assert await values(body) == {"a": ("Dune", True, 3)}
