"""What an author is told of a marker that would be lost behind a type variable, an overload, a field or a wrapper (design 4).

The tables of test_generated_signatures.py try every form; here is one of each kind, with its message.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from operator import getitem
from types import SimpleNamespace
from typing import Annotated, Any, Generic, NamedTuple, Optional, TypeVar, cast, overload

import attrs
import pytest
from pydantic import BaseModel, Field

from bespeak import InvalidSignature, MCPServer, Resolve
from tests.resolve.positions import Position, as_tool, everywhere, refusal, shown

T = TypeVar("T")


async def ask() -> bool:
    return False


Marked = Annotated[bool, Resolve(ask)]


class Crud(Generic[T]):
    async def create(self, title: str, ok: T) -> str:
        return f"{title}: {ok}"

    @staticmethod
    async def make(title: str, ok: T) -> str: ...


class Mine(Crud[Marked]):
    pass


class Plain(Crud[int]):
    pass


class Free(Crud):  # pyright: ignore[reportMissingTypeArgument] - left out on purpose
    pass


FREE: Any = Free()
BARE: Any = Crud()  # pyright: ignore[reportUnknownVariableType] - on purpose


class Pair(NamedTuple, Generic[T]):
    title: str
    ok: T


@pytest.mark.parametrize("fn", [Mine().create, Crud[Marked]().create], ids=["base", "object"])
async def test_a_marker_given_for_a_type_variable_fills_the_parameter(fn: Callable[..., Any]) -> None:
    mcp = MCPServer[Any]("desk")
    mcp.add_tool(fn, name="create")

    result = await mcp.call_tool("create", {"title": "Dune", "ok": True})

    assert result.structured_content == {"result": "Dune: False"}


async def test_a_generic_named_tuple_has_its_marker_read() -> None:
    assert await shown(Pair[Marked]) == ["title"]


async def test_a_type_given_for_a_type_variable_is_what_the_model_sees() -> None:
    mcp = MCPServer[Any]("desk")
    mcp.add_tool(Plain().create)
    (tool,) = await mcp.list_tools()
    assert tool.input_schema["properties"]["ok"]["type"] == "integer"


async def test_a_base_class_without_type_arguments_leaves_its_type_variable_free() -> None:
    assert await shown(FREE.create) == ["title", "ok"]


@everywhere
@pytest.mark.parametrize("fn", [Crud[Marked].make, BARE.create], ids=["static method", "bare object"])
async def test_a_type_variable_of_a_class_that_stays_unknown_is_refused(
    position: Position, fn: Callable[..., Any]
) -> None:
    (fault,) = [one for one in (await refusal(position, fn)).faults if "'ok'" in one.problem]
    assert (
        "parameter 'ok' takes T, a type variable of its class, and what it stands for cannot be read here"
        in fault.problem
    )
    assert fault.fix == (
        "write the type in the method, or give it to a base class, class Desk(Base[...]), and register a method of Desk()"
    )


async def test_a_marker_in_an_overload_alone_is_refused() -> None:
    @overload
    async def refund(title: str, ok: Marked) -> str: ...
    @overload
    async def refund(title: int, ok: Marked) -> str: ...
    async def refund(title: Any, ok: bool) -> str: ...

    (fault,) = (await refusal(as_tool, refund)).faults
    assert "parameter 'ok' is marked with `Resolve` in an overload, but not in the function itself" in fault.problem
    assert fault.fix == "repeat the marker in the function: ok: Annotated[..., Resolve(fn)]"


async def test_a_marker_on_a_field_that_the_init_does_not_repeat_is_refused() -> None:
    @dataclass(init=False)
    class Refund:
        ok: Marked

        def __init__(self, ok: bool) -> None:
            self.ok = ok

    told = str(await refusal(as_tool, Refund))
    assert "parameter 'ok' is marked with `Resolve` in" in told


async def test_a_marker_that_a_converter_of_attrs_hides_is_refused() -> None:
    @attrs.define
    class Refund:
        _ok: Marked = attrs.field(converter=bool)

    (fault,) = (await refusal(as_tool, Refund)).faults
    assert "parameter 'ok' is marked with `Resolve` on the field of Refund, but not in its `__init__`" in fault.problem
    assert fault.fix == "write an `__init__` that repeats the marker, or remove the converter"


async def test_a_marker_in_the_metadata_of_a_field_is_refused() -> None:
    @attrs.define
    class Refund:
        ok: bool = attrs.field(metadata={"by": Resolve(ask)})

    (fault,) = (await refusal(as_tool, Refund)).faults
    assert "the field of parameter 'ok' has a `Resolve` in its default or its metadata" in fault.problem
    assert fault.fix == "write ok: Annotated[..., Resolve(fn)]"


async def refund(title: str, ok: Marked) -> str: ...


@pytest.mark.parametrize(
    "kept",
    [[refund], {"fn": refund}, SimpleNamespace(fn=refund), functools.partial(refund)],
    ids=lambda one: type(one).__name__,
)
async def test_a_wrapper_that_keeps_the_marked_function_somewhere_is_refused(kept: Any) -> None:
    async def wrapper(title: str, ok: bool) -> str:
        return str(kept)

    told = str(await refusal(as_tool, wrapper))
    assert "parameter 'ok' is marked with `Resolve` in refund, which this function wraps, but not here" in told


async def test_a_function_that_is_kept_but_cannot_be_passed_the_parameters_does_not_count() -> None:
    others = {"refund": refund}

    async def close(ok: bool, order: int) -> str:
        return f"{order} {ok} {others}"

    assert await shown(close) == ["ok", "order"]


async def test_the_marker_of_another_copy_of_the_package_is_refused() -> None:
    from tests.resolve.reading.generated.names import Copied

    async def charge(title: str, ok: Any) -> str: ...

    charge.__annotations__["ok"] = Annotated[bool, Copied(ask)]
    (fault,) = (await refusal(as_tool, charge)).faults
    assert (
        "parameter 'ok' is marked with the `Resolve` of another copy of bespeak, which has no effect here"
        in fault.problem
    )
    assert fault.fix == "import Resolve from bespeak: ok: Annotated[..., Resolve(fn)]"


# An annotation in place of a default, fields that are annotated anew, and parameters under another name


class Kept(BaseModel):
    ok: Marked


class Lost(Kept):
    ok: bool


@dataclass
class Record:
    ok: Marked


@dataclass
class LostRecord(Record):
    ok: bool


class Mixin:
    ok: Marked


class Mixed(Mixin, BaseModel):
    ok: bool


class Defaulted(BaseModel):
    ok: Any = Marked


def take(ok: Any = Marked) -> str: ...


FIELD, MADE = Field(default=Marked), Field(default_factory=lambda: Marked)
OPTIONAL = getitem(cast("Any", Optional), Marked)


def take_field(ok: Any = FIELD) -> str: ...


def take_made(ok: Any = MADE) -> str: ...


def take_list(ok: Any = [Marked]) -> str: ...  # noqa: B006 - what a typo leads to


def take_optional(ok: Any = OPTIONAL) -> str: ...


def take_defaulted(one: Defaulted) -> str: ...


def take_lost(one: Lost) -> str: ...


def take_record(one: LostRecord) -> str: ...


def take_mixed(one: Mixed) -> str: ...


@overload
def renamed_overload(title: str, ok: Marked) -> str: ...
@overload
def renamed_overload(title: int, ok: Marked) -> str: ...
def renamed_overload(title: Any, yes: bool) -> str: ...  # pyright: ignore[reportInconsistentOverload] - on purpose


class Base:
    def create(self, title: str, ok: Marked) -> str: ...


class Renaming(Base):
    def create(self, title: str, yes: bool) -> str: ...  # pyright: ignore[reportIncompatibleMethodOverride] - on purpose


class Dropping(Base):
    def create(self, title: str) -> str: ...  # pyright: ignore[reportIncompatibleMethodOverride] - on purpose


@pytest.mark.parametrize(
    "fn",
    [
        take,
        take_field,
        take_made,
        take_list,
        take_optional,
        take_defaulted,
        take_lost,
        take_record,
        take_mixed,
        renamed_overload,
        Renaming().create,
    ],
)
def test_a_marker_in_a_default_an_older_field_or_under_another_name_is_refused(fn: Callable[..., Any]) -> None:
    with pytest.raises(InvalidSignature, match="Resolve"):
        MCPServer[Any]("desk").add_tool(fn, name="create")


def test_a_method_that_has_no_such_parameter_any_more_is_registered() -> None:
    MCPServer[Any]("desk").add_tool(Dropping().create)
