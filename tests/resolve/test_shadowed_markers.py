"""Postponed annotations mean what they meant where they were written, or they are refused (design 4)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from bespeak import ElicitationResult, InvalidSignature, MCPServer, Resolve
from tests.resolve import shadowing_decorators as decorators

ASKED: list[str] = []


async def ask(order: str) -> bool:
    ASKED.append(order)
    return False


Marked = Annotated[bool, Resolve(ask)]
Outcome = ElicitationResult[bool]
Alias = bool  # what local aliases of this name shadow
Sort = bool


async def called(mcp: MCPServer[Any]) -> str:
    """What a client gets that answers for itself; the model must not see the parameter either."""
    (tool,) = await mcp.list_tools()
    assert list(tool.input_schema["properties"]) == ["order"]
    result = await mcp.call_tool("tool", {"order": "7", "ok": True})
    assert result.structured_content is not None
    return result.structured_content["result"]


async def honoured_or_refused(register: Callable[[MCPServer[Any]], None]) -> str:
    """Either the resolver fills the parameter, or registering it is refused; returns which."""
    mcp = MCPServer("desk")
    ASKED.clear()
    try:
        register(mcp)
    except InvalidSignature as error:
        assert await mcp.list_tools() == []
        for fault in error.faults:
            assert fault.fix
        return "refused"
    assert await called(mcp) == "7: False"
    assert ASKED == ["7"]
    return "honoured"


# Decorators of another module, where the same names mean other things


@decorators.copying
async def copied(order: str, ok: Marked) -> str:
    return f"{order}: {ok}"


@decorators.sharing
async def shared(order: str, ok: Marked) -> str:
    return f"{order}: {ok}"


@decorators.forgetting
async def forgotten(order: str, ok: Marked) -> str:
    return f"{order}: {ok}"


@decorators.copying
@decorators.forgetting
async def copied_twice(order: str, ok: Marked) -> str:
    return f"{order}: {ok}"


wrapped_by_a_class: Any = decorators.Wrapper(copied)

DECORATED: dict[str, Callable[..., Any]] = {
    "copied annotations": copied,
    "shared annotations": shared,
    "all but the way back": forgotten,
    "twice": copied_twice,
    "a class": wrapped_by_a_class,
    "a partial": functools.partial(copied),
}


@pytest.mark.parametrize("fn", DECORATED.values(), ids=DECORATED)
async def test_a_decorator_that_copies_annotations_loses_no_marker_of_a_tool(fn: Callable[..., Any]) -> None:
    await honoured_or_refused(lambda mcp: mcp.add_tool(fn, name="tool"))


@pytest.mark.parametrize("fn", DECORATED.values(), ids=DECORATED)
async def test_a_decorator_that_copies_annotations_loses_no_marker_of_a_resolver(fn: Callable[..., Any]) -> None:
    async def tool(order: str, found: Annotated[str, Resolve(fn)]) -> str:
        return found

    async def by_name(order: str, found: Annotated[str, Resolve(fn)], ok: Any = None) -> str:
        return found

    await honoured_or_refused(lambda mcp: mcp.add_tool(tool))
    mcp = MCPServer("desk")
    try:
        mcp.add_tool(by_name)
    except InvalidSignature:
        return
    result = await mcp.call_tool("by_name", {"order": "7", "ok": True})
    assert result.structured_content == {"result": "7: False"}


@decorators.copying
async def outcome(order: str, ok: Outcome) -> str:
    return f"{order}: {ok}"


def test_a_decorator_that_copies_annotations_does_not_hide_a_forgotten_marker() -> None:
    with pytest.raises(InvalidSignature):
        MCPServer("desk").add_tool(outcome)


async def test_a_decorator_that_says_what_it_wraps_is_honoured() -> None:
    @decorators.honest
    async def tool(order: str, ok: Marked) -> str:
        return f"{order}: {ok}"

    assert await honoured_or_refused(lambda mcp: mcp.add_tool(tool)) == "honoured"


# A local alias that shadows a global


async def test_a_local_alias_that_shadows_a_global_is_honoured_where_it_is_registered() -> None:
    Alias = Annotated[bool, Resolve(ask)]
    mcp = MCPServer("desk")

    @mcp.tool()
    async def tool(order: str, ok: Alias) -> str:
        return f"{order}: {ok}"

    assert Alias
    assert await called(mcp) == "7: False"


def returned() -> Callable[..., Any]:
    Alias = Annotated[bool, Resolve(ask)]

    async def tool(order: str, ok: Alias) -> str:
        return f"{order}: {ok}"

    assert Alias
    return tool


async def test_a_local_alias_that_shadows_a_global_is_not_lost_when_its_function_has_returned() -> None:
    tool = returned()
    await honoured_or_refused(lambda mcp: mcp.add_tool(tool))


def returned_method() -> Callable[..., Any]:
    Alias = Annotated[bool, Resolve(ask)]

    class Desk:
        async def tool(self, order: str, ok: Alias) -> str:
            return f"{order}: {ok}"

    assert Alias
    return Desk().tool


async def test_nor_is_that_of_a_method_of_a_local_class() -> None:
    tool = returned_method()
    await honoured_or_refused(lambda mcp: mcp.add_tool(tool))


def twice_returned() -> Callable[[], Callable[..., Any]]:
    Alias = Annotated[bool, Resolve(ask)]

    def make() -> Callable[..., Any]:
        async def tool(order: str, ok: Alias) -> str:
            return f"{order}: {ok}"

        return tool

    assert Alias
    return make


async def test_nor_is_that_of_a_function_further_out() -> None:
    tool = twice_returned()()
    await honoured_or_refused(lambda mcp: mcp.add_tool(tool))


def add(mcp: MCPServer[Any], fn: Callable[..., Any]) -> None:
    mcp.add_tool(fn, name="tool")


def register_through_another(mcp: MCPServer[Any]) -> None:
    Alias = Annotated[bool, Resolve(ask)]

    async def tool(order: str, ok: Alias) -> str:
        return f"{order}: {ok}"

    assert Alias
    add(mcp, tool)


async def test_a_local_alias_is_not_lost_when_another_function_registers() -> None:
    await honoured_or_refused(register_through_another)


def register_a_local_class(mcp: MCPServer[Any]) -> None:
    Alias = Annotated[bool, Resolve(ask)]

    @dataclass
    class Made:
        order: str
        ok: Alias

    async def tool(order: str, made: Annotated[object, Resolve(Made)]) -> str:
        assert isinstance(made, Made)
        return f"{order}: {made.ok}"

    assert Alias
    mcp.add_tool(tool)


async def test_a_local_alias_in_a_local_dataclass_is_honoured() -> None:
    assert await honoured_or_refused(register_a_local_class) == "honoured"


def register_a_class_made_by_new(mcp: MCPServer[Any]) -> None:
    Alias = Annotated[bool, Resolve(ask)]

    class Made:
        ok: Any

        def __new__(cls, order: str, ok: Alias) -> Made:
            made = super().__new__(cls)
            made.ok = ok
            return made

    async def tool(order: str, made: Annotated[object, Resolve(Made)]) -> str:
        assert isinstance(made, Made)
        return f"{order}: {made.ok}"

    assert Alias
    mcp.add_tool(tool)


async def test_a_local_alias_in_a_local_class_made_by_new_is_honoured() -> None:
    assert await honoured_or_refused(register_a_class_made_by_new) == "honoured"


def shadowed_outcome() -> Callable[..., Any]:
    Sort = ElicitationResult[bool]

    async def tool(order: str, ok: Sort) -> str:
        return f"{order}: {ok}"

    assert Sort
    return tool


def test_a_forgotten_marker_is_told_behind_a_local_alias_that_shadows_a_global() -> None:
    with pytest.raises(InvalidSignature):
        MCPServer("desk").add_tool(shadowed_outcome())


class Desk:
    Alias = Annotated[bool, Resolve(ask)]

    async def tool(self, order: str, ok: Alias) -> str:
        return f"{order}: {ok}"


class LaterDesk(Desk):
    pass


@pytest.mark.parametrize("desk", [Desk, LaterDesk], ids=lambda desk: desk.__name__)
async def test_an_alias_in_the_body_of_a_class_that_shadows_a_global_is_not_lost(desk: type[Desk]) -> None:
    await honoured_or_refused(lambda mcp: mcp.add_tool(desk().tool))


def returned_with_a_global() -> Callable[..., Any]:
    async def tool(order: str, ok: Alias) -> str:
        return f"{order}: {ok}"

    return tool


async def test_a_global_that_nothing_shadows_is_read_from_any_frame() -> None:
    mcp = MCPServer("desk")
    mcp.add_tool(returned_with_a_global())

    (tool,) = await mcp.list_tools()
    assert list(tool.input_schema["properties"]) == ["order", "ok"]


# The marker in the alias of a resolver that overrides


class MarkedDesk:
    async def tool(self, order: str, ok: Marked) -> str:
        return f"{order}: {ok}"


class LoggingDesk(MarkedDesk):
    async def tool(self, order: str, ok: bool) -> str:
        return await super().tool(order, ok)


def test_a_postponed_marker_is_not_lost_by_overriding() -> None:
    with pytest.raises(InvalidSignature, match="'ok'"):
        MCPServer("desk").add_tool(LoggingDesk().tool)
