"""An agent that asks a person while a tool waits."""

from fastmcp.client.elicitation import ElicitResult
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset


def desk_agent(target, model, person):
    async def ask(message, response_type, params, context):
        content = await person(message, params.requested_schema)
        return ElicitResult(action="decline") if content is None else ElicitResult(action="accept", content=content)

    return Agent(model, toolsets=[MCPToolset(target, elicitation_handler=ask)])
