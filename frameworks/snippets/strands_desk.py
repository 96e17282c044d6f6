"""An agent that asks a person while a tool waits."""

from mcp.types import ElicitResult
from strands import Agent
from strands.tools.mcp import MCPClient


def desk_agent(url, model, person):
    async def ask(context, params):
        content = await person(params.message, params.requested_schema)
        return ElicitResult(action="decline") if content is None else ElicitResult(action="accept", content=content)

    return Agent(model=model, tools=[MCPClient(url=url, elicitation_callback=ask)])
