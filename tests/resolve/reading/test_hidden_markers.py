"""A marker is not lost where a signature does not show it: overridden, wrapped or copied without it (design 4).

The tables of test_generated_signatures.py try every kind of callable; here is what an author is told, and what they leave out.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from bespeak import Client, Elicit, InvalidSignature, MCPServer, Resolve
from tests.answering import DECLINE, Person
from tests.resolve.positions import Position, as_tool, everywhere, refusal, shown


async def ask() -> bool | Elicit[bool]:
    return Elicit("Refund it?", bool)


async def other() -> bool:
    return False


Marked = Annotated[bool, Resolve(ask)]


# Overridden


class Desk:
    async def refund(self, title: str, ok: Marked) -> str:
        return f"{title}: {ok}"

    @classmethod
    async def made(cls, title: str, ok: Marked) -> str: ...

    async def __call__(self, title: str, ok: Marked) -> str: ...


class LoggingDesk(Desk):
    async def refund(self, title: str, ok: bool) -> str:
        return await super().refund(title, ok)

    @classmethod
    async def made(cls, title: str, ok: bool) -> str: ...

    async def __call__(self, title: str, ok: bool) -> str: ...


class DeeperDesk(LoggingDesk):
    pass


class UnannotatedDesk(Desk):
    async def refund(self, title, ok):  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType] - on purpose
        return f"{title}: {ok}"


class DefaultDesk(Desk):
    async def refund(self, title: str, ok: bool = False) -> str: ...


OVERRIDING: dict[str, Callable[..., Any]] = {
    "method": LoggingDesk().refund,
    "inherited from the one that overrides": DeeperDesk().refund,
    "without hints": UnannotatedDesk().refund,  # pyright: ignore[reportUnknownMemberType] - on purpose
    "with a default": DefaultDesk().refund,
    "class method of an object": LoggingDesk().made,
    "partial of a callable object": functools.partial(LoggingDesk()),
}


@everywhere
@pytest.mark.parametrize("fn", OVERRIDING.values(), ids=OVERRIDING)
async def test_an_override_that_repeats_a_parameter_without_its_marker_is_refused(
    position: Position, fn: Callable[..., Any]
) -> None:
    error = await refusal(position, fn)

    (fault,) = [fault for fault in error.faults if "'ok'" in fault.problem]
    assert "parameter 'ok' is marked with `Resolve` in Desk." in fault.problem
    assert fault.fix == "repeat the marker: ok: Annotated[..., Resolve(fn)]"
    assert "─ ok" in fault.drawing


class MarkedAgainDesk(Desk):
    async def refund(self, title: str, ok: Annotated[bool, Resolve(other)]) -> str:
        return f"{title}: {ok}"

    async def cancel(self, title: str, ok: bool) -> str: ...


class ShorterDesk(Desk):
    async def refund(self, title: str) -> str: ...  # pyright: ignore[reportIncompatibleMethodOverride] - takes less


async def test_an_override_may_mark_its_parameter_again_leave_it_out_or_have_it_bound() -> None:
    assert await shown(MarkedAgainDesk().refund) == ["title"]
    assert await shown(ShorterDesk().refund) == ["title"]
    assert await shown(functools.partial(LoggingDesk().refund, ok=False)) == ["title"]


async def test_a_marker_of_another_method_does_not_count() -> None:
    assert await shown(MarkedAgainDesk().cancel) == ["title", "ok"]


async def test_an_overriding_resolver_that_keeps_its_marker_does_not_take_the_argument_of_that_name() -> None:
    mcp = MCPServer("desk")

    @mcp.tool()
    async def tool(title: str, ok: Any, done: Annotated[str, Resolve(MarkedAgainDesk().refund)]) -> str:
        return done

    result = await mcp.call_tool("tool", {"title": "7", "ok": True})
    assert result.structured_content == {"result": "7: False"}


async def test_a_marked_method_asks_its_person_whatever_the_model_sends() -> None:
    mcp = MCPServer("desk")
    mcp.add_tool(Desk().refund)
    person = Person({"ask": DECLINE})

    async with Client(mcp, elicitation_callback=person) as client:
        result = await client.call_tool("refund", {"title": "7", "ok": True})

    assert person.messages == ["Refund it?"]
    assert result.is_error


class NewBase:
    def __new__(cls, title: str, ok: Marked) -> "NewBase":
        return super().__new__(cls)


class InitOverNew(NewBase):
    def __init__(self, title: str, ok: bool) -> None:
        self.ok = ok


async def test_a_marker_of_an_inherited_new_is_honoured_or_refused_beside_an_init_without() -> None:
    """Which of the two `inspect.signature` shows depends on the version of Python."""
    try:
        arguments = await shown(InitOverNew)
    except InvalidSignature:
        return
    assert arguments == ["title"]


async def test_an_overriding_static_method_without_the_marker_is_refused() -> None:
    class Desk:
        @staticmethod
        async def refund(title: str, ok: Marked) -> str: ...

    class LoggingDesk(Desk):
        @staticmethod
        async def refund(title: str, ok: bool) -> str: ...

    with pytest.raises(InvalidSignature, match="parameter 'ok' is marked with `Resolve` in"):
        MCPServer("desk").add_tool(LoggingDesk.refund)


async def test_a_model_that_declares_a_marked_field_again_without_the_marker_is_refused() -> None:
    class Refund(BaseModel):
        title: str
        ok: Marked

    class Loud(Refund):
        ok: bool

    assert "parameter 'ok' is marked with `Resolve` in" in str(await refusal(as_tool, Loud))


# Wrapped and copied


async def test_a_wrapper_that_repeats_a_marked_parameter_without_its_marker_is_refused() -> None:
    async def refund(title: str, ok: Marked) -> str: ...

    async def wrapper(title: str, ok: bool) -> str:
        return await refund(title, ok)

    error = await refusal(as_tool, wrapper)
    assert "refund, which this function wraps, but not here" in str(error)
    assert "fix: use functools.wraps, or repeat the marker: ok: Annotated[..., Resolve(fn)]" in str(error)


async def test_a_wrapper_that_fills_the_marked_parameter_itself_is_let_pass() -> None:
    async def refund(title: str, ok: Marked) -> str: ...

    async def wrapper(title: str) -> str:
        return await refund(title, ok=False)

    assert await shown(wrapper) == ["title"]


async def test_a_function_that_another_calls_may_have_a_parameter_of_the_same_name() -> None:
    def make() -> Callable[..., Any]:
        class Order(BaseModel):
            id: str

        async def stored(title: Order) -> str: ...

        stored.__annotations__["title"] = "Order"  # as under postponed annotations, and gone when it is read

        async def refund(title: str) -> str:
            return await stored(Order(id=title))

        return refund

    assert await shown(make()) == ["title"]


def hidden(fn: Callable[..., Any], **shown: Any) -> Callable[..., Any]:
    """The function with another `__signature__`."""
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("ok", kind, **{"annotation": bool, **shown})]
    vars(fn)["__signature__"] = inspect.Signature(parameters)
    return fn


async def test_a_signature_cannot_hide_a_marker() -> None:
    async def refund(ok: Marked) -> None: ...

    @functools.wraps(refund)
    async def wrapper(ok: bool) -> None: ...

    for fn in (hidden(refund), hidden(wrapper)):
        told = str(await refusal(as_tool, fn))
        assert "parameter 'ok' is marked with `Resolve`, but the function's signature hides the marker" in told


async def test_a_signature_cannot_hide_a_marker_or_a_question_as_a_default() -> None:
    marker: Any = Resolve(ask)

    async def refund(ok: bool = marker) -> None: ...

    told = str(await refusal(as_tool, hidden(refund, default=False)))
    assert "parameter 'ok' has `Resolve` or a question as its default value, and the signature hides it" in told


def test_annotations_that_cannot_be_hashed_are_compared_all_the_same() -> None:
    """A union compares its members by hash; a list among the metadata has none."""
    hint: Any = list[Annotated[bool, ["Resolve(ask)"]]] | None

    async def refund(ok: Any) -> str: ...

    refund.__annotations__["ok"] = hint
    with pytest.raises(InvalidSignature, match="has a `Resolve` inside a union or container"):
        MCPServer[Any]("desk").add_tool(refund)

    copied: Any = list[Annotated[bool, ["Resolve(ask)"]]] | None

    async def wrapped(ok: Any) -> str: ...

    vars(wrapped)["__signature__"] = inspect.Signature(
        [inspect.Parameter("ok", inspect.Parameter.KEYWORD_ONLY, annotation=copied)], return_annotation=str
    )
    wrapped.__annotations__["ok"] = hint
    with pytest.raises(InvalidSignature):
        MCPServer[Any]("desk").add_tool(wrapped)
