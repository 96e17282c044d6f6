"""`langchain-mcp-adapters`, the older adapter of LangChain: it speaks 2025-11-25, and a callback answers while the tool waits."""

import json
from typing import Any

from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from mcp import McpError

from frameworks.checks import (
    DECLINED,
    LEGACY,
    NO_FORMS,
    NO_ROOTS,
    NO_SAMPLING,
    NOTHING_ASKED,
    NOTHING_ASKED_REFUNDED,
    REFUND,
    REFUNDED,
    RESTOCK,
    SCOPE,
    Person,
    Servers,
    contains,
    equal,
    main,
)
from frameworks.snippets import langchain_mcp_adapters_desk


def over_http(url: str) -> dict[str, Any]:
    return {"transport": "streamable_http", "url": url}


async def refund(connection, person, arguments=REFUND) -> str:
    (tool,) = await langchain_mcp_adapters_desk.desk_tools(connection, person)
    return await text(tool, arguments)


async def text(tool, arguments) -> str:
    """What the model would read."""
    message = await tool.ainvoke({"type": "tool_call", "id": "1", "name": tool.name, "args": arguments})
    return message.text


async def speaks_the_older_era(servers: Servers) -> None:
    client = MultiServerMCPClient({"desk": over_http(servers.desk)})
    async with client.session("desk", auto_initialize=False) as session:
        equal((await session.initialize()).protocolVersion, LEGACY)


async def asks_nothing(servers: Servers) -> None:
    person = Person()
    equal(json.loads(await refund(over_http(servers.desk), person, NOTHING_ASKED)), NOTHING_ASKED_REFUNDED)
    equal(person.asked, [])


async def asks_twice(servers: Servers) -> None:
    person = Person()
    equal(json.loads(await refund(over_http(servers.desk), person)), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])


async def asks_over_stdio(servers: Servers) -> None:
    person = Person()
    command, *arguments = servers.desk_command
    equal(json.loads(await refund({"transport": "stdio", "command": command, "args": arguments}, person)), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])


async def declines(servers: Servers) -> None:
    contains(await refund(over_http(servers.desk), Person(full=None)), DECLINED)


async def cannot_be_asked(servers: Servers) -> None:
    (tool,) = await MultiServerMCPClient({"desk": over_http(servers.desk)}).get_tools()
    contains(await failing(text(tool, REFUND)), NO_FORMS)


async def interrupt_in_a_callback(servers: Servers) -> None:
    """A callback cannot suspend the run."""

    async def ask(mcp_context, params, context):
        return interrupt(params.message)

    client = MultiServerMCPClient({"desk": over_http(servers.desk)}, callbacks=Callbacks(on_elicitation=ask))
    (tool,) = await client.get_tools()

    async def node(state):
        return {"said": await text(tool, REFUND)}

    graph = StateGraph(dict)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    ended = await graph.compile(checkpointer=InMemorySaver()).ainvoke({}, {"configurable": {"thread_id": "1"}})
    contains(ended["said"], "the client answered with an error (-32602)")


async def no_sampling_no_roots(servers: Servers) -> None:
    """There is no option for either."""
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"q": over_http(servers.questions)}).get_tools()}
    contains(await failing(text(tools["ask_the_model"], {})), NO_SAMPLING)
    contains(await failing(text(tools["ask_for_roots"], {})), NO_ROOTS)


async def failing(call) -> str:
    """What a call raises."""
    try:
        said = await call
    except McpError as error:
        return str(error)
    raise AssertionError(f"nothing was raised, but returned: {said}")


CHECKS = {
    "speaks 2025-11-25": speaks_the_older_era,
    "no question": asks_nothing,
    "two questions": asks_twice,
    "two questions, stdio": asks_over_stdio,
    "declined": declines,
    "no callback": cannot_be_asked,
    "interrupt() in a callback": interrupt_in_a_callback,
    "no sampling, no roots": no_sampling_no_roots,
}

if __name__ == "__main__":
    main(CHECKS)
