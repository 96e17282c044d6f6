"""What a call keeps goes when the call has ended, not when the garbage collector comes: it may be large."""

import asyncio
import gc
import logging
import weakref
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from mcp_types import ElicitRequestParams, ElicitResult
from pydantic import BaseModel

from bespeak import Elicit, MCPServer, Resolve, ToolError
from bespeak.client.client import Client
from tests.answering import accept


class Note(BaseModel):
    text: str


kept: "list[weakref.ref[Note]]" = []


async def approve(note: Note) -> Elicit[bool]:
    kept.append(weakref.ref(note))
    return Elicit("Pay?", bool)


async def refuse(note: Note) -> str:
    kept.append(weakref.ref(note))
    raise ToolError("not today")


async def fast() -> int:
    return 1


def till(**options: Any) -> MCPServer[Any]:
    mcp = MCPServer[Any]("till", **options)

    @mcp.tool()
    async def pay(note: Note, approval: Annotated[bool, Resolve(approve, key="approve")]) -> str:
        return "paid"

    @mcp.tool()
    async def fail(note: Note, approval: Annotated[bool, Resolve(approve, key="approve")]) -> str:
        raise RuntimeError("out of order")

    @mcp.tool()
    async def forbidden(
        note: Note, reason: Annotated[str, Resolve(refuse)], other: Annotated[int, Resolve(fast)]
    ) -> str:
        return "never"

    return mcp


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    kept.clear()
    logging.disable()  # a record holds the traceback of what failed, and pytest holds the record
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    logging.disable(logging.NOTSET)


async def yes(context: object, params: ElicitRequestParams) -> ElicitResult:
    return accept(value=True)


async def no(context: object, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="decline")


async def silent(context: object, params: ElicitRequestParams) -> ElicitResult:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("version", [pytest.param("2025-11-25", marks=pytest.mark.long), "2026-07-28"])
@pytest.mark.parametrize(
    ("tool", "person", "options"),
    [
        ("pay", yes, {}),
        ("pay", no, {}),
        ("fail", yes, {}),
        ("forbidden", yes, {}),
        ("pay", silent, {"question_timeout": 0.05}),
        ("pay", silent, {"max_waiting_bytes": 10}),
    ],
    ids=["approved", "declined", "failed", "resolver failed", "not answered", "not let wait"],
)
async def test_the_arguments_of_a_call_that_has_ended_are_not_kept(
    version: str, tool: str, person: Any, options: dict[str, Any]
) -> None:
    if options and version == "2026-07-28":
        pytest.skip("nobody waits for an answer at this revision")
    async with Client(till(**options), mode=version, elicitation_callback=person) as client:
        await client.call_tool(tool, {"note": {"text": "x"}})
        assert kept
        assert [ref() for ref in kept] == [None] * len(kept)
