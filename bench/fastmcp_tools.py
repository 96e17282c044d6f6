"""The same tools for FastMCP, where a tool that asks returns its question, and reads the answer when it runs again."""

# pyright: basic, reportMissingImports=false
# The peer is not installed where the types are checked.

import asyncio
from typing import Any

from fastmcp import Context, FastMCP
from fastmcp.dependencies import CallArgument, Depends
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import BaseModel


class Answer(BaseModel):
    yes: bool


FORM = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}


def slow(number: int) -> Any:
    async def wait() -> int:
        await asyncio.sleep(0.05)
        return number

    return wait


WAITS = [slow(number) for number in range(8)]


async def first(a: int) -> int:
    return a


async def second(b: int, one: int) -> int:
    return one + b


async def third(two: int) -> int:
    return two


ONE = Depends(first, a=CallArgument("a"))
TWO = Depends(second, b=CallArgument("b"), one=ONE)
THREE = Depends(third, two=TWO)


def make() -> FastMCP:
    mcp = FastMCP("Bench")

    @mcp.tool
    async def plain(a: int, b: int) -> str:
        return str(a + b)

    @mcp.tool
    async def resolved(a: int, b: int, one: int = ONE, two: int = TWO, three: int = THREE) -> str:
        return str(one + two - three + b)

    @mcp.tool
    async def asked(a: int, b: int, ctx: Context) -> str | InputRequiredResult:
        answer = (ctx.input_responses or {}).get("answer")
        if not isinstance(answer, ElicitResult):
            params = ElicitRequestFormParams(message=f"Is {a} right?", requested_schema=FORM)
            return InputRequiredResult(input_requests={"answer": ElicitRequest(params=params)})
        return str(a + b if (answer.content or {}).get("yes") else 0)

    @mcp.tool
    async def asked_older(a: int, b: int, ctx: Context) -> str:
        answer = await ctx.elicit(f"Is {a} right?", Answer)
        return str(a + b if answer.action == "accept" and answer.data.yes else 0)

    @mcp.tool
    async def waiting(
        a: int,
        b: int,
        w0: int = Depends(WAITS[0]),
        w1: int = Depends(WAITS[1]),
        w2: int = Depends(WAITS[2]),
        w3: int = Depends(WAITS[3]),
        w4: int = Depends(WAITS[4]),
        w5: int = Depends(WAITS[5]),
        w6: int = Depends(WAITS[6]),
        w7: int = Depends(WAITS[7]),
    ) -> str:
        assert w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 == 28
        return str(a + b)

    @mcp.tool
    async def progressing(a: int, b: int, ctx: Context) -> str:
        for step in range(3):
            await ctx.report_progress(step, 3)
        return str(a + b)

    return mcp
