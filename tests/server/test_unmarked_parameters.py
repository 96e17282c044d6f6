"""Parameters that the model fills though a resolver fills others like them: a marker that was probably forgotten."""

from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Annotated

import pytest
from pydantic import BaseModel

from bespeak import Elicit, ElicitationResult, MCPServer, Resolve
from bespeak.server.unmarked_parameters import unmarked_parameters


class Dest(BaseModel):
    city: str


@dataclass
class Seat:
    row: int


class Size(Enum):
    SMALL = "s"


async def ask_city() -> Elicit[Dest]:
    return Elicit("Where to?", Dest)


async def copies_left(title: str) -> int:
    return 1


async def size_of() -> Size:
    return Size.SMALL


async def seat_of() -> Seat:
    return Seat(1)


async def status_of() -> HTTPStatus:
    return HTTPStatus.OK


async def ask_hotel(dest: Annotated[Dest, Resolve(ask_city)]) -> Elicit[bool]:
    return Elicit(f"A hotel in {dest.city}?", bool)


MARK_IT = "mark it too if a model must not choose it"


@pytest.fixture
def mcp() -> MCPServer:
    return MCPServer("Travel")


def found(mcp: MCPServer) -> list[str]:
    return [str(one) for one in unmarked_parameters(mcp.registered)]


def test_a_parameter_of_the_same_name_and_type_in_another_tool_is_found(mcp: MCPServer) -> None:
    @mcp.tool()
    async def hotel(dest: Annotated[Dest, Resolve(ask_city)]) -> str: ...
    @mcp.tool()
    async def book(dest: Dest) -> str: ...

    assert found(mcp) == [
        f"book: 'dest' comes from the model, but hotel takes it from resolver ask_city; {MARK_IT}: "
        "Annotated[Dest, Resolve(ask_city)]"
    ]


def test_a_marker_that_only_the_resolver_has_is_found(mcp: MCPServer) -> None:
    @mcp.tool()
    async def hotel(dest: Dest, sure: Annotated[bool, Resolve(ask_hotel)]) -> str: ...

    assert found(mcp) == [
        f"hotel: 'dest' comes from the model, but its resolver ask_hotel takes it from resolver ask_city; {MARK_IT}: "
        "Annotated[Dest, Resolve(ask_city)]"
    ]


def test_a_parameter_of_the_same_name_is_found_whatever_its_type_is(mcp: MCPServer) -> None:
    @mcp.tool()
    async def stock(title: str, copies: Annotated[int, Resolve(copies_left)]) -> str: ...
    @mcp.tool()
    async def order(copies: int) -> str: ...
    @mcp.tool()
    async def note(copies: str) -> str: ...

    taken = "comes from the model, but stock takes it from resolver copies_left"
    fix = f"{MARK_IT}: Annotated[int, Resolve(copies_left)]"
    assert found(mcp) == [f"order: 'copies' {taken}; {fix}", f"note: 'copies' {taken}; {fix}"]


def test_a_parameter_of_the_same_class_is_found_under_another_name(mcp: MCPServer) -> None:
    @mcp.tool()
    async def hotel(dest: Annotated[ElicitationResult[Dest], Resolve(ask_city)]) -> str: ...
    @mcp.tool()
    async def book(where: Dest | None = None) -> str: ...

    assert found(mcp) == [
        "book: 'where' comes from the model, but hotel takes 'dest', of the same type Dest, from resolver ask_city; "
        f"{MARK_IT}: Annotated[Dest, Resolve(ask_city)]"
    ]


def test_dataclasses_and_enums_of_the_author_count_too(mcp: MCPServer) -> None:
    @mcp.tool()
    async def taken(seat: Annotated[Seat, Resolve(seat_of)], size: Annotated[Size, Resolve(size_of)]) -> str: ...
    @mcp.tool()
    async def choose(place: Seat, width: Size) -> str: ...

    assert [one.partition(" comes")[0] for one in found(mcp)] == ["choose: 'place'", "choose: 'width'"]


def test_builtins_and_classes_of_others_are_no_reason_to_warn(mcp: MCPServer) -> None:
    @mcp.tool()
    async def stock(
        title: str, copies: Annotated[int, Resolve(copies_left)], status: Annotated[HTTPStatus, Resolve(status_of)]
    ) -> str: ...
    @mcp.tool()
    async def order(number: int, answer: HTTPStatus) -> str: ...

    assert found(mcp) == []


def test_a_value_that_the_resolver_itself_is_computed_from_is_meant_to_come_from_the_model(mcp: MCPServer) -> None:
    async def copy_of(draft: Dest) -> Dest:
        return draft

    async def review(copy: Annotated[Dest, Resolve(copy_of)]) -> Elicit[Dest]:
        return Elicit(f"{copy.city}?", Dest)

    @mcp.tool()
    async def publish(draft: Dest, approved: Annotated[Dest, Resolve(review)]) -> str: ...

    assert found(mcp) == []


def test_each_parameter_is_named_once_and_its_own_tool_comes_first(mcp: MCPServer) -> None:
    @mcp.tool()
    async def first(dest: Annotated[Dest, Resolve(ask_city)]) -> str: ...
    @mcp.tool()
    async def hotel(dest: Dest, sure: Annotated[bool, Resolve(ask_hotel)]) -> str: ...

    (only,) = found(mcp)
    assert "but its resolver ask_hotel takes it" in only


def test_a_prompt_has_no_parameters_that_a_model_fills(mcp: MCPServer) -> None:
    @mcp.tool()
    async def stock(title: str, copies: Annotated[int, Resolve(copies_left)]) -> str: ...
    @mcp.prompt()
    async def advise(copies: int) -> str: ...

    assert found(mcp) == []


def test_what_a_prompt_has_resolved_counts(mcp: MCPServer) -> None:
    @mcp.prompt()
    async def advise(dest: Annotated[Dest, Resolve(ask_city)]) -> str: ...
    @mcp.tool()
    async def book(dest: Dest) -> str: ...

    assert len(found(mcp)) == 1
