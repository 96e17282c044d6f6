"""`override` (design 6): a resolver replaced on one server while a block is open: what stands in, for how long, under which key."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from bespeak import (
    AcceptedElicitation,
    Context,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    InvalidSignature,
    MCPServer,
    Resolve,
    ToolError,
)
from bespeak.server.features.tools import Tool
from tests.answering import Person, accept, text
from tests.conftest import Connect


class Consent(BaseModel):
    ok: bool


class Stock(BaseModel):
    copies: int


async def region() -> str:
    return "north"


async def check_stock(title: str, region: Annotated[str, Resolve(region)]) -> Stock:
    return Stock(copies=7)


async def confirm(stock: Annotated[Stock, Resolve(check_stock)]) -> Consent | Elicit[Consent]:
    return Elicit(f"Take one of {stock.copies}?", Consent)


async def order(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
    return f"{title}: {stock.copies}"


async def buy(title: str, ok: Annotated[Consent, Resolve(confirm)]) -> str:
    return f"{title}: {ok.ok}"


def shop() -> MCPServer[Any]:
    mcp = MCPServer("Shop")
    mcp.add_tool(order)
    mcp.add_tool(buy)
    return mcp


def copies(number: int) -> Callable[[], Stock]:
    def fake() -> Stock:
        return Stock(copies=number)

    return fake


async def called(mcp: MCPServer[Any], tool: str = "order") -> str:
    return text(await mcp.call_tool(tool, {"title": "Dune"}))


# What replaces


@pytest.mark.every_revision
async def test_a_function_stands_in_while_the_block_is_open(connect: Connect) -> None:
    mcp = shop()
    async with connect(mcp) as client:
        with mcp.override(check_stock, copies(0)):
            assert text(await client.call_tool("order", {"title": "Dune"})) == "Dune: 0"
        assert text(await client.call_tool("order", {"title": "Dune"})) == "Dune: 7"


async def test_a_value_stands_in_while_the_block_is_open(in_memory: Connect) -> None:
    mcp = shop()
    async with in_memory(mcp) as client:
        with mcp.override(check_stock, value=Stock(copies=0)):
            assert text(await client.call_tool("order", {"title": "Dune"})) == "Dune: 0"
        assert text(await client.call_tool("order", {"title": "Dune"})) == "Dune: 7"


async def test_none_is_a_value_too() -> None:
    mcp = MCPServer("Shop")

    async def coupon() -> str | None:
        return "half price"

    @mcp.tool()
    async def pay(coupon: Annotated[str | None, Resolve(coupon)]) -> str:
        return str(coupon)

    with mcp.override(coupon, value=None):
        assert text(await mcp.call_tool("pay")) == "None"


async def test_a_value_in_place_of_a_question_asks_nobody_and_counts_as_accepted() -> None:
    mcp = shop()

    @mcp.tool()
    async def look(ok: Annotated[ElicitationResult[Consent], Resolve(confirm)], title: str) -> str:
        return str(isinstance(ok, AcceptedElicitation) and ok.data.ok)

    with mcp.override(confirm, value=Consent(ok=True)):
        assert await called(mcp, "buy") == "Dune: True"
        assert await called(mcp, "look") == "True"


async def test_a_decline_given_as_an_override_is_a_decline() -> None:
    mcp = MCPServer[Any]("shop")

    async def ask() -> Elicit[bool]:
        return Elicit("Sure?", bool)

    @mcp.tool()
    async def looks(sure: Annotated[ElicitationResult[bool], Resolve(ask)]) -> str:
        return sure.action

    @mcp.tool()
    async def needs(sure: Annotated[bool, Resolve(ask)]) -> str:
        return "never"

    with mcp.override(ask, value=DeclinedElicitation()):
        assert text(await mcp.call_tool("looks")) == "decline"
        with pytest.raises(ToolError, match="'sure' could not resolve: elicitation was decline"):
            await mcp.call_tool("needs")


async def test_a_replacement_has_its_own_dependencies_arguments_and_context() -> None:
    mcp = shop()

    async def shelf() -> int:
        return 3

    def fake(title: str, context: Context, shelf: Annotated[int, Resolve(shelf)]) -> Stock:
        assert context.round == 1
        return Stock(copies=shelf + len(title))

    with mcp.override(check_stock, fake):
        assert await called(mcp) == "Dune: 7"


async def test_a_replacement_may_be_a_generator_and_cleans_up() -> None:
    mcp, events = shop(), list[str]()

    async def fake() -> AsyncIterator[Stock]:
        yield Stock(copies=1)
        events.append("closed")

    with mcp.override(check_stock, fake):
        assert await called(mcp) == "Dune: 1"
    assert events == ["closed"]


async def test_what_a_replacement_raises_names_the_replacement(in_memory: Connect) -> None:
    mcp = shop()

    def broken() -> Stock:
        raise ValueError

    async with in_memory(mcp) as client:
        with mcp.override(check_stock, broken):
            result = await client.call_tool("order", {"title": "Dune"})
    assert "resolver 'broken' failed (order -> stock -> broken)" in text(result)


async def test_a_question_as_a_value_is_an_error_that_names_the_resolver(in_memory: Connect) -> None:
    mcp = shop()
    async with in_memory(mcp) as client:
        with mcp.override(check_stock, value=Elicit("How many?", Stock)):
            result = await client.call_tool("order", {"title": "Dune"})
    assert "resolver 'check_stock' returned a question" in text(result)


async def test_a_method_is_replaced_for_its_own_object_only() -> None:
    class Shelf:
        def __init__(self, number: int) -> None:
            self.number = number

        async def count(self) -> int:
            return self.number

    mcp, left, right = MCPServer("Shop"), Shelf(1), Shelf(2)

    @mcp.tool()
    async def count(left: Annotated[int, Resolve(left.count)], right: Annotated[int, Resolve(right.count)]) -> str:
        return f"{left} {right}"

    with mcp.override(left.count, value=10):
        assert text(await mcp.call_tool("count")) == "10 2"


# Blocks


async def test_blocks_nest_and_the_innermost_counts() -> None:
    mcp = shop()
    with mcp.override(check_stock, copies(1)):
        with mcp.override(check_stock, value=Stock(copies=2)):
            assert await called(mcp) == "Dune: 2"
        assert await called(mcp) == "Dune: 1"
    assert await called(mcp) == "Dune: 7"


async def test_blocks_may_close_in_any_order() -> None:
    mcp = shop()
    outer: AbstractContextManager[None] = mcp.override(check_stock, copies(1))
    inner: AbstractContextManager[None] = mcp.override(check_stock, copies(2))
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert await called(mcp) == "Dune: 2"
    inner.__exit__(None, None, None)
    assert await called(mcp) == "Dune: 7"


async def test_a_block_that_raises_puts_the_original_back() -> None:
    mcp = shop()
    with pytest.raises(KeyError), mcp.override(check_stock, copies(1)):
        raise KeyError
    assert await called(mcp) == "Dune: 7"


async def test_a_tool_registered_while_a_block_is_open_takes_part_in_it() -> None:
    mcp = MCPServer("Shop")
    mcp.add_tool(buy)
    with mcp.override(check_stock, copies(0)):
        mcp.add_tool(order)
        assert await called(mcp) == "Dune: 0"
    assert await called(mcp) == "Dune: 7"


async def test_a_replacement_that_does_not_fit_a_tool_registered_meanwhile_is_a_fault_of_that_registration() -> None:
    mcp = shop()

    def fake(title: str) -> Stock:
        return Stock(copies=len(title))

    async def whole_stock(stock: Annotated[Stock, Resolve(counted)]) -> str:
        return str(stock.copies)

    mcp.add_tool(counts, name="counts")
    with mcp.override(counted, fake), pytest.raises(InvalidSignature, match="'title' of resolver 'fake'"):
        mcp.add_tool(whole_stock)
    assert [tool.name for tool in await mcp.list_tools()] == ["order", "buy", "counts"]


async def counted() -> Stock:
    return Stock(copies=1)


async def counts(title: str, stock: Annotated[Stock, Resolve(counted)]) -> str:
    return f"{title}: {stock.copies}"


async def test_an_override_reaches_one_server_even_if_another_has_the_same_tool() -> None:
    tool = Tool.from_function(order)
    here, there = MCPServer("Here", tools=[tool]), MCPServer("There", tools=[tool])
    with here.override(check_stock, copies(0)):
        assert await called(here) == "Dune: 0"
        assert await called(there) == "Dune: 7"


async def test_a_call_that_is_open_across_rounds_takes_the_replacement_from_then_on(connect: Connect) -> None:
    mcp = shop()
    async with connect(mcp, elicitation_callback=Person()) as client:
        asking: Any = await client.session.call_tool("buy", {"title": "Dune"}, allow_input_required=True)
        with mcp.override(confirm, value=Consent(ok=False)):
            result = await client.call_tool("buy", {"title": "Dune"}, request_state=asking.request_state)
    assert text(result) == "Dune: False"


# Keys


@pytest.mark.asking_revisions
async def test_the_wire_key_stays_the_originals(connect: Connect) -> None:
    mcp, person = shop(), Person({"tests.server.test_overrides:confirm": accept(ok=True)})

    async def ask_differently() -> Consent | Elicit[Consent]:
        return Elicit("Differently?", Consent)

    async with connect(mcp, elicitation_callback=person) as client:
        with mcp.override(confirm, ask_differently):
            assert text(await client.call_tool("buy", {"title": "Dune"})) == "Dune: True"
    assert person.messages == ["Differently?"]


@pytest.mark.asking_revisions
async def test_an_authors_key_stays_too(in_memory: Connect) -> None:
    mcp, person = MCPServer("Shop"), Person({"consent": accept(ok=True)})

    async def ask_differently() -> Consent | Elicit[Consent]:
        return Elicit("Differently?", Consent)

    @mcp.tool()
    async def pay(ok: Annotated[Consent, Resolve(confirm, key="consent")], title: str = "Dune") -> str:
        return str(ok.ok)

    async with in_memory(mcp, elicitation_callback=person) as client:
        with mcp.override(confirm, ask_differently):
            assert text(await client.call_tool("pay")) == "True"
    assert person.asked == ["consent"]


# Guards and once


def guarded() -> tuple[MCPServer[Any], Callable[..., Any]]:
    mcp = MCPServer("Shop")

    async def allowed() -> None: ...

    @mcp.tool()
    async def pay(
        title: str, allowed: Annotated[None, Resolve(allowed, guard=True)], ok: Annotated[Consent, Resolve(confirm)]
    ) -> str:
        return "paid"

    return mcp, allowed


async def test_the_replacement_of_a_guard_is_a_guard(in_memory: Connect) -> None:
    (mcp, allowed), person = guarded(), Person()

    async def refuse() -> None:
        raise ToolError("not today")

    async with in_memory(mcp, elicitation_callback=person) as client:
        with mcp.override(allowed, refuse):
            result = await client.call_tool("pay", {"title": "Dune"})
    assert text(result) == "Error executing tool pay: not today"
    assert person.asked == []


async def test_the_replacement_of_a_guard_may_not_ask() -> None:
    mcp, allowed = guarded()
    with pytest.raises(InvalidSignature, match="guard 'confirm' may ask"), mcp.override(allowed, confirm):
        pass


def priced() -> tuple[MCPServer[Any], Callable[..., Any]]:
    mcp = MCPServer("Shop")

    async def price() -> int:
        return 1

    async def agree(price: Annotated[int, Resolve(price, once=True)]) -> Consent | Elicit[Consent]:
        return Elicit(f"Pay {price}?", Consent)

    @mcp.tool()
    async def pay(ok: Annotated[Consent, Resolve(agree)], price: Annotated[int, Resolve(price, once=True)]) -> str:
        return f"paid {price}"

    return mcp, price


@pytest.mark.asking_revisions
async def test_the_replacement_of_a_once_resolver_runs_once(in_memory: Connect) -> None:
    (mcp, price), runs = priced(), list[int]()

    async def rising() -> int:
        runs.append(1)
        return 10 + len(runs)

    async with in_memory(mcp, elicitation_callback=Person({"agree": accept(ok=True)})) as client:
        with mcp.override(price, rising):
            assert text(await client.call_tool("pay")) == "paid 11"
    assert len(runs) == 1


@pytest.mark.asking_revisions
async def test_a_value_may_replace_a_once_resolver(in_memory: Connect) -> None:
    (mcp, price), person = priced(), Person({"agree": accept(ok=True)})
    async with in_memory(mcp, elicitation_callback=person) as client:
        with mcp.override(price, value=5):
            assert text(await client.call_tool("pay")) == "paid 5"
    assert person.messages == ["Pay 5?"]


async def test_the_replacement_of_a_once_resolver_must_be_serialisable() -> None:
    mcp, price = priced()

    def unannotated():  # pyright: ignore[reportUnknownParameterType] - without an annotation is what is tested
        return 5

    with pytest.raises(InvalidSignature, match="'unannotated' is marked once=True but may ask"):
        mcp.override(price, unannotated).__enter__()
