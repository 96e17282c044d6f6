"""A server that asks the client's model for a text, and the client for its roots."""

from typing import Annotated

from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent

from bespeak import ListRoots, MCPServer, Resolve, Sample

mcp = MCPServer("Questions", version="1.0.0")


async def ask_model() -> Sample:
    asked = SamplingMessage(role="user", content=TextContent(type="text", text="Say hello."))
    return Sample([asked], max_tokens=10)


async def ask_roots() -> ListRoots:
    return ListRoots()


@mcp.tool()
async def ask_the_model(answer: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """Return what the client's model says."""
    return answer.content.text if isinstance(answer.content, TextContent) else "not a text"


@mcp.tool()
async def ask_for_roots(answer: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    """Return the client's roots."""
    return " ".join(str(root.uri) for root in answer.roots)
