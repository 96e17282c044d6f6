"""An agent that asks a person while a tool waits."""

from agents import Agent, Runner
from agents.mcp import MCPServer
from mcp import Client
from mcp.types import ElicitResult


class AskingServer(MCPServer):
    """A server of the Agents SDK whose questions reach a person. Its own servers have no option for that."""

    def __init__(self, target, person, **options):
        super().__init__()

        async def ask(context, params):
            content = await person(params.message, params.requested_schema)
            return ElicitResult(action="decline") if content is None else ElicitResult(action="accept", content=content)

        self._client = Client(target, elicitation_callback=ask, **options)

    @property
    def name(self):
        return "desk"

    async def connect(self):
        await self._client.__aenter__()

    async def cleanup(self):
        await self._client.__aexit__(None, None, None)

    async def list_tools(self, run_context=None, agent=None):
        return (await self._client.list_tools()).tools

    async def call_tool(self, tool_name, arguments, meta=None):
        return await self._client.call_tool(tool_name, arguments or {})

    async def list_prompts(self):
        return await self._client.list_prompts()

    async def get_prompt(self, name, arguments=None):
        return await self._client.get_prompt(name, arguments)


async def run(server, model, text):
    await server.connect()
    try:
        return (await Runner.run(Agent("desk", model=model, mcp_servers=[server]), text)).final_output
    finally:
        await server.cleanup()
