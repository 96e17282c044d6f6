"""An agent that asks a person while a tool waits."""

from contextlib import asynccontextmanager

from agno.agent import Agent
from agno.tools.mcp import MCPTools
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult


@asynccontextmanager
async def desk_agent(target, model, person):
    async def ask(message, response_type, params, context):
        content = await person(message, params.requested_schema)
        return ElicitResult(action="decline") if content is None else ElicitResult(action="accept", content=content)

    async with Client(target, elicitation_handler=ask) as client, MCPTools(session=client) as tools:
        yield Agent(model=model, tools=[tools])
