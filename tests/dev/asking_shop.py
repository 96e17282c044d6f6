"""A server that asks in every way there is."""

from typing import Annotated, Literal

from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel, Field

from bespeak import Context, Elicit, ElicitUrl, ListRoots, MCPServer, Resolve, Sample, ToolError

mcp = MCPServer("shop", instructions="Buy.")
PAID: set[str] = set()


class Wish(BaseModel):
    copies: int = Field(ge=1, le=5, title="How many copies?")
    cover: Literal["hard", "soft"] = "soft"
    extras: list[Literal["card", "wrap"]] = Field(default_factory=list[Literal["card", "wrap"]])
    price: float = 1.5
    gift: bool = False
    email: str = Field(default="", max_length=40)


class Sure(BaseModel):
    sure: bool


async def wish(title: str) -> Elicit[Wish]:
    return Elicit(f"What do you want of {title}?", Wish)


async def sure(title: str) -> Elicit[Sure]:
    return Elicit(f"Buy {title}?", Sure)


async def card(title: str) -> str | ElicitUrl:
    return "card" if title in PAID else ElicitUrl("Pay there", "https://pay.example.com/here")


async def blurb(title: str) -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text=f"Praise {title}"))], max_tokens=50)


async def folders() -> ListRoots:
    return ListRoots()


@mcp.tool()
async def order(
    title: str, wish: Annotated[Wish, Resolve(wish)], sure: Annotated[Sure, Resolve(sure)], context: Context
) -> str:
    """Order a book."""
    await context.info("packing")
    return f"{title}: {wish.model_dump_json()} {sure.sure}"


@mcp.tool()
async def pay(title: str, card: Annotated[str, Resolve(card)]) -> str:
    return f"{title} paid with {card}"


@mcp.tool()
async def praise(title: str, blurb: Annotated[CreateMessageResult, Resolve(blurb)]) -> str:
    return f"{title}: {blurb.content}"


@mcp.tool()
async def index(folders: Annotated[ListRootsResult, Resolve(folders)]) -> str:
    return ", ".join(str(root.uri) for root in folders.roots)


@mcp.tool()
async def break_down() -> str:
    raise ToolError("out of order")


@mcp.prompt()
async def letter(title: str, sure: Annotated[Sure, Resolve(sure)]) -> str:
    """A letter to a reader."""
    return f"Dear reader of {title}, {sure.sure}"


@mcp.resource("shop://opening")
async def opening() -> str:
    return "nine to five"


@mcp.resource("shop://book/{title}")
async def book(title: str, sure: Annotated[Sure, Resolve(sure)]) -> str:
    return f"{title} {sure.sure}"
