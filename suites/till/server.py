"""A till that is to withstand hostile clients: it pays once for each confirmation, and only what was confirmed.

On stdio, or over HTTP when a port is given.
"""

import sys
from dataclasses import dataclass
from typing import Annotated

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("till", version="1.0.0")


@dataclass(slots=True)
class Book:
    """What was paid since the till was opened."""

    payments: int = 0
    cents: int = 0


BOOK = Book()


class Confirm(BaseModel):
    confirm: bool


class Color(BaseModel):
    color: str


class Shade(BaseModel):
    shade: str


async def ask_confirm(cents: int, to: str) -> Elicit[Confirm]:
    return Elicit(f"Pay {cents} cents to {to}?", Confirm)


@mcp.tool()
async def pay(
    cents: Annotated[int, Field(gt=0)],
    to: str,
    confirm: Annotated[Confirm, Resolve(ask_confirm, key="confirm")],
) -> CallToolResult:
    """Pay somebody."""
    if not confirm.confirm:
        return told("Declined.", is_error=True)
    BOOK.payments += 1
    BOOK.cents += cents
    return told(f"Paid {cents} cents to {to}.")


@mcp.tool()
async def balance() -> CallToolResult:
    """Say how often and how much was paid."""
    return told(f"{BOOK.payments} payments, {BOOK.cents} cents", payments=BOOK.payments, cents=BOOK.cents)


async def ask_color() -> Elicit[Color]:
    return Elicit("Which color?", Color)


async def ask_shade(color: Annotated[Color, Resolve(ask_color, key="color")]) -> Elicit[Shade]:
    return Elicit(f"Which shade of {color.color}?", Shade)


@mcp.tool()
async def ask_twice(
    color: Annotated[Color, Resolve(ask_color, key="color")],
    shade: Annotated[Shade, Resolve(ask_shade, key="shade")],
) -> CallToolResult:
    """Ask for a color, and then for its shade."""
    return told(f"{shade.shade} {color.color}")


@mcp.tool()
async def plain(text: str) -> CallToolResult:
    """Say a text again, and ask nothing."""
    return told(text)


def told(text: str, *, is_error: bool = False, **structured: int) -> CallToolResult:
    content = TextContent(type="text", text=text)
    return CallToolResult(content=[content], is_error=is_error, structured_content=structured or None)


if __name__ == "__main__":
    if sys.argv[1:]:
        mcp.run("streamable-http", port=int(sys.argv[1]))
    else:
        mcp.run("stdio")
