# pyright: basic, reportMissingImports=false
"""A shop with one tool that asks before it charges, written for each framework as its documentation recommends."""

from dataclasses import dataclass
from typing import Annotated, Any

from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import BaseModel

from comparison import frameworks as f

FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


class Approval(BaseModel):
    ok: bool


@dataclass
class Price:
    """The price in EUR. It may change while a person thinks."""

    eur: int = 100


def shop(price: Price, charged: list[int], **options: Any) -> Any:
    """A server whose tool `pay` appends what it charges to a list."""
    return (_with_guard if f.FRAMEWORK == "fastmcp" else _with_resolvers)(price, charged, options)


def _with_resolvers(price: Price, charged: list[int], options: dict[str, Any]) -> Any:
    mcp = f.MCPServer("Shop", **options)

    async def look_up(order: str) -> int:
        return price.eur

    async def approve(order: str, eur: Annotated[int, f.Resolve(look_up)]) -> f.Elicit[Approval]:
        return f.Elicit(f"Pay {eur} EUR for {order}?", Approval)

    @mcp.tool()
    async def pay(
        order: str, eur: Annotated[int, f.Resolve(look_up)], approval: Annotated[Approval, f.Resolve(approve)]
    ) -> str:
        """Pay an order."""
        if not approval.ok:
            return "Not paid."
        charged.append(eur)
        return f"Charged {eur} EUR."

    return mcp


def _with_guard(price: Price, charged: list[int], options: dict[str, Any]) -> Any:
    """FastMCP has no resolvers that ask: at 2026-07-28 a tool returns its questions and reads the answers when it runs again."""
    mcp = f.FastMCP("Shop", **options)

    async def look_up() -> int:
        return price.eur

    @mcp.tool
    async def pay(order: str, ctx: f.Context, eur: int = f.Depends(look_up)) -> str | InputRequiredResult:
        """Pay an order."""
        answer = (ctx.input_responses or {}).get("approval")
        if not isinstance(answer, ElicitResult):
            params = ElicitRequestFormParams(message=f"Pay {eur} EUR for {order}?", requested_schema=FORM)
            return InputRequiredResult(input_requests={"approval": ElicitRequest(params=params)})
        if answer.action != "accept" or not (answer.content or {}).get("ok"):
            return "Not paid."
        charged.append(eur)
        return f"Charged {eur} EUR."

    return mcp
