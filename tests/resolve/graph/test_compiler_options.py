"""Options of a resolver that are refused: once, guard, timeout, keys, and different options in one graph (design 4 and 6)."""

import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeVar

import pytest
from mcp_types import CreateMessageResult
from pydantic import BaseModel

from bespeak import Elicit, Resolve, Sample
from tests.resolve.positions import Position, as_tool, everywhere, line_of, refusal

T = TypeVar("T")


class Consent(BaseModel):
    sure: bool


async def check_stock(title: str) -> int: ...


async def consent(title: str) -> Consent | Elicit[Consent]: ...


@everywhere
@pytest.mark.parametrize("options", [{"once": True}, {"guard": True}, {"timeout": 2.0}, {"key": "stock"}], ids=str)
async def test_one_function_with_different_options_is_refused(position: Position, options: dict[str, Any]) -> None:
    async def price(stock: Annotated[int, Resolve(check_stock, **options)]) -> int: ...

    async def sell(
        title: str, stock: Annotated[int, Resolve(check_stock)], price: Annotated[int, Resolve(price)]
    ) -> None: ...

    error = await refusal(position, sell)

    (fault,) = error.faults
    assert fault.problem == "resolver 'check_stock' is marked with different options in the same graph"
    assert fault.fix == "use the same key, once, guard and timeout in every Resolve of it"
    assert line_of(price) in fault.drawing


async def asks(title: str) -> int | Elicit[int]: ...


async def says_nothing(title: str): ...


async def says_any(title: str) -> Any: ...


async def says_variable(title: T) -> T: ...  # pyright: ignore[reportInvalidTypeVarUse] - says nothing


async def samples(title: str) -> CreateMessageResult | Sample: ...


ASKING = [asks, says_nothing, says_any, says_variable, samples]


def generates(title: str) -> Iterator[int]:
    yield 1


async def gives_a_lock(title: str) -> threading.Event: ...


class Opaque:
    def __init__(self, title: str) -> None: ...


def using(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A consumer that takes `fn` with these options."""

    async def consumer(title: str, taken: Annotated[object, Resolve(fn, **options)]) -> int: ...

    return consumer


@everywhere
@pytest.mark.parametrize(
    ("fn", "problem"),
    [
        *((fn, "may ask a question, and answers are kept anyway") for fn in ASKING),
        (generates, "is a generator, whose value cannot outlive the round"),
        (gives_a_lock, "returns Event, which cannot be serialised"),
        (Opaque, "returns Opaque, which cannot be serialised"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_once_is_refused_where_the_value_cannot_be_kept(
    position: Position, fn: Callable[..., Any], problem: str
) -> None:
    error = await refusal(position, using(fn, once=True))

    (fault,) = error.faults
    assert fault.problem.startswith(f"resolver {fn.__name__!r} is marked once=True but ")
    assert fault.problem.endswith(problem)
    assert fault.fix == "remove once=True, or return a plain value, a model or a dataclass"


@everywhere
@pytest.mark.parametrize("fn", ASKING, ids=lambda fn: fn.__name__)
async def test_a_guard_that_may_ask_is_refused(position: Position, fn: Callable[..., Any]) -> None:
    error = await refusal(position, using(fn, guard=True))

    (fault,) = error.faults
    assert fault.problem == f"guard {fn.__name__!r} may ask; guards run before any question is asked"
    assert fault.fix == "change its return annotation so that it does not ask, or remove guard=True"


@everywhere
async def test_a_guard_that_depends_on_one_that_may_ask_is_refused(position: Position) -> None:
    async def between(consent: Annotated[Consent, Resolve(consent)]) -> int: ...

    async def allowed(between: Annotated[int, Resolve(between)]) -> None: ...

    error = await refusal(position, using(allowed, guard=True))

    (fault,) = error.faults
    assert (
        fault.problem == "guard 'allowed' depends on 'consent', which may ask; guards run before any question is asked"
    )
    assert fault.place == line_of(allowed)


@pytest.mark.parametrize("timeout", ["2s", 0, float("nan")])
async def test_a_timeout_is_a_positive_number_of_seconds(timeout: Any) -> None:
    error = await refusal(as_tool, using(check_stock, timeout=timeout))

    assert "resolver 'check_stock' has a timeout that is not a positive number of seconds" in str(error)


# Keys


@pytest.mark.parametrize("key", ["\ud800", "a\nb"])
async def test_a_key_that_is_not_plain_text_is_refused(key: str) -> None:
    assert "the key of a question is not printable text" in str(await refusal(as_tool, using(check_stock, key=key)))


@everywhere
@pytest.mark.parametrize("first", ["confirm", None], ids=["an author's", "a derived"])
async def test_a_key_equal_to_another_key_is_refused(position: Position, first: str | None) -> None:
    second = first or f"{__name__}:check_stock"

    async def both(
        title: str,
        stock: Annotated[int, Resolve(check_stock, key=first)],
        consent: Annotated[Consent, Resolve(consent, key=second)],
    ) -> int: ...

    error = await refusal(position, both)

    (fault,) = error.faults
    assert fault.problem == f"the key {second!r} of 'consent' is also the key of 'check_stock'"
    assert fault.fix == "give each question its own key"


@everywhere
async def test_an_empty_key_is_refused(position: Position) -> None:
    error = await refusal(position, using(consent, key=""))

    assert [fault.problem for fault in error.faults] == ["the key of a question is empty"]
    assert error.faults[0].fix == "give it a name"
