"""The bookshop's three programs as a client must find them: what is called, what is answered, and what has to come back.

Knows no SDK, like `checks`. The names are those of the files in `examples/bookshop`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from mcp_types import ElicitResult

from interop.checks import DECLINE, Connect, Expected, Person, at_revision, equal, refused_for_want_of_forms, text

OUT_OF_STOCK = ("confirm", "'Neuromancer' is out of stock (2-3 weeks). Order anyway?")
UNRESOLVED = "Error executing tool order_book: Resolver for parameter 'backorder' could not resolve: elicitation was"

ORDER = ElicitResult(action="accept", content={"confirm": True})
DO_NOT = ElicitResult(action="accept", content={"confirm": False})
CANCEL = ElicitResult(action="cancel")


@dataclass(frozen=True, slots=True)
class Call:
    """One call, and what must come of it."""

    arguments: Mapping[str, Any]
    text: str
    """The text of the result, or how that of an error begins: each server may add what a model should make of it."""
    answer: ElicitResult | None = None
    """What the person says; `None` if nobody may be asked."""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A program with one tool."""

    tool: str
    calls: Mapping[str, Call]
    asks: bool = False


PROGRAMS = {
    "reserve": Program(
        "reserve_book",
        {
            "in stock": Call({"title": "Dune"}, "Reserved 'Dune' (6 copies left)."),
            "out of stock": Call({"title": "Neuromancer"}, "'Neuromancer' is out of stock."),
            "a stock that is sent": Call(
                {"title": "Neuromancer", "stock": {"title": "Neuromancer", "copies": 99}},
                "'Neuromancer' is out of stock.",
            ),
        },
    ),
    "delivery": Program(
        "order_book",
        {
            "in stock": Call({"title": "Dune"}, "Ordered 'Dune'; it arrives tomorrow."),
            "out of stock": Call(
                {"title": "Neuromancer"}, "'Neuromancer' is on backorder; it would arrive in 2-3 weeks."
            ),
        },
    ),
    "backorder": Program(
        "order_book",
        {
            "in stock": Call({"title": "Dune"}, "Ordered 'Dune'."),
            "accepted": Call(
                {"title": "Neuromancer"},
                "Backordered 'Neuromancer'; it ships in 2-3 weeks.",
                ORDER,
            ),
            "accepted with no": Call({"title": "Neuromancer"}, "No order placed.", DO_NOT),
            "declined": Call({"title": "Neuromancer"}, f"{UNRESOLVED} decline", DECLINE, is_error=True),
            "cancelled": Call({"title": "Neuromancer"}, f"{UNRESOLVED} cancel", CANCEL, is_error=True),
        },
        asks=True,
    ),
}


async def check(program: Program, connect: Connect, refusal: type[Exception], expected: Expected) -> None:
    """Go through all of it, saying what held. Raises `AssertionError` at the first thing that does not."""
    connected = at_revision(connect, expected.revision)
    person = Person()
    async with connected(person) as shop:
        (tool,) = (await shop.list_tools()).tools
        equal((tool.name, tool.input_schema), (program.tool, schema(program.tool)))
        print("tools/list", flush=True)
        for what, call in program.calls.items():
            person.asked.clear()
            if call.answer is not None:
                person.will_say(confirm=call.answer)
            result = await shop.call_tool(program.tool, dict(call.arguments))
            told = text(result)[: len(call.text)] if call.is_error else text(result)
            equal((told, bool(result.is_error)), (call.text, call.is_error))
            equal(person.asked, [] if call.answer is None else [OUT_OF_STOCK])
            print(what, flush=True)
    if program.asks:
        async with connected(None) as shop:
            await refused_for_want_of_forms(shop.call_tool(program.tool, {"title": "Neuromancer"}), refusal, expected)
        print("capability missing", flush=True)


def schema(tool: str) -> dict[str, Any]:
    """All that the model sees: one property."""
    return {
        "type": "object",
        "properties": {"title": {"title": "Title", "type": "string"}},
        "required": ["title"],
        "title": f"{tool}Arguments",
    }


CHECKS = {name: partial(check, program) for name, program in PROGRAMS.items()}
