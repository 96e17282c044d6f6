# pyright: basic, reportMissingImports=false
"""A travel desk written with the official Python SDK: on stdio, or over HTTP when a port is given.

The same desk as interop/desk.mjs, word for word. The keys of its resolvers' questions are the SDK's own.
"""

import sys
from typing import Annotated, Literal

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, ListRoots, Resolve, Sample
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel, Field

mcp = MCPServer("travel-desk", version="1.0.0")
PAST = {"decline": "declined", "cancel": "cancelled"}


class Dates(BaseModel):
    arrival: str = Field(json_schema_extra={"format": "date"})
    nights: int = Field(ge=1, le=30)


class Room(BaseModel):
    room: Literal["single", "double"]


async def ask_dates(city: str) -> Elicit[Dates]:
    return Elicit(f"When do you want to be in {city}?", Dates)


async def ask_room(
    city: str, dates: Annotated[ElicitationResult[Dates], Resolve(ask_dates)]
) -> Room | Elicit[Room] | None:
    if not isinstance(dates, AcceptedElicitation):
        return None
    return Elicit(f"Which room {stay(city, dates.data)}?", Room)


@mcp.tool()
async def book_trip(
    city: str,
    dates: Annotated[ElicitationResult[Dates], Resolve(ask_dates)],
    room: Annotated[ElicitationResult[Room], Resolve(ask_room)],
) -> CallToolResult:
    """Book a trip to a city."""
    if not isinstance(dates, AcceptedElicitation):
        return told(f"No trip to {city} was booked: the dates were {PAST[dates.action]}.")
    if not isinstance(room, AcceptedElicitation):
        return told(f"No trip to {city} was booked: the room was {PAST[room.action]}.")
    booked = {"city": city, "arrival": dates.data.arrival, "nights": dates.data.nights, "room": room.data.room}
    return told(f"Booked a {room.data.room} room {stay(city, dates.data)}.", **booked)


def stay(city: str, dates: Dates) -> str:
    return f"in {city}, from {dates.arrival} for {dates.nights} nights"


async def ask_description(city: str) -> Sample:
    question = TextContent(type="text", text=f"Describe {city} in one sentence.")
    return Sample(
        [SamplingMessage(role="user", content=question)],
        system_prompt="You work at a travel desk.",
        max_tokens=100,
    )


@mcp.tool()
async def describe_city(city: str, answer: Annotated[CreateMessageResult, Resolve(ask_description)]) -> CallToolResult:
    """Describe a city."""
    description = answer.content.text if isinstance(answer.content, TextContent) else ""
    return told(f"{city}: {description}", city=city, description=description)


async def ask_roots() -> ListRoots:
    return ListRoots()


@mcp.tool()
async def where_am_i(listed: Annotated[ListRootsResult, Resolve(ask_roots)]) -> CallToolResult:
    """Say where the client works."""
    roots = [str(root.uri) for root in listed.roots]
    return told(f"You are in {' and '.join(roots)}." if roots else "You are nowhere.", roots=roots)


@mcp.tool()
async def connect_calendar(ctx: Context) -> CallToolResult | InputRequiredResult:
    """Connect a calendar."""
    answer = (ctx.input_responses or {}).get("calendar")
    if ctx.request_state is None or not isinstance(answer, ElicitResult):
        check_url_is_declared(ctx)
        asked = ElicitRequestURLParams(message="Connect your calendar.", url="https://calendar.example/connect")
        return InputRequiredResult(
            input_requests={"calendar": ElicitRequest(params=asked)}, request_state="connect_calendar"
        )
    if answer.action == "accept":
        return told("The calendar page was opened.", opened=True)
    return told(f"No calendar was connected: the page was {PAST[answer.action]}.", opened=False)


def check_url_is_declared(ctx: Context) -> None:
    """The SDK sees to this where resolvers ask, and leaves it to whoever asks by hand."""
    declared = ctx.client_capabilities
    if declared is None or declared.elicitation is None or declared.elicitation.url is None:
        required = {"requiredCapabilities": {"elicitation": {"url": {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "connect_calendar sends people to a page", required)


def told(text: str, **structured: object) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=structured or None)


if __name__ == "__main__":
    if sys.argv[1:]:
        mcp.run("streamable-http", port=int(sys.argv[1]))
    else:
        mcp.run("stdio")
