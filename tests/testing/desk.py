"""A server of ours that asks in every way there is, for tests that record conversations with it at both eras."""

from typing import Annotated, Any

from mcp_types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

from bespeak import Context, Elicit, ListRoots, MCPError, MCPServer, Resolve, Sample, ToolError

VERSION = "8.77.6"
"""Its own: it must not turn up in a cassette."""
mcp = MCPServer("Desk", version=VERSION)


async def ask_city(loc: str) -> Elicit[str]:
    return Elicit(f"Which city of {loc}?", str)


City = Annotated[str, Resolve(ask_city, key="city")]


async def ask_units(city: City) -> Elicit[str]:
    return Elicit(f"Which units for {city}?", str)


async def ask_nights() -> Elicit[int]:
    return Elicit("How many nights?", int)


async def ask_model() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text="Describe it."))], max_tokens=9)


async def ask_roots() -> ListRoots:
    return ListRoots()


@mcp.tool()
async def forecast(loc: str, city: City, units: Annotated[str, Resolve(ask_units, key="units")]) -> str:
    return f"{city} in {units}"


@mcp.tool()
async def stay(loc: str, nights: Annotated[int, Resolve(ask_nights, key="nights")], city: City) -> str:
    return f"{nights} nights in {city}"


@mcp.tool()
async def describe(said: Annotated[CreateMessageResult, Resolve(ask_model, key="model")]) -> str:
    assert isinstance(said.content, TextContent)
    return said.content.text


@mcp.tool()
async def where(found: Annotated[ListRootsResult, Resolve(ask_roots, key="places")]) -> str:
    return ", ".join(str(root.uri) for root in found.roots)


@mcp.tool()
async def noisy(loc: str, ctx: Context, city: City) -> str:
    await ctx.info(f"on the way to {city}")
    await ctx.report_progress(1, 2, "half")
    return city


@mcp.tool()
async def fails(loc: str, city: City) -> str:
    raise ToolError(f"no way to {city}")


@mcp.tool()
async def refuses(loc: str, city: City) -> str:
    raise MCPError(-32000, f"no way to {city}", {"city": city})


@mcp.tool()
async def plain() -> str:
    return "asked nothing"


@mcp.tool()
async def calendar(ctx: Context) -> str | InputRequiredResult:
    opened = (ctx.input_responses or {}).get("page")
    if opened is None:
        page = ElicitRequestURLParams(message="Connect your calendar", url="https://example.com/connect")
        return InputRequiredResult(input_requests={"page": ElicitRequest(params=page)})
    assert isinstance(opened, ElicitResult)
    return opened.action


@mcp.tool()
async def herald(ctx: Context) -> str | InputRequiredResult:
    if not ctx.input_responses:
        await ctx.info("before the question")
        schema = {"type": "object", "properties": {"go": {"type": "boolean"}}}
        go_on = ElicitRequest(params=ElicitRequestFormParams(message="Go on?", requested_schema=schema))
        return InputRequiredResult(input_requests={"go": go_on})
    await ctx.info("after the answer")
    return "done"


OURS = {"desk": {"python": "tests.testing.desk:mcp"}}
BEHAVIOURS: dict[str, dict[str, Any]] = {
    "two rounds": {
        "tool": "forecast",
        "arguments": {"loc": "SFO"},
        "inputResponses": {"city": "Lisbon", "units": "C"},
    },
    "two questions": {"tool": "stay", "arguments": {"loc": "SFO"}, "inputResponses": {"city": "Lisbon", "nights": 3}},
    "sampling": {"tool": "describe", "inputResponses": {"model": {"sample": "Hills."}}},
    "roots": {"tool": "where", "inputResponses": {"places": {"roots": ["file:///maps"]}}},
    "a page": {"tool": "calendar", "inputResponses": {"page": {"url": "done"}}},
    "notifications": {"tool": "noisy", "arguments": {"loc": "SFO"}, "inputResponses": {"city": "Lisbon"}},
    "notifications on both sides": {"tool": "herald", "inputResponses": {"go": True}},
    "a decline": {
        "tool": "forecast",
        "arguments": {"loc": "SFO"},
        "inputResponses": {"city": "decline"},
        "expect": {"isError": True},
    },
    "a failing tool": {
        "tool": "fails",
        "arguments": {"loc": "SFO"},
        "inputResponses": {"city": "Lisbon"},
        "expect": {"isError": True},
    },
    "an error": {
        "tool": "refuses",
        "arguments": {"loc": "SFO"},
        "inputResponses": {"city": "Lisbon"},
        "expect": {"error": {"code": -32000}},
    },
    "no question": {"tool": "plain"},
    "a call afterwards": {
        "tool": "plain",
        "verify": [{"tool": "plain"}, {"tool": "describe", "inputResponses": {"model": {"sample": "Hills."}}}],
    },
}
"""What it does, as the tests of a suite."""
