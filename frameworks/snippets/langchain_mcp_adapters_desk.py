"""Tools for LangChain and LangGraph that ask a person while they wait."""

from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.types import ElicitResult


async def desk_tools(connection, person):
    async def ask(mcp_context, params, context):
        content = await person(params.message, params.requestedSchema)
        return ElicitResult(action="decline") if content is None else ElicitResult(action="accept", content=content)

    client = MultiServerMCPClient({"desk": connection}, callbacks=Callbacks(on_elicitation=ask))
    return await client.get_tools()
