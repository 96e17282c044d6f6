"""The tools under measurement, registered on a server of either library: the same program but for its imports."""

# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false
# The peer is not installed where the types are checked.

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from pydantic import BaseModel


class Answer(BaseModel):
    yes: bool


def slow(number: int) -> Callable[[], Awaitable[int]]:
    async def wait() -> int:
        await asyncio.sleep(0.05)
        return number

    return wait


WAITS = [slow(number) for number in range(8)]


def register(mcp: Any, Elicit: Any, Resolve: Any, Context: Any) -> None:
    """Register `plain`, `resolved`, `asked`, `waiting` and `progressing`, each of which adds two numbers."""

    @mcp.tool()
    async def plain(a: int, b: int) -> str:
        return str(a + b)

    async def first(a: int) -> int:
        return a

    async def second(b: int, one: Annotated[int, Resolve(first)]) -> int:
        return one + b

    async def third(two: Annotated[int, Resolve(second)]) -> int:
        return two

    @mcp.tool()
    async def resolved(
        a: int,
        b: int,
        one: Annotated[int, Resolve(first)],
        two: Annotated[int, Resolve(second)],
        three: Annotated[int, Resolve(third)],
    ) -> str:
        return str(one + two - three + b)

    async def ask(a: int) -> Answer | Elicit[Answer]:
        return Elicit(f"Is {a} right?", Answer)

    @mcp.tool()
    async def asked(a: int, b: int, answer: Annotated[Answer, Resolve(ask)]) -> str:
        return str(a + b if answer.yes else 0)

    @mcp.tool()
    async def waiting(
        a: int,
        b: int,
        w0: Annotated[int, Resolve(WAITS[0])],
        w1: Annotated[int, Resolve(WAITS[1])],
        w2: Annotated[int, Resolve(WAITS[2])],
        w3: Annotated[int, Resolve(WAITS[3])],
        w4: Annotated[int, Resolve(WAITS[4])],
        w5: Annotated[int, Resolve(WAITS[5])],
        w6: Annotated[int, Resolve(WAITS[6])],
        w7: Annotated[int, Resolve(WAITS[7])],
    ) -> str:
        assert w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 == 28
        return str(a + b)

    async def progressing(a: int, b: int, ctx: Any) -> str:
        for step in range(3):
            await ctx.report_progress(step, 3)
        return str(a + b)

    progressing.__annotations__["ctx"] = Context
    mcp.tool()(progressing)
