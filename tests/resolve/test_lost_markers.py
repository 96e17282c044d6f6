"""A marker is not lost on the way: in generic aliases, in TypedDicts, in text and in lists (design 4)."""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, TypeVarTuple

import pytest
from pydantic import BaseModel, Field, create_model
from typing_extensions import TypeAliasType, TypedDict

from bespeak import Elicit, InvalidSignature, MCPServer, Resolve, ToolError
from bespeak.resolve.reading import misplaced_markers as strays
from tests.resolve.test_invalid_signatures import Position, as_tool

T = TypeVar("T")
S = TypeVar("S")
Ts = TypeVarTuple("Ts")


async def ask() -> bool | Elicit[bool]:
    return Elicit("Refund it?", bool)


async def other() -> bool:
    return False


Marked = Annotated[bool, Resolve(ask)]


# Where the callable can stand. As a resolver it could be given the argument of that name.


def as_resolver(mcp: MCPServer[Any], fn: Callable[..., Any]) -> None:
    async def tool(order: str, ok: Any, found: Annotated[object, Resolve(fn)]) -> None: ...

    mcp.add_tool(tool)


def as_nested_resolver(mcp: MCPServer[Any], fn: Callable[..., Any]) -> None:
    async def middle(found: Annotated[object, Resolve(fn)]) -> int: ...

    async def tool(order: str, ok: Any, counted: Annotated[int, Resolve(middle)]) -> None: ...

    mcp.add_tool(tool)


everywhere = pytest.mark.parametrize("position", [as_tool, as_resolver, as_nested_resolver])


def refused(position: Position, fn: Callable[..., Any]) -> str:
    """What is said of the parameter `ok`, which is told how to be marked."""
    with pytest.raises(InvalidSignature) as caught:
        position(MCPServer("desk"), fn)
    (fault,) = [fault for fault in caught.value.faults if "'ok'" in fault.problem]
    assert re.search(r"Annotated\[.*Resolve\(", fault.fix), fault.fix
    assert fault.place
    assert "─ ok" in fault.drawing
    return fault.problem


async def shown(fn: Callable[..., Any]) -> list[str]:
    """The arguments of a function as a tool."""
    mcp = MCPServer("desk")
    mcp.add_tool(fn, name="tool")
    (tool,) = await mcp.list_tools()
    return list(tool.input_schema["properties"])


async def shown_or_refused(fn: Callable[..., Any]) -> list[str] | InvalidSignature:
    try:
        return await shown(fn)
    except InvalidSignature as error:
        return error


# Generic aliases

Unused = TypeAliasType("Unused", bool, type_params=(T,))
HalfUsed = TypeAliasType("HalfUsed", list[T], type_params=(T, S))
UnusedOfUnused = TypeAliasType("UnusedOfUnused", Unused[S], type_params=(S,))
Many = TypeAliasType("Many", tuple[*Ts], type_params=(Ts,))
ManyUnused = TypeAliasType("ManyUnused", bool, type_params=(Ts,))
OneAndMany = TypeAliasType("OneAndMany", tuple[T, *Ts], type_params=(T, Ts))


@dataclass
class InField:
    flag: Unused[Marked]


class Box(BaseModel, Generic[T]):
    content: Unused[T]


ALIASES: dict[str, Any] = {
    "unused": Unused[Marked],
    "one of two unused": HalfUsed[bool, Marked],
    "unused below": UnusedOfUnused[Marked],
    "unused in a list": list[Unused[Marked]],
    "unused in a union": Unused[Marked] | None,
    "unused in Annotated": Annotated[Unused[Marked], Field(description="Sure?")],
    "unused in a field": InField,
    "unused by a generic model": Box[Marked],
    "unused without a call": Unused[Annotated[bool, Resolve]],
    "many": Many[int, Marked],
    "many unused": ManyUnused[int, Marked],
    "one and many": OneAndMany[int, Marked],
    "first of one and many": OneAndMany[Marked, int],
    "many in a list": list[Many[int, Marked]],
}


def takes(hint: Any) -> Callable[..., Any]:
    async def refund(order: str, ok: Any) -> None: ...

    refund.__annotations__["ok"] = hint
    return refund


@everywhere
@pytest.mark.parametrize("hint", ALIASES.values(), ids=ALIASES)
def test_a_marker_given_to_a_generic_alias_is_refused_where_it_does_not_reach_the_parameter(
    position: Position, hint: Any
) -> None:
    refused(position, takes(hint))


@pytest.mark.parametrize(
    "hint", [Many[int, str], ManyUnused[int, str], OneAndMany[int, str, bool], list[Many[int]]], ids=str
)
async def test_an_alias_of_many_is_read_or_refused_and_nothing_else(hint: Any) -> None:
    came = await shown_or_refused(takes(hint))
    assert came == ["order", "ok"] or "parameter 'ok' takes " in str(came)


async def test_an_alias_of_many_may_be_what_a_resolver_makes() -> None:
    assert await shown(takes(Annotated[Many[int, str], Resolve(other_many)])) == ["order"]


async def other_many() -> Any:
    return 1, "one"


# TypedDicts with extra items


class Extra(TypedDict, extra_items=Marked):
    order: str


class MoreExtra(Extra):
    pass


class ExtraList(TypedDict, extra_items=list[Marked]):
    order: str


class ExtraUncalled(TypedDict, extra_items=Annotated[bool, Resolve]):
    order: str


class ExtraInModel(BaseModel):
    rows: dict[str, Extra]


class PlainExtra(TypedDict, extra_items=bool):
    order: str


@everywhere
@pytest.mark.parametrize(
    "hint", [Extra, MoreExtra, ExtraList, ExtraUncalled, ExtraInModel, list[Extra]], ids=lambda hint: str(hint)[-20:]
)
def test_a_marker_in_the_extra_items_of_a_typed_dict_is_refused(position: Position, hint: Any) -> None:
    refused(position, takes(hint))


async def test_extra_items_without_a_marker_are_let_pass() -> None:
    assert await shown(takes(PlainExtra)) == ["order", "ok"]


# In text, and in lists of lists

METADATA: dict[str, Any] = {
    "text": "Resolve(ask)",
    "text with options": "Resolve(ask, once=True)",
    "text with its module": "bespeak.Resolve(ask)",
    "list": [Resolve(ask)],
    "list in a list": [[Resolve(ask)]],
    "list in a tuple in a dict": {"by": ([Resolve(ask)],)},
    "class in a list in a list": [[Resolve]],
    "partial in a list": [functools.partial(Resolve, ask)],
    "text in a list": ["Resolve(ask)"],
}


@everywhere
@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
def test_a_marker_that_is_not_itself_in_annotated_is_refused(position: Position, metadata: Any) -> None:
    refused(position, takes(Annotated[bool, metadata]))


@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
def test_such_a_marker_in_a_field_is_refused_too(metadata: Any) -> None:
    basket = create_model("Basket", inner=(Annotated[bool, metadata], ...))
    refused(as_tool, takes(basket))


@pytest.mark.parametrize(
    "default", [[Resolve(ask)], [[Resolve(ask)]], {"by": [Resolve(ask)]}], ids=["list", "nested", "dict"]
)
def test_a_marker_inside_a_default_is_refused(default: Any) -> None:
    async def refund(order: str, ok: Any = default) -> None: ...

    refused(as_tool, refund)


@pytest.mark.parametrize(
    "note",
    [
        "how to resolve the order",
        "Resolved by the desk",
        "Resolve conflicts first (see the manual)",
        ["resolve", "refund"],
        {"x": "unresolved"},
    ],
    ids=str,
)
async def test_words_that_are_no_marker_are_let_pass(note: Any) -> None:
    assert await shown(takes(Annotated[bool, note])) == ["order", "ok"]


# Imports that were left behind, and markers that a partial binds


def official(name: str) -> type[Any]:
    """A class that is the official SDK's by its name and module."""

    def made(self: Any, *given: Any) -> None: ...

    return type(name, (), {"__module__": "mcp.server.mcpserver", "__init__": made})


def annotated(hint: Any) -> Callable[..., Any]:
    async def refund(order: str, ok: Any) -> str: ...

    refund.__annotations__["ok"] = hint
    return refund


def test_the_official_sdks_marker_is_refused_and_told_where_to_import_it_from() -> None:
    theirs = official("Resolve")
    with pytest.raises(InvalidSignature, match="the `Resolve` of the official SDK") as raised:
        MCPServer("desk").add_tool(annotated(Annotated[bool, theirs(lambda: True)]))
    assert raised.value.faults[0].fix.startswith("import Resolve from bespeak")


@pytest.mark.parametrize("name", ["Elicit", "AcceptedElicitation", "DeclinedElicitation", "Context"])
def test_the_official_sdks_outcomes_questions_and_context_are_nothing_for_a_client_to_supply(name: str) -> None:
    with pytest.raises(InvalidSignature, match=f"would let a client supply {name}"):
        MCPServer("desk").add_tool(annotated(official(name)))


async def test_the_official_sdks_question_from_a_resolver_is_an_error_and_no_value() -> None:
    theirs, mcp = official("Elicit"), MCPServer("desk")

    async def ask() -> Any:
        return theirs("Sure?", bool)

    async def refund(ok: Annotated[bool, Resolve(ask)]) -> str:
        raise AssertionError

    mcp.add_tool(refund)
    with pytest.raises(ToolError, match="returned Elicit of the official SDK; import it from bespeak"):
        await mcp.call_tool("refund", {})


@pytest.mark.parametrize("bound", [Resolve(lambda: True), Elicit("Sure?", bool), [Resolve(lambda: True)]])
def test_a_marker_or_a_question_that_a_partial_binds_is_refused(bound: Any) -> None:
    async def refund(order: str, ok: Any) -> str: ...

    for partial in (functools.partial(refund, ok=bound), functools.partial(refund, bound)):
        with pytest.raises(InvalidSignature, match=r"a partial binds .* to a marker or a question"):
            MCPServer("desk").add_tool(partial, name="refund")


def test_a_default_in_a_resolver_for_what_the_tool_resolves_is_refused() -> None:
    async def ask() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    async def charge(order: str, approved: bool = True) -> int: ...

    async def pay(
        order: str, approved: Annotated[bool, Resolve(ask)], charged: Annotated[int, Resolve(charge)]
    ) -> str: ...

    with pytest.raises(InvalidSignature, match="has a resolved parameter of that name") as raised:
        MCPServer("desk").add_tool(pay)
    assert raised.value.faults[0].fix == (
        "'approved' is itself resolved: mark it here too, Annotated[..., Resolve(ask)]"
    )


# What has no end


def test_an_object_that_answers_to_every_name_is_read_in_finite_time() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> "Proxy":
            return Proxy()

        def __call__(self, order: str) -> str: ...

    with pytest.raises(InvalidSignature, match="its signature cannot be read"):
        MCPServer("desk").add_tool(Proxy(), name="proxy")


def test_a_function_that_wraps_itself_is_refused() -> None:
    async def refund(order: str) -> str: ...

    refund.__wrapped__ = refund  # pyright: ignore[reportFunctionMemberAccess]
    with pytest.raises(InvalidSignature, match="its signature cannot be read"):
        MCPServer("desk").add_tool(refund)


def test_a_type_too_large_to_be_looked_through_is_refused_rather_than_let_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "_MOST", 3)
    with pytest.raises(InvalidSignature, match="too large to inspect"):
        MCPServer("desk").add_tool(annotated(dict[str, list[tuple[int, float]]]))


@pytest.mark.parametrize("hint", [Annotated[str, Field(pattern="(?=x)y")], Annotated[int, Field(multiple_of=0)]])
def test_a_type_that_pydantic_cannot_build_is_a_fault_and_no_crash(hint: Any) -> None:
    with pytest.raises(InvalidSignature, match="cannot come from JSON"):
        MCPServer("desk").add_tool(annotated(hint))
