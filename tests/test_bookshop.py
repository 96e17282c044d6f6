"""The bookshop's three programs: the schema, the texts and the behaviour their tutorial promises."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from examples.bookshop import backorder, delivery, reserve
from examples.bookshop.shop import Stock, check_stock
from pydantic import BaseModel

from bespeak import Client, Elicit, MCPServer, Resolve
from tests.answering import CANCEL, DECLINE, Person, accept, text, unresolved
from tests.conftest import Connect


@pytest.mark.every_revision
async def test_the_model_sees_one_property(connect: Connect) -> None:
    async with connect(reserve.mcp) as client:
        (tool,) = (await client.list_tools()).tools
    assert tool.name == "reserve_book"
    assert tool.description == "Reserve a copy of a book."
    assert tool.input_schema == {
        "type": "object",
        "properties": {"title": {"title": "Title", "type": "string"}},
        "required": ["title"],
        "title": "reserve_bookArguments",
    }


@pytest.mark.every_revision
@pytest.mark.parametrize(
    ("title", "said"),
    [("Dune", "Reserved 'Dune' (6 copies left)."), ("Neuromancer", "'Neuromancer' is out of stock.")],
)
async def test_the_resolver_runs_before_the_tool(in_memory: Connect, title: str, said: str) -> None:
    async with in_memory(reserve.mcp) as client:
        assert text(await client.call_tool("reserve_book", {"title": title})) == said


async def test_a_client_that_sends_the_stock_anyway_is_ignored(in_memory: Connect) -> None:
    lie = {"title": "Neuromancer", "stock": {"title": "Neuromancer", "copies": 99}}
    async with in_memory(reserve.mcp) as client:
        assert text(await client.call_tool("reserve_book", lie)) == "'Neuromancer' is out of stock."


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("Dune", "Ordered 'Dune'; it arrives tomorrow."),
        ("Neuromancer", "'Neuromancer' is on backorder; it would arrive in 2-3 weeks."),
    ],
)
async def test_dependencies_of_dependencies(in_memory: Connect, title: str, said: str) -> None:
    async with in_memory(delivery.mcp) as client:
        assert text(await client.call_tool("order_book", {"title": title})) == said


async def test_two_consumers_share_one_look_up_and_the_next_call_looks_up_again(in_memory: Connect) -> None:
    looked_up: list[str] = []

    async def counted(title: str) -> Stock:
        looked_up.append(title)
        return await check_stock(title)

    with delivery.mcp.override(check_stock, counted):
        async with in_memory(delivery.mcp) as client:
            await client.call_tool("order_book", {"title": "Dune"})
            assert looked_up == ["Dune"]
            await client.call_tool("order_book", {"title": "Dune"})
            assert looked_up == ["Dune", "Dune"]


async def test_in_stock_there_is_no_question_and_no_round_trip(in_memory: Connect) -> None:
    person = Person()
    async with in_memory(backorder.mcp, elicitation_callback=person) as client:
        assert text(await client.call_tool("order_book", {"title": "Dune"})) == "Ordered 'Dune'."
    assert person.asked == []


@pytest.mark.asking_revisions
@pytest.mark.parametrize(
    ("confirm", "said"),
    [(True, "Backordered 'Neuromancer'; it ships in 2-3 weeks."), (False, "No order placed.")],
)
async def test_out_of_stock_the_user_is_asked_and_no_is_still_an_answer(
    connect: Connect, confirm: bool, said: str
) -> None:
    person = Person({"confirm_backorder": accept(confirm=confirm)})
    async with connect(backorder.mcp, elicitation_callback=person) as client:
        assert text(await client.call_tool("order_book", {"title": "Neuromancer"})) == said
    assert person.messages == ["'Neuromancer' is out of stock (2-3 weeks). Order anyway?"]
    assert person.schemas == [
        {
            "type": "object",
            "properties": {"confirm": {"type": "boolean", "title": "Confirm", "description": "Order anyway and wait?"}},
            "required": ["confirm"],
        }
    ]


@pytest.mark.asking_revisions
@pytest.mark.parametrize(("answer", "word"), [(DECLINE, "decline"), (CANCEL, "cancel")])
async def test_declining_a_precondition_fails_the_call_with_a_text_the_model_can_read(
    connect: Connect, answer: Any, word: str
) -> None:
    async with connect(backorder.mcp, elicitation_callback=Person({"confirm_backorder": answer})) as client:
        result = await client.call_tool("order_book", {"title": "Neuromancer"})
    assert result.is_error
    assert text(result) == f"Error executing tool order_book: {unresolved('backorder', word)}"


@pytest.mark.asking_revisions
async def test_stronger_a_resolver_no_question_needs_runs_once_per_call(in_memory: Connect) -> None:
    """Where the tutorial lets a resolver run again in every round, ours waits until nothing is open."""
    ran: list[str] = []

    class Yes(BaseModel):
        yes: bool

    async def ask() -> Yes | Elicit[Yes]:
        return Elicit("Sure?", Yes)

    async def reserve_a_courier() -> str:
        ran.append("courier")
        return "courier-1"

    mcp = MCPServer("Courier")

    @mcp.tool()
    async def send(sure: Annotated[Yes, Resolve(ask)], courier: Annotated[str, Resolve(reserve_a_courier)]) -> str:
        return courier

    async with in_memory(mcp, elicitation_callback=Person({"ask": accept(yes=True)})) as client:
        assert text(await client.call_tool("send")) == "courier-1"
    assert ran == ["courier"]


async def test_a_resolver_reaches_what_outlives_a_call_through_the_lifespan(in_memory: Connect) -> None:
    from bespeak import Context

    @asynccontextmanager
    async def pool(_: MCPServer[str]) -> AsyncGenerator[str]:
        yield "a pool of connections"

    async def connection(ctx: Context[str, Any]) -> str:
        return ctx.request_context.lifespan_context

    mcp = MCPServer[str]("Pooled", lifespan=pool)

    @mcp.tool()
    async def query(connection: Annotated[str, Resolve(connection)]) -> str:
        return connection

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("query")) == "a pool of connections"


@pytest.mark.asking_revisions
async def test_one_approval_in_two_calls_is_asked_for_twice(in_memory: Connect) -> None:
    person = Person({"confirm_backorder": accept(confirm=True)})
    async with in_memory(backorder.mcp, elicitation_callback=person) as client:
        await asyncio.gather(*(order(client) for _ in range(2)))
    assert person.asked == ["confirm_backorder"] * 2


async def order(client: Client) -> None:
    await client.call_tool("order_book", {"title": "Neuromancer"})
