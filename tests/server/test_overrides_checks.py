"""`override` is checked like a registration (design 4, 6), with the hints of the place where the replacement is defined."""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from bespeak import Elicit, InvalidSignature, MCPServer, Resolve
from tests.answering import text


class Consent(BaseModel):
    ok: bool


class Stock(BaseModel):
    copies: int


async def check_stock(title: str) -> Stock:
    return Stock(copies=7)


async def order(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
    return f"{title}: {stock.copies}"


def shop() -> MCPServer[Any]:
    mcp = MCPServer("Shop")
    mcp.add_tool(order)
    return mcp


def copies(number: int) -> Callable[[], Stock]:
    def fake() -> Stock:
        return Stock(copies=number)

    return fake


async def called(mcp: MCPServer[Any]) -> str:
    return text(await mcp.call_tool("order", {"title": "Dune"}))


def wrong_type() -> Consent:
    return Consent(ok=True)


def filled_by_nobody(isbn: str) -> Stock:
    return Stock(copies=len(isbn))


def two_questions() -> Elicit[Consent] | Elicit[Stock]:
    return Elicit("?", Consent)


async def of_itself(stock: Annotated[Stock, Resolve(check_stock)]) -> Stock:
    return stock


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (wrong_type, "resolver 'wrong_type' returns Consent, but parameter 'stock' takes Stock"),
        (filled_by_nobody, "parameter 'isbn' of resolver 'filled_by_nobody' cannot be resolved: nothing fills it"),
        (two_questions, "more than one question"),
        (of_itself, "cyclic dependency between resolvers: of_itself -> of_itself"),
    ],
)
async def test_a_bad_replacement_is_refused_and_the_server_keeps_working(bad: Callable[..., Any], fault: str) -> None:
    mcp = shop()
    with mcp.override(check_stock, copies(3)):
        with pytest.raises(InvalidSignature) as refused, mcp.override(check_stock, bad):
            pass
        assert fault in str(refused.value)
        assert await called(mcp) == "Dune: 3"
    assert await called(mcp) == "Dune: 7"


async def test_a_function_that_no_tool_resolves_is_refused() -> None:
    with pytest.raises(ValueError, match="'copies' is not a resolver of anything on this server"):
        shop().override(copies, value=1).__enter__()


async def test_both_a_function_and_a_value_are_refused() -> None:
    with pytest.raises(TypeError, match=r"override\(fn, replacement\) or override\(fn, value=...\), not both"):
        shop().override(check_stock, copies(1), value=Stock(copies=1)).__enter__()


async def test_neither_a_function_nor_a_value_is_refused() -> None:
    with pytest.raises(TypeError, match=r"override\(fn, replacement\) or override\(fn, value=...\), not both"):
        shop().override(check_stock).__enter__()


# Replacements defined where they are used. Quoted hints stand for postponed ones.


async def test_a_local_replacement_may_use_local_classes_in_postponed_hints() -> None:
    class Local(Stock): ...

    def fake() -> "Local":
        return Local(copies=2)

    mcp = shop()
    with mcp.override(check_stock, fake):
        assert await called(mcp) == "Dune: 2"


async def test_a_local_replacement_may_be_entered_by_an_exit_stack() -> None:
    class Local(Stock): ...

    def fake() -> "Local":
        return Stock(copies=2)  # pyright: ignore[reportReturnType] - the hint is what matters, and no closure holds it

    mcp = shop()
    with ExitStack() as stack:
        stack.enter_context(mcp.override(check_stock, fake))
        assert await called(mcp) == "Dune: 2"


async def test_what_a_local_replacement_depends_on_may_use_local_classes_in_postponed_hints() -> None:
    class Local(BaseModel):
        number: int = 4

    def shelf() -> "Local":
        return local()

    def fake(shelf: "Annotated[Local, Resolve(shelf)]") -> Stock:
        return Stock(copies=shelf.number)

    def local() -> Local:
        return Local()

    mcp = shop()
    with mcp.override(check_stock, fake):
        assert await called(mcp) == "Dune: 4"


async def test_the_original_may_use_local_classes_in_postponed_hints() -> None:
    mcp = MCPServer("Shop")

    def register() -> tuple[Callable[..., Any], Any]:
        class Local(BaseModel):
            number: int = 1

        local = Local()

        def shelf() -> "Local":
            return local

        def other() -> "Local":
            return local

        async def count(a: "Annotated[Local, Resolve(shelf)]", b: "Annotated[Local, Resolve(other)]") -> str:
            return f"{a.number} {b.number}"

        mcp.add_tool(count)
        return shelf, Local(number=9)

    shelf, nine = register()
    with mcp.override(shelf, value=nine):
        assert text(await mcp.call_tool("count")) == "9 1"


# Replacements that fit together, but not alone


async def test_once_all_blocks_are_closed_the_originals_are_back_in_whatever_order_that_was() -> None:
    mcp = MCPServer("Shop")

    async def shelf() -> int:
        return 1

    async def stock(shelf: Annotated[int, Resolve(shelf)]) -> Stock:
        return Stock(copies=shelf)

    @mcp.tool()
    async def count(shelf: Annotated[object, Resolve(shelf)], stock: Annotated[Stock, Resolve(stock)]) -> str:
        return f"{shelf} {stock.copies}"

    def words() -> str:
        return "three"

    fixed, worded = mcp.override(stock, value=Stock(copies=0)), mcp.override(shelf, words)
    fixed.__enter__()
    worded.__enter__()
    assert text(await mcp.call_tool("count")) == "three 0"
    with suppress(InvalidSignature):  # the real `stock` takes no words
        fixed.__exit__(None, None, None)
    worded.__exit__(None, None, None)
    assert text(await mcp.call_tool("count")) == "1 1"
