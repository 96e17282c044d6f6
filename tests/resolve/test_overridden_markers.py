"""A marker is not lost where a subclass repeats a parameter without it: methods, callable objects and classes (design 4)."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from bespeak import Client, InvalidSignature, MCPServer, Resolve
from tests.answering import DECLINE, Person
from tests.resolve.test_invalid_signatures import Position
from tests.resolve.test_lost_markers import Marked, everywhere, other, refused, shown, shown_or_refused


class Desk:
    async def refund(self, order: str, ok: Marked) -> str:
        return f"{order}: {ok}"

    @classmethod
    async def made(cls, order: str, ok: Marked) -> str:
        return f"{order}: {ok}"

    async def __call__(self, order: str, ok: Marked) -> str:
        return f"{order}: {ok}"


class LoggingDesk(Desk):
    async def refund(self, order: str, ok: bool) -> str:
        return await super().refund(order, ok)

    @classmethod
    async def made(cls, order: str, ok: bool) -> str:
        return await super().made(order, ok)

    async def __call__(self, order: str, ok: bool) -> str:
        return await super().__call__(order, ok)


class DeeperDesk(LoggingDesk):
    pass


class UnannotatedDesk(Desk):
    async def refund(self, order, ok):  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType] - on purpose
        return f"{order}: {ok}"


class DefaultDesk(Desk):
    async def refund(self, order: str, ok: bool = False) -> str:
        return f"{order}: {ok}"


class Logging:
    async def refund(self, order: str, ok: bool) -> str:
        return f"{order}: {ok}"


class MixedDesk(Logging, Desk):  # pyright: ignore[reportIncompatibleMethodOverride] - only of a name
    pass


class SyncDesk(Desk):
    def refund(self, order: str, ok: bool) -> Any:
        return f"{order}: {ok}"


OVERRIDING: dict[str, Callable[..., Any]] = {
    "method": LoggingDesk().refund,
    "inherited from the one that overrides": DeeperDesk().refund,
    "without hints": UnannotatedDesk().refund,  # pyright: ignore[reportUnknownMemberType] - on purpose
    "with a default": DefaultDesk().refund,
    "from the side": MixedDesk().refund,
    "sync": SyncDesk().refund,
    "class method": LoggingDesk.made,
    "class method of an object": LoggingDesk().made,
    "callable object": LoggingDesk(),
    "partial of a method": functools.partial(LoggingDesk().refund),
    "partial of a callable object": functools.partial(LoggingDesk()),
}


@everywhere
@pytest.mark.parametrize("fn", OVERRIDING.values(), ids=OVERRIDING)
def test_an_override_that_repeats_a_parameter_without_its_marker_is_refused(
    position: Position, fn: Callable[..., Any]
) -> None:
    problem = refused(position, fn)

    assert "Desk" in problem  # whose marker it was


async def test_a_model_cannot_consent_through_a_desk_that_only_logs() -> None:
    mcp = MCPServer("desk")
    with pytest.raises(InvalidSignature):
        mcp.add_tool(LoggingDesk().refund)
    assert await mcp.list_tools() == []


class MarkedAgainDesk(Desk):
    async def refund(self, order: str, ok: Annotated[bool, Resolve(other)]) -> str:
        return f"{order}: {ok}"


class ShorterDesk(Desk):
    async def refund(self, order: str) -> str:  # pyright: ignore[reportIncompatibleMethodOverride] - takes less
        return await super().refund(order, False)


class UnmarkedDesk:
    async def refund(self, order: str, ok: bool) -> str:
        return f"{order}: {ok}"


class LaterMarkedDesk(UnmarkedDesk):
    async def refund(self, order: str, ok: Marked) -> str:
        return f"{order}: {ok}"


async def test_an_override_may_mark_its_parameter_anew_or_leave_it_out() -> None:
    assert await shown(MarkedAgainDesk().refund) == ["order"]
    assert await shown(ShorterDesk().refund) == ["order"]
    assert await shown(LaterMarkedDesk().refund) == ["order"]
    assert await shown(UnmarkedDesk().refund) == ["order", "ok"]


async def test_what_a_partial_settles_is_no_marker_lost() -> None:
    assert await shown(functools.partial(LoggingDesk().refund, ok=False)) == ["order"]


class Other(Desk):
    async def cancel(self, order: str, ok: bool) -> str:
        return f"{order}: {ok}"


async def test_a_marker_of_another_method_is_no_marker_of_this_one() -> None:
    assert await shown(Other().cancel) == ["order", "ok"]


async def test_an_overriding_resolver_is_honoured_where_it_keeps_its_marker() -> None:
    mcp = MCPServer("desk")

    @mcp.tool()
    async def tool(order: str, ok: Any, done: Annotated[str, Resolve(MarkedAgainDesk().refund)]) -> str:
        return done

    result = await mcp.call_tool("tool", {"order": "7", "ok": True})
    assert result.structured_content == {"result": "7: False"}


# Classes


class Made:
    def __init__(self, order: str, ok: Marked) -> None:
        self.ok = ok


class InitMade(Made):
    def __init__(self, order: str, ok: bool) -> None:
        super().__init__(order, ok)


class NewFirst:
    def __new__(cls, order: str, ok: bool) -> "NewFirst":
        return super().__new__(cls)

    def __init__(self, order: str, ok: Marked) -> None:
        self.ok = ok


class NewBase:
    def __new__(cls, order: str, ok: Marked) -> "NewBase":
        return super().__new__(cls)


class NewMade(NewBase):
    def __new__(cls, order: str, ok: bool) -> "NewMade":
        return object.__new__(cls)


class InitOverNew(NewBase):
    def __init__(self, order: str, ok: bool) -> None:
        self.ok = ok


class Meta(type):
    def __call__(cls, order: str, ok: bool) -> Any:
        return super().__call__(order, ok)


class MetaFirst(metaclass=Meta):
    def __init__(self, order: str, ok: Marked) -> None:
        self.ok = ok


class MarkedMeta(type):
    def __call__(cls, order: str, ok: Marked) -> Any:
        return super().__call__(order, ok)


class LoggingMeta(MarkedMeta):
    def __call__(cls, order: str, ok: bool) -> Any:
        return super().__call__(order, ok)


class OfLoggingMeta(metaclass=LoggingMeta):
    pass


@dataclass
class Form:
    order: str
    ok: Marked


@dataclass
class LooserForm(Form):
    ok: bool  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride] - the marker is gone


CLASSES = [InitMade, NewFirst, NewMade, MetaFirst, OfLoggingMeta, LooserForm]


@everywhere
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_class_that_repeats_a_parameter_without_its_marker_is_refused(position: Position, cls: type[Any]) -> None:
    refused(position, cls)


async def test_a_marker_of_an_inherited_new_is_honoured_or_refused_beside_an_init_without() -> None:
    """Which of the two `inspect.signature` shows depends on the version of Python."""
    came = await shown_or_refused(InitOverNew)
    assert came == ["order"] or isinstance(came, InvalidSignature)


class OfMarkedMeta(metaclass=MarkedMeta):
    def __init__(self, order: str, ok: bool) -> None:
        self.ok = ok


@pytest.mark.parametrize("cls", [Made, NewBase, Form, OfMarkedMeta], ids=lambda cls: cls.__name__)
async def test_a_class_that_shows_its_marker_is_honoured(cls: type[Any]) -> None:
    assert await shown(cls) == ["order"]


# And honoured, with a person who says no


async def test_a_marked_method_asks_its_person_whatever_the_model_sends() -> None:
    mcp = MCPServer("desk")
    mcp.add_tool(Desk().refund)
    person = Person({"ask": DECLINE})

    async with Client(mcp, elicitation_callback=person) as client:
        result = await client.call_tool("refund", {"order": "7", "ok": True})

    assert person.messages == ["Refund it?"]
    assert result.is_error


# Found by an attack


async def agreed() -> bool:
    return False


def is_refused(fn: Any, *, name: str = "refund") -> None:
    with pytest.raises(InvalidSignature, match="parameter 'ok' is marked with `Resolve` in"):
        MCPServer("desk").add_tool(fn, name=name)


def test_an_overriding_static_method_of_a_local_class_keeps_the_marker_or_is_refused() -> None:
    class Desk:
        @staticmethod
        async def refund(order: str, ok: Annotated[bool, Resolve(agreed)]) -> str: ...

    class LoggingDesk(Desk):
        @staticmethod
        async def refund(order: str, ok: bool) -> str: ...

    with pytest.raises(InvalidSignature, match="parameter 'ok' is marked with `Resolve` in"):
        MCPServer("desk").add_tool(LoggingDesk.refund)


def test_a_model_that_redeclares_a_marked_field_keeps_the_marker_or_is_refused() -> None:
    class Refund(BaseModel):
        order: str
        ok: Annotated[bool, Resolve(agreed)]

    class Loud(Refund):
        ok: bool

    is_refused(Loud)


def test_a_wrapper_that_repeats_a_marked_parameter_without_its_marker_is_refused() -> None:
    async def refund(order: str, ok: Annotated[bool, Resolve(agreed)]) -> str:
        return order

    async def wrapper(order: str, ok: bool) -> str:
        return await refund(order, ok)

    is_refused(wrapper)


def test_a_wrapper_that_fills_the_marked_parameter_itself_is_let_pass() -> None:
    async def refund(order: str, ok: Annotated[bool, Resolve(agreed)]) -> str:
        return order

    async def wrapper(order: str) -> str:
        return await refund(order, ok=False)

    MCPServer("desk").add_tool(wrapper)


def test_a_function_beside_it_with_a_parameter_of_the_same_name_is_let_pass() -> None:
    def make() -> Callable[..., Any]:
        class Order(BaseModel):
            id: str

        async def stored(order: Order) -> str:
            return order.id

        stored.__annotations__["order"] = "Order"  # as under postponed annotations, and gone when it is read

        async def refund(order: str) -> str:
            return await stored(Order(id=order))

        return refund

    MCPServer("desk").add_tool(make())
